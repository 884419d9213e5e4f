"""The pages that stop and resume a DLQ, a key queue or all DLQs.

Each page asks for a reason. Nothing is done if somebody else stopped or resumed first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import partial
from typing import Any, Final

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse

from reprocessing.admin.messages.readable_bytes import short_key
from reprocessing.admin.site import confirmed_action, visible_rows
from reprocessing.admin.site.buttons import Button, button
from reprocessing.admin.site.confirmed_action import Done, NotDone, Question
from reprocessing.admin.site.readonly_admin import Page
from reprocessing.domain.errors import RestoreUnresolved
from reprocessing.models import DeadLetterQueue, Lane
from reprocessing.pipeline.aws import follow_redrives
from reprocessing.store.safety import stops
from reprocessing.store.safety.stops import Stop

_ALL: Final = "everything"
_RESUMES: Final = "Workers send again, as fast as circuit breakers and rate limits allow."


class StopAct(StrEnum):
    """The action of a page: stop or resume. The value is also the last part of the page's URL."""

    STOP = "stop"
    RESUME = "resume"


@dataclass(frozen=True, slots=True)
class StopKind:
    """A kind of object that can be stopped (a DLQ, a key queue, or all DLQs), and how to stop and resume it.

    Attributes:
        name: the name of the object's model; "everything" for all DLQs.
        permission: the permission that a stop and a resume need.
        says: sentences that say what a stop does.
        of: function that returns the name of the object with a given id; None: there is no such object.
        stopped: function that returns who stopped the object with a given id, when and why; None: it is not stopped.
        stop: function that stops the object with a given id.
        resume: function that resumes the object with a given id.
        resumes: sentences that say what happens after a resume.
        dlq: function that returns the id of the DLQ to which the object belongs; None: all DLQs are stopped together.
        model: the object's model; None: all DLQs are stopped together.
    """

    name: str
    permission: str
    says: str
    of: Callable[[int], str | None]
    stopped: Callable[[int], Stop | None]
    stop: Callable[..., Stop]
    resume: Callable[..., Stop | None]
    resumes: str = _RESUMES
    dlq: Callable[[int], int | None] = int
    model: type[DeadLetterQueue | Lane] | None = None

    def back(self, key: int) -> str:
        """Return the URL of the page of the DLQ or key queue with this id; for all DLQs, the dashboard's URL."""
        return (
            reverse("admin:index")
            if self.name == _ALL
            else reverse(f"admin:reprocessing_{self.name}_change", args=[key])
        )


def _dlq(key: int) -> str | None:
    return DeadLetterQueue.objects.filter(pk=key).values_list("name", flat=True).first()


def _lane(key: int) -> str | None:
    lane = Lane.objects.filter(pk=key).first()
    if lane is None:
        return None
    return f"{short_key(lane.key or f'key queue {lane.pk}')} of {lane.dlq.name}"


def _of_all(does: Callable[..., Any], _: int, **said: Any) -> Any:  # noqa: ANN401  what `stops` takes and gives
    return does(None, **said)


_KINDS: Final = {
    kind.name: kind
    for kind in (
        StopKind(
            "deadletterqueue", "reprocessing.stop_deadletterqueue",
            "After two seconds at most, no worker sends messages of this DLQ or receives from it. Sends that have "
            "started are completed. Other messages keep their state.",
            _dlq, stops.stop_of, stops.stop, stops.resume, model=DeadLetterQueue,
        ),
        StopKind(
            "lane", "reprocessing.stop_lane",
            "No worker sends messages of this ordering key. Sends in progress are completed. All other key "
            "queues continue.",
            _lane, stops.stop_of_lane, stops.stop_lane, stops.resume_lane,
            dlq=lambda key: Lane.objects.get(pk=key).dlq_id, model=Lane,
        ),
        StopKind(
            _ALL, "reprocessing.stop_sends",
            "After two seconds at most, no worker sends messages of any DLQ. Sends in progress are completed. "
            "Other messages keep their state. Messages are still captured.",
            lambda _: _ALL, lambda _: stops.stop_of(None), partial(_of_all, stops.stop),
            partial(_of_all, stops.resume), f"{_RESUMES} A DLQ that was stopped on its own stays stopped.",
            lambda _: None,
        ),
    )
}  # fmt: skip


def pages(kind: str, parameter: str) -> Iterable[Page]:
    """Return the pages that stop and resume objects of this kind. `parameter`: name of the id in the pages' URLs."""
    return ((f"<int:{parameter}>/{act}", page, act.value, {"kind": kind, "act": act}) for act in StopAct)


def stop_button(request: HttpRequest, row: DeadLetterQueue | Lane, takes: tuple[str, str]) -> Button:
    """Return the button that stops this DLQ or key queue. If it is stopped, the button resumes it.

    `takes`: the permission that the button needs, and what the permission allows, in words.
    """
    act = StopAct.RESUME if row.stopped_at else StopAct.STOP
    address = reverse(f"admin:reprocessing_{row._meta.model_name}_{act}", args=[row.pk])  # noqa: SLF001  Django's name
    return button(request, f"{act.capitalize()}…", address, takes, grave=act is StopAct.STOP)


def page(request: HttpRequest, kind: str, act: StopAct, **named: int) -> HttpResponse:
    """Show what a stop or resume does and ask for the reason. When the form is submitted, stop or resume.

    `kind`: the name of a `StopKind`. `named`: the object's id, by its parameter name in the URL, such as `{"lane": 7}`
    for the key queue 7. It is empty for all DLQs.
    """
    key, which = next(iter(named.values()), 0), _KINDS[kind]
    if which.model is None:
        visible_rows.require_all(request)
    else:
        visible_rows.row_or_404(request, which.model._default_manager.all(), key)  # noqa: SLF001  Django's public name
    question, does = partial(_question, key, which, act), partial(_act, key, which, act)
    return confirmed_action.page(request, permission=which.permission, question=question, act=does)


def _named(key: int, kind: StopKind) -> str:
    name = kind.of(key)
    if name is None:
        raise Http404
    return name


def _question(key: int, kind: StopKind, act: StopAct) -> Question:
    name, stop = _named(key, kind), kind.stopped(key)
    status = f'Stopped since {stop.since:%Y-%m-%d %H:%M:%S} UTC by {stop.by} ("{stop.reason}").' if stop else ""
    stopping, verb = act is StopAct.STOP, act.capitalize()
    return Question(
        title=f"{verb} {name}",
        button=f"{verb} everything" if kind.name == _ALL else verb,
        says=(kind.says, "The stop lasts until somebody resumes it.") if stopping else (status, kind.resumes),
        seen=stop.since.isoformat() if stop else "none",
        back=kind.back(key),
        about="Dashboard" if kind.name == _ALL else name,
        idle=status if stopping else ("" if stop else "It is not stopped now."),
    )


def _act(key: int, kind: StopKind, act: StopAct, given: Mapping[str, Any], by: str) -> Done | NotDone:
    name, reason = _named(key, kind), given["reason"]
    name = _ALL.capitalize() if kind.name == _ALL else name  # not a DLQ or a key: capitalize would change their names
    back = kind.back(key)
    if act is StopAct.STOP:
        stop = kind.stop(key, by=by, reason=reason)
        if stop.new:
            return Done(back, f"{name} is stopped: nothing is sent until somebody resumes it.")
        return NotDone(f'{stop.by} stopped it before you ("{stop.reason}"). That stop stays.')
    follow_redrives.check_before_resuming(kind.dlq(key))
    try:
        gone = kind.resume(key, by=by, reason=reason, seen=_moment(given["seen"]))
    except RestoreUnresolved as error:
        return NotDone(str(error))
    if gone:
        return Done(back, f'{name} is resumed. The stop by {gone.by} ("{gone.reason}") has ended.')
    if now := kind.stopped(key):
        return NotDone(f'{now.by} stopped it again after you opened this page ("{now.reason}").')
    return NotDone("Somebody else resumed it before you.")


def _moment(text: str) -> datetime:
    """Return when the stop began that the page showed. `text`: the value of the page's hidden field `seen`.

    If the text is not a time, return a time at which no stop began. The resume is then refused.
    """
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        found = None
    return found if found and found.tzinfo else datetime.fromisoformat("0001-01-02T00:00:00+00:00")
