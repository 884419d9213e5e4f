"""`idempotent`: keys, payloads, and functions that it refuses."""

from __future__ import annotations

from typing import Any

import pytest

from reprocessing.idempotency import InvalidClaim, PayloadConflict, idempotent, message_key, task_key
from tests.reprocessing.idempotency.stock import row

MESSAGE: dict[str, Any] = {"MessageId": "m-1", "Body": "{}"}
MARKED = MESSAGE | {"MessageAttributes": {"IdempotencyKey": {"DataType": "String", "StringValue": "m-0"}}}


class Request:
    def __init__(self, properties: dict[str, Any] | None) -> None:
        self.properties = properties


@pytest.mark.django_db
def test_a_key_may_be_an_argument_however_it_is_given() -> None:
    done: list[int] = []

    @idempotent(key="order", space="orders")
    def charge(order: int = 7, *, cents: int = 5) -> list[int]:
        """Charge it."""
        done.append(order)
        return [order, cents]

    assert [charge(7), charge(order=7), charge(), charge(8, cents=1)] == [[7, 5], [7, 5], [7, 5], [8, 1]]
    assert done == [7, 8]
    assert (charge.__name__, charge.__doc__) == ("charge", "Charge it.")


@pytest.mark.django_db
def test_a_key_may_be_computed_from_all_arguments_and_a_payload_be_one_of_them() -> None:
    @idempotent(key=lambda order, lines: f"{order}/1", space="orders", payload="lines")
    def ship(order: int, lines: list[str]) -> int:
        return len(lines) + order

    assert [ship(1, ["a"]), ship(1, lines=["a"])] == [2, 2]
    assert row("1/1").attempts == 1
    with pytest.raises(PayloadConflict):
        ship(1, ["b"])


def test_coroutines_generators_and_unknown_arguments_are_refused_at_import() -> None:
    async def later() -> None: ...
    def bit_by_bit() -> Any:  # noqa: ANN401
        yield

    for function in (later, bit_by_bit):
        with pytest.raises(InvalidClaim, match="coroutine or a generator"):
            idempotent(key=lambda: 1, space="orders")(function)
    with pytest.raises(InvalidClaim, match='has no argument "ordr"'):
        idempotent(key="ordr", space="orders")(lambda order: order)


@pytest.mark.parametrize(("message", "key"), [(MESSAGE, "m-1"), (MARKED, "m-0")])
def test_the_first_delivery_and_a_redrive_of_a_message_have_one_key(message: dict[str, Any], key: str) -> None:
    assert message_key(message) == key
    assert task_key(Request({"delivery_info": {"sqs_message": message}})) == key


@pytest.mark.parametrize("properties", [None, {}, {"delivery_info": {"routing_key": "orders"}}])
def test_a_task_that_did_not_come_from_sqs_has_no_message_key(properties: dict[str, Any] | None) -> None:
    with pytest.raises(InvalidClaim, match="Use the task's id"):
        task_key(Request(properties))
