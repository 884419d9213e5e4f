"""How many lanes beat's tick hints at, for how long, and whether a sweep or a purge is due."""

from __future__ import annotations

from dataclasses import dataclass

from reprocessing.store import rows
from reprocessing.store.ordering.lanes import ANSWERED_RUNS
from reprocessing.store.safety.send_limits import MAY_GO

# Of lanes that may be worked on; those of a stopped dlq wait for nobody. An orphan counts until it has been told of.
# What is leased and what was hinted at has an index each: the lanes that are due are many more.
_UNTAKEN = f"""
SELECT count(*) FILTER (WHERE hinted_until > redrive_now()) AS pending,
       count(*) FILTER (WHERE hinted_until <= redrive_now()) AS expired,
       count(*) FILTER (WHERE phase = 'leased' AND due_at > redrive_now()) AS worked_on,
       count(*) FILTER (WHERE phase = 'leased' AND due_at <= redrive_now() AND hinted_until IS NULL) AS orphaned
  FROM (SELECT phase, due_at, hinted_until, run_id FROM redrive_lane WHERE phase = 'leased' AND stopped_at IS NULL
        UNION ALL
        SELECT phase, due_at, hinted_until, run_id FROM redrive_lane
         WHERE phase = 'ready' AND hinted_until IS NOT NULL AND stopped_at IS NULL AND {MAY_GO}) lane
 WHERE coalesce(run_id IN ({ANSWERED_RUNS}), false)
"""  # noqa: S608  # the inserted text is constant

# Hints outlived their time while nobody worked on anything: there are no workers. The next round is half as wide, and
# waits twice as long. While hints are pending and nobody works, nothing is known.
_WIDEN = """
INSERT INTO redrive_dispatch AS d (id, width, lifetime) VALUES (1, %(most)b::int, %(least_life)b::float8)
ON CONFLICT (id) DO UPDATE
   SET width = CASE %(taken)b WHEN 'no' THEN greatest(1, d.width / 2) WHEN 'yes' THEN least(%(most)b::int, d.width * 2)
                    ELSE least(%(most)b::int, d.width) END,
       lifetime = CASE %(taken)b WHEN 'no' THEN least(%(most_life)b::float8, d.lifetime * 2)
                       WHEN 'yes' THEN %(least_life)b::float8 ELSE d.lifetime END
RETURNING d.width, d.lifetime
"""

_DUE = """
UPDATE redrive_dispatch
   SET swept_at = CASE WHEN %(what)b = 'sweep' THEN redrive_now() ELSE swept_at END,
       purged_at = CASE WHEN %(what)b = 'purge' THEN redrive_now() ELSE purged_at END
 WHERE id = 1 AND CASE %(what)b WHEN 'sweep' THEN swept_at ELSE purged_at END
                  <= redrive_now() - make_interval(secs => %(every)b::float8)
"""


@dataclass(frozen=True, slots=True)
class _Untaken:
    pending: int
    expired: int
    worked_on: int
    orphaned: int

    @property
    def taken(self) -> str:
        """Whether hints are taken: yes, no, or not known yet."""
        if self.worked_on or not (self.pending or self.expired):
            return "yes"
        return "no" if self.expired else "open"


@dataclass(frozen=True, slots=True)
class Round:
    """How many lanes to hint at now, and for how many seconds the hints wait."""

    width: int
    lifetime: float


def next_round(*, most: int, least_life: float, most_life: float) -> Round:
    """The next round of hints: narrower and longer while nobody takes them; 0 wide while enough are pending.

    Lanes whose owner died are hinted at in any case: what was told to a dead worker counts as pending, too.

    Args:
        most: lanes of a full round.
        least_life: seconds that a hint waits for a worker, when workers take them.
        most_life: seconds, when nobody does.
    """
    untaken = rows.fetch(_Untaken, _UNTAKEN, {})[0]
    values = {"most": most, "least_life": least_life, "most_life": most_life, "taken": untaken.taken}
    found = rows.fetch(Round, _WIDEN, values)[0]
    return Round(max(found.width - untaken.pending, min(untaken.orphaned, most)), found.lifetime)


def is_due(what: str, *, every: float) -> bool:
    """Whether a `sweep` or a `purge` is due; who is told yes is to do it."""
    return rows.execute(_DUE, {"what": what, "every": every}) == 1
