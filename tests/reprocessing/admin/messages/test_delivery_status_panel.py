from __future__ import annotations

import html

import pytest
from django.test import Client

from reprocessing.models import Attempt, Letter, Report, Reporter, Target
from reprocessing.models.system import RestoreDecision
from reprocessing.store import rows
from reprocessing.store.maintenance import restore_doubts, restore_hold
from reprocessing.store.ordering.lanes import database_now
from tests.reprocessing.admin.parking_lot.parked_messages import LOOKS, dlq, parked, person, revealed

pytestmark = pytest.mark.django_db

SCRIPT = "<script>alert(1)</script>"


def page(client: Client, letter: Letter) -> str:
    return client.get(f"/admin/reprocessing/letter/{letter.pk}/change/").content.decode()


def reported(digest: bytes, **said: object) -> None:
    values = {"verdict": "failed", "happened_at": database_now(), "received_at": database_now(), "digest": digest}
    Report.objects.create(**{**values, **said})


def test_delivery_status_and_its_time_are_shown() -> None:
    letter = parked(dlq())
    Attempt.objects.filter(letter=letter).update(returned_at=database_now())
    text = page(person("ann", *LOOKS), letter)
    assert '<p class="answer">It failed: it came back to a DLQ. It is parked for review. (failed, since ' in text


@pytest.mark.parametrize(("word", "told"), [("delivered", "delivered"), ("replay", "redrive")])
def test_decision_after_a_restore_is_shown(word: RestoreDecision, told: str) -> None:
    letter = parked(dlq())
    ann = person("ann", *LOOKS)
    assert "restored from a backup" not in page(ann, letter)
    Letter.objects.filter(pk=letter.pk).update(state="waiting", reason="", finished_at=None)
    restore_hold.begin_hold(database_now(), by="eva", reason="a disk died")
    found = restore_doubts.doubted_letters(dlq=None, above=0, limit=1)
    rows.in_transaction(
        lambda: restore_doubts.record_decision(found, RestoreDecision(word), by="ben", reason=f"I asked {SCRIPT}")
    )
    said = f"<b>ben</b> decided: {told} (“I asked {html.escape(SCRIPT)}”, "
    assert said in page(ann, letter).partition("<details")[0]


@pytest.mark.soak
def test_consumer_reports_take_the_permission_to_see_payloads() -> None:
    letter = parked(dlq())
    reported(b"1", message_id=letter.message_id, type="KeyError", message=f"c-canary{SCRIPT}", fingerprint="f-canary")
    reported(b"2", public_id=letter.public_id, attempt_no=1, type="Timeout\u202e")
    reported(b"3", message_id="another's", type="Other-canary")
    ben = person("ben", *LOOKS, "view_payload")
    seen, covered, shown = page(person("ann", *LOOKS), letter), page(ben, letter), revealed(ben, letter)
    canaries = ("KeyError", "c-canary", "f-canary", "Timeout")
    assert [one in text for text in (seen, covered) for one in canaries] == [False] * 8
    assert "You may not see consumer reports" in seen
    assert [one in shown for one in canaries] == [True] * 4
    assert [one in shown for one in (SCRIPT, "Other-canary", "\u202e")] == [False] * 3
    assert [one in html.unescape(shown) for one in ("first failure", ">attempt 1</td>", "Timeout<U+202E>")] == (
        [True] * 3
    )


def test_reports_of_other_consumers_are_not_shown() -> None:
    letter = parked(dlq())
    stranger = Reporter.objects.create(name="stranger", token_hash=b"1", added_by="ann")
    stranger.targets.set([Target.objects.create(arn="arn:else", url="u", region="r")])
    reported(b"1", message_id=letter.message_id, type="Stranger-canary", reporter=stranger)
    client = person("ann", *LOOKS, "view_payload")
    assert "Stranger-canary" not in revealed(client, letter)
    assert letter.target
    stranger.targets.add(letter.target)
    assert "Stranger-canary" in revealed(client, letter)


def test_a_shown_payload_without_consumer_reports_says_so() -> None:
    letter, ann = parked(dlq()), person("ann", *LOOKS, "view_payload")
    assert ["No consumer reports." in text for text in (page(ann, letter), revealed(ann, letter))] == [False, True]
