"""Count how often each Celery task of the service has failed since its last recorded success.

A success is not recorded each time (see `worker_signals.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, LiteralString

from reprocessing.store import rows


@dataclass(frozen=True, slots=True)
class FailingTask:
    """A task that fails again and again.

    Attributes:
        name: the task's name, such as `reprocessing.recover`.
        failures: how often it failed since its last recorded success.
        age: seconds since it last failed.
    """

    name: str
    failures: int
    age: float


_COUNT: Final[LiteralString] = "failures since success"
_LAST: Final[LiteralString] = "last failure"

# Two rows of each task: the number of failures, and the time of the last one, in seconds since 1970.
_FAILED: Final[LiteralString] = f"""
INSERT INTO redrive_metric AS m (name, place, part, value)
VALUES ('{_COUNT}', 0, %(task)b::text, 1),
       ('{_LAST}', 0, %(task)b::text, extract(epoch FROM redrive_now()))
ON CONFLICT (name, place, part) DO UPDATE
   SET value = CASE m.name WHEN '{_COUNT}' THEN m.value + 1 ELSE excluded.value END
"""  # noqa: S608  # the inserted texts are constants

_SUCCEEDED: Final[LiteralString] = f"""
DELETE FROM redrive_metric WHERE name IN ('{_COUNT}', '{_LAST}') AND place = 0 AND part = %(task)b::text
"""  # noqa: S608  # as above

_FAILING: Final[LiteralString] = f"""
SELECT part AS name, n.value::bigint AS failures, extract(epoch FROM redrive_now()) - last.value AS age
  FROM redrive_metric n JOIN redrive_metric last USING (place, part)
 WHERE n.name = '{_COUNT}' AND last.name = '{_LAST}' AND n.value >= %(least)b::float8
   AND last.value >= extract(epoch FROM redrive_now()) - %(within)b::float8
 ORDER BY part
"""  # noqa: S608  # as above


def record_failure(task: str) -> None:
    """Record that this task failed now."""
    rows.execute(_FAILED, {"task": task})


def record_success(task: str) -> None:
    """Record that this task succeeded: its failures until now are forgotten."""
    rows.execute(_SUCCEEDED, {"task": task})


def failing_tasks(*, least: int, within: float) -> list[FailingTask]:
    """Return tasks that failed at least `least` times since their last success, and last in the last `within` seconds.

    A task that no longer exists, because of an upgrade, is left out after `within` seconds.
    """
    return rows.fetch(FailingTask, _FAILING, {"least": least, "within": within})
