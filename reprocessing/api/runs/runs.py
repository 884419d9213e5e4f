"""List, plan, start, show, pause, resume and abort runs."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final, Literal
from uuid import UUID, uuid5

from django.http import HttpRequest
from ninja import Query, Router

from reprocessing import conf
from reprocessing.api.approvals.approval_answers import ApprovalNeededAnswer
from reprocessing.api.runs.run_answers import (
    AbortRun,
    PlanRequest,
    RunAnswer,
    RunChange,
    RunDetail,
    RunPage,
    RunView,
)
from reprocessing.api.site import paging
from reprocessing.api.site.caller import caller_of
from reprocessing.api.site.document import changes, reads
from reprocessing.api.site.fields import Name, Request
from reprocessing.api.site.guard import acts
from reprocessing.api.site.paging import After, Limit
from reprocessing.api.site.problems import Problem, conflict
from reprocessing.domain.api.scopes import Scope
from reprocessing.domain.runs.selection import Selection
from reprocessing.models import DeadLetterQueue, Run
from reprocessing.models.run import RunKind
from reprocessing.pipeline.runs import request_plan, run_actions
from reprocessing.pipeline.runs.run_actions import RUN_ACTIONS, RunAction, why_impossible
from reprocessing.pipeline.runs.run_status import RunStatus
from reprocessing.store.runs import enlistment_batches, plans, run_transitions
from reprocessing.store.runs.plans import RunRequest

router: Final = Router()
_ANSWERS: Final = {200: RunAnswer, 202: ApprovalNeededAnswer}
_TAG: Final = "Runs"
#: Namespace of the UUIDs that are derived from idempotency keys, so that a repeated request plans no second run.
_NAMESPACE: Final = UUID("0d4b6cf4-1f7e-4a43-9d5c-90f3a6f8a1f2")


class RunQuery(Request):
    """Query parameters of the list of runs."""

    dlq: Name | None = None
    state: Literal["planned", "running", "paused", "finished", "aborted"] | None = None
    limit: Limit = paging.DEFAULT
    after: After = ""


@reads(router, "/runs", Scope.RUNS_READ, RunPage, tag=_TAG)
def list_runs(request: HttpRequest, query: Query[RunQuery]) -> RunPage:
    """List runs, the newest first."""
    caller = caller_of(request)
    rows = caller.rows(Run.objects.select_related("dlq"))
    if query.dlq is not None:
        rows = rows.filter(dlq=caller.row(DeadLetterQueue.objects, "DLQ", name=query.dlq))
    if query.state is not None:
        rows = rows.filter(state=query.state)
    found, following = paging.page_by_id(rows, after=query.after, limit=query.limit)
    return RunPage(items=[RunView.of(run) for run in found], next=following)


@reads(router, "/runs/{slug:run}", Scope.RUNS_READ, RunDetail, tag=_TAG)
def get_run(request: HttpRequest, run: str) -> RunDetail:
    """Show a run and its progress."""
    view = conf.current()
    found = _run(request, run)
    return RunDetail.read(RunStatus.read(found, count_lag=view.count_lag.total_seconds(), prices=view.prices))


@changes(router, "/runs", Scope.RUNS_OPERATE, RunAnswer, tag=_TAG)
def plan_run(request: HttpRequest, plan: PlanRequest) -> RunAnswer:
    """Plan a run.

    Planning sends no messages. With `capture`, workers receive the DLQ's messages first. Before that, `selected` is
    null, and the run cannot be started. Start the run with POST /runs/{run}/start.
    """
    caller = caller_of(request)
    dlq = caller.row(DeadLetterQueue.objects, "DLQ", name=plan.dlq)
    wish = _selection(dlq, plan)
    if why := request_plan.why_not(dlq) or request_plan.moved_by_aws(dlq):
        raise conflict(why)
    if plan.advance and (why := run_actions.why_it_must_wait(dlq)):
        raise conflict(why)
    replaced = plans.replaceable_plans(dlq.pk)
    if not acts(request, confirm=plan.confirm):
        free = enlistment_batches.count_free(dlq.pk).n
        says = [f"A run with {wish} of {dlq.name} would be planned. {free:,} captured messages are in no run."]
        says += [f"It would replace the plan {old.name} of {old.asked_by}, {_messages(old)}." for old in replaced]
        return RunAnswer(dry_run=True, changed=False, says=says, run=None)
    name = plan.run or f"run-{uuid5(_NAMESPACE, f'{caller.token.pk} {caller.key}').hex[:12]}"
    asked = RunRequest(
        name, caller.by, wish, in_waves=plan.waves, rate=plan.rate, waits_for_outcomes=plan.advance is None,
        reason=plan.reason,
    )  # fmt: skip
    run = request_plan.plan_run(dlq, asked, captures=plan.capture, seen=caller.seen)
    says = [request_plan.planned_text(run)]
    says += [f"It replaces the plan {old.name} of {old.asked_by}, {_messages(old)}." for old in replaced if old != run]
    return RunAnswer(dry_run=False, changed=True, says=says, run=RunView.of(_run(request, run.name)))


@changes(router, "/runs/{slug:run}/start", Scope.RUNS_OPERATE, _ANSWERS, tag=_TAG)
def start_run(request: HttpRequest, run: str, change: RunChange) -> RunAnswer:
    """Start a planned run.

    Workers send the run's messages, in order per key, as fast as rate limits and circuit breakers allow.
    """
    return _move(request, run, RUN_ACTIONS["start"], change)


@changes(router, "/runs/{slug:run}/pause", Scope.RUNS_OPERATE, RunAnswer, tag=_TAG)
def pause_run(request: HttpRequest, run: str, change: RunChange) -> RunAnswer:
    """Pause a run.

    The run sends nothing until it is resumed. Sends in progress finish, and their results are recorded.
    """
    return _move(request, run, RUN_ACTIONS["pause"], change)


@changes(router, "/runs/{slug:run}/resume", Scope.RUNS_OPERATE, _ANSWERS, tag=_TAG)
def resume_run(request: HttpRequest, run: str, change: RunChange) -> RunAnswer:
    """Resume a paused run.

    If the run has waves, they begin again: one message is sent first.
    """
    return _move(request, run, RUN_ACTIONS["resume"], change)


@changes(router, "/runs/{slug:run}/abort", Scope.RUNS_OPERATE, RunAnswer, tag=_TAG)
def abort_run(request: HttpRequest, run: str, change: AbortRun) -> RunAnswer:
    """Abort a run.

    An aborted run cannot be resumed. The next run of the DLQ takes the queued messages of this run.
    """
    if change.stop_dlq:
        caller_of(request).require(Scope.DLQS_STOP)
    return _move(request, run, RUN_ACTIONS["abort"], change, stop_dlq=change.stop_dlq)


def _run(request: HttpRequest, name: str) -> Run:
    return caller_of(request).row(Run.objects.select_related("dlq"), "run", name=name)


def _messages(plan: Run) -> str:
    if plan.selected is None:
        return "whose messages are not selected yet"
    return f"which has {plan.selected:,} message{'' if plan.selected == 1 else 's'}"


def _selection(dlq: DeadLetterQueue, plan: PlanRequest) -> Selection:
    if plan.sent_after and plan.sent_before and plan.sent_after >= plan.sent_before:
        raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, "`sent_after` is not before `sent_before`. Swap the two times.")
    if plan.source is not None and (why := request_plan.unknown_source(dlq, plan.source)):
        raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, why)
    return Selection(
        limit=plan.limit, source=plan.source, sent_after=plan.sent_after, sent_before=plan.sent_before, key=plan.key,
        message_ids=tuple(sorted(set(plan.message_ids))),
    )  # fmt: skip


def _notice(request: HttpRequest, run: Run, action: RunAction) -> list[str]:
    if action.name not in {"start", "resume"} or run.kind == RunKind.AUTOMATIC:
        return []
    return caller_of(request).approval_notice({run.dlq_id: run_transitions.count_to_send(run.pk)})


def _move(
    request: HttpRequest, name: str, action: RunAction, change: RunChange, *, stop_dlq: bool = False
) -> RunAnswer:
    run = _run(request, name)
    version = change.version or run_transitions.page_stamp(run)
    if version != run_transitions.page_stamp(run):
        raise conflict(f"{run.name} changed since you saw it. {run_actions.state_text(run)}")
    if why := why_impossible(run, action):
        raise conflict(why)
    if not acts(request, confirm=change.confirm):
        return RunAnswer(
            dry_run=True, changed=False, says=[*action.does(run), *_notice(request, run, action)], run=RunView.of(run)
        )
    given = {"reason": change.reason, "stop_dlq": stop_dlq}
    done = run_actions.carry_out(run.pk, action, given, seen=version, by=caller_of(request).by)
    run = _run(request, name)
    if not done:
        raise conflict(why_impossible(run, action) or f"{run.name} changed meanwhile. {run_actions.state_text(run)}")
    says = [f"{run.name} is {action.did}.", run_actions.still_waits_for(run, action)]
    return RunAnswer(dry_run=False, changed=True, says=[text for text in says if text], run=RunView.of(run))
