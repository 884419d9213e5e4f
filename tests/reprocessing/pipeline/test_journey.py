"""A letter's way from the dlq back to where it died."""

from __future__ import annotations

import pytest

from reprocessing.models import Attempt, Custody, DeadLetter
from tests.reprocessing.pipeline.bench import Workbench

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_dead_letter_queue_is_emptied_back_into_its_queue() -> None:
    bench = Workbench()
    ids = [bench.bury(f"letter {number}") for number in range(25)]
    gathered = bench.capture()
    assert (gathered.captured.letters, gathered.captured.drained) == (25, True)
    run = bench.enlist()
    report = bench.replay()
    assert (report.taken, report.failed) == (25, 0)
    assert sorted(one["Body"] for one in bench.delivered()) == sorted(f"letter {number}" for number in range(25))
    assert set(DeadLetter.objects.values_list("state", "attempts", "run")) == {("delivered", 1, run.pk)}
    assert set(Custody.objects.values_list("state", flat=True)) == {"gone"}
    assert set(Attempt.objects.values_list("outcome", "holds_lane")) == {("accepted", False)}
    assert bench.left() == 0
    assert len(ids) == 25


def test_letters_of_one_key_go_in_the_order_of_their_sequence() -> None:
    bench = Workbench(fields={"ordering_key": "attribute:key", "sequence": "attribute:n"})
    for number in (3, 1, 10, 2):
        bench.bury(f"{number}", key="account", n=str(number))
    bench.capture()
    bench.enlist()
    bench.replay()
    sent = [bench.sqs.receive_message(QueueUrl=bench.origin_url)["Messages"][0]["Body"] for _ in range(4)]
    order = list(Attempt.objects.order_by("id").values_list("letter__payload__body", flat=True))
    assert [bytes(one).decode() for one in order] == ["1", "2", "3", "10"]
    assert sorted(sent) == ["1", "10", "2", "3"]


def test_a_letter_that_comes_back_is_the_same_letter_failed_again() -> None:
    bench = Workbench(fields={"max_attempts": 2})
    bench.judge_by_absence(window=0)
    bench.bury("poison")
    bench.capture()
    bench.enlist()
    for attempt in (1, 2):
        bench.replay()
        (sent,) = bench.delivered()
        bench.sqs.send_message(  # as SQS dead-letters it: other id here, but its marks
            QueueUrl=bench.dlq_url, MessageBody=sent["Body"], MessageAttributes=sent["MessageAttributes"]
        )
        assert bench.capture().captured.returns == 1, attempt
    letter = DeadLetter.objects.get()
    assert (letter.state, letter.attempts, letter.reason) == ("parked", 2, "attempts_spent")
    assert list(Attempt.objects.order_by("no").values_list("no", "outcome")) == [(1, "returned"), (2, "returned")]
    assert bench.left() == 0


def test_a_letter_that_does_not_come_back_is_presumed_delivered() -> None:
    bench = Workbench()
    bench.judge_by_absence(window=0)
    bench.bury("fine")
    bench.capture()
    bench.enlist()
    bench.replay()
    bench.delivered()
    assert bench.promote() == 0  # no capture of the dlq has begun since
    bench.capture()
    assert bench.promote() == 1
    letter = DeadLetter.objects.get()
    assert (letter.state, letter.presumed) == ("delivered", True)
    assert bench.left() == 0
