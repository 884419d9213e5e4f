"""A DLQ that is added from discovery is named like its queue."""

from __future__ import annotations

from reprocessing.domain.dlqs.dlq_name import propose_name
from reprocessing.domain.message.arn import read


def proposed(queue: str, *taken: str) -> str:
    arn = read(f"arn:aws:sqs:eu-west-1:111122223333:{queue}")
    assert arn is not None
    return propose_name(arn, taken)


def test_the_name_is_the_queue_s_with_hyphens_for_dots() -> None:
    assert [proposed("orders-dlq"), proposed("orders-dlq.fifo")] == ["orders-dlq", "orders-dlq-fifo"]


def test_a_name_that_is_taken_gets_account_and_region_and_then_a_number() -> None:
    longer = "orders-111122223333-eu-west-1"
    assert proposed("orders", "orders") == longer
    assert proposed("orders", "orders", longer) == f"{longer}-2"


def test_the_longest_queue_name_still_fits() -> None:
    assert len(proposed("q" * 80, "q" * 80)) <= 100
