"""The consumer was mended, but not for every letter: those come back, and are parked when their attempts are spent."""

from __future__ import annotations

import json

import pytest

from reprocessing.domain.lifecycle import LetterState, ParkedReason
from reprocessing.models import Attempt, DeadLetterQueue, Letter, Run, Target
from reprocessing.pipeline.runs import drain, feed_run
from tests.reprocessing.pipeline.bench import Workbench
from tests.stories.consumer import Consumer
from tests.stories.scene import Witness, dead, drained, hands, lettered

pytestmark = pytest.mark.django_db(transaction=True)

LETTERS, ATTEMPTS = 40, 3


@pytest.mark.soak
def test_what_fails_again_is_parked_after_its_attempts_and_never_counted_as_delivered() -> None:
    witness = Witness()
    bench = _bench(max_attempts=ATTEMPTS)
    dead(bench, bench.source_url, (lettered(f"{number}") for number in range(LETTERS)))
    with Consumer(bench.source_url, lambda one: not _is_poison(one["Body"])) as consumer:
        tally = drained(bench)
    assert (tally.presumed, tally.parked, tally.failed_attempts, tally.open) == (28, 12, 12 * ATTEMPTS, 0)
    poison = Letter.objects.filter(state=LetterState.PARKED)
    assert all(_is_poison(bytes(one.payload.body).decode()) for one in poison)
    assert set(poison.values_list("attempts", "reason", "epoch")) == {(3, ParkedReason.ATTEMPTS_SPENT, 3)}
    told = Attempt.objects.filter(letter__in=poison).values_list("no", "outcome").distinct().order_by("no")
    assert list(told) == [(1, "returned"), (2, "returned"), (3, "returned")]
    assert sorted(int(one["Body"]) for one in consumer.done) == [n for n in range(LETTERS) if not _is_poison(str(n))]
    assert bench.left() == 0
    judgement = witness.judges(bench, advance="settled", max_attempts=ATTEMPTS)
    assert judgement.findings == ()
    assert (judgement.counts()["delivered"], judgement.counts()["parked"], judgement.returns) == (28, 12, 36)


def test_a_letter_that_comes_back_after_it_was_presumed_delivered_is_replayed_again() -> None:
    bench = _bench(max_attempts=3)
    dead(bench, bench.source_url, [lettered("late")])
    with Consumer(bench.source_url, lambda _: True) as consumer:
        tally = drained(bench, "the run")
        assert (tally.presumed, tally.open, Run.objects.get().state) == (1, 0, "finished")
        bench.come_back(consumer.done[0])  # it had lain in a queue that nobody saw
        dlq = DeadLetterQueue.objects.get()
        assert feed_run.poll_dlq(dlq, conf=bench.conf, dice=lambda: 0.0, seconds=10).captured.returns == 1
        letter = bench.letter()
        assert (letter.state, letter.presumed, letter.attempts) == ("waiting", False, 1)
        run = drain.start_run(dlq, name="the run", asked_by="a test")
        tally = drain.replay_run(run, hands(bench), on_progress=lambda _: None)
    assert (tally.presumed, tally.open) == (1, 0)
    assert bench.history() == [(1, "absent", 0), (2, "absent", 1)]
    assert [one["Body"] for one in consumer.done] == ["late", "late"]
    assert bench.left() == 0


def _bench(*, max_attempts: int) -> Workbench:
    """A dlq behind its source, judged by absence; whoever fails a message gives it back at once."""
    bench = Workbench(fields={"max_attempts": max_attempts})
    bench.sqs.set_queue_attributes(QueueUrl=bench.source_url, Attributes={"VisibilityTimeout": "1"})
    policy = {"deadLetterTargetArn": bench.dlq.arn, "maxReceiveCount": "1"}
    bench.sqs.set_queue_attributes(QueueUrl=bench.source_url, Attributes={"RedrivePolicy": json.dumps(policy)})
    bench.judge_by_absence(window=1, visibility=1)
    assert Target.objects.get().watched_by_id == bench.dlq.pk
    return bench


def _is_poison(body: str) -> bool:
    return int(body) % 10 < 3  # three of ten
