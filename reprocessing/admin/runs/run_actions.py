"""What people do to a run: start, pause, resume and abort it, each with a reason, and only as it was seen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from django import forms
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse

from reprocessing import conf
from reprocessing.admin.site import confirmed_action
from reprocessing.admin.site.confirmed_action import Done, NotDone, Question, Why
from reprocessing.domain.errors import QueueIsOutOfReach
from reprocessing.models import Act, Run
from reprocessing.models.run import RunKind, RunState
from reprocessing.pipeline.aws import native_redrive
from reprocessing.pipeline.maintenance import check_s3_pointers
from reprocessing.pipeline.runs import forecast_plan
from reprocessing.store.aws import aws_redrives
from reprocessing.store.runs import leftover_lanes, run_transitions
from reprocessing.store.safety import stops

PERMISSION: Final = "reprocessing.operate_run"
_GONE_NAMED: Final = 10


class Ending(Why):
    """Whether the dlq is stopped with its run."""

    stop_dlq = forms.BooleanField(
        required=False,
        label="Stop the dlq, too",
        help_text="Its next letters would probably fail likewise. Nothing of it is sent until somebody lets it go on.",
    )


@dataclass(frozen=True, slots=True)
class Deed:
    """One of them.

    Attributes:
        out_of: where the run may stand before; to nothing else it is done.
        did: what the run is then.
        does: what it would do, in sentences.
        act: does it, with the run, the form's values, and who; whether it was done.
    """

    name: str
    button: str
    out_of: tuple[RunState, ...]
    did: str
    does: Callable[[Run], tuple[str, ...]]
    act: Callable[[Run, Mapping[str, Any], str], bool]
    form: type[Why] = Why


def _starts(run: Run) -> tuple[str, ...]:
    first = "One letter goes first, then ten, then a hundred, then all, each when the ones before went well. "
    ahead = forecast_plan.plan(run, count_lag=conf.current().count_lag.total_seconds(), by_beat=True, asks_s3=False)
    ready, left = sum(one.letters for one in ahead.shares), sum(one.letters for one in ahead.objections)
    said = []
    if ready:
        letters = f"{ready:,} letter{'' if ready == 1 else 's'}"
        said.append(
            f"{first if run.waves else ''}Workers replay {letters}, in order per key, as fast as rates and breakers "
            "allow."
        )
    if left:
        said.append(f"{left:,} cannot go, and {'is' if left == 1 else 'are'} parked at once, with the reason.")
    if gone := check_s3_pointers.pointers(run).gone:
        ids = ", ".join(gone[:_GONE_NAMED])
        lie = "body of 1 of them lies" if len(gone) == 1 else f"bodies of {len(gone):,} of them lie"
        said.append(f"The {lie} in S3 no more, so {'its' if len(gone) == 1 else 'their'} consumer will fail: {ids}")
    if ahead.late:
        said.append(
            f"{_drops(sum(one.late for one in ahead.late))}, since lanes are too long for their window. "
            "PostgreSQL keeps them; the dlq's page can shorten the wait."
        )
    return tuple(said)


def _drops(n: int) -> str:
    return f"{n:,} of them {'is' if n == 1 else 'are'} dropped by SQS before {'its' if n == 1 else 'their'} turn comes"


def _pauses(_: Run) -> tuple[str, ...]:
    return (
        "Nothing of it is sent any more, by any worker, until somebody resumes it. What is on the wire is settled.",
    )


def _resumes(run: Run) -> tuple[str, ...]:
    begins = ", with one letter first" if run.waves else ""
    return (f'It was paused by {run.stopped_by}: "{run.why}"', f"It goes on{begins}.")


def _aborts(run: Run) -> tuple[str, ...]:
    if run.state == RunState.PLANNED:
        return ("The plan is given up. Nothing of it was sent; its letters are free for another run.",)
    return (
        (
            "It ends for good. Nothing of it is sent any more, what is on the wire is settled, and what waits goes "
            "along with the dlq's next run."
        ),
    )


def _start(run: Run, given: Mapping[str, Any], by: str) -> bool:
    return run.selected is not None and run_transitions.start(run, by=by, reason=given["reason"]) is not None


def _pause(run: Run, given: Mapping[str, Any], by: str) -> bool:
    return run_transitions.pause(run.pk, by=by, reason=given["reason"]) is not None


def _resume(run: Run, given: Mapping[str, Any], by: str) -> bool:
    return run_transitions.resume(run.pk, by=by, reason=given["reason"]) is not None


def _abort(run: Run, given: Mapping[str, Any], by: str) -> bool:
    stops = bool(given.get("stop_dlq"))
    return run_transitions.abort(run, by=by, reason=given["reason"], stop_dlq=stops) is not None


DEEDS: Final = {
    one.name: one
    for one in (
        Deed("start", "Start it", (RunState.PLANNED,), "started", _starts, _start),
        Deed("pause", "Pause it", (RunState.RUNNING,), "paused", _pauses, _pause),
        Deed("resume", "Resume it", (RunState.PAUSED,), "resumed", _resumes, _resume),
        Deed(
            "abort", "Abort it", (RunState.PLANNED, RunState.RUNNING, RunState.PAUSED), "aborted", _aborts, _abort,
            Ending,
        ),
    )
}  # fmt: skip

#: What puts a run where it stands; letters that are released into it, say, do not.
_PUTS: Final = (Act.PLANNED, Act.STARTED, Act.PAUSED, Act.RESUMED, Act.ABORTED)


def possible(run: Run) -> list[Deed]:
    """What can be done to a run where it stands, whoever asks."""
    return [one for one in DEEDS.values() if not impossible(run, one)]


def impossible(run: Run, deed: Deed) -> str:
    """Why this cannot be done to a run where it stands; empty when it can."""
    if run.state not in deed.out_of:
        return standing(run)
    if deed.name == "abort" and run.kind == RunKind.STANDING:
        return "Beat feeds it, so it never ends. Pause it to have it send nothing."
    if deed.name in {"start", "resume"} and (moved := aws_redrives.of(run.dlq_id)):
        return aws_redrives.in_words(moved)
    if deed.name == "start" and run.selected is None:
        return "Its letters are not selected yet: the dlq is being looked into."
    return stops.in_words(run.dlq) if deed.name == "start" else ""


def standing(run: Run) -> str:
    """Where a run stands, and who put it there."""
    if run.state in {RunState.PAUSED, RunState.ABORTED}:
        return f'It was {run.state} by {run.stopped_by} ("{run.why}").'
    last = run.reviews.filter(act__in=_PUTS).order_by("-pk").first()
    by = f", by {last.by}" if last else ""
    return f"It is {run.state}{by}."


def page(request: HttpRequest, run: int, deed: str) -> HttpResponse:
    """The page of one deed."""
    which = DEEDS[deed]
    return confirmed_action.page(
        request,
        permission=PERMISSION,
        question=partial(_question, run, which),
        act=partial(_act, run, which),
        form=Why if which is DEEDS["abort"] and not _may_stop(request, run) else which.form,
    )


def _may_stop(request: HttpRequest, run: int) -> bool:
    """Whether stopping the dlq is offered: a plan never sent anything."""
    return (
        request.user.has_perm("reprocessing.stop_deadletterqueue")
        and not Run.objects.filter(pk=run, state=RunState.PLANNED).exists()
    )


def _found(run: int) -> Run:
    found = Run.objects.select_related("dlq").filter(pk=run).first()
    if found is None:
        raise Http404
    return found


def _question(key: int, deed: Deed) -> Question:
    run = _found(key)
    idle = impossible(run, deed)
    return Question(
        title=f"{deed.name.capitalize()} {run.name}",
        button=deed.button,
        says=() if idle else deed.does(run),
        seen=run_transitions.stamp(run),
        back=reverse("admin:reprocessing_run_change", args=[run.pk]),
        about=run.name,
        facts=(("Dead-letter queue", run.dlq.name), ("Now", run.state), ("Letters selected", _selected(run))),
        idle=idle,
        begin={"stop_dlq": True},
    )


def _selected(run: Run) -> str:
    if run.kind == RunKind.STANDING:
        return "whatever there is"
    return "those that people released" if run.is_of_released else f"{run.selected or 0:,}"


def _act(key: int, deed: Deed, given: Mapping[str, Any], by: str) -> Done | NotDone:
    found = _found(key)
    if run_transitions.stamp(found) == given["seen"]:
        _prepare(found, deed)
    done = run_transitions.as_seen(key, given["seen"], partial(_do, deed, given, by))
    run = _found(key)
    if done:
        return Done(
            reverse("admin:reprocessing_run_change", args=[key]),
            f"{run.name} is {deed.did}. {_then(run, deed)}".rstrip(),
        )
    if run.state in deed.out_of and (idle := impossible(run, deed)):
        return NotDone(f"{run.name} was not {deed.did}. {idle}")
    return NotDone(f"{run.name} is another than you saw. {standing(run)}")


def _prepare(run: Run, deed: Deed) -> None:
    """What comes before the one transaction of the deed: what AWS has moved meanwhile is not sent, but parked."""
    if deed.act is _start:
        with suppress(QueueIsOutOfReach):
            native_redrive.look(run.dlq)
        leftover_lanes.adopt(run.dlq_id, run.pk)
    elif deed.act is _resume:
        native_redrive.look_first(run.dlq_id)


def _do(deed: Deed, given: Mapping[str, Any], by: str, run: Run) -> bool | None:
    return (not impossible(run, deed) and deed.act(run, given, by)) or None


def _then(run: Run, deed: Deed) -> str:
    """What else has to be known."""
    if deed.name != "resume":
        return ""
    moved = aws_redrives.of(run.dlq_id)
    return stops.in_words(run.dlq) or (aws_redrives.in_words(moved) if moved else "")
