"""Stopping one dlq, one lane, or everything, and letting it go on: with a reason, and only as it was seen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import partial
from typing import Any, Final

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse

from reprocessing.admin.messages.readable_bytes import visible
from reprocessing.admin.site import confirmed_action
from reprocessing.admin.site.confirmed_action import Done, NotDone, Question
from reprocessing.domain.errors import BackupIsUnreconciled
from reprocessing.models import DeadLetterQueue, Lane
from reprocessing.pipeline.aws import native_redrive
from reprocessing.store.safety import stops
from reprocessing.store.safety.stops import Stop

_LONGEST: Final = 60
_ALL: Final = "everything"
_GO_ON: Final = "Workers send again, as fast as breakers and rates allow."


class Act(StrEnum):
    """What can be done, by the last part of its address."""

    STOP = "stop"
    RESUME = "resume"


@dataclass(frozen=True, slots=True)
class Kind:
    """What can be stopped by itself.

    Attributes:
        name: what its rows are called.
        of: its name, by its id.
        stopped, stop, resume: what `stops` says and does.
        goes_on: what the end of a stop means.
        it: what a button calls it.
        dlq: whose letters go on, by its id; None: those of all.
    """

    name: str
    permission: str
    says: str
    of: Callable[[int], str | None]
    stopped: Callable[[int], Stop | None]
    stop: Callable[..., Stop]
    resume: Callable[..., Stop | None]
    goes_on: str = _GO_ON
    it: str = "it"
    dlq: Callable[[int], int | None] = int

    def back(self, key: int) -> str:
        """The page that it belongs to."""
        if self.name == _ALL:
            return reverse("admin:index")
        return reverse(f"admin:reprocessing_{self.name}_change", args=[key])


def _dlq(key: int) -> str | None:
    return DeadLetterQueue.objects.filter(pk=key).values_list("name", flat=True).first()


def lane_name(lane: Lane) -> str:
    """What people know a lane by: its key, or its number where it has none."""
    shown = visible(lane.key or f"lane {lane.pk}")
    return shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}…"


def _lane(key: int) -> str | None:
    found = Lane.objects.filter(pk=key).first()
    return f"{lane_name(found)} of {found.dlq.name}" if found else None


def _of_all(does: Callable[..., Any], _: int, **said: Any) -> Any:  # noqa: ANN401  what `stops` takes and gives
    return does(None, **said)


KINDS: Final = {
    one.name: one
    for one in (
        Kind(
            "deadletterqueue", "reprocessing.stop_deadletterqueue",
            "Nothing of it is sent any more, by any worker, within two seconds, and nothing is received from it. What "
            "is on the wire at that moment is settled; letters stay where they are.",
            _dlq, stops.stopped, stops.stop, stops.resume,
        ),
        Kind(
            "lane", "reprocessing.stop_lane",
            "No letter of this ordering key is sent any more, by any worker; what is on the wire at that moment is "
            "settled. All other lanes go on.",
            _lane, stops.stopped_lane, stops.stop_lane, stops.resume_lane,
            dlq=lambda key: Lane.objects.get(pk=key).dlq_id,
        ),
        Kind(
            _ALL, "reprocessing.stop_sends",
            "Nothing is sent any more, of any dlq, by any worker, within two seconds. What is on the wire at that "
            "moment is settled; letters stay where they are; captures go on.",
            lambda _: _ALL, lambda _: stops.stopped(None), partial(_of_all, stops.stop),
            partial(_of_all, stops.resume), f"{_GO_ON} A dlq that was stopped by itself stays stopped.", _ALL,
            lambda _: None,
        ),
    )
}  # fmt: skip


def page(request: HttpRequest, kind: str, act: Act, **named: int) -> HttpResponse:
    """Asked for, the page that asks why; sent back with a reason, the deed. `named`: which, by its id; of all, none."""
    key = next(iter(named.values()), 0)
    which = KINDS[kind]
    return confirmed_action.page(
        request,
        permission=which.permission,
        question=partial(_question, key, which, act),
        act=partial(_act, key, which, act),
    )


def _named(key: int, kind: Kind) -> str:
    name = kind.of(key)
    if name is None:
        raise Http404
    return name


def _question(key: int, kind: Kind, act: Act) -> Question:
    name, stop = _named(key, kind), kind.stopped(key)
    stands = f'It is stopped since {stop.since:%Y-%m-%d %H:%M:%S} UTC by {stop.by} ("{stop.reason}").' if stop else ""
    stopping = act is Act.STOP
    return Question(
        title=f"Stop {name}" if stopping else f"Let {name} go on",
        button=f"Stop {kind.it}" if stopping else f"Let {kind.it} go on",
        says=(kind.says, "It holds until somebody lets it go on.") if stopping else (stands, kind.goes_on),
        seen=stop.since.isoformat() if stop else "none",
        back=kind.back(key),
        about="Board" if kind.name == _ALL else name,
        idle=stands if stopping else ("" if stop else "It is not stopped."),
    )


def _act(key: int, kind: Kind, act: Act, given: Mapping[str, Any], by: str) -> Done | NotDone:
    name, reason = _named(key, kind), given["reason"]
    name = _ALL.capitalize() if kind.name == _ALL else name  # all others are names
    there = kind.back(key)
    if act is Act.STOP:
        stop = kind.stop(key, by=by, reason=reason)
        if stop.new:
            return Done(there, f"{name} is stopped: nothing of it is sent until somebody lets it go on.")
        return NotDone(f'{stop.by} has stopped it already ("{stop.reason}"). That stop holds.')
    native_redrive.look_first(kind.dlq(key))
    try:
        gone = kind.resume(key, by=by, reason=reason, seen=_moment(given["seen"]))
    except BackupIsUnreconciled as error:
        return NotDone(str(error))
    if gone:
        return Done(there, f'{name} goes on: the stop by {gone.by} ("{gone.reason}") is lifted.')
    if now := kind.stopped(key):
        return NotDone(f'Since you looked, {now.by} stopped it anew ("{now.reason}").')
    return NotDone("Somebody else has let it go on.")


def _moment(text: str) -> datetime:
    """Since when the stop holds that was seen; what no page of ours wrote means none."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        found = None
    return found if found and found.tzinfo else datetime.fromisoformat("0001-01-02T00:00:00+00:00")
