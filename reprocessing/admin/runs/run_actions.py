"""The pages that start, pause, resume and abort a run.

Each page asks for a reason. Nothing is done if the run changed after the page was opened.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from django import forms
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse

from reprocessing.admin.approvals import requested
from reprocessing.admin.site import confirmed_action, visible_rows
from reprocessing.admin.site.confirmed_action import Done, NotDone, Question, ReasonForm
from reprocessing.models import Run
from reprocessing.models.run import RunKind, RunState
from reprocessing.pipeline.runs import run_actions
from reprocessing.pipeline.runs.run_actions import RUN_ACTIONS, RunAction, state_text, why_impossible
from reprocessing.store.approvals import limits
from reprocessing.store.runs import run_transitions

PERMISSION: Final = "reprocessing.operate_run"


class AbortRunForm(ReasonForm):
    """The form that aborts a run: the reason, and whether all sends of the run's DLQ are also stopped."""

    stop_dlq = forms.BooleanField(
        required=False,
        label="Stop the DLQ",
        help_text="Stop also all other sends of the DLQ, because they would probably fail, too. Nothing is sent until "
        "somebody resumes the DLQ.",
    )


def page(request: HttpRequest, run: int, name: str) -> HttpResponse:
    """Show what an action does and ask for the reason. When the form is submitted, execute the action.

    `name`: the name of the action, such as "pause".
    """
    which = RUN_ACTIONS[name]
    visible_rows.row_or_404(request, Run.objects, run)
    question, act = partial(_question, request, run, which), partial(_act, run, which)
    form = AbortRunForm if which is RUN_ACTIONS["abort"] and _may_stop(request, run) else ReasonForm
    return confirmed_action.page(request, permission=PERMISSION, question=question, act=act, form_class=form)


def _may_stop(request: HttpRequest, run: int) -> bool:
    """Return whether the page that aborts a run also offers to stop the run's DLQ.

    It does if this person may stop DLQs. It does not for a planned run, because such a run has sent nothing.
    """
    return (
        request.user.has_perm("reprocessing.stop_deadletterqueue")
        and not Run.objects.filter(pk=run, state=RunState.PLANNED).exists()
    )


def _found(run: int) -> Run:
    return get_object_or_404(Run.objects.select_related("dlq"), pk=run)


def _question(request: HttpRequest, key: int, action: RunAction) -> Question:
    run = _found(key)
    idle = why_impossible(run, action)
    return Question(
        title=f"{action.name.capitalize()} {run.name}",
        button=action.name.capitalize(),
        says=() if idle else action.does(run),
        seen=run_transitions.page_stamp(run),
        back=reverse("admin:reprocessing_run_change", args=[run.pk]),
        about=run.name,
        facts=(("Dead-letter queue", run.dlq.name), ("State", run.state), ("Messages selected", _selected(run))),
        idle=idle,
        begin={"stop_dlq": True},
        notice="" if idle else _notice(request, run, action),
    )


def _notice(request: HttpRequest, run: Run, action: RunAction) -> str:
    if action.name not in {"start", "resume"} or run.kind == RunKind.AUTOMATIC:
        return ""
    limit = limits.limits_of([run.dlq_id]).get(run.dlq_id)
    if limit is None:
        return ""
    return requested.notice(request, {run.dlq_id: run_transitions.count_to_send(run.pk, most=limit + 1)})


def _selected(run: Run) -> str:
    if run.kind == RunKind.AUTOMATIC:
        return "all messages of the DLQ"
    return "messages released from the parking lot" if run.is_for_released_letters else f"{run.selected or 0:,}"


def _act(key: int, action: RunAction, given: Mapping[str, Any], by: str) -> Done | NotDone:
    done = run_actions.carry_out(key, action, given, seen=given["seen"], by=by)
    run = _found(key)
    if done:
        return Done(
            reverse("admin:reprocessing_run_change", args=[key]),
            f"{run.name} is {action.did}. {run_actions.still_waits_for(run, action)}".rstrip(),
        )
    if run.state in action.out_of and (idle := why_impossible(run, action)):
        return NotDone(f"{run.name} was not {action.did}. {idle}")
    return NotDone(f"{run.name} changed after you opened this page. {state_text(run)}")
