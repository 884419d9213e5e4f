from __future__ import annotations

import re
from datetime import timedelta

import pytest

from reprocessing.admin.parking_lot.decision import pack_messages
from reprocessing.models import DeadLetterQueue, Letter, Revision
from tests.reprocessing.admin.parking_lot.parked_messages import DECIDES, LOOKS, dlq, parked, person, post

pytestmark = pytest.mark.django_db
LOT = "/admin/reprocessing/parkedletter/"


def _edited(letter: Letter, *, after: timedelta) -> None:
    """Edit a letter this long after it was parked."""
    assert letter.finished_at
    edit = Revision.objects.create(
        letter=letter, no=1, body=b"{}", attributes=b"", body_hash=b"a", previous_body_hash=b"b", size=2, by="ann",
        reason="a test", at=letter.finished_at + after,
    )  # fmt: skip
    Letter.objects.filter(pk=letter.pk).update(revision=edit)


def _warning(page: str) -> str:
    found = re.search(r"<p><strong>(\d+ messages? \w+ unchanged since .*?)</strong></p>", page)
    return found[1] if found else ""


@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("reason", ["attempts_spent", "quarantined"])
def test_release_warns_of_messages_that_fail_again(reason: str, n: int) -> None:
    source, second = dlq(), timedelta(seconds=1)
    letters = [parked(source, reason=reason) for _ in range(3)]
    _edited(letters[0], after=second)
    _edited(letters[1], after=second if n == 1 else -second)
    letters.append(parked(source, reason="stale"))
    ann = person("ann", *DECIDES)
    ticked = post(ann, f"{LOT}release", letters=pack_messages(Letter.objects.all()))
    whole = post(ann, f"{LOT}release", scope="all", query="")
    told = {
        1: "1 message is unchanged since it was parked. If the consumer is not fixed, it fails again",
        2: "2 messages are unchanged since they were parked. If the consumer is not fixed, they fail again",
    }
    assert [_warning(page) for page in (ticked, whole)] == [f"{told[n]} and can open the circuit breaker."] * 2
    assert _warning(post(ann, f"{LOT}discard", scope="all", query="")) == ""


def test_release_does_not_warn_of_edited_messages_and_other_reasons() -> None:
    source = dlq()
    parked(source, reason="stale")
    _edited(parked(source), after=timedelta(0))
    page = post(person("ann", *DECIDES), f"{LOT}release", scope="all", query="")
    assert ("2 messages" in page, _warning(page)) == (True, "")


def test_release_folds_the_sentences_about_mode_automatic() -> None:
    letter = parked(dlq())
    DeadLetterQueue.objects.update(mode="automatic")
    page = post(person("ann", *DECIDES), f"{LOT}release", letters=pack_messages([letter]))
    folded = re.search(r"<details><summary>More attempts in mode automatic</summary>(.*?)</details>", page)
    assert folded
    assert (page.count("In mode automatic"), "In mode automatic" in folded[1]) == (1, True)


def test_page_of_a_parked_message_opens_its_release_and_discard() -> None:
    letter = parked(dlq())
    address = f"/admin/reprocessing/letter/{letter.pk}/change/"
    page, viewed = (person(name, *may).get(address).content.decode() for name, may in (("a", DECIDES), ("b", LOOKS)))
    for action in ("release", "discard"):
        form = f'<form method="post" action="{LOT}{action}">'
        assert (page.count(form), viewed.count(form)) == (1, 0)
        assert f"It needs the permission to {action} parked messages" in viewed
    assert f'name="letters" value="{pack_messages([letter])}"' in page
    assert "restore" not in page
