"""Start, pause, resume or abort a run for a person or a program, if the run has not changed since they saw it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from reprocessing import conf
from reprocessing.domain.errors import QueueUnreachable
from reprocessing.domain.runs.forecast import rate_in_words
from reprocessing.domain.runs.plan_choice import Choice
from reprocessing.models import AuditAct, DeadLetterQueue, Run
from reprocessing.models.dlq import ParkedHead
from reprocessing.models.run import RunKind, RunState
from reprocessing.pipeline.aws import follow_redrives
from reprocessing.pipeline.maintenance import check_s3_pointers
from reprocessing.pipeline.runs import forecast_plan
from reprocessing.store.aws import aws_redrives
from reprocessing.store.runs import leftover_lanes, plans, run_transitions
from reprocessing.store.runs.progress import MAX_COUNT
from reprocessing.store.safety import stops

_GONE_NAMED: Final = 10  #: most ids of messages with a deleted S3 object that a text names
#: Why a run must wait for outcomes if its DLQ holds keys while a message is parked.
_HOLDS_KEYS: Final = (
    "{} holds a key while one of its messages is parked, so its order must be kept: a run must wait for outcomes where "
    "a target's settings say so."
)


def why_it_must_wait(dlq: DeadLetterQueue) -> str:
    """Return why a key's next message must wait for the outcome of the message before; empty: it need not wait.

    The text is for people.
    """
    return _HOLDS_KEYS.format(dlq.name) if dlq.when_parked == ParkedHead.HOLD else ""


@dataclass(frozen=True, slots=True)
class RunAction:
    """An action on a run.

    Attributes:
        name: start, pause, resume or abort.
        out_of: the states of a run from which the action is possible.
        did: the past participle for texts, such as paused.
        does: returns sentences that say what the action will do.
        act: the function that executes the action. Its arguments: the run, the values that a person gave (reason,
            stop_dlq), and who acts. It returns None if the run did not change.
    """

    name: str
    out_of: tuple[RunState, ...]
    did: str
    does: Callable[[Run], tuple[str, ...]]
    act: Callable[[Run, Mapping[str, Any], str], object]


def _starts(run: Run) -> tuple[str, ...]:
    first = "Waves: 1 message is sent first, then 10, then 100, then all. A wave starts if the last one succeeded. "
    ahead = forecast_plan.forecast_run(
        run, count_lag=conf.current().count_lag.total_seconds(), by_beat=True, asks_s3=False
    )
    ready, left = sum(share.letters for share in ahead.shares), sum(share.letters for share in ahead.objections)
    said = list(ahead.obstacles) if ready or ahead.prospect.returned else []
    if ready:
        limits = own_limits(run)
        messages = f"{ready:,} message{'' if ready == 1 else 's'}"
        said.append(
            f"{first if run.waves else ''}Workers send {messages}, in order per key, as fast as rate limits and "
            f"circuit breakers allow.{limits}"
        )
    if n := ahead.prospect.returned:
        most = "at least " if n == MAX_COUNT else ""
        messages = f"{most}{n:,} unfinished message{'' if n == 1 else 's'}"
        said.append(f"The run takes over {messages} of runs that have ended.")
    if left:
        those = f"{left:,} message{'' if left == 1 else 's'}"
        said.append(f"{those} cannot be sent, and {'is' if left == 1 else 'are'} parked as soon as the run starts.")
    if gone := check_s3_pointers.find_missing_bodies(run).missing:
        ids = ", ".join(gone[:_GONE_NAMED])
        said.append(f"The body of {len(gone):,} is in a deleted S3 object, so the consumer will fail: {ids}")
    if ahead.late_targets:
        said.append(
            f"{sum(share.late for share in ahead.late_targets):,} are sent after SQS deletes the copies, because "
            "the messages of a key wait for each other. PostgreSQL keeps the messages. A shorter return window helps."
        )
    return tuple(said or ["No message to send."])


def own_limits(run: Run) -> str:
    """Return a text with the limits that only this run has, such as its rate; empty: it has none."""
    rate = "" if run.rate is None else f" The run sends at most {rate_in_words(run.rate, digits=12)} to each target."
    early = " A key's next message is sent without waiting for the outcome of the message before."
    return f"{rate}{'' if run.waits_for_outcomes else early}"


def _resumes(run: Run) -> tuple[str, ...]:
    begins = ", with 1 message first" if run.waves else ""
    return (f'Paused by {run.stopped_by}: "{run.why}"', f"Workers send again{begins}.")


def _aborts(run: Run) -> tuple[str, ...]:
    if run.state == RunState.PLANNED:
        return ("The plan is aborted. None of its messages was sent; another run can take them.",)
    return (
        "The run ends and cannot be resumed. Messages that are being sent get their result.",
        "The next run of the DLQ takes the queued messages.",
    )


_PAUSE = "The run sends nothing until somebody resumes it. Messages that are being sent get their result."
RUN_ACTIONS: Final = {
    action.name: action
    for action in (
        RunAction(
            "start", (RunState.PLANNED,), "started", _starts,
            lambda run, given, by: run_transitions.start(run, by=by, reason=given["reason"]),
        ),
        RunAction(
            "pause", (RunState.RUNNING,), "paused", lambda _: (_PAUSE,),
            lambda run, given, by: run_transitions.pause(run.pk, by=by, reason=given["reason"]),
        ),
        RunAction(
            "resume", (RunState.PAUSED,), "resumed", _resumes,
            lambda run, given, by: run_transitions.resume(run.pk, by=by, reason=given["reason"]),
        ),
        RunAction(
            "abort", (RunState.PLANNED, RunState.RUNNING, RunState.PAUSED), "aborted", _aborts,
            lambda run, given, by: run_transitions.abort(
                run, by=by, reason=given["reason"], stop_dlq=bool(given.get("stop_dlq"))
            ),
        ),
    )
}  # fmt: skip

#: The audit log's kinds of entries about actions that change the state of a run.
_PUTS: Final = (AuditAct.PLANNED, AuditAct.STARTED, AuditAct.PAUSED, AuditAct.RESUMED, AuditAct.ABORTED)


def possible_actions(run: Run) -> list[RunAction]:
    """Return the actions that are possible for a run now. The caller's permissions are not checked."""
    return [action for action in RUN_ACTIONS.values() if not why_impossible(run, action)]


def why_impossible(run: Run, action: RunAction) -> str:
    """Return, for people, why an action is not possible for a run now; empty: the action is possible."""
    if run.state not in action.out_of:
        return state_text(run)
    if action.name == "abort" and run.kind == RunKind.AUTOMATIC:
        return "An automatic run never ends. Pause it instead: then it sends nothing."
    if action.name in {"start", "resume"} and (moved := aws_redrives.current(run.dlq_id)):
        return aws_redrives.describe(moved)
    if action.name == "start" and run.selected is None:
        return "The run's messages are not selected yet: the DLQ is captured first."
    return stops.describe_stop(run.dlq) if action.name == "start" else ""


def state_text(run: Run) -> str:
    """Return a sentence for people about the state of a run, with the name of the person who changed it last."""
    if run.state in {RunState.PAUSED, RunState.ABORTED}:
        return f'It was {run.state} by {run.stopped_by} ("{run.why}").'
    last = run.reviews.filter(act__in=_PUTS).order_by("-pk").first()
    by = f" (last change by {last.by})" if last else ""
    return f"It is {run.state}{by}."


def carry_out(key: int, action: RunAction, given: Mapping[str, Any], *, seen: str, by: str) -> bool:
    """Execute an action, if the run has not changed since the caller saw it; return whether it was executed.

    `key`: the run's id. `seen`: the `page_stamp` of the run that the caller saw; it changes with the run. `given`: the
    reason and, for an abort, `stop_dlq`.
    """
    found = Run.objects.select_related("dlq").get(pk=key)
    if run_transitions.page_stamp(found) == seen:
        _prepare(found, action)
    return bool(run_transitions.move_if_unchanged(key, seen, partial(_do, action, given, by)))


def choose(key: int, choice: Choice, *, seen: str, by: str) -> str:
    """Store the rate, order and waves of a plan; return, for people, why nothing was stored; empty: it was stored.

    `key`: the run's id. `seen`: the `page_stamp` of the run that the caller saw. If the run has changed since, nothing
    is stored.
    """
    found = Run.objects.select_related("dlq").get(pk=key)
    if not choice.waits_for_outcomes and (why := why_it_must_wait(found.dlq)):
        return why
    done = run_transitions.move_if_unchanged(
        key, seen, lambda run: plans.set_choice(run, choice, by=by, reason="Chosen on the page of the plan.") or None
    )
    if done:
        return ""
    return f"{found.name} changed after you opened this page. {state_text(Run.objects.get(pk=key))}"


def _prepare(run: Run, action: RunAction) -> None:
    """Before a run is started or resumed, ask AWS whether its own redrive moved messages of the DLQ.

    Before a run is started, also give it the unfinished letters of the DLQ's ended runs.
    """
    if action.name == "start":
        with suppress(QueueUnreachable):
            follow_redrives.read_redrives(run.dlq)
        leftover_lanes.adopt_leftovers(run.dlq_id, run.pk)
    elif action.name == "resume":
        follow_redrives.check_before_resuming(run.dlq_id)


def _do(action: RunAction, given: Mapping[str, Any], by: str, run: Run) -> bool | None:
    return (not why_impossible(run, action) and action.act(run, given, by) is not None) or None


def still_waits_for(run: Run, action: RunAction) -> str:
    """Return, after a resume, a text that says what still keeps the run from sending; empty: nothing does."""
    if action.name != "resume":
        return ""
    moved = aws_redrives.current(run.dlq_id)
    return stops.describe_stop(run.dlq) or (aws_redrives.describe(moved) if moved else "")
