"""Read the values that a run's page shows: selected messages, plan, progress and expected end."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, Final
from urllib.parse import urlencode

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, PermissionsMixin
from django.http import QueryDict
from django.urls import reverse

from reprocessing import conf
from reprocessing.admin.messages.readable_bytes import visible
from reprocessing.admin.runs import choose_plan, run_actions, run_progress
from reprocessing.admin.runs.run_progress import rate_in_words
from reprocessing.admin.site.buttons import Button
from reprocessing.domain.lifecycle import ParkedReason
from reprocessing.domain.message.arn import resource_name
from reprocessing.domain.runs.forecast import Forecast, duration_in_words
from reprocessing.domain.runs.selection import Selection
from reprocessing.domain.runs.waiting_reason import NOTHING_TO_SEND, WaitsFor
from reprocessing.models import AuditAct, DeadLetterQueue, Run
from reprocessing.models.run import RunKind, RunState
from reprocessing.pipeline.runs import forecast_plan, other_runs, why_run_waits
from reprocessing.pipeline.runs import run_actions as actions
from reprocessing.pipeline.runs.forecast_plan import PlanForecast
from reprocessing.store.ordering import lanes
from reprocessing.store.runs import arrived_since, progress, released_into_runs
from reprocessing.store.runs.plan_figures import TargetFigures
from reprocessing.store.safety import stops

#: Time after which an open page refreshes the figures of a plan.
_FRESH: Final = timedelta(seconds=60)
#: Max audit entries that the page shows.
_REVIEWS: Final = 20
#: States in which an open page refreshes itself.
_MOVES: Final = (RunState.PLANNED, RunState.RUNNING, RunState.PAUSED)
#: Kinds of reasons why a run waits that need the attention of a person.
_GRAVE: Final = (WaitsFor.STOP, WaitsFor.AWS, WaitsFor.PROCESS, WaitsFor.BREAKER, WaitsFor.HEALTH, WaitsFor.KEY)
_STOPPED: Final = (RunState.PAUSED, RunState.ABORTED)
_ENDED: Final = (RunState.FINISHED, RunState.ABORTED)
_MARKS: Final = {
    RunState.PLANNED: "", RunState.RUNNING: "chip-calm", RunState.PAUSED: "chip-bad", RunState.ABORTED: "chip-bad",
    RunState.FINISHED: "chip-calm",
}  # fmt: skip


def page_context(run: Run, user: AbstractBaseUser | AnonymousUser, query: QueryDict) -> dict[str, Any]:
    """Return the template values of the whole page. An open page refreshes only the values of `live_context`.

    `query`: the query of the page's URL. It can have a max rate, order and waves, which are compared with the plan's.
    """
    form = choose_plan.form_of(run, query) if run.state == RunState.PLANNED and run.selected else None
    return {
        "choice_form": form,
        "max_rate": "" if run.rate is None else rate_in_words(run.rate),
        "asked": visible(_selection_text(run)),
        **audit_context(run),
        **live_context(run, user, query),
    }


def audit_context(run: Run) -> dict[str, Any]:
    """Return template values: the run's audit entries (`reviews`), and releases of parked messages into the run.

    When a run takes over the messages of ended runs, each batch of messages has an entry. These entries are left out.
    """
    others = run.reviews.exclude(act=AuditAct.RELEASED).exclude(after__has_key="from_other_runs")
    return {
        "reviews": list(others.order_by("-pk")[:_REVIEWS]),
        "releases": released_into_runs.releases_of_run(run.pk, most=_REVIEWS),
    }


def live_context(run: Run, user: AbstractBaseUser | AnonymousUser, query: QueryDict) -> dict[str, Any]:
    """Return the template values of the part of the page that an open page requests again every 3 seconds.

    `query`: the query of the page's URL, as for `page_context`.
    """
    now = lanes.database_now()
    context: dict[str, Any] = {
        "run": run,
        "now": now,
        "mark": _MARKS[RunState(run.state)],
        "moves": run.state in _MOVES,
        "grave_waits": _GRAVE,
        "buttons": list(_buttons(run, user)),
    }
    sentence = actions.state_text(run) if run.state in _STOPPED else ""
    if run.state != RunState.PLANNED:
        return context | run_progress.progress_context(run, now, user, sentence=sentence)
    context["waits"] = why_run_waits.why_waits(run, now, state_text=sentence, observed=None)
    if run.selected is None:
        return context | {"looking": _looking(run.dlq, now)}
    planned = _plan(run, query)
    if planned["sends_nothing"]:
        context["buttons"] = [button for button in context["buttons"] if button.label != "start"]
        if context["waits"].kind == WaitsFor.PERSON:
            context["waits"] = NOTHING_TO_SEND
    return context | planned | {"shown": _shown(run, now), "may_choose": _may(user)}


def is_as_shown(run: Run, shown: str) -> bool:
    """Return whether an open page of a planned run still shows the right figures. If not, the page is refreshed.

    `shown`: the text that `_shown` wrote into the page, with the state of the plan and the time of the figures.
    """
    stamp, _, at = shown.rpartition("@")
    try:
        moment = datetime.fromisoformat(at)
    except ValueError:
        return False
    if run.state != RunState.PLANNED or run.selected is None or moment.tzinfo is None or stamp != _plan_stamp(run):
        return False
    return lanes.database_now() - moment < _FRESH


def _shown(run: Run, now: datetime) -> str:
    return f"{_plan_stamp(run)}@{now.isoformat()}"


def _plan_stamp(run: Run) -> str:
    since = (run.changed_at or run.created_at).isoformat()
    return f"{run.selected}@{since}@{'held' if stops.describe_stop(run.dlq) else 'free'}"


def _selection_text(run: Run) -> str:
    if run.kind == RunKind.AUTOMATIC:
        return f"all new messages of {run.dlq.name}"
    if run.is_for_released_letters:
        return "messages released from the parking lot"
    return str(Selection.read(run.selection))


def _buttons(run: Run, user: AbstractBaseUser | AnonymousUser) -> Iterator[Button]:
    may = _may(user)
    if run.state in _ENDED and run.kind == RunKind.DRAIN and not run.is_for_released_letters:
        address = f"{reverse('admin:reprocessing_run_add')}?like={run.pk}"
        yield Button("plan a copy", address, "" if may else "You may not operate runs")
    for action in actions.possible_actions(run):
        address = reverse("admin:reprocessing_run_action", args=[run.pk, action.name])
        yield Button(action.name, address, "" if may else "You may not operate runs")


def _may(user: AbstractBaseUser | AnonymousUser) -> bool:
    return isinstance(user, PermissionsMixin) and user.has_perm(run_actions.PERMISSION)


def _looking(dlq: DeadLetterQueue, now: datetime) -> dict[str, Any]:
    until = (
        dlq.orphans_hidden_until
        if dlq.orphans_hidden_until and dlq.orphans_hidden_until > now and dlq.leased_until is None
        else None
    )
    return {
        "last_error": visible(dlq.last_error),
        "until": until,
        "busy": bool(dlq.leased_until and dlq.leased_until > now),
    }


def _plan(run: Run, query: QueryDict) -> dict[str, Any]:
    view = conf.current()
    lag = view.count_lag.total_seconds()
    outlook = forecast_plan.forecast_run(run, count_lag=lag, by_beat=True, asks_s3=False, prices=view.prices)
    ahead, form = outlook.prospect, choose_plan.form_of(run, query)
    return {
        "choices": choose_plan.columns(outlook, form),
        "order_note": choose_plan.order_note(outlook),
        "asked_query": urlencode({name: query[name] for name in form.fields if name in query}),
        "stamp": choose_plan.stamp(run),
        "prices": view.prices,
        "outlook": outlook,
        "total": ahead.letters + ahead.objected,
        "chosen": run_progress.letters_of(run, {"state__exact": "captured"}),
        "ways": [
            _planned_target(share, outlook.forecast(share), outlook.order_given_up(share)) for share in outlook.shares
        ],
        "faster": [hint for share in outlook.shares for hint in outlook.faster_options(share)],
        "hindrances": list(_hindrances(outlook)),
        "under_way": list(_under_way(outlook)),
        "sends_nothing": not (ahead.letters or ahead.objected or ahead.returned),
        "expiry": _expiry(outlook),
        "arrived": (arrived := arrived_since.arrived_since_plan(run.pk)),
        "arrived_more": "+" if arrived >= progress.MAX_COUNT else "",
    }


def _hindrances(outlook: PlanForecast) -> Iterator[tuple[int, str]]:
    """Yield each reason why messages of the DLQ are not sent, or are sent late: the number of messages, and a sentence.

    The number is 0 if the messages with this reason are not counted.
    """
    yield from ((0, sentence) for sentence in outlook.obstacles)
    for blocked_reason in outlook.objections:
        yield blocked_reason.letters, f"{ParkedReason(blocked_reason.reason).label}: parked when the run starts."
    if outlook.run.behind:
        ids = ", ".join(map(visible, outlook.behind))
        yield (
            outlook.run.behind,
            f"not in this run, because earlier messages of their keys are not in it. For example {ids}",
        )
    for share in outlook.late_targets:
        yield (
            share.late,
            f"sent to {resource_name(share.name)} only after SQS deletes the copies. PostgreSQL keeps the messages.",
        )
    for plan in outlook.plans:
        yield plan.selected or 0, f"more: {other_runs.describe_holder(plan)}."
    for run in outlook.paused:
        yield 0, f"The run {run.name} is paused; later messages of the keys in that run stay queued."


def _under_way(outlook: PlanForecast) -> Iterator[tuple[str, int, str]]:
    """Yield the DLQ's running runs with messages in progress: name, number of these messages, URL of the run's page."""
    found = Run.objects.filter(dlq=outlook.dlq, name__in=outlook.under_way) if outlook.under_way else ()
    ids = {run.name: run.pk for run in found}
    for name, n in outlook.under_way.items():
        yield name, n, reverse("admin:reprocessing_run_change", args=[ids[name]])


def _expiry(outlook: PlanForecast) -> str:
    ahead = outlook.prospect
    if ahead.expires_at is None or outlook.dlq.delete_when == "captured":
        return ""
    left = (ahead.expires_at - ahead.now).total_seconds()
    return f"in {duration_in_words(left)}" if left > 0 else "now"


def _planned_target(share: TargetFigures, forecast: Forecast, given_up: str) -> dict[str, Any]:
    window = f" within {share.window:g} s" if share.proof == "absence" else ""
    order = f"outcome: {share.proof}{window}; a key's next message is sent when the one before is {share.advance}"
    if given_up:
        order += f"; {given_up}"
    if share.confirmed_fanout is not None:
        order += f"; {share.confirmed_fanout:,} other recipients get each message again"
    return {
        "name": resource_name(share.name), "letters": share.letters, "pace": rate_in_words(share.rate), "order": order,
        "takes": f"{forecast} (longest key queue: {share.longest:,})", "alarming": bool(share.late),
    }  # fmt: skip
