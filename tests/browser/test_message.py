"""A message in a browser: payload, edit, and two people who decide."""

from __future__ import annotations

import pytest

from reprocessing.models import AuditAct, AuditEntry, Letter, Revision
from tests.browser.chromium import PHONE
from tests.browser.conftest import EDITOR, OPERATOR, Opening
from tests.reprocessing.admin.parking_lot.parked_messages import dlq, parked

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.soak]

CARD = "4111-1111-1111-1111"
BODY = b'{"card": "%b", "total": 1}' % CARD.encode()


def lot(letter: Letter) -> str:
    return f"/admin/reprocessing/parkedletter/{letter.pk}/change/"


def test_a_payload_is_covered_until_somebody_asks_for_it(window: Opening) -> None:
    letter = parked(dlq(), body=BODY)
    ann, ben = window("ann", EDITOR, size=PHONE), window("ben", OPERATOR)
    ann.open(lot(letter))
    assert CARD not in ann.reads()
    ann.press("Show payload")
    ann.sees(CARD)
    assert list(AuditEntry.objects.values_list("act", "by", "letter")) == [(AuditAct.REVEALED, "ann", letter.pk)]
    ann.open(lot(letter))
    assert CARD not in ann.reads()
    ben.open(lot(letter))
    assert "You may not see payloads" in ben.reads("#payload")
    assert ben.ask("document.querySelector('#payload form')") is None


def test_on_a_phone_no_table_of_a_letter_scrolls_sideways(window: Opening) -> None:
    letter = parked(dlq(), body=BODY)
    for n in range(2):
        AuditEntry.objects.create(
            letter=letter, dlq=letter.dlq, act=AuditAct.NOTED, by="ann", reason=f"reason-{n} " * 40
        )
    ann = window("ann", EDITOR, size=PHONE)
    ann.open(lot(letter))
    ann.ask("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    wide = "[...document.querySelectorAll('.wide')].filter((one) => one.scrollWidth > one.clientWidth).length"
    cells = "[...document.querySelectorAll('.wide td:not([colspan])')]"
    assert (ann.ask(wide), ann.ask(f"{cells}.filter((one) => !one.dataset.label).length")) == (0, 0)
    assert ann.ask(f"{cells}.length") >= 10


def test_an_edit_is_looked_at_before_it_is_made(window: Opening) -> None:
    letter = parked(dlq(), body=BODY)
    ann = window("ann", EDITOR)
    ann.open(lot(letter))
    ann.press("Edit…")
    ann.write("Exactly this text is sent", BODY.decode().replace('"total": 1', '"total": 2'))
    ann.press("Preview")
    ann.sees('"total": 2', where=".put-in")
    ann.sees('"total": 1', where=".taken-out")
    assert not Revision.objects.exists()
    ann.write("Reason", "the total was wrong")
    ann.tick("input[name=then][value=replay]")
    ann.press("Save edit")
    ann.sees("Edit 1 is saved. The message is queued.")
    revision = Revision.objects.get()
    assert (revision.by, revision.reason) == ("ann", "the total was wrong")
    assert bytes(revision.body) == BODY.replace(b'"total": 1', b'"total": 2')
    letter.refresh_from_db()
    assert letter.state == "waiting"


def test_of_two_reviewers_one_wins_and_the_other_is_told_in_the_page(window: Opening) -> None:
    letter = parked(dlq())
    ann, ben = window("ann", OPERATOR), window("ben", OPERATOR)
    for one, action in ((ann, "Release…"), (ben, "Discard…")):
        one.open(lot(letter))
        one.press(action)
        one.write("Reason", f"{action} it is")
    ann.press("Release")
    ann.sees("1 message released")
    ben.press("Discard")
    ben.sees(f"Message {letter.message_id} was skipped: it is no longer parked: it is waiting.")
    letter.refresh_from_db()
    assert (letter.state, letter.released_by) == ("waiting", "ann")
    assert list(AuditEntry.objects.exclude(letter=None).values_list("act", "by")) == [(AuditAct.RELEASED, "ann")]
