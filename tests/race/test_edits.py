"""An edit beside all else that can become of its letter: one wins, the other is told, and nothing is lost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import transaction

from reprocessing.domain.message.envelope import unpack
from reprocessing.domain.message.redrive_attributes import MarkNames
from reprocessing.models import Payload, Review, Revision
from reprocessing.pipeline.parking_lot import act_on_parked, edit
from reprocessing.pipeline.parking_lot.edit import Alteration, Edited, Overtaken, Seen, Unsendable
from tests.race.abreast import elsewhere, together, waits_for_us
from tests.reprocessing.pipeline.bench import Workbench

pytestmark = pytest.mark.django_db(transaction=True)

BODY, MENDED, OTHER = '{"total": 1}', b'{"total": 2}', b'{"total": 3}'


def _parked() -> tuple[Workbench, Seen, dict[str, Any]]:
    """A letter that was sent, came back and is parked; and what was sent."""
    bench = Workbench(fields={"max_attempts": 1})
    bench.bury(BODY)
    bench.ready()
    bench.replay()
    (sent,) = bench.delivered()
    bench.come_back(sent)
    bench.capture()
    letter = bench.letter()
    assert letter.finished_at
    assert letter.state == "parked"
    return bench, Seen(letter.finished_at, 0), sent


def _edit(
    bench: Workbench, seen: Seen, body: bytes, *, by: str, replay: bool = False
) -> Edited | Overtaken | Unsendable:
    letter = bench.letter().pk
    to = Alteration(body, unpack(bytes(Payload.objects.get(letter=letter).attributes)))
    return edit.letter(letter, seen, to, names=MarkNames(), by=by, reason="a typo", replay=replay)


def _told(found: object, by: str, what: str) -> bool:
    return isinstance(found, Overtaken) and found.why.startswith(f"it is not as you saw it any more: {by} {what} it")


def test_of_two_edits_at_once_one_is_made_and_the_other_is_told_by_whom() -> None:
    bench, seen, _ = _parked()
    with elsewhere() as begin:
        with transaction.atomic():
            assert _edit(bench, seen, MENDED, by="anna") == Edited(1)
            second = begin(lambda: _edit(bench, seen, OTHER, by="ben"))
            waits_for_us()
        assert _told(second.result(20), "anna", "edited")
    assert [(one.no, one.by, bytes(one.body)) for one in Revision.objects.all()] == [(1, "anna", MENDED)]
    assert list(Review.objects.filter(act="edited").values_list("by", flat=True)) == ["anna"]


@pytest.mark.parametrize("round_", range(3))
def test_whoever_of_two_is_first_the_letter_has_one_edit_and_both_know(round_: int) -> None:
    bench, seen, _ = _parked()
    found = together([
        lambda: _edit(bench, seen, MENDED, by="anna", replay=True),
        lambda: _edit(bench, seen, OTHER, by="ben", replay=True),
    ])  # fmt: skip
    made = Revision.objects.get()
    (winner,) = [name for name, one in zip(("anna", "ben"), found, strict=True) if one == Edited(1)]
    (told,) = [one for one in found if one != Edited(1)]
    assert _told(told, winner, "released")
    assert (made.by, bench.letter().state) == (winner, "waiting")
    assert bench.replay().taken == 1
    assert bench.delivered()[0]["Body"].encode() == {"anna": MENDED, "ben": OTHER}[winner]


def test_an_edit_that_waited_for_a_release_changes_nothing_of_what_is_sent() -> None:
    bench, seen, _ = _parked()
    with elsewhere() as begin:
        with transaction.atomic():
            assert act_on_parked.release([bench.letter().pk], by="anna", reason="mended").refused == {}
            editing = begin(lambda: _edit(bench, seen, MENDED, by="ben"))
            waits_for_us()
        assert _told(editing.result(20), "anna", "released")
    assert Revision.objects.count() == 0
    bench.replay()
    assert [one["Body"] for one in bench.delivered()] == [BODY]


def test_a_release_that_waited_for_an_edit_sends_what_was_made() -> None:
    bench, seen, _ = _parked()
    with elsewhere() as begin:
        with transaction.atomic():
            assert _edit(bench, seen, MENDED, by="anna") == Edited(1)
            releasing = begin(lambda: act_on_parked.release([bench.letter().pk], by="ben", reason="mended"))
            waits_for_us()
        assert releasing.result(20).refused == {}
    bench.replay()
    assert [one["Body"].encode() for one in bench.delivered()] == [MENDED]


def test_an_edit_that_waited_for_a_discard_is_told_of_it() -> None:
    bench, seen, _ = _parked()
    with elsewhere() as begin:
        with transaction.atomic():
            act_on_parked.discard([bench.letter().pk], by="anna", reason="of no use")
            editing = begin(lambda: _edit(bench, seen, MENDED, by="ben", replay=True))
            waits_for_us()
        assert _told(editing.result(20), "anna", "discarded")
    assert (Revision.objects.count(), bench.letter().state) == (0, "discarded")


@pytest.mark.parametrize("round_", range(3))
def test_a_return_beside_an_edit_is_known_and_the_letter_is_there_once(round_: int) -> None:
    """What was sent before the edit turns up once more, while it is edited and released."""
    bench, seen, sent = _parked()
    bench.come_back(sent)
    works: list[Callable[[], object]] = [
        lambda: _edit(bench, seen, MENDED, by="anna", replay=True), lambda: bench.capture().captured.letters,
    ]  # fmt: skip
    assert together(works) == [Edited(1), 0]
    bench.replay()
    assert bytes(bench.letter().body_hash) == bytes(Revision.objects.get().body_hash)
    assert [one["Body"].encode() for one in bench.delivered()] == [MENDED]
    assert bench.letter().state == "delivered"
