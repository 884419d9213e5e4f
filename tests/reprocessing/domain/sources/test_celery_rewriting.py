"""A task message is changed as its target requires and nowhere else, or it is not sent."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from celery import group

from reprocessing.domain.lifecycle import ParkedReason
from reprocessing.domain.replay.verdicts import Refused
from reprocessing.domain.sources import celery_task
from reprocessing.domain.sources.celery_rewriting import (
    TaskChanges,
    Unchangeable,
    _adapted,
    body_to_send,
    celery_name,
    new_task_id,
)
from tests import envelopes

NOW = datetime(2026, 11, 22, tzinfo=UTC)
LATER = NOW + timedelta(days=9_000)
EVERYTHING = TaskChanges("other", strips_eta=True, strips_expires=True, resets_retries=True, new_id="t-2")
TIMED: dict[str, Any] = {"task_id": "t-1", "eta": NOW, "expires": LATER, "retries": 3, "time_limit": 9}


def adapted(body: bytes, wanted: TaskChanges) -> bytes | Unchangeable:
    found = celery_task.read(body)
    assert isinstance(found, celery_task.TaskMessage)
    return _adapted(body, found, wanted)


def leaves(body: bytes, wanted: TaskChanges = TaskChanges(), **said: Any) -> bytes | Refused:  # noqa: B008, ANN401
    return body_to_send(body, wanted, **{"now": NOW, "source_queue": "shop", "target_queue": "shop", **said})


def changes(before: bytes, after: bytes | Unchangeable | Refused) -> dict[str, Any]:
    """Return changed and removed values by their paths; of protocol 1 those of the payload, too."""
    assert isinstance(after, bytes)
    assert before.startswith(b"{") == after.startswith(b"{")
    one, two = _flat(envelopes.opened(before)), _flat(envelopes.opened(after))
    return {path: two.get(path, "gone") for path in [*one, *two] if one.get(path, "none") != two.get(path, "gone")}


def _flat(value: Any, path: str = "") -> dict[str, Any]:  # noqa: ANN401  # JSON
    if path == "body":
        raw = base64.b64decode(value)
        value = json.loads(zlib.decompress(raw) if raw[:1] == b"x" else raw)
    if not isinstance(value, dict) or not value:
        return {path: value}
    parts = [_flat(inner, f"{path}.{name}".lstrip(".")) for name, inner in value.items()]
    return {name: inner for part in parts for name, inner in part.items()}


WHERE = {"properties.delivery_info.routing_key": "other"}
OUTSIDE = {"properties.expiration": "gone", "properties.correlation_id": "t-2"}
INSIDE = {"eta": None, "expires": None, "retries": 0, "id": "t-2"}


@pytest.mark.parametrize("plain", [True, False])
@pytest.mark.parametrize("protocol", [1, 2])
@pytest.mark.parametrize("compression", [None, "gzip"])
def test_only_the_required_values_are_changed(protocol: int, compression: str | None, plain: bool) -> None:
    body = envelopes.task("t", 1.50, protocol=protocol, compression=compression, plain=plain, **TIMED)
    inside = {f"{'headers' if protocol == 2 else 'body'}.{name}": value for name, value in INSIDE.items()}
    root = {"headers.root_id": "t-2"} if protocol == 2 else {}
    assert changes(body, adapted(body, EVERYTHING)) == WHERE | OUTSIDE | inside | root
    again = adapted(body, EVERYTHING)
    assert isinstance(again, bytes)
    assert adapted(again, EVERYTHING) == again


@pytest.mark.parametrize(
    ("wanted", "changed"),
    [
        (TaskChanges(), {}),
        (TaskChanges(queue="shop"), {}),
        (TaskChanges(queue="other"), WHERE),
        (TaskChanges(strips_eta=True), {"headers.eta": None}),
        (TaskChanges(strips_expires=True), {"headers.expires": None, "properties.expiration": "gone"}),
        (TaskChanges(resets_retries=True), {"headers.retries": 0}),
        (
            TaskChanges(new_id="t-2"),
            dict.fromkeys(("headers.id", "headers.root_id", "properties.correlation_id"), "t-2"),
        ),
        (TaskChanges(new_id="t-1"), {}),
    ],
)
def test_each_requirement_changes_its_own_values(wanted: TaskChanges, changed: dict[str, Any]) -> None:
    body = envelopes.task(**TIMED)
    assert changes(body, adapted(body, wanted)) == changed
    assert changed or adapted(body, wanted) == body


def test_a_message_without_anything_to_remove_keeps_its_bytes() -> None:
    body = envelopes.task(task_id="t-1")
    assert adapted(body, TaskChanges(strips_eta=True, strips_expires=True, resets_retries=True)) is body


def test_other_values_keep_their_digits_and_escapes() -> None:
    body = envelopes.task(**TIMED, plain=True).replace(
        b'"priority": 0', b'"priority": 1.500, "x": "\\u00e4\xc3\xa4", "y": 1e999'
    )
    after = adapted(body, EVERYTHING)
    assert isinstance(after, bytes)
    assert b'"priority": 1.500, "x": "\\u00e4\xc3\xa4", "y": 1e999' in after


def test_ids_of_other_tasks_and_of_a_groups_parts_are_kept() -> None:
    body = envelopes.task(task_id="t-1", root_id="r-1", correlation_id="c-1")
    assert changes(body, adapted(body, TaskChanges(new_id="t-2"))) == {"headers.id": "t-2"}
    parts = envelopes.documents(lambda app: group(app.signature("a"), app.signature("b"), app=app).apply_async())
    part = envelopes.written(parts[0])
    assert adapted(part, TaskChanges(new_id="t-2")) is part


def test_a_pickled_payload_of_protocol_1_can_be_diverted_and_not_changed() -> None:
    body = envelopes.task(protocol=1, serializer="pickle")
    diverted = adapted(body, TaskChanges(queue="other"))
    assert isinstance(diverted, bytes)
    before, after = envelopes.opened(body), envelopes.opened(diverted)
    assert after["properties"].pop("delivery_info") == {"exchange": "", "routing_key": "other"}
    assert before["properties"].pop("delivery_info") == {"exchange": "", "routing_key": "shop"}
    assert before == after
    for wanted in (TaskChanges(strips_eta=True), TaskChanges(new_id="t-2"), EVERYTHING):
        assert adapted(body, wanted) == Unchangeable("its payload is pickled, and unpickling could run code")


def test_a_repeated_name_is_not_changed() -> None:
    body = envelopes.task(plain=True).replace(b'"retries": 0', b'"retries": 0, "retries": 1')
    assert adapted(body, TaskChanges(resets_retries=True)) == Unchangeable("it has the same name twice")


@pytest.mark.parametrize(
    ("queue", "source_queue", "routing_key", "name"),
    [
        ("other", "shop", "shop", "other"), ("live-other", "live-shop", "shop", "other"),
        ("live-other", "live-my-shop", "my.shop", "other"), ("other", "live-shop", "shop", "other"),
        ("live-other.fifo", "live-shop.fifo", "shop.fifo", "other.fifo"), ("other", "shop", "", "other"),
        ("other", "shop", "elsewhere", "other"), ("live-", "live-shop", "shop", "live-"),
    ],
)  # fmt: skip
def test_a_queue_has_the_name_that_its_workers_probably_use(
    queue: str, source_queue: str, routing_key: str, name: str
) -> None:
    assert celery_name(queue, source_queue=source_queue, routing_key=routing_key) == name


def test_a_message_for_its_source_queue_is_unchanged() -> None:
    body = envelopes.task(**TIMED)
    assert leaves(body) is body
    assert leaves(body, source_queue="live-shop", target_queue="live-shop") is body
    assert leaves(body, source_queue="", target_queue="other") is body


def test_a_diverted_message_names_its_new_queue() -> None:
    body = envelopes.task(**TIMED)
    assert changes(body, leaves(body, target_queue="other")) == WHERE
    assert changes(body, leaves(body, source_queue="live-shop", target_queue="live-other")) == WHERE


def refused(reason: ParkedReason, why: str) -> Refused:
    return Refused(reason.value, why, poison=True, reason=reason)


EXPIRED = refused(ParkedReason.EXPIRED, "it expired at 2026-11-22 00:00:00 UTC.")


@pytest.mark.parametrize("released", [True, False])
def test_an_expired_message_is_sent_without_its_expiry_or_not_at_all(released: bool) -> None:
    body = envelopes.task(**{**TIMED, "expires": NOW})
    assert leaves(body, released=released) == EXPIRED
    assert leaves(body, target_queue="other", released=released) == EXPIRED
    assert leaves(body, now=NOW - timedelta(seconds=1), released=released) is body
    stripped = leaves(body, TaskChanges(strips_expires=True), released=released)
    assert changes(body, stripped) == {"headers.expires": None, "properties.expiration": "gone"}


WORD = refused(ParkedReason.PART_OF_GROUP, "it is a part of a chord, or starts tasks.")
FOREIGN = refused(ParkedReason.UNREADABLE_TASK, "it is not a kombu message.")
CLOSED = refused(ParkedReason.UNREADABLE_TASK, "its payload is pickled, and unpickling could run code.")


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: envelopes.task("celery.chord_unlock"), WORD),
        (lambda: b"hello", FOREIGN),
        (lambda: envelopes.task(serializer="pickle", protocol=1), CLOSED),
    ],
)
def test_a_message_that_needs_a_decision_is_sent_after_its_release(make: Callable[[], bytes], why: Refused) -> None:
    body = make()
    assert leaves(body) == why
    assert leaves(body, released=True) is body


def test_a_message_that_harms_workers_or_cannot_be_changed_is_never_sent() -> None:
    ends = "it is not a kombu message; it would stop the worker that receives it."
    assert leaves(b'{"properties": 1}', released=True) == refused(ParkedReason.UNREADABLE_TASK, ends)
    body = envelopes.task(serializer="pickle", protocol=1)
    why = "It cannot be changed as its target requires: its payload is pickled, and unpickling could run code."
    assert leaves(body, TaskChanges(strips_eta=True), released=True) == refused(ParkedReason.UNREADABLE_TASK, why)


def test_a_new_id_depends_on_the_letter_and_its_epoch() -> None:
    one, two = UUID(int=1), UUID(int=2)
    assert new_task_id(one, 0) == new_task_id(one, 0)
    assert len({new_task_id(one, 0), new_task_id(one, 1), new_task_id(two, 0)}) == 3
