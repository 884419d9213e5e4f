"""Stop and resume redrive of one DLQ, or of all DLQs."""

from __future__ import annotations

from typing import Final

from django.http import HttpRequest
from ninja import Router

from reprocessing.api.dlqs.dlq_answers import StopAnswer, StopView
from reprocessing.api.site.caller import caller_of
from reprocessing.api.site.document import changes
from reprocessing.api.site.fields import Change
from reprocessing.api.site.guard import acts
from reprocessing.domain.api.scopes import Scope
from reprocessing.models import DeadLetterQueue
from reprocessing.pipeline.aws import follow_redrives
from reprocessing.store.safety import stops

router: Final = Router()
_TAG: Final = "Stops"


@changes(router, "/stop", Scope.EVERYTHING_STOP, StopAnswer, tag=_TAG)
def stop_everything(request: HttpRequest, change: Change) -> StopAnswer:
    """Stop all sends.

    After two seconds at most, no worker sends messages of any DLQ. Sends in progress finish, and their results are
    recorded. Messages are still captured. Send the token of a user who sees all DLQs.
    """
    caller_of(request).require_all_dlqs()
    return _stop(request, None, "Everything", change)


@changes(router, "/resume", Scope.EVERYTHING_STOP, StopAnswer, tag=_TAG)
def resume_everything(request: HttpRequest, change: Change) -> StopAnswer:
    """Resume all sends.

    This ends the stop of all DLQs. A DLQ that was stopped on its own stays stopped. Send the token of a user who sees
    all DLQs.
    """
    caller_of(request).require_all_dlqs()
    return _resume(request, None, "Everything", change)


@changes(router, "/dlqs/{slug:dlq}/stop", Scope.DLQS_STOP, StopAnswer, tag=_TAG)
def stop_dlq(request: HttpRequest, dlq: str, change: Change) -> StopAnswer:
    """Stop a DLQ.

    After two seconds at most, no worker sends messages of this DLQ or receives from it.
    """
    row = caller_of(request).row(DeadLetterQueue.objects, "DLQ", name=dlq)
    return _stop(request, row.pk, row.name, change)


@changes(router, "/dlqs/{slug:dlq}/resume", Scope.DLQS_STOP, StopAnswer, tag=_TAG)
def resume_dlq(request: HttpRequest, dlq: str, change: Change) -> StopAnswer:
    """Resume a DLQ.

    This ends the stop of this DLQ. If all sends are also stopped, nothing is sent until POST /resume.
    """
    row = caller_of(request).row(DeadLetterQueue.objects, "DLQ", name=dlq)
    return _resume(request, row.pk, row.name, change)


def _stop(request: HttpRequest, dlq: int | None, name: str, change: Change) -> StopAnswer:
    if not acts(request, confirm=change.confirm):
        was = stops.stop_of(dlq)
        says = _stopped_already(name, was) if was else f"{name} would be stopped: nothing is sent until it is resumed."
        return StopAnswer(dry_run=True, changed=False, says=[says], stopped=StopView.of(was))
    stop = stops.stop(dlq, by=caller_of(request).by, reason=change.reason)
    says = f"{name} is stopped: nothing is sent until it is resumed." if stop.new else _stopped_already(name, stop)
    return StopAnswer(dry_run=False, changed=stop.new, says=[says], stopped=StopView.of(stop))


def _stopped_already(name: str, stop: stops.Stop) -> str:
    return f'{name} was stopped already, by {stop.by} ("{stop.reason}").'


def _resume(request: HttpRequest, dlq: int | None, name: str, change: Change) -> StopAnswer:
    if dlq is None:
        stops.refuse_while_held()
    was = stops.stop_of(dlq)
    if was is None:
        acts(request, confirm=change.confirm)
        return StopAnswer(dry_run=not change.confirm, changed=False, says=[f"{name} is not stopped."], stopped=None)
    stopped_by = f'It was stopped by {was.by} ("{was.reason}").'
    if not acts(request, confirm=change.confirm):
        says = [f"{name} would be resumed. {stopped_by}", *_still(dlq)]
        return StopAnswer(dry_run=True, changed=False, says=says, stopped=StopView.of(was))
    follow_redrives.check_before_resuming(dlq)
    gone = stops.resume(dlq, by=caller_of(request).by, reason=change.reason, seen=was.since)
    says = [f"{name} is resumed. {stopped_by}"] if gone else [f"Somebody else resumed or stopped {name} meanwhile."]
    now = StopView.of(stops.stop_of(dlq))
    return StopAnswer(dry_run=False, changed=gone is not None, says=[*says, *_still(dlq)], stopped=now)


def _still(dlq: int | None) -> list[str]:
    """Return a sentence if a DLQ was resumed, but sends nothing because all sends are stopped; else an empty list."""
    halt = stops.stop_of(None) if dlq is not None else None
    return [f'Everything is still stopped by {halt.by} ("{halt.reason}").'] if halt else []
