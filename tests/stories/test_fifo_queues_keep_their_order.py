"""FIFO all the way: no letter overtakes another of its group, and SQS swallows exactly what it should."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest

from reprocessing.models import Breaker
from tests.reprocessing.pipeline.bench import Workbench
from tests.stories.consumer import Consumer
from tests.stories.scene import Message, Witness, dead, drained, lettered

pytestmark = pytest.mark.django_db(transaction=True)

POLICY = {"ordering_key": "system:MessageGroupId", "sequence": "system:SequenceNumber"}


def _letters(groups: int, each: int) -> Iterator[Message]:
    for number in range(each):
        for group in range(groups):
            yield lettered(f"{group}.{number}", group=f"g{group}")


@pytest.mark.parametrize("each", [1, pytest.param(20, marks=[pytest.mark.soak, pytest.mark.long])])
def test_two_hundred_groups_go_back_in_order_and_nothing_is_swallowed(each: int) -> None:
    witness = Witness()
    bench = Workbench(fifo=True, fields=POLICY)
    dead(bench, bench.source_url, _letters(200, each))
    tally = drained(bench)
    assert (tally.delivered, tally.open, bench.left()) == (200 * each, 0, 0)
    judgement = witness.judges(bench, advance="accepted", max_attempts=1)
    assert judgement.findings == ()
    assert (judgement.counts()["delivered"], judgement.sends, judgement.swallowed) == (200 * each, 200 * each, 0)
    assert _in_order(bench.delivered(), groups=200, each=each)


@pytest.mark.soak
def test_a_letter_that_fails_at_once_is_a_new_message_to_the_queue_that_had_it_before() -> None:
    witness = Witness()
    bench = Workbench(fifo=True, fields=POLICY)
    bench.judge_by_absence(window=1, visibility=1)
    Breaker.objects.update(threshold=9)  # eight fail in a row
    dead(bench, bench.source_url, _letters(8, 3))
    bench.sqs.set_queue_attributes(QueueUrl=bench.source_url, Attributes={"VisibilityTimeout": "1"})
    failed: set[str] = set()

    def handles(one: dict[str, Any]) -> bool:
        good = not one["Body"].endswith(".1") or one["Body"] in failed
        failed.add(one["Body"])
        return good

    with Consumer(bench.source_url, handles) as consumer:
        tally = drained(bench)
    assert (tally.presumed, tally.failed_attempts, tally.open) == (24, 8, 0)
    judgement = witness.judges(bench, advance="settled", max_attempts=2)
    assert judgement.findings == ()
    assert (judgement.returns, judgement.sends, judgement.swallowed) == (8, 32, 0)
    assert _in_order(consumer.done, groups=8, each=3)


def _in_order(arrived: list[dict[str, Any]], *, groups: int, each: int) -> bool:
    by_group: dict[str, list[int]] = defaultdict(list)
    for one in arrived:
        group, number = one["Body"].split(".")
        by_group[group].append(int(number))
    return list(by_group.values()) == [list(range(each))] * groups
