"""Create and delete plans: runs that are not started, with their selected letters.

Planning has two transactions: store the plan, then select its letters. After a crash between the two, a repeated
request for the plan selects the letters.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, LiteralString

from psycopg.types.json import Jsonb

from reprocessing.domain.runs.plan_choice import Choice
from reprocessing.domain.runs.selection import ALL_LETTERS, Selection
from reprocessing.models.dlq import DeadLetterQueue
from reprocessing.models.run import Run, RunKind, RunState
from reprocessing.store import rows
from reprocessing.store.maintenance.retention import ALLOW_AUDIT_DELETE
from reprocessing.store.runs import plan_figures, selection
from reprocessing.store.runs.run_transitions import FREE_CAPTURED_LETTERS, give_up
from reprocessing.store.runs.selection import SelectedCount
from reprocessing.store.safety.paused_runs import THE_SERVICE

logger = logging.getLogger(__name__)

#: Seconds after which a plan that was not started is aborted: until then, no other run can take its letters.
PLAN_SECONDS: Final = 86_400.0
#: A key in a plan's stored selection: no person named the plan, so the DLQ's next plan replaces it.
UNNAMED_KEY: Final[LiteralString] = "unnamed"


@dataclass(frozen=True, slots=True)
class RunRequest:
    """The parameters of a run that a person or program requests.

    Attributes:
        named: whether a person gave the run its name. A plan without such a name is replaced by the DLQ's next plan.
        in_waves: whether to send in waves; None: use the DLQ's setting.
        rate, waits_for_outcomes: see `Run`.
        through: select only letters with ids up to this id; None: all letters.
    """

    name: str
    by: str
    selection: Selection = ALL_LETTERS
    named: bool = True
    in_waves: bool | None = None
    rate: float | None = None
    waits_for_outcomes: bool = True
    reason: str = ""
    through: int | None = None


@dataclass(frozen=True, slots=True)
class _Plan:
    id: int
    dlq_id: int
    selection: dict[str, Any]


_LOCK_PLAN = """
SELECT id, dlq_id, selection FROM redrive_run
 WHERE id = %(run)b AND state = 'planned' AND selected IS NULL FOR NO KEY UPDATE
"""

_SELECTED = """
WITH found AS (
    UPDATE redrive_run SET selected = %(selected)b, behind = %(behind)b WHERE id = %(run)b RETURNING id, dlq_id
)
INSERT INTO redrive_audit_entry (act, run_id, dlq_id, by, reason, at, before, after)
SELECT 'planned', id, dlq_id, %(by)b::text, %(reason)b::text, redrive_now(), '{}',
       %(asked)b::jsonb || jsonb_build_object('selected', %(selected)b::int, 'behind', %(behind)b::int)
  FROM found
"""

_CHOOSE = """
WITH was AS (
    SELECT id, dlq_id, rate, waits_for_outcomes, waves FROM redrive_run
     WHERE id = %(run)b AND state = 'planned' FOR NO KEY UPDATE
), chosen AS (
    UPDATE redrive_run r SET rate = %(rate)b::float8, waits_for_outcomes = %(waits)b::bool, waves = %(waves)b::bool,
           changed_at = redrive_now()
      FROM was WHERE r.id = was.id RETURNING r.id, r.rate, r.waits_for_outcomes, r.waves
)
INSERT INTO redrive_audit_entry (act, run_id, dlq_id, by, reason, at, before, after)
SELECT 'changed', was.id, was.dlq_id, %(by)b::text, %(reason)b::text, redrive_now(),
       jsonb_build_object('rate', was.rate, 'waits_for_outcomes', was.waits_for_outcomes, 'waves', was.waves),
       jsonb_build_object('rate', c.rate, 'waits_for_outcomes', c.waits_for_outcomes, 'waves', c.waves)
  FROM was JOIN chosen c USING (id)
"""

_UNNAMED_ONES = """
SELECT id FROM redrive_run
 WHERE dlq_id = %(dlq)b AND id <> %(but)b AND kind = 'drain' AND state = 'planned' AND selection ? 'unnamed' ORDER BY id
"""

_OLD_ONES = """
SELECT id FROM redrive_run
 WHERE kind = 'drain' AND state = 'planned'
   AND coalesce(changed_at, created_at) < redrive_now() - make_interval(secs => %(lasts)b::float8)
 ORDER BY id
"""

_LOCK = "SELECT id FROM redrive_run WHERE id = %(run)b AND state = 'planned' FOR UPDATE"

_FORGET = (
    FREE_CAPTURED_LETTERS, ALLOW_AUDIT_DELETE, "DELETE FROM redrive_audit_entry WHERE run_id = %(run)b",
    "DELETE FROM redrive_run WHERE id = %(run)b",
)  # fmt: skip


def create_plan(dlq: DeadLetterQueue, asked: RunRequest) -> Run:
    """Return the run with the requested name. If there is none, create a plan whose letters are not selected yet."""
    selection = asked.selection.stored(dlq.name) | ({} if asked.named else {UNNAMED_KEY: True})
    in_waves = dlq.waves if asked.in_waves is None else asked.in_waves
    made = {"dlq": dlq, "kind": RunKind.DRAIN, "selection": selection, "asked_by": asked.by, "waves": in_waves}
    made |= {"reason": asked.reason, "rate": asked.rate, "waits_for_outcomes": asked.waits_for_outcomes}
    return Run.objects.get_or_create(name=asked.name, defaults=made)[0]


def select_letters(run: int, *, by: str, reason: str, through: int | None = None) -> SelectedCount | None:
    """Select the letters of a plan in one transaction; return how many were selected.

    None: the plan's letters were selected before, or the run is no longer a plan. The DLQ's other plans without a name
    from a person are aborted. `through`: only letters with ids up to this id; None: all letters.
    """

    def work() -> SelectedCount | None:
        for dlq in Run.objects.filter(pk=run).values_list("dlq_id", flat=True):
            selection.lock_selection(dlq)
        found = rows.fetch(_Plan, _LOCK_PLAN, {"run": run})
        if not found:
            return None
        plan = found[0]
        for other in rows.column(int, _UNNAMED_ONES, {"dlq": plan.dlq_id, "but": run}):
            give_up(other, by=by, reason="The DLQ's next plan replaced it.")
        done = selection.select_letters(plan.dlq_id, run, Selection.read(plan.selection), through=through)
        plan_figures.store_figures(plan.dlq_id, run, selected=done.selected)
        values = {
            "run": run, "selected": done.selected, "behind": done.behind, "asked": Jsonb(plan.selection), "by": by,
            "reason": reason,
        }  # fmt: skip
        rows.execute(_SELECTED, values)
        return done

    return rows.in_transaction(work)


def set_choice(run: Run, choice: Choice, *, by: str, reason: str) -> bool:
    """Change how a plan will be sent (`choice`), with an audit log entry; return False if it is no longer a plan."""
    values = {
        "run": run.pk, "rate": choice.rate, "waits": choice.waits_for_outcomes, "waves": choice.waves, "by": by,
        "reason": reason,
    }  # fmt: skip
    return bool(rows.execute(_CHOOSE, values))


def unselected_plans(dlq: int) -> list[Run]:
    """Return the DLQ's plans whose letters are not selected yet, the oldest first."""
    found = Run.objects.filter(dlq=dlq, kind=RunKind.DRAIN, state=RunState.PLANNED, selected=None)
    return list(found.order_by("pk"))


def replaceable_plans(dlq: int) -> list[Run]:
    """Return the plans that the DLQ's next plan replaces, because no person named them; the oldest first."""
    return list(Run.objects.filter(pk__in=rows.column(int, _UNNAMED_ONES, {"dlq": dlq, "but": 0})).order_by("pk"))


def delete_plan(run: int) -> None:
    """Delete a plan that nobody has seen, so that other runs can select its letters."""

    def work() -> None:
        for statement in _FORGET if rows.execute(_LOCK, {"run": run}) else ():
            rows.execute(statement, {"run": run})

    rows.in_transaction(work)


def give_up_old_plans() -> int:
    """Abort plans that were not started within a day; return how many."""
    given_up = 0
    for run in rows.column(int, _OLD_ONES, {"lasts": PLAN_SECONDS}):
        reason = "It was not started within a day."
        if rows.in_transaction(partial(give_up, run, by=THE_SERVICE, reason=reason)):
            name = Run.objects.get(pk=run).name
            logger.warning("The plan %s was given up: it was not started within a day.", name, extra={"run": name})
            given_up += 1
    return given_up
