"""The statements that move runs: planned, started, paused, resumed, aborted; each with its review, in one statement.

A run is planned in two steps, each a transaction: its row says what was asked for, then its letters are selected.
Whoever dies in between leaves a plan without letters, and planning it again finishes it.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, LiteralString

from psycopg.types.json import Jsonb

from reprocessing.domain.selection import ALL, Selection
from reprocessing.models import rows, selection, stops, waves
from reprocessing.models.dead_letter_queue import DeadLetterQueue
from reprocessing.models.enlistment import Enlisted, enlist
from reprocessing.models.review import Act
from reprocessing.models.run import Run, RunKind, RunState
from reprocessing.models.selection import Selected
from reprocessing.models.waves import THE_SERVICE

logger = logging.getLogger(__name__)

#: Seconds after which a plan that nobody started is given up: its letters are kept from every other run.
A_PLAN_LASTS: Final = 86_400.0
#: In a stored selection: nobody gave the run its id, and the dlq's next plan takes its place.
UNNAMED: Final[LiteralString] = "unnamed"

_ACTS = {RunState.PAUSED: Act.PAUSED, RunState.ABORTED: Act.ABORTED}


@dataclass(frozen=True, slots=True)
class Asked:
    """A run as it is asked for.

    Attributes:
        name: its id.
        by: who asks.
        selection: which letters.
        named: a person gave it the id; else the dlq's next plan takes its place, until it is started.
        in_waves: one letter goes first, then ten, then a hundred, then all; None: as the dlq says.
    """

    name: str
    by: str
    selection: Selection = ALL
    named: bool = True
    in_waves: bool | None = None


@dataclass(frozen=True, slots=True)
class Moved:
    """What a run was before it was moved: its state, and who had stopped it, and why."""

    state: str
    by: str
    why: str


@dataclass(frozen=True, slots=True)
class _Plan:
    id: int
    dlq_id: int
    selection: dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Id:
    id: int


_MOVE = """
WITH was AS (
    SELECT id, dlq_id, state, stopped_by, why FROM redrive_run
     WHERE id = %(run)b AND state = ANY(%(from)b::text[]) FOR NO KEY UPDATE
), moved AS (
    UPDATE redrive_run r
       SET state = %(to)b::text, changed_at = redrive_now(),
           stopped_by = CASE WHEN %(to)b::text = 'running' THEN '' ELSE %(by)b::text END,
           why = CASE WHEN %(to)b::text = 'running' THEN '' ELSE %(reason)b::text END,
           started_at = CASE WHEN %(to)b::text = 'running' THEN coalesce(r.started_at, redrive_now())
                             ELSE r.started_at END,
           finished_at = CASE WHEN %(to)b::text = 'aborted' THEN redrive_now() END
      FROM was WHERE r.id = was.id
), noted AS (
    INSERT INTO redrive_review (act, run_id, dlq_id, by, reason, at, before, after)
    SELECT %(act)b::text, id, dlq_id, %(by)b::text, %(reason)b::text, redrive_now(),
           jsonb_strip_nulls(jsonb_build_object(
               'state', state, 'by', nullif(stopped_by, ''), 'why', nullif(why, ''))),
           jsonb_build_object('state', %(to)b::text)
      FROM was
)
SELECT state, stopped_by AS by, why FROM was
"""

_LOCK_PLAN = """
SELECT id, dlq_id, selection FROM redrive_run
 WHERE id = %(run)b AND state = 'planned' AND selected IS NULL FOR NO KEY UPDATE
"""

_SELECTED = """
WITH found AS (
    UPDATE redrive_run SET selected = %(selected)b, behind = %(behind)b WHERE id = %(run)b RETURNING id, dlq_id
)
INSERT INTO redrive_review (act, run_id, dlq_id, by, reason, at, before, after)
SELECT 'planned', id, dlq_id, %(by)b::text, %(reason)b::text, redrive_now(), '{}',
       %(asked)b::jsonb || jsonb_build_object('selected', %(selected)b::int, 'behind', %(behind)b::int)
  FROM found
"""

_FREE = "UPDATE redrive_letter SET run_id = NULL WHERE run_id = %(run)b AND state = 'captured'"

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
    _FREE,
    "DELETE FROM redrive_review WHERE run_id = %(run)b",
    "DELETE FROM redrive_run WHERE id = %(run)b",
)


def plan(dlq: DeadLetterQueue, asked: Asked) -> Run:
    """The row of a run of this name, with what it was asked for; its letters are still to be selected."""
    selection = asked.selection.stored(dlq.name) | ({} if asked.named else {UNNAMED: True})
    in_waves = dlq.waves if asked.in_waves is None else asked.in_waves
    made = {"dlq": dlq, "kind": RunKind.DRAIN, "selection": selection, "asked_by": asked.by, "waves": in_waves}
    return Run.objects.get_or_create(name=asked.name, defaults=made)[0]


def select(run: int, *, by: str, reason: str) -> Selected | None:
    """Select the letters of a plan that has none yet, in one transaction; None when it has, or is no plan any more.

    Another plan of the dlq, which nobody gave an id, is given up for it.
    """

    def work() -> Selected | None:
        for dlq in Run.objects.filter(pk=run).values_list("dlq_id", flat=True):
            selection.take_turn(dlq)
        found = rows.fetch(_Plan, _LOCK_PLAN, {"run": run})
        if not found:
            return None
        plan = found[0]
        for other in rows.fetch(_Id, _UNNAMED_ONES, {"dlq": plan.dlq_id, "but": run}):
            give_up(other.id, by=by, reason="The next plan of its dlq took its place.")
        done = selection.select(plan.dlq_id, run, Selection.read(plan.selection))
        values = {
            "run": run, "selected": done.selected, "behind": done.behind, "asked": Jsonb(plan.selection), "by": by,
            "reason": reason,
        }  # fmt: skip
        rows.execute(_SELECTED, values)
        return done

    return rows.whole(work)


def start(run: Run, *, by: str, reason: str) -> Enlisted | None:
    """Enlist what a plan has selected, and have it run; None when it is no plan any more."""

    def work() -> Enlisted | None:
        if move(run.pk, [RunState.PLANNED], RunState.RUNNING, by=by, reason=reason) is None:
            return None
        enlisted = enlist(run.dlq_id, run.pk)
        waves.begin(run.pk)
        return enlisted

    return rows.whole(work)


def go_on(run: int, *, by: str, reason: str) -> Moved | None:
    """Have a finished run run again: letters came back to it. None when it is not finished."""
    return _begin_again(run, RunState.FINISHED, by, reason)


def resume(run: int, *, by: str, reason: str) -> Moved | None:
    """Have a paused run go on, from one letter where it goes in waves; None when it is not paused."""
    return _begin_again(run, RunState.PAUSED, by, reason)


def _begin_again(run: int, state: RunState, by: str, reason: str) -> Moved | None:
    def work() -> Moved | None:
        was = move(run, [state], RunState.RUNNING, by=by, reason=reason)
        if was:
            waves.begin(run)
        return was

    return rows.whole(work)


def pause(run: int, *, by: str, reason: str) -> Moved | None:
    """Have a run send nothing more until it is resumed; None when it does not run."""
    return rows.whole(partial(move, run, [RunState.RUNNING], RunState.PAUSED, by=by, reason=reason))


def abort(run: Run, *, by: str, reason: str, stop_dlq: bool) -> Moved | None:
    """End a run for good: what is on its way is settled, what waits is left to another run.

    Args:
        run: planned, running or paused; else None is the answer. A plan's letters are free again.
        by: who says so.
        reason: why.
        stop_dlq: stop the dlq's sends, too, where the run had been started.
    """

    def work() -> Moved | None:
        was = give_up(run.pk, by=by, reason=reason)
        if was:
            return was
        was = move(run.pk, [RunState.RUNNING, RunState.PAUSED], RunState.ABORTED, by=by, reason=reason)
        if was:
            waves.close(run.pk)
            if stop_dlq:
                stops.stop(run.dlq_id, by=by, reason=reason)
        return was

    return rows.whole(work)


def give_up(run: int, *, by: str, reason: str) -> Moved | None:
    """Abort a plan, whose letters are free again; None when it is none. In a transaction of the caller's."""
    was = move(run, [RunState.PLANNED], RunState.ABORTED, by=by, reason=reason)
    if was:
        rows.execute(_FREE, {"run": run})
    return was


def forget(run: int) -> None:
    """Undo a plan that nobody was told of: its letters are free again, and its id is nobody's."""

    def work() -> None:
        for statement in _FORGET if rows.fetch(_Id, _LOCK, {"run": run}) else ():
            rows.execute(statement, {"run": run})

    rows.whole(work)


def sweep() -> int:
    """Give up the plans that nobody has started for a day, and say so; how many."""
    old = [one.id for one in rows.fetch(_Id, _OLD_ONES, {"lasts": A_PLAN_LASTS})]
    for run in old:
        reason = "Nobody started it within a day."
        if rows.whole(partial(give_up, run, by=THE_SERVICE, reason=reason)):
            logger.warning("The plan %s was given up: nobody started it within a day.", Run.objects.get(pk=run).name)
    return len(old)


def move(run: int, out_of: Sequence[RunState], to: RunState, *, by: str, reason: str) -> Moved | None:
    """Move a run out of one of these states, with its review; None when it is in none of them."""
    act = _ACTS.get(to) or (Act.RESUMED if RunState.PAUSED in out_of else Act.STARTED)
    values = {"run": run, "from": list(out_of), "to": to.value, "act": act.value, "by": by, "reason": reason}
    found = rows.fetch(Moved, _MOVE, values)
    return found[0] if found else None
