"""An endpoint for reports that answers as it is told, and records what it was sent."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from celery import _state, signals

from tests.reprocessing.gateways.stand_ins import Asked, Said, standing_in


@dataclass(slots=True)
class Stub:
    status: int = 200
    answer: bytes = b'{"accepted": 1, "repeated": 0, "refused": []}'
    headers: dict[str, str] = field(default_factory=dict)
    hangs: bool = False
    let_go: threading.Event = field(default_factory=threading.Event)
    asked: list[dict[str, Any]] = field(default_factory=list)
    url: str = ""

    @property
    def batches(self) -> list[list[dict[str, Any]]]:
        return [one["body"]["reports"] for one in self.asked]

    @property
    def reports(self) -> list[dict[str, Any]]:
        return [report for batch in self.batches for report in batch]


@contextmanager
def listening() -> Iterator[Stub]:
    stub = Stub()

    def answer(asked: Asked) -> Said:
        stub.asked.append({"path": asked.path, "headers": asked.headers, "body": json.loads(asked.body)})
        if stub.hangs:
            stub.let_go.wait(600)
        return Said(stub.status, stub.answer, stub.headers)

    with standing_in(answer) as running:
        stub.url = f"{running.url}/reports"
        try:
            yield stub
        finally:
            stub.let_go.set()


@contextmanager
def unhooked() -> Iterator[None]:
    """Restore the receivers of Celery's signals, and the tasks of other apps, after the block."""
    hooked = (
        signals.task_failure, signals.task_retry, signals.task_success, signals.before_task_publish,
        signals.task_received, signals.worker_process_shutdown,
    )  # fmt: skip
    before = [(one, list(one.receivers or [])) for one in hooked]
    current, shared = _state.get_current_app(), set(_state._on_app_finalizers)  # type: ignore[attr-defined]  # private
    yield
    _state._set_current_app(current)  # type: ignore[attr-defined]  # as above
    _state._on_app_finalizers.intersection_update(shared)  # type: ignore[attr-defined]  # as above
    for one, receivers in before:
        one.receivers = receivers
        one.sender_receivers_cache.clear()  # type: ignore[attr-defined]  # not in Celery's stubs
