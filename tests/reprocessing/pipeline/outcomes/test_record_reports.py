"""Consumer reports are recorded once, in any order, and applied to their letters."""

from __future__ import annotations

import json
import uuid
from io import StringIO
from itertools import permutations
from typing import Any

import pytest
from django.core.management import call_command

from reprocessing.models import Attempt, Breaker, Claim, DeadLetterQueue, DlqCopy, Report, Reporter, Target
from reprocessing.pipeline.outcomes import record_reports
from reprocessing.pipeline.outcomes.record_reports import Recorded
from reprocessing.pipeline.parking_lot import act_on_parked
from reprocessing.store.outcomes import delivery_status
from reprocessing.store.runs import progress
from tests.reprocessing.pipeline.bench import Clock, Workbench, enqueued, redriven

pytestmark = pytest.mark.django_db(transaction=True)

WINDOW = 100.0
ACKNOWLEDGED = {"proof": "acknowledged", "advance": "settled", "window": WINDOW}


def bench_of(*bodies: str, watched: bool = False, **fields: Any) -> Workbench:  # noqa: ANN401  those of the dlq
    bench = Workbench(fields={"idempotency_key": "attribute:idem", **fields}, target_fields=ACKNOWLEDGED)
    if watched:
        Target.objects.filter(pk=bench.target.pk).update(watched_by=bench.dlq)
    for body in bodies or ("letter",):
        bench.bury(body, idem=body)
    bench.ready()
    bench.replay()
    return bench


def silent_bench(clock: Clock) -> Workbench:
    bench = bench_of()
    clock.advance(WINDOW + 1)
    bench.promote()
    return bench


def say(verdict: str, body: str = "letter", **said: str) -> dict[str, str]:
    """A report on the newest attempt of a letter, by its message id at the target."""
    attempt = Attempt.objects.filter(letter__payload__body=body.encode()).order_by("-no")[0]
    assert attempt.sent_message_id is not None
    return {"message_id": attempt.sent_message_id, "verdict": verdict, "at": "2026-03-01T08:00:00Z", **said}


def heard(*said: object, reporter: int | None = None) -> Recorded:
    return record_reports.record_json(said, reporter=reporter, dice=lambda: 0.0)


def reporter(*targets: Target) -> Reporter:
    made = Reporter.objects.create(name=f"r-{uuid.uuid4().hex[:8]}", token_hash=uuid.uuid4().bytes, added_by="ann")
    made.targets.set(targets)
    return made


def test_an_acknowledged_letter_is_delivered_and_not_presumed() -> None:
    bench = bench_of()
    assert (bench.states(), bench.lane().phase) == ({"letter": "awaiting"}, "awaiting")
    assert heard(say("delivered")) == Recorded(accepted=1)
    letter = bench.letter()
    assert (letter.state, letter.presumed, letter.finished_at is not None) == ("delivered", False, True)
    assert bench.history() == [(1, "acknowledged", 0)]
    assert Attempt.objects.get().counts_as_failure is False
    assert (Claim.objects.get().state, bench.lane().phase) == ("delivered", "idle")
    assert list(DlqCopy.objects.values_list("state", flat=True)) == ["delete"]


def test_a_letter_reported_as_failed_is_tried_again_in_a_new_epoch() -> None:
    bench = bench_of(max_attempts=2)
    heard(say("failed", type="KeyError", message="'card'", fingerprint="f"))
    letter = bench.letter()
    assert (letter.state, letter.epoch, letter.attempts, Claim.objects.get().state) == ("waiting", 1, 1, "free")
    assert Attempt.objects.get().counts_as_failure is True
    assert bench.replay().taken == 1
    heard(say("failed"))
    assert bench.history() == [(1, "failed", 0), (2, "failed", 1)]
    assert (bench.letter().state, bench.letter().reason) == ("parked", "attempts_spent")


def test_a_letter_reported_as_failed_waits_for_its_backoff() -> None:
    bench = bench_of(backoff_base=60, backoff_jitter="none")
    heard(say("failed"))
    assert bench.replay().taken == 0
    letter = bench.letter()
    failed = Attempt.objects.get().closed_at
    assert letter.due_at
    assert failed
    assert 59 < (letter.due_at - failed).total_seconds() < 61


def test_a_report_of_retrying_is_kept_and_moves_nothing() -> None:
    bench = bench_of()
    assert heard(say("retrying", type="Timeout")) == Recorded(accepted=1)
    assert (bench.states(), bench.history()) == ({"letter": "awaiting"}, [(1, None, 0)])
    assert Report.objects.get().type == "Timeout"


@pytest.mark.parametrize("order", list(permutations(["delivered", "failed", "retrying"])))
def test_a_report_of_failure_wins_in_any_order(order: tuple[str, ...]) -> None:
    bench = bench_of()
    said = [say(verdict) for verdict in order]
    for report in said:
        assert heard(report) == Recorded(accepted=1)
    before = (bench.states(), bench.letter().epoch)
    assert before == ({"letter": "waiting"}, 1)
    assert heard(*said, *reversed(said)) == Recorded(repeated=6)
    assert (bench.states(), bench.letter().epoch) == before


def test_a_late_report_of_failure_reopens_a_delivered_letter() -> None:
    bench = Workbench()  # taken is done
    bench.redrive("letter")
    assert bench.states() == {"letter": "delivered"}
    heard(say("failed"))
    assert (bench.states(), bench.history()) == ({"letter": "waiting"}, [(1, "accepted", 0)])
    assert (bench.letter().epoch, bench.letter().finished_at) == (1, None)
    assert Attempt.objects.get().counts_as_failure is True
    assert bench.replay().taken == 1
    assert bench.history() == [(1, "accepted", 0), (2, "accepted", 1)]


def test_a_report_on_an_older_attempt_moves_nothing() -> None:
    bench = bench_of()
    late = say("delivered", fingerprint="late")
    heard(say("failed"))
    bench.replay()
    assert heard(late, {**late, "verdict": "failed"}) == Recorded(accepted=2)
    assert (bench.states(), bench.history()) == ({"letter": "awaiting"}, [(1, "failed", 0), (2, None, 1)])


@pytest.mark.parametrize("verdict", ["delivered", "failed"])
def test_a_report_on_an_older_silent_attempt_moves_nothing(verdict: str, clock: Clock) -> None:
    bench = silent_bench(clock)
    act_on_parked.release([bench.letter().pk], by="ann", reason="a test")
    bench.replay()
    assert bench.history() == [(1, "silent", 0), (2, None, 0)]
    heard({"redrive_id": f"{bench.letter().public_id}:1", "verdict": verdict})
    assert (bench.states(), bench.letter().epoch) == ({"letter": "awaiting"}, 0)
    assert Attempt.objects.get(no=1).counts_as_failure is None


def test_a_redrive_id_names_an_attempt_without_a_message_id() -> None:
    bench = bench_of("a", "b")
    letters = {body: bench.letter(payload__body=body.encode()) for body in ("a", "b")}
    Attempt.objects.update(holds_lane=False)
    named = [f"{letters['a'].public_id}:1", str(letters["b"].public_id).upper()]
    assert heard(*({"redrive_id": redrive_id, "verdict": "delivered"} for redrive_id in named)) == Recorded(accepted=2)
    assert bench.states() == {"a": "delivered", "b": "delivered"}


@pytest.mark.soak
def test_a_redrive_id_without_a_number_names_no_later_attempt() -> None:
    bench = enqueued("letter", target_fields={"proof": "acknowledged", "window": 60})
    assert heard({"redrive_id": str(bench.letter().public_id), "verdict": "delivered"}) == Recorded(accepted=1)
    bench.replay()
    assert record_reports.apply_late(dice=lambda: 0.0) == 0
    assert bench.states() == {"letter": "awaiting"}


def test_a_redrive_id_without_a_number_names_no_letter_that_was_sent_twice() -> None:
    bench = bench_of()
    heard(say("failed"))
    bench.replay()
    assert heard({"redrive_id": str(bench.letter().public_id), "verdict": "delivered"}) == Recorded(accepted=1)
    assert bench.states() == {"letter": "awaiting"}


def test_a_letter_can_be_acknowledged_while_it_is_being_sent() -> None:
    bench = enqueued("letter", target_fields=ACKNOWLEDGED)

    def quick() -> None:
        heard({"redrive_id": f"{bench.letter().public_id}:1", "verdict": "delivered"})

    with bench.meanwhile(quick):
        bench.replay()
    assert (bench.states(), bench.history()) == ({"letter": "delivered"}, [(1, "acknowledged", 0)])
    assert bench.lane().phase == "idle"


@pytest.mark.parametrize(
    ("proof", "verdict", "state"),
    [
        ("acknowledged", "delivered", "delivered"),
        ("acknowledged", "failed", "waiting"),
        ("accepted", "failed", "waiting"),
        ("accepted", "delivered", "delivered"),
    ],
)
def test_a_report_on_an_unknown_message_id_is_applied_when_it_is_known(proof: str, verdict: str, state: str) -> None:
    bench = enqueued("letter", target_fields={**ACKNOWLEDGED, "proof": proof})

    def quick() -> None:
        (sent,) = bench.delivered()
        assert heard({"message_id": sent["MessageId"], "verdict": verdict}) == Recorded(accepted=1)

    with bench.meanwhile(quick):
        bench.replay()
    for _ in range(2):
        bench.promote()
        assert (bench.states(), bench.letter().epoch) == ({"letter": state}, int(verdict == "failed"))


def test_an_acknowledged_attempt_of_unknown_outcome_is_not_repeated() -> None:
    bench = enqueued("letter", fields={"backoff_base": 60, "backoff_jitter": "none"}, target_fields=ACKNOWLEDGED)
    bench.replay_unheard()
    assert (bench.states(), bench.history()) == ({"letter": "waiting"}, [(1, "unknown", 0)])
    heard({"redrive_id": f"{bench.letter().public_id}:1", "verdict": "delivered"})
    assert (bench.states(), bench.letter().due_at, bench.lane().phase) == ({"letter": "delivered"}, None, "idle")


def test_silence_parks_a_letter_without_other_evidence(clock: Clock) -> None:
    bench = bench_of()
    bench.promote()
    assert bench.states() == {"letter": "awaiting"}
    clock.advance(WINDOW + 1)
    bench.promote()
    letter = bench.letter()
    assert (letter.state, letter.reason, bench.history()) == ("parked", "no_answer", [(1, "silent", 0)])
    assert (Attempt.objects.get().counts_as_failure, Claim.objects.get().state) == (None, "free")
    assert letter.detail.startswith("its consumer reported nothing until 20")


def test_with_a_watched_dlq_silence_is_judged_by_absence(clock: Clock) -> None:
    bench = bench_of(watched=True)
    bench.delivered()
    bench.promote()
    bench.capture()
    assert bench.promote() == 0
    clock.advance(WINDOW + 1)
    assert (bench.promote(), bench.states()) == (0, {"letter": "awaiting"})
    bench.capture()
    assert bench.promote() == 1
    letter = bench.letter()
    assert (letter.state, letter.presumed, bench.history()) == ("delivered", True, [(1, "absent", 0)])
    heard(say("delivered"))
    letter.refresh_from_db()
    assert (letter.state, letter.presumed, bench.history()) == ("delivered", False, [(1, "absent", 0)])


def test_an_observed_dlq_is_no_evidence_against_silence(clock: Clock) -> None:
    bench = bench_of(watched=True)
    DeadLetterQueue.objects.update(mode="observe")
    clock.advance(WINDOW + 1)
    bench.promote()
    assert bench.letter().reason == "no_answer"


def test_a_late_acknowledgement_delivers_a_parked_letter(clock: Clock) -> None:
    bench = silent_bench(clock)
    heard(say("delivered"))
    letter = bench.letter()
    assert (letter.state, letter.reason, letter.detail, bench.history()) == ("delivered", "", "", [(1, "silent", 0)])
    assert (Attempt.objects.get().counts_as_failure, Claim.objects.get().state) == (False, "delivered")


@pytest.mark.parametrize(("act", "state"), [("release", "waiting"), ("discard", "discarded")])
def test_a_late_acknowledgement_does_not_undo_a_decision(act: str, state: str, clock: Clock) -> None:
    bench = silent_bench(clock)
    getattr(act_on_parked, act)([bench.letter().pk], by="ann", reason="a test")
    heard(say("delivered"))
    assert bench.states() == {"letter": state}


def test_a_late_report_of_failure_leaves_a_letter_parked(clock: Clock) -> None:
    bench = silent_bench(clock)
    heard(say("failed"))
    assert (bench.letter().state, bench.letter().reason) == ("parked", "no_answer")
    assert Attempt.objects.get().counts_as_failure is True


def test_an_acknowledgement_lets_the_next_letter_go() -> None:
    bench = Workbench(fields={"ordering_key": "attribute:key"}, target_fields=ACKNOWLEDGED)
    bench.redrive("a1", "a2", key="a")
    assert bench.states() == {"a1": "awaiting", "a2": "waiting"}
    heard(say("delivered", "a1"))
    bench.replay()
    assert bench.states() == {"a1": "delivered", "a2": "awaiting"}


def test_reports_of_failure_open_the_breaker() -> None:
    bench = bench_of(*(f"letter {n}" for n in range(5)))
    assert heard(*(say("failed", f"letter {n}") for n in range(5))).accepted == 5
    assert Breaker.objects.get(target=bench.target).state == "open"


def test_a_reporter_reports_only_its_own_targets() -> None:
    bench, other = bench_of(), Workbench()
    mine, theirs = reporter(bench.target), reporter(other.target)
    said = [say("delivered"), {"redrive_id": f"{bench.letter().public_id}:1", "verdict": "delivered"}]
    assert heard(*said, reporter=theirs.pk) == Recorded(
        refused=dict.fromkeys((0, 1), "the message was not sent to a target of this reporter")
    )
    assert (Report.objects.count(), bench.states()) == (0, {"letter": "awaiting"})
    assert heard(*said, reporter=mine.pk) == Recorded(accepted=2)
    assert bench.states() == {"letter": "delivered"}


def test_a_strange_or_revoked_reporter_is_not_believed_later() -> None:
    bench = enqueued("letter", target_fields=ACKNOWLEDGED)
    stranger, revoked = reporter(Workbench().target), reporter(bench.target)

    def quick() -> None:
        (sent,) = bench.delivered()
        for who in (stranger, revoked):
            assert heard({"message_id": sent["MessageId"], "verdict": "failed"}, reporter=who.pk).accepted == 1
        Reporter.objects.filter(pk=revoked.pk).update(revoked_at="2026-01-01T00:00Z")

    with bench.meanwhile(quick):
        bench.replay()
    bench.promote()
    assert bench.states() == {"letter": "awaiting"}


def test_a_report_on_the_first_failure_moves_nothing() -> None:
    bench = bench_of()
    died = {"message_id": bench.letter().message_id, "verdict": "failed", "type": "KeyError"}
    assert heard(died, reporter=reporter(bench.target).pk) == Recorded(accepted=1)
    assert heard(died, reporter=reporter(Workbench().target).pk).refused.keys() == {0}
    assert bench.states() == {"letter": "awaiting"}


def test_invalid_reports_are_refused_by_place_and_the_others_recorded() -> None:
    bench = bench_of()
    made_up = f"{uuid.uuid4()}:1"
    no_such_attempt = {"redrive_id": f"{bench.letter().public_id}:2", "verdict": "failed"}
    of_no_letter = {"redrive_id": made_up, "verdict": "failed"}
    found = heard(7, say("delivered"), of_no_letter, say("delivered"), say("shrug"), no_such_attempt)
    assert (found.accepted, found.repeated) == (1, 1)
    assert found.refused == {
        0: "it is not an object",
        2: "no attempt has this redrive id",
        4: "verdict is not one of delivered, failed, retrying",
        5: "no attempt has this redrive id",
    }
    assert bench.states() == {"letter": "delivered"}


@pytest.mark.soak
def test_many_reports_take_as_many_statements_as_one(
    django_assert_max_num_queries: Any,  # noqa: ANN401  a fixture
) -> None:
    bench = bench_of(*(f"letter {n}" for n in range(60)))
    said = [say("delivered", f"letter {n}") for n in range(60)]
    counted: list[int] = []
    for some in (said[:1], said[1:]):
        with django_assert_max_num_queries(20) as queries:
            heard(*some)
        counted.append(len(queries))
    assert counted[0] == counted[1]
    assert set(bench.states().values()) == {"delivered"}


def test_a_redrive_id_on_another_message_moves_nothing() -> None:
    bench = bench_of()
    handed_on = {"message_id": "another", "redrive_id": f"{bench.letter().public_id}:1", "verdict": "delivered"}
    assert heard(handed_on) == Recorded(accepted=1)
    bench.promote()
    assert (bench.states(), bench.history()) == ({"letter": "awaiting"}, [(1, None, 0)])


def test_a_run_counts_attempts_that_were_reported_as_failed() -> None:
    bench = bench_of("a", "b", "c")
    heard(say("failed", "a"), say("delivered", "b"))
    run = bench.letter(payload__body=b"a").run_id
    assert run
    found = progress.count_letters(run)
    assert (found.failed_attempts, found.delivered, found.presumed, found.awaiting) == (1, 1, 0, 1)
    heard(say("failed", "b"))
    assert progress.count_letters(run).failed_attempts == 2


def test_an_accepted_letter_becomes_acknowledged() -> None:
    bench = redriven("a", "b", "c")
    letters = {body: bench.letter(payload__body=body.encode()) for body in ("a", "b", "c")}
    assert {delivery_status.status_of(letter).how.value for letter in letters.values()} == {"accepted"}
    heard(say("delivered", "a"), {"redrive_id": f"{letters['b'].public_id}:1", "verdict": "delivered"})
    found = {body: delivery_status.status_of(letter).how.value for body, letter in letters.items()}
    assert found == {"a": "acknowledged", "b": "acknowledged", "c": "accepted"}
    assert {row.how: row.n for row in delivery_status.count_by_status(bench.dlq.pk)} == {
        "acknowledged": 2,
        "accepted": 1,
    }
    assert bench.history() == [(1, "accepted", 0)] * 3


def test_redrive_status_counts_letters_by_how_their_outcome_is_known(clock: Clock) -> None:
    bench = bench_of("acknowledged", "failed", "silent")
    heard(say("delivered", "acknowledged"), say("failed", "failed", type="KeyError"))
    clock.advance(WINDOW + 1)
    bench.promote()
    letters = {how: bench.letter(payload__body=how.encode()) for how in ("acknowledged", "failed", "silent")}
    assert {how: delivery_status.status_of(letter).how.value for how, letter in letters.items()} == dict(
        zip(letters, letters, strict=True)
    )
    assert [reason.type for reason in delivery_status.reasons_of(letters["failed"])] == ["KeyError"]
    out = StringIO()
    call_command("redrive_status", bench.name, "--json", stdout=out)
    (told,) = json.loads(out.getvalue())["dlqs"]
    assert told["known"] == dict.fromkeys(letters, 1)
    out = StringIO()
    call_command("redrive_status", bench.name, stdout=out)
    (line,) = (line for line in out.getvalue().splitlines() if line.startswith("  evidence"))
    assert line == "  evidence  1 acknowledged, 1 failed, 1 silent"
