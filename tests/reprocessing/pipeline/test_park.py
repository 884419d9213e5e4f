"""The parking lot: what people decide, recorded with the deed."""

from __future__ import annotations

import pytest
from django.db import DatabaseError, connection

from reprocessing.models import (
    DeadLetter,
    DeadLetterQueue,
    Origin,
    Payload,
    Review,
    Run,
    Target,
    lanes,
    operations,
    parking,
)
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


def _of_unknown_origin(system: dict[str, str] | None = None) -> Workbench:
    bench = Workbench()
    bench.origin.delete()
    bench.bury("letter")
    bench.ready()
    assert (bench.letter().state, bench.letter().reason) == ("parked", "unknown_origin")
    if system:
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE redrive_payload DISABLE TRIGGER payloads_never_change")
            Payload.objects.filter(letter=bench.letter()).update(system=system)
            cursor.execute("ALTER TABLE redrive_payload ENABLE TRIGGER payloads_never_change")
    return bench


def _name(bench: Workbench, *, arn: str | None = None) -> Origin:
    return Origin.objects.create(dlq=bench.dlq, arn=arn or bench.target.arn, target=bench.target)


def _elsewhere(bench: Workbench) -> Origin:
    url = bench.queue(f"{bench.name}-elsewhere")
    target = Target.objects.create(arn=bench.arn(url), url=url, region="eu-west-1")
    return Origin.objects.create(dlq=bench.dlq, arn=target.arn, target=target)


def test_a_letter_of_unknown_origin_is_released_to_the_one_queue_that_was_named_since() -> None:
    bench = _of_unknown_origin()
    letter = bench.letter().pk
    assert park.release([letter], by="anna", reason="go").refused == {
        letter: f"the queue it goes back to is not known; name it with add_dlq {bench.name} --origin URL --confirm"
    }
    _name(bench)
    assert park.release([letter], by="anna", reason="named").done == (letter,)
    bench.replay()
    assert (bench.states(), [one["Body"] for one in bench.delivered()]) == ({"letter": "delivered"}, ["letter"])


def test_of_several_queues_named_since_it_goes_to_the_default_and_is_never_guessed() -> None:
    bench = _of_unknown_origin()
    letter, here = bench.letter().pk, _name(bench)
    _elsewhere(bench)
    assert list(park.release([letter], by="anna", reason="named").refused) == [letter]
    DeadLetterQueue.objects.filter(pk=bench.dlq.pk).update(default_origin=here)
    assert park.release([letter], by="anna", reason="named").done == (letter,)
    assert (bench.letter().origin, bench.letter().target) == (here, bench.target)


def test_a_letter_that_says_where_it_died_goes_nowhere_else() -> None:
    bench = _of_unknown_origin({"DeadLetterQueueSourceArn": "arn:aws:sqs:eu-west-1:0:gone"})
    letter, _ = bench.letter().pk, _elsewhere(bench)
    refusal = park.release([letter], by="anna", reason="named").refused[letter]
    assert refusal.endswith("it died in arn:aws:sqs:eu-west-1:0:gone")
    named = _name(bench, arn="arn:aws:sqs:eu-west-1:0:gone")
    assert park.release([letter], by="anna", reason="named").done == (letter,)
    assert bench.letter().origin == named


def test_a_letter_of_unknown_origin_can_be_discarded() -> None:
    bench = _of_unknown_origin()
    assert park.discard([bench.letter().pk], by="anna", reason="no use").done == (bench.letter().pk,)


def test_a_letter_released_into_a_paused_run_waits_for_that_one_to_go_on() -> None:
    bench = Workbench()
    bench.bury("letter")
    run = bench.ready()
    DeadLetter.objects.update(state="parked", reason="refused", finished_at=lanes.clock())
    operations.pause(run.pk, by="anna", reason="the consumer is broken")
    assert park.release([bench.letter().pk], by="ben", reason="mended").done
    assert (bench.letter().run_id, Run.objects.count(), bench.replay().taken) == (run.pk, 1, 0)
    operations.resume(run.pk, by="anna", reason="mended")
    assert bench.replay().taken == 1
