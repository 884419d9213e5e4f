"""Describe, for people, how a DLQ is redriven in its mode, and whether beat and the workers were active lately.

A tick is a task that beat sends every 2 seconds, to make workers start all work that is due. An automatic run
(`RunKind.AUTOMATIC` in the code) is the run of a DLQ in mode automatic, which takes all new messages and does not end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, LiteralString

from reprocessing.domain.lifecycle import OPEN_STATES
from reprocessing.domain.runs.forecast import duration_in_words
from reprocessing.models import Letter, Run
from reprocessing.models.dlq import DeadLetterQueue, Mode
from reprocessing.models.run import RunKind, RunState
from reprocessing.store import rows
from reprocessing.store.dlqs import schedule
from reprocessing.store.ordering import lanes
from reprocessing.store.ordering.stalled_lanes import TICK_TASK
from reprocessing.store.safety import stops

#: Seconds without a tick after which beat or the workers are reported as missing. Beat sends a tick every 2 seconds.
_LATELY: Final = 60.0
#: Unfinished messages of an automatic run are counted up to this number.
_COUNTED: Final = 10_000
_START: Final = "Start one: celery -A redrive_service {} (with the environment of this command)."
_AHEAD: Final = "The last tick of beat has a time in the future, so it is not known whether beat runs."
_CHECK: Final = "Check both: manage.py redrive_doctor"
_START_WORKER: Final = f"Workers are seen only while beat runs. If no worker runs: {_START.format('worker')}"

# A tick has the time of beat's clock, so its age by PostgreSQL's clock may be wrong, and below 0.
_SEEN: Final[LiteralString] = """
SELECT (SELECT extract(epoch FROM clock_timestamp() - max(last_run_at))::float8
          FROM django_celery_beat_periodictask WHERE task = %(tick)b AND enabled) AS ticked,
       (SELECT extract(epoch FROM clock_timestamp() - max(consumed_at))::float8 FROM redrive_heartbeat) AS consumed
"""


@dataclass(frozen=True, slots=True)
class StillSending:
    """The automatic run of a DLQ, which still redrives messages although the DLQ's mode was changed to manual.

    In mode manual the run takes no new messages. `unfinished`: the number of messages that it still has, as a text such
    as "2 messages".
    """

    id: int
    name: str
    unfinished: str


@dataclass(frozen=True, slots=True)
class _Seen:
    """Seconds since beat last sent a tick (by beat's clock), and since a worker last took a tick; None: never."""

    ticked: float | None
    consumed: float | None


def missing_processes(*, cure: bool = True) -> list[str]:
    """Return sentences for people that say that beat or the workers seem not to run; empty if they do.

    They seem not to run if no worker took a tick in the last 60 s. If only beat is missing, there is no tick to take,
    so workers seem to be missing too. `cure`: each sentence also says how to start the process, or find the cause.
    """
    seen = rows.fetch(_Seen, _SEEN, {"tick": TICK_TASK})[0]
    if not _is_late(seen.consumed):
        return []  # a worker took a tick lately, so beat sent it lately, even if its clock is wrong
    said = []
    if _is_late(seen.ticked):
        said.append((f"No beat was seen {_duration(seen.ticked)}: nothing is polled.", _START.format("beat")))
    if seen.ticked is not None and seen.ticked < -_LATELY:
        said.append((f"No worker took a tick {_duration(seen.consumed)}: nothing is sent. {_AHEAD}", _CHECK))
    else:
        how = _START_WORKER if said else _START.format("worker")
        said.append((f"No worker was seen {_duration(seen.consumed)}: nothing is sent.", how))
    return [f"{text} {how}" if cure else text for text, how in said]


def describe_redrive(name: str, *, by_hand: str) -> str:
    """Return sentences for people that say how the DLQ is redriven in its mode.

    `by_hand`: the sentences to return for a DLQ in mode manual. A sentence about its automatic run may follow them.
    """
    dlq = DeadLetterQueue.objects.select_related("interval", "crontab").get(name=name)
    if dlq.mode == Mode.MANUAL:
        return " ".join(filter(None, (by_hand, describe_still_sending(name))))
    if dlq.mode == Mode.OBSERVE:
        return (
            "It is in mode observe: nothing is received from it. To receive messages: "
            f"manage.py add_dlq {name} --mode manual --confirm"
        )
    now = lanes.database_now()
    first = schedule.first_poll(dlq, now=now)
    when = "as soon as beat sends a tick" if first is None or first <= now else f"{first:%Y-%m-%d %H:%M:%S} UTC"
    said = f"Beat and a worker redrive it automatically, from the next poll on ({when})."
    watch = f"manage.py redrive_status {name} --watch shows it."
    return " ".join(filter(None, (said, watch, stops.describe_stop(dlq), *missing_processes())))


def still_sending(name: str) -> StillSending | None:
    """Return the DLQ's automatic run, if it is running and has messages although the DLQ's mode is manual; else None.

    The reason: a change of the mode from automatic to manual does not pause the automatic run.
    """
    found = Run.objects.filter(dlq__name=name, dlq__mode=Mode.MANUAL, kind=RunKind.AUTOMATIC, state=RunState.RUNNING)
    if (run := found.first()) is None:
        return None
    n = Letter.objects.filter(run=run, state__in=OPEN_STATES)[: _COUNTED + 1].count()
    if not n:
        return None
    least = "more than " if n > _COUNTED else ""
    return StillSending(run.pk, run.name, f"{least}{min(n, _COUNTED):,} message{'' if n == 1 else 's'}")


def describe_still_sending(name: str) -> str:
    """Return a text that says that the automatic run still redrives a DLQ in mode manual, and how to pause the run.

    Empty: the automatic run has no messages, or does not run.
    """
    if (run := still_sending(name)) is None:
        return ""
    pause = f"manage.py pause_run {run.name} --reason WHY --confirm"
    return f"The run {run.name} still redrives the {run.unfinished} that it has. To pause it: {pause}"


def _is_late(age: float | None) -> bool:
    return age is None or age > _LATELY


def _duration(age: float | None) -> str:
    return "in this database yet" if age is None else f"for {duration_in_words(age)}"
