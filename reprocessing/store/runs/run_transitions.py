"""Start, pause, resume and abort runs. The statement of each change also writes the audit log entry."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, LiteralString, TypeVar

from reprocessing.domain.approvals.requested_action import ActionKind, RequestedAction
from reprocessing.domain.errors import NativeRedriveConflict
from reprocessing.models.audit import AuditAct
from reprocessing.models.dlq import DeadLetterQueue
from reprocessing.models.run import Run, RunKind, RunState
from reprocessing.store import rows
from reprocessing.store.approvals import guard, limits
from reprocessing.store.aws import aws_redrives
from reprocessing.store.dlqs import schedule
from reprocessing.store.notifications.run_events import conclude_standstills
from reprocessing.store.runs import enlistment_batches, leftover_lanes
from reprocessing.store.runs.enlistment import Enlisted, enlist_letters
from reprocessing.store.safety import stops, waves

Done = TypeVar("Done")

_TITLES: Final = {ActionKind.START_RUN: "Start", ActionKind.RESUME_RUN: "Resume", ActionKind.REOPEN_RUN: "Continue"}
_ACTS = {RunState.PAUSED: AuditAct.PAUSED, RunState.ABORTED: AuditAct.ABORTED}


@dataclass(frozen=True, slots=True)
class RunBefore:
    """A run before its state was changed: the former state, and who (`by`) had paused or aborted the run, and why."""

    state: str
    by: str
    why: str


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
    INSERT INTO redrive_audit_entry (act, run_id, dlq_id, by, reason, at, before, after)
    SELECT %(act)b::text, id, dlq_id, %(by)b::text, %(reason)b::text, redrive_now(),
           jsonb_strip_nulls(jsonb_build_object(
               'state', state, 'by', nullif(stopped_by, ''), 'why', nullif(why, ''))),
           jsonb_build_object('state', %(to)b::text)
      FROM was
)
SELECT state, stopped_by AS by, why FROM was
"""

#: Takes the captured letters of a run out of the run, so that other runs can select them.
FREE_CAPTURED_LETTERS: Final[LiteralString] = (
    "UPDATE redrive_letter SET run_id = NULL WHERE run_id = %(run)b AND state = 'captured'"
)


_TO_BE_SENT: Final[LiteralString] = """
SELECT count(*) AS n FROM (
    SELECT FROM redrive_letter l WHERE l.run_id = %(run)b AND l.state IN ('captured', 'waiting')
    UNION ALL
    SELECT FROM redrive_run mine JOIN redrive_run r ON r.dlq_id = mine.dlq_id
     CROSS JOIN LATERAL (SELECT FROM redrive_letter WHERE run_id = r.id AND state = 'waiting'
                          ORDER BY run_id, state LIMIT %(most)b::bigint) l
     WHERE mine.id = %(run)b AND mine.state = 'planned' AND r.state IN ('finished', 'aborted')
     LIMIT %(most)b::bigint) few
"""


def page_stamp(run: Run) -> str:
    """Return a text that changes with every change of the run's state, so that a page notices such a change."""
    return f"{run.state}@{(run.changed_at or run.created_at).isoformat()}@{run.selected}"


def move_if_unchanged(run: int, seen: str, move: Callable[[Run], Done | None]) -> Done | None:
    """Call `move` with the run, in a transaction; return its result, or None if the run changed since a page showed it.

    `seen`: the `page_stamp` of the run when the page was shown.
    """

    def work() -> Done | None:
        now = Run.objects.select_for_update(no_key=True, of=("self",)).select_related("dlq").get(pk=run)
        return move(now) if page_stamp(now) == seen else None

    return rows.in_transaction(work)


def start(run: Run, *, by: str, reason: str, approval: int | None = None) -> Enlisted | None:
    """Start a plan; return how many letters were put onto lanes. None: AWS redrives its DLQ, or it is no longer a plan.

    First the run takes over (adopts) unfinished letters of ended runs. If the plan has more than 2,000 letters, the
    letters are put onto lanes later, in batches. `approval`: id of a second person's approval; None: there is none.

    Raises:
        ApprovalNeeded: a second person is needed.
    """

    def work() -> Enlisted | None:
        aws_redrives.lock_out_aws(run.dlq_id)
        if move_run(run.pk, [RunState.PLANNED], RunState.RUNNING, by=by, reason=reason) is None:
            return None
        is_large = (run.selected or 0) > enlistment_batches.BATCH_LETTERS
        enlisted = Enlisted(0, 0, 0) if is_large else enlist_letters(run.dlq_id, run.pk)
        # Checked after the run has adopted the letters of ended runs, so that these letters are counted.
        _check_approval(ActionKind.START_RUN, run.pk, by=by, approval=approval)
        waves.begin(run.pk)
        return enlisted

    leftover_lanes.adopt_leftovers(run.dlq_id, run.pk)
    try:
        return rows.in_transaction(work)
    except NativeRedriveConflict:
        return None


def reopen(run: int, *, by: str, reason: str, approval: int | None = None) -> RunBefore | None:
    """Continue a finished run to which letters came back; return its state before. None: the run is not finished.

    Raises ApprovalNeeded if a second person is needed.
    """
    return _begin_again(run, RunState.FINISHED, by, reason, approval)


def resume(run: int, *, by: str, reason: str, approval: int | None = None) -> RunBefore | None:
    """Resume a paused run, with a new wave of one letter; return its state before. None: the run is not paused.

    The DLQ of an automatic run is due for a poll now, which enlists letters that waited.

    Raises ApprovalNeeded if a second person is needed.
    """
    return _begin_again(run, RunState.PAUSED, by, reason, approval)


def _begin_again(run: int, state: RunState, by: str, reason: str, approval: int | None) -> RunBefore | None:
    kind = ActionKind.RESUME_RUN if state is RunState.PAUSED else ActionKind.REOPEN_RUN

    def work() -> RunBefore | None:
        if _is_in(run, state):
            _check_approval(kind, run, by=by, approval=approval)
        was = move_run(run, [state], RunState.RUNNING, by=by, reason=reason)
        if was:
            waves.begin(run)
            for dlq in DeadLetterQueue.objects.filter(runs__pk=run, runs__kind=RunKind.AUTOMATIC):
                schedule.poll_now(dlq)  # enlists the letters that waited while the run was paused
        return was

    return rows.in_transaction(work)


def count_to_send(run: int, *, most: int | None = None) -> int:
    """Return how many messages of a run are not sent yet, counted up to `most`; None: all are counted.

    For a plan, the queued messages of the DLQ's ended runs are counted, too, because the plan takes them over.
    """
    return rows.value(int, _TO_BE_SENT, {"run": run, "most": most})


def _is_in(run: int, state: RunState) -> bool:
    return Run.objects.filter(pk=run, state=state).exists()


def _check_approval(kind: ActionKind, run: int, *, by: str, approval: int | None) -> None:
    """Raise ApprovalNeeded if a second person must approve that a run starts or continues; automatic runs need none."""
    row = Run.objects.get(pk=run)
    if row.kind == RunKind.AUTOMATIC or (approval is None and not limits.is_any_limited()):
        return
    action = RequestedAction(kind, f"{_TITLES[kind]} the run {row.name}", {"run": run})
    messages = {row.dlq_id: count_to_send(run)}
    guard.check(action, messages, by=by, approval=approval, again=kind is not ActionKind.START_RUN)


def pause(run: int, *, by: str, reason: str) -> RunBefore | None:
    """Pause a run; return its state before. None: the run is not running."""
    return rows.in_transaction(partial(move_run, run, [RunState.RUNNING], RunState.PAUSED, by=by, reason=reason))


def abort(run: Run, *, by: str, reason: str, stop_dlq: bool) -> RunBefore | None:
    """Abort a run; return its state before. None: the run had ended already.

    Letters that were sent still get an outcome. The next run may take over letters that are queued. If the run was only
    planned, other runs can select its letters. `stop_dlq`: also stop all sends of the DLQ, unless the run was only
    planned.
    """

    def work() -> RunBefore | None:
        was = give_up(run.pk, by=by, reason=reason)
        if was:
            return was
        was = move_run(run.pk, [RunState.RUNNING, RunState.PAUSED], RunState.ABORTED, by=by, reason=reason)
        if was:
            rows.execute(FREE_CAPTURED_LETTERS, {"run": run.pk})
            waves.close(run.pk)
            if stop_dlq:
                stops.stop(run.dlq_id, by=by, reason=reason)
        return was

    return rows.in_transaction(work)


def give_up(run: int, *, by: str, reason: str) -> RunBefore | None:
    """Abort a plan, so that other runs can select its letters; return its state before. None: it is not a plan.

    Call it in a transaction.
    """
    was = move_run(run, [RunState.PLANNED], RunState.ABORTED, by=by, reason=reason)
    if was:
        rows.execute(FREE_CAPTURED_LETTERS, {"run": run})
    return was


def move_run(run: int, out_of: Sequence[RunState], to: RunState, *, by: str, reason: str) -> RunBefore | None:
    """Change a run's state to `to`, with an audit log entry; return its state before.

    None: nothing was changed, because the run is in none of the states `out_of`.
    """
    act = _ACTS.get(to) or (AuditAct.RESUMED if RunState.PAUSED in out_of else AuditAct.STARTED)
    values = {"run": run, "from": list(out_of), "to": to.value, "act": act.value, "by": by, "reason": reason}
    found = rows.fetch(RunBefore, _MOVE, values)
    if found and (found[0].state == RunState.PAUSED or to is RunState.ABORTED):
        conclude_standstills([run])
    return found[0] if found else None
