"""Open and end incidents about runs, to notify people, in the transaction that changes the run."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final, LiteralString

from reprocessing.domain.notifications.event import Event, EventKind
from reprocessing.domain.notifications.subjects import of_run
from reprocessing.store import rows
from reprocessing.store.notifications.outbox import announce, conclude

#: Kinds of incidents that end when their run is resumed, or ends.
_STANDSTILLS: Final = (EventKind.RUN_STOPPED, EventKind.RUN_STALLED, EventKind.REDRIVE_LOOP)
#: Messages of one state are counted up to this number. The text about a larger run has no count.
_MOST: Final = 50_000

# The letters of each run are counted with the index of the run's letters.
_ENDED: Final[LiteralString] = """
SELECT r.id AS run_id, r.name, r.dlq_id, d.name AS dlq,
       extract(epoch FROM r.finished_at - r.started_at)::float8 AS seconds,
       (SELECT coalesce(jsonb_object_agg(s.state, c.n), '{}')
          FROM unnest(ARRAY['delivered', 'duplicate', 'parked', 'discarded']) AS s(state)
         CROSS JOIN LATERAL (
               SELECT count(*) AS n FROM (
                      SELECT FROM redrive_letter l WHERE l.run_id = r.id AND l.state = s.state
                       LIMIT %(most)b::bigint) few) c
         WHERE c.n < %(most)b::bigint) AS ended
  FROM redrive_run r JOIN redrive_dlq d ON d.id = r.dlq_id WHERE r.id = ANY(%(runs)b::bigint[]) ORDER BY r.id
"""
_FACTS: Final = {"delivered": "delivered", "duplicate": "duplicates", "parked": "parked", "discarded": "discarded"}


@dataclass(frozen=True, slots=True)
class _Ended:
    run_id: int
    name: str
    dlq_id: int
    dlq: str
    seconds: float | None
    ended: Mapping[str, int]


def announce_stopped(run_id: int, name: str, *, dlq_id: int, dlq: str, why: str) -> None:
    """Open an incident, to notify people that a run paused itself.

    `why`: the reason, without message data and without a target's answer.
    """
    facts: dict[str, str | int | float] = {"run": name, "run_id": run_id, "dlq": dlq, "why": why}
    announce([Event(EventKind.RUN_STOPPED, of_run(run_id), facts, dlq_id=dlq_id)])


def announce_loop(run_id: int, name: str, *, dlq_id: int, dlq: str, messages: int) -> None:
    """Open an incident, to notify people of a redrive loop: redriven messages come back to the DLQ as new messages.

    `messages`: how many of the DLQ's newest messages came back.
    """
    facts: dict[str, str | int | float] = {"run": name, "run_id": run_id, "dlq": dlq, "messages": messages}
    announce([Event(EventKind.REDRIVE_LOOP, of_run(run_id), facts, dlq_id=dlq_id)])


def announce_finished(runs: Collection[int]) -> None:
    """Open an incident, to notify people, for each of these finished runs, and end the runs' other incidents."""
    if not runs:
        return
    announce([_finished(run) for run in rows.fetch(_Ended, _ENDED, {"runs": list(runs), "most": _MOST})])
    conclude_standstills(runs)


def conclude_standstills(runs: Collection[int]) -> None:
    """End the incidents that say that these runs do not progress, because the runs were resumed or have ended."""
    conclude([(kind, of_run(run)) for run in runs for kind in _STANDSTILLS])


def _finished(run: _Ended) -> Event:
    facts: dict[str, str | int | float] = {"run": run.name, "run_id": run.run_id, "dlq": run.dlq}
    facts |= {_FACTS[state]: n for state, n in run.ended.items()}
    if run.seconds is not None:
        facts["seconds"] = max(round(run.seconds), 0)  # below 0: the clock was set back
    return Event(EventKind.RUN_FINISHED, of_run(run.run_id), facts, dlq_id=run.dlq_id)
