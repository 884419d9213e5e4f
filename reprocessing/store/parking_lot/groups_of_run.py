"""Count the parked letters of a run by failure group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, LiteralString

from reprocessing.store import rows

#: Highest number of parked letters of a run that are counted.
MAX_READ: Final = 5_000

# Reads a bounded part of the index of a run's letters. The columns are compared as a row and ordered: else PostgreSQL
# may scan the table, or the parked letters of all runs. A group that is merged into another is a part of it.
_GROUPS: Final[LiteralString] = """
SELECT g.id AS group_id, coalesce(nullif(g.name, ''), g.title, '') AS title,
       CASE WHEN g.id IS NULL THEN l.reason ELSE '' END AS reason, sum(l.n)::bigint AS n
  FROM (SELECT group_id, reason, count(*) AS n
          FROM (SELECT group_id, reason FROM redrive_letter
                 WHERE (run_id, state) >= (%(run)b::bigint, 'parked') AND (run_id, state) <= (%(run)b::bigint, 'parked')
                   AND run_id IS NOT NULL
                 ORDER BY run_id, state LIMIT %(most)b::bigint) few
         GROUP BY group_id, reason) l
  LEFT JOIN redrive_failure_group m ON m.id = l.group_id
  LEFT JOIN redrive_failure_group g ON g.id = coalesce(m.merged_into_id, m.id)
 GROUP BY 1, 2, 3 ORDER BY n DESC, group_id, reason
"""


@dataclass(frozen=True, slots=True)
class GroupOfRun:
    """How many letters of a run are parked in one failure group; or for one `reason`, without a group."""

    group_id: int | None
    title: str
    reason: str
    n: int


def groups_of_run(run: int) -> list[GroupOfRun]:
    """Count a run's parked letters by failure group, the largest group first. At most 5,000 letters are counted."""
    return rows.fetch(GroupOfRun, _GROUPS, {"run": run, "most": MAX_READ})
