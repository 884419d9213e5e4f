"""The parking lot: what people decide, recorded with the deed."""

from __future__ import annotations

import pytest
from django.db import DatabaseError

from reprocessing.models import DeadLetter, Review, Run, parking
from reprocessing.pipeline import park
from tests.reprocessing.pipeline.bench import Workbench

pytestmark = pytest.mark.django_db(transaction=True)


def _parked(**fields: object) -> Workbench:
    bench = Workbench(fields={"max_attempts": 1, **fields})
    bench.bury("letter")
    bench.ready()
    with bench.refusing("letter"):
        bench.replay()
    assert bench.letter().state == "parked"
    return bench


def test_a_released_letter_has_as_many_attempts_anew_as_its_dlq_allows() -> None:
    bench = _parked(max_attempts=2)
    assert park.release([bench.letter().pk], by="anna", reason="mended").done == (bench.letter().pk,)
    with bench.refusing("letter"):
        bench.replay()
    assert (bench.letter().state, bench.letter().attempts) == ("parked", 4)
    park.release([bench.letter().pk], by="anna", reason="mended")
    bench.replay()
    assert (bench.letter().state, [no for no, _, _ in bench.history()]) == ("delivered", [1, 2, 3, 4, 5])


@pytest.mark.parametrize(
    ("deed", "act", "after"), [(park.release, "released", "waiting"), (park.discard, "discarded", "discarded")]
)
def test_who_decided_and_why_is_recorded_with_the_deed(deed: object, act: str, after: str) -> None:
    bench = _parked()
    deed([bench.letter().pk], by="anna", reason="because")  # type: ignore[operator]
    review = Review.objects.get()
    assert (review.act, review.letter_id, review.dlq_id) == (act, bench.letter().pk, bench.dlq.pk)
    assert (review.by, review.reason, review.before, review.after) == (
        "anna", "because", {"state": "parked"}, {"state": after},
    )  # fmt: skip
    assert bench.letter().released_by == ("anna" if act == "released" else None)


@pytest.mark.parametrize("deed", [park.release, park.discard])
def test_what_cannot_be_recorded_is_not_done(deed: object, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = _parked()

    def fails(*_: object, **__: object) -> None:
        raise DatabaseError("gone")

    monkeypatch.setattr(parking, "record", fails)
    with pytest.raises(DatabaseError):
        deed([bench.letter().pk], by="anna", reason="because")  # type: ignore[operator]
    assert bench.letter().state == "parked"


@pytest.mark.parametrize(("by", "reason"), [("", "because"), ("anna", " ")])
def test_nobody_decides_without_a_name_and_a_reason(by: str, reason: str) -> None:
    bench = _parked()
    with pytest.raises(ValueError, match="who decided, and why"):
        park.discard([bench.letter().pk], by=by, reason=reason)
    assert bench.letter().state == "parked"


def test_what_is_no_longer_parked_is_left_alone_and_said_so() -> None:
    bench = _parked()
    letter = bench.letter().pk
    park.discard([letter], by="anna", reason="of no use")
    again = park.release([letter, 0], by="ben", reason="no, it is")
    assert again.done == ()
    assert again.refused == {letter: "it is no longer parked: it is discarded", 0: "there is no such letter"}
    assert (bench.letter().state, Review.objects.count()) == ("discarded", 1)


def test_a_letter_released_after_its_run_has_ended_gets_a_run() -> None:
    bench = _parked()
    Run.objects.update(state="finished")
    park.release([bench.letter().pk], by="anna", reason="mended")
    assert bench.replay().taken == 1
    assert Run.objects.get(letters=bench.letter()).asked_by == "anna"


def test_a_letter_of_an_unknown_origin_is_not_released_to_a_guess() -> None:
    bench = _parked()
    DeadLetter.objects.update(lane=None, origin=None, target=None)
    (why,) = park.release([bench.letter().pk], by="anna", reason="try").refused.values()
    assert "the queue it goes back to is not known" in why
    assert bench.letter().state == "parked"
