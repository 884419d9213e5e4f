"""Decide for how many lanes beat sends task hints, and how long hints are valid. Also time the sweep and the purge.

A task hint is a Celery task that names lanes whose first letter can be sent. A sweep finishes the work of killed
workers. A purge deletes rows past their retention.
"""

from __future__ import annotations

from dataclasses import dataclass

from reprocessing.store import rows
from reprocessing.store.ordering.active_runs import ANSWERED_RUNS
from reprocessing.store.safety.send_limits import HEAD_MAY_BE_SENT

# Counts lanes with a task hint, and leased lanes. `orphaned`: lanes that a killed worker leased, and that have no hint
# yet.
_UNTAKEN = f"""
SELECT count(*) FILTER (WHERE hinted_until > redrive_now()) AS pending,
       count(*) FILTER (WHERE hinted_until <= redrive_now()) AS expired,
       count(*) FILTER (WHERE phase = 'leased' AND due_at > redrive_now()) AS worked_on,
       count(*) FILTER (WHERE phase = 'leased' AND due_at <= redrive_now() AND hinted_until IS NULL) AS orphaned
  FROM (SELECT phase, due_at, hinted_until, run_id FROM redrive_lane WHERE phase = 'leased' AND stopped_at IS NULL
        UNION ALL
        SELECT phase, due_at, hinted_until, run_id FROM redrive_lane
         WHERE phase = 'ready' AND hinted_until IS NOT NULL AND stopped_at IS NULL AND {HEAD_MAY_BE_SENT}) lane
 WHERE coalesce(run_id IN ({ANSWERED_RUNS}), false)
"""  # noqa: S608  # the inserted text is constant

# If hints expired while no lane was leased, there are no workers: the next round has half as many hints, valid for
# twice as long. While hints are valid and not taken, it is not known yet whether there are workers.
_WIDEN = """
INSERT INTO redrive_task_hints AS d (id, width, lifetime) VALUES (1, %(most)b::int, %(least_life)b::float8)
ON CONFLICT (id) DO UPDATE
   SET width = CASE %(taken)b WHEN 'no' THEN greatest(1, d.width / 2) WHEN 'yes' THEN least(%(most)b::int, d.width * 2)
                    ELSE least(%(most)b::int, d.width) END,
       lifetime = CASE %(taken)b WHEN 'no' THEN least(%(most_life)b::float8, d.lifetime * 2)
                       WHEN 'yes' THEN %(least_life)b::float8 ELSE d.lifetime END
RETURNING d.width, d.lifetime
"""

_DUE = """
UPDATE redrive_task_hints
   SET swept_at = CASE WHEN %(what)b = 'sweep' THEN redrive_now() ELSE swept_at END,
       purged_at = CASE WHEN %(what)b = 'purge' THEN redrive_now() ELSE purged_at END
 WHERE id = 1 AND CASE %(what)b WHEN 'sweep' THEN swept_at ELSE purged_at END
                  <= redrive_now() - make_interval(secs => %(every)b::float8)
"""

_PURGE_SOON = """
UPDATE redrive_task_hints SET purged_at = redrive_now() - make_interval(secs => %(every)b::float8 - %(within)b::float8)
 WHERE id = 1
"""


@dataclass(frozen=True, slots=True)
class _Untaken:
    pending: int
    expired: int
    worked_on: int
    orphaned: int

    @property
    def taken(self) -> str:
        """Return whether workers take the hints: `yes`, `no`, or `open` (not known yet)."""
        if self.worked_on or not (self.pending or self.expired):
            return "yes"
        return "no" if self.expired else "open"


@dataclass(frozen=True, slots=True)
class HintRound:
    """For how many lanes (`width`) beat sends hints now, and for how many seconds (`lifetime`) the hints are valid."""

    width: int
    lifetime: float


def next_hint_round(*, most: int, least_life: float, most_life: float) -> HintRound:
    """Return for how many lanes beat sends hints now, and how long the hints are valid.

    The number is 0 if enough earlier hints have not been taken yet. While no worker takes hints, fewer hints are sent,
    and each is valid for longer. Lanes on which a killed worker had a lease always get a hint.

    `most`: the most lanes in a round. `least_life`: seconds for which a hint is valid while workers take hints.
    `most_life`: the most seconds for which a hint is valid while workers take no hints.
    """
    untaken = rows.fetch(_Untaken, _UNTAKEN, {})[0]
    values = {"most": most, "least_life": least_life, "most_life": most_life, "taken": untaken.taken}
    found = rows.fetch(HintRound, _WIDEN, values)[0]
    return HintRound(max(found.width - untaken.pending, min(untaken.orphaned, most)), found.lifetime)


def claim_if_due(what: str, *, every: float) -> bool:
    """Return whether the last sweep (or purge) began at least `every` seconds ago; if so, record that the next begins.

    `what`: "sweep" or "purge".
    """
    return rows.execute(_DUE, {"what": what, "every": every}) == 1


def make_purge_due(*, within: float, every: float) -> None:
    """Make the next purge due in `within` seconds, because the last purge left old rows.

    `every`: seconds between two purges that leave none, as for `is_due`.
    """
    rows.execute(_PURGE_SOON, {"within": within, "every": every})
