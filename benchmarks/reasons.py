"""Measure what a failure report costs a consumer: microseconds of the task's thread per failed task.

Calls Celery's `task_failure` signal with the hook installed and without it. No server listens at the endpoint,
as in an outage. The hook's queue has room or is full; tracebacks have
few or many frames. Prints the median of several rounds, and whether the highest stays below `HIGHEST_COST`. It needs no
server.
"""

from __future__ import annotations

import logging
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from celery import Celery, signals  # noqa: E402 - the project's folder first

from redrive_service.sandbox.servers.process import free_port  # noqa: E402
from reprocessing.reasons import celery as hook  # noqa: E402

HIGHEST_COST: Final = 500.0  # microseconds per failed task
ROUNDS, CALLS = 7, 500
FRAMES: Final = (5, 30, 300)

MESSAGE: Final = {
    "MessageId": "2a6a7b50-8c1b-4a43-9d0e-0c3a7f4d9b11",
    "MessageAttributes": {"RedriveId": {"StringValue": "0b5c6a7e-1111-4222-8333-444455556666:2"}},
}


def main() -> int:
    """Measure and print; return 1 above `HIGHEST_COST`."""
    logging.disable()
    app = Celery("bench", set_as_current=False)
    task = _task(app)
    bare = {frames: _cost(task, _error(frames)) for frames in FRAMES}
    worst = 0.0
    for name, capacity in (("with room", ROUNDS * CALLS * len(FRAMES) + CALLS), ("full", 0)):
        reporter = hook.install(app, url=f"http://127.0.0.1:{free_port()}/reports", token="t", capacity=capacity)
        for frames in FRAMES:
            cost = _cost(task, _error(frames)) - bare[frames]
            worst = max(worst, cost)
            print(f"{name:>10}, {frames:>3} frames: {cost:7.1f} us a failed task")
        print(f"{'':>10}  {reporter.counts}")
        reporter.close(within=0)
        signals.task_failure.receivers = []
        signals.task_failure.sender_receivers_cache.clear()
    print(f"highest cost: {worst:.1f} us; the limit is {HIGHEST_COST:g} us")
    return int(worst > HIGHEST_COST)


def _task(app: Celery) -> Any:  # noqa: ANN401 - Celery's tasks
    @app.task(name="bench.fail")
    def fail() -> None:
        """Do nothing: the task is never run."""

    fail.push_request(id="task-1", properties={"delivery_info": {"sqs_message": MESSAGE}})
    return fail


def _cost(task: Any, error: Exception) -> float:  # noqa: ANN401 - as above
    def send() -> None:
        signals.task_failure.send(
            sender=task,
            task_id="task-1",
            exception=error,
            args=(),
            kwargs={},
            traceback=error.__traceback__,
            einfo=None,
        )

    return statistics.median(_round(send) for _ in range(ROUNDS))


def _round(send: Callable[[], None]) -> float:
    began = time.perf_counter()
    for _ in range(CALLS):
        send()
    return (time.perf_counter() - began) / CALLS * 1e6


def _error(frames: int) -> Exception:
    def even(left: int) -> None:
        if not left:
            raise ValueError("no stock for order 17")
        odd(left - 1)

    def odd(left: int) -> None:
        if not left:
            raise ValueError("no stock for order 17")
        even(left - 1)

    try:
        even(frames)
    except ValueError as error:
        return error
    raise AssertionError("nothing was raised")


if __name__ == "__main__":
    sys.exit(main())
