"""One letter with all that is known of it; its bytes when they are asked for by those who may see them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, assert_never

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, PermissionsMixin
from django.db.models import Q, QuerySet
from django.urls import NoReverseMatch, reverse

from reprocessing import conf
from reprocessing.admin.messages import readable_bytes, timeline
from reprocessing.admin.messages.readable_bytes import Readable, readable, visible
from reprocessing.admin.messages.show_payload import Bytes
from reprocessing.domain.lifecycle import LanePhase, LetterState, ParkedReason
from reprocessing.domain.message import body_format, json_view
from reprocessing.domain.message.body_format import Dialect
from reprocessing.domain.message.json_span import text_of
from reprocessing.domain.message.json_view import Unreadable
from reprocessing.domain.ordering.placement import read_sort_key
from reprocessing.domain.routing import jmespath_query
from reprocessing.domain.routing.first_match import Action
from reprocessing.domain.routing.jmespath_query import Failed
from reprocessing.domain.sources import celery_task, sns_notification
from reprocessing.domain.sources.celery_envelope import Opaque, unpacked
from reprocessing.domain.sources.celery_failure import causes
from reprocessing.domain.sources.celery_task import TaskMessage
from reprocessing.domain.sources.sns_notification import Notification
from reprocessing.models import DeadLetter, Payload
from reprocessing.models.report import Report, Verdict
from reprocessing.models.target import TargetKind
from reprocessing.store.ordering import lane_neighbours
from reprocessing.store.ordering.lane_neighbours import MOST, Neighbours
from reprocessing.store.outcomes import pending_outcomes
from reprocessing.store.routing.routing_decisions import BY_HAND

_SHOWN = 1_000  # characters of arguments that somebody else wrote out
_LINES = 200  # of each table; a letter with more of them is told so by its counts
_OPEN_LENGTH = 200  # characters of a field that everybody may see
_MOODS: Final = {
    LetterState.PARKED: "bad", LetterState.DELIVERED: "good", LetterState.SENDING: "warm", LetterState.AWAITING: "warm",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Row:
    """One attribute of a message."""

    name: str
    type: str
    value: Readable


@dataclass(frozen=True, slots=True)
class Task:
    """What a letter says as a task message, and why it probably died.

    Attributes:
        told: its fields by their names.
        payload: its arguments and what follows it; None: it is none, or they are closed.
        closed: why they are, or why it is no task message; the arguments are in `told` as their producer wrote them.
    """

    told: tuple[tuple[str, str], ...]
    payload: Readable | None
    closed: str
    causes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Contents:
    """What a payload holds. `task` None: nobody says that it should be a task message, and it is none.

    Attributes:
        revision: the edit whose bytes these are; 0: they are as they were captured.
        told: what it is, in a line.
        inner: what a notification carries.
    """

    revision: int
    told: str
    body: Readable
    inner: Readable | None
    task: Task | None
    attributes: tuple[Row, ...]
    system: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class LanePanel:
    """A letter's lane in words."""

    at: Neighbours
    why: str
    behind: str
    parked: str


def may_see_payloads(user: AbstractBaseUser | AnonymousUser) -> bool:
    """Whether this person may see what customers wrote."""
    return isinstance(user, PermissionsMixin) and user.has_perm("reprocessing.view_payload")


def page(letter: DeadLetter, user: AbstractBaseUser | AnonymousUser, shown: Bytes | None) -> dict[str, Any]:
    """What the page of a letter shows; `shown`: its bytes, where this person asked for them just now."""
    tries, edits = timeline.of(letter)
    return {
        "may_see_payload": may_see_payloads(user),
        "contents": shown and contents(letter, shown),
        "opened": None if shown else opened(letter),
        "mood": _MOODS.get(LetterState(letter.state), ""),
        "why": ParkedReason(letter.reason).sentence if letter.reason else "",
        "detail": visible(letter.detail or ("" if letter.finished_at else letter.objection)),
        "sequence": letter.sequence and visible(read_sort_key(letter.sequence)),
        "twin_key": letter.idempotency_key and visible(letter.idempotency_key),
        "a_person_decided": _a_person_decided(letter),
        "tries": tries,
        "edits": edits,
        "lane_panel": lane_panel(letter),
        "group_address": group_address(letter),
        "copies": _newest(letter.copies.select_related("attempt").order_by("-visible_until")),
        "claims": _newest(letter.claims.select_related("target")),
        "reviews": _newest(letter.reviews.order_by("-at")),
    }


def contents(letter: DeadLetter, held: Bytes) -> Contents:
    """A payload in a form to be read; what is sent are its bytes."""
    told = body_format.recognise(held.body)
    return Contents(
        revision=held.revision,
        told=visible(str(told)),
        body=readable_bytes.as_spoken(held.body, told.dialect),
        inner=_inner(held.body) if told.dialect is Dialect.SNS else None,
        task=_task(letter, held),
        attributes=tuple(
            Row(visible(name), visible(one.type), _value(one.value)) for name, one in sorted(held.attributes.items())
        ),
        system=tuple((visible(name), visible(str(value))) for name, value in _sorted(held.system)),
    )


def opened(letter: DeadLetter) -> list[tuple[str, str]]:
    """The fields of a body that its dlq lets everybody see who sees the letter."""
    if not letter.dlq.open_fields:
        return []
    held = letter.revision or Payload.objects.filter(letter=letter).first()
    document = json_view.read(bytes(held.body)) if held else Unreadable("its bytes are no longer kept")
    if isinstance(document, Unreadable):
        return [("its fields", f"cannot be read: {document.why}")]
    return [(visible(str(one)), _field(jmespath_query.search(str(one), document))) for one in letter.dlq.open_fields]


def lane_panel(letter: DeadLetter) -> LanePanel | None:
    """Its lane and its neighbours there; None: it has no lane yet."""
    at = lane_neighbours.of(letter.pk)
    return LanePanel(at, _why(at, letter), _bounded(at.behind), _bounded(at.parked)) if at else None


def group_address(letter: DeadLetter) -> str:
    """The page of its group; empty: it has none."""
    try:
        return reverse("admin:reprocessing_lettergroup_change", args=[letter.group_id]) if letter.group_id else ""
    except NoReverseMatch:
        return ""


def _a_person_decided(letter: DeadLetter) -> bool:
    """Whether the last word on where it goes is a release's: past a quarantine, or to a queue that it names."""
    if not letter.released_by or letter.reason == ParkedReason.QUARANTINED:
        return False
    return letter.route == Action.QUARANTINE or letter.route_version == BY_HAND


def _why(at: Neighbours, letter: DeadLetter) -> str:
    """Why the lane stands where it stands."""
    if at.stopped_at:
        return f'stopped by {at.stopped_by} at {at.stopped_at:%Y-%m-%d %H:%M:%S} UTC: "{at.stop_reason}"'
    head = "this letter" if at.head_id == letter.pk else "its head"
    phase = LanePhase(at.phase)
    match phase:
        case LanePhase.READY:
            return visible(_waits(at, head))
        case LanePhase.HELD:
            return visible(_holds(at, head))
        case LanePhase.AWAITING:
            return f"{head} was sent; the next one goes when its outcome is known{_evidence(letter)}"
        case LanePhase.LEASED:
            return f"a worker is at {head} now"
        case LanePhase.IDLE:
            return "nothing of it waits"
        case _:
            assert_never(phase)


def _waits(at: Neighbours, head: str) -> str:
    until = f"{at.due_at:%Y-%m-%d %H:%M:%S} UTC"
    if at.obstacle:
        rests = "" if at.is_due else f"; and it rests until {until}"
        return f"{head} waits: {at.obstacle}{rests}"
    told = f"; when it was looked at last: {at.why}" if at.why else ""
    return f"{head} goes as soon as a worker has time{told}" if at.is_due else f"{head} waits until {until}{told}"


def _evidence(letter: DeadLetter) -> str:
    """What the outcome of letters that were sent to its target waits for."""
    lag = conf.current().count_lag.total_seconds()
    found = (
        one for one in pending_outcomes.of_targets(letter.dlq_id, count_lag=lag) if one.target_id == letter.target_id
    )
    awaited = next(map(pending_outcomes.in_words, found), "")
    return f". What is sent there waits for: {visible(awaited)}" if awaited else ""


def _holds(at: Neighbours, head: str) -> str:
    if at.head_route in {"hold", "erred"}:
        return f"the rule {at.head_rule or 'that was there'} holds {head}"
    return "a parked letter holds it" if at.holds else f"it is held{f' ({at.why})' if at.why else ''}"


def _bounded(number: int) -> str:
    return f"{number:,}" if number <= MOST else f"more than {MOST:,}"


def _field(found: object) -> str:
    match found:
        case None:
            return "nothing"
        case Failed(why):
            return f"cannot be read: {why}"
        case str():
            text = found
        case _:
            text = json.dumps(found, default=str, ensure_ascii=False)
    return visible(text if len(text) <= _OPEN_LENGTH else f"{text[:_OPEN_LENGTH]}…")


def _inner(body: bytes) -> Readable | None:
    found = sns_notification.read(body)
    text = text_of(found.fields.get("Message")) if isinstance(found, Notification) else None
    return readable(text.encode()) if text else None


def _task(letter: DeadLetter, held: Bytes) -> Task | None:
    found = celery_task.read(held.body)
    if not isinstance(found, TaskMessage) and (letter.target is None or letter.target.kind != TargetKind.CELERY):
        return None
    queue = letter.origin and letter.origin.target
    hidden = timedelta(seconds=queue.visibility) if queue else None
    reported = Report.objects.filter(Q(message_id=letter.message_id) | Q(public_id=letter.public_id))
    failed = reported.exclude(verdict=Verdict.DELIVERED).exists()
    why = tuple(visible(one) for one in causes(found, held.system, visibility=hidden, reported=failed))
    if not isinstance(found, TaskMessage):
        return Task((), None, found.why, why)
    raw = unpacked(found.envelope)
    shown = None if found.opaque or isinstance(raw, Opaque) else readable(raw)
    return Task(tuple((name, visible(text)) for name, text in _told(found) if text), shown, found.opaque, why)


def _told(found: TaskMessage) -> Iterator[tuple[str, str]]:
    yield "Task", found.task
    yield "Id", found.id
    yield "Retries", str(found.retries)
    yield "Not before (eta)", found.eta
    yield "Not after (expires)", found.expires
    yield "Group", found.group
    if found.opaque:
        yield "Arguments, as their producer wrote them", found.called_with[:_SHOWN]


def _value(value: str | bytes) -> Readable:
    return readable(value if isinstance(value, bytes) else value.encode(errors="surrogatepass"))


def _sorted(system: Mapping[str, str]) -> list[tuple[str, str]]:
    return sorted(system.items())


def _newest(rows: QuerySet[Any]) -> list[Any]:
    return list(rows[:_LINES])
