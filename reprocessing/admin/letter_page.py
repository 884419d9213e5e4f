"""One letter with all that is known of it: its bytes for those who may see them, and its history."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, PermissionsMixin
from django.db.models import Q, QuerySet

from reprocessing.admin.reading import Readable, readable, visible
from reprocessing.domain import task_message
from reprocessing.domain.envelope import unpack
from reprocessing.domain.task_death import causes
from reprocessing.domain.task_envelope import Opaque, unpacked
from reprocessing.domain.task_message import TaskMessage
from reprocessing.models import DeadLetter, Payload
from reprocessing.models.report import Report, Verdict
from reprocessing.models.target import TargetKind

_SHOWN = 1_000  # characters of arguments that somebody else wrote out
_LINES = 200  # of each table; a letter with more of them is told so by its counts


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
    """What a payload holds. `task` None: nobody says that it should be a task message, and it is none."""

    body: Readable
    task: Task | None
    attributes: tuple[Row, ...]
    system: tuple[tuple[str, str], ...]


def may_see_payloads(user: AbstractBaseUser | AnonymousUser) -> bool:
    """Whether this person may see what customers wrote."""
    return isinstance(user, PermissionsMixin) and user.has_perm("reprocessing.view_payload")


def page(letter: DeadLetter, user: AbstractBaseUser | AnonymousUser) -> dict[str, Any]:
    """What the page of a letter shows beside its fields; `contents` None: there are none, or not for this person."""
    allowed = may_see_payloads(user)
    payload = Payload.objects.filter(letter=letter).first() if allowed else None
    return {
        "may_see_payload": allowed,
        "contents": payload and contents(letter, payload),
        "attempts": _newest(letter.history.select_related("target", "run").order_by("-no")),
        "copies": _newest(letter.copies.select_related("attempt").order_by("-visible_until")),
        "claims": _newest(letter.claims.select_related("target")),
        "reviews": _newest(letter.reviews.order_by("-at")),
    }


def contents(letter: DeadLetter, payload: Payload) -> Contents:
    """A payload in a form to be read; what is sent are its bytes."""
    attributes = unpack(bytes(payload.attributes))
    return Contents(
        body=readable(bytes(payload.body)),
        task=_task(letter, payload),
        attributes=tuple(
            Row(visible(name), visible(one.type), _value(one.value)) for name, one in sorted(attributes.items())
        ),
        system=tuple((visible(name), visible(str(value))) for name, value in _sorted(payload.system)),
    )


def _task(letter: DeadLetter, payload: Payload) -> Task | None:
    found = task_message.read(bytes(payload.body))
    if not isinstance(found, TaskMessage) and (letter.target is None or letter.target.kind != TargetKind.CELERY):
        return None
    queue = letter.origin and letter.origin.target
    hidden = timedelta(seconds=queue.visibility) if queue else None
    reported = Report.objects.filter(Q(message_id=letter.message_id) | Q(public_id=letter.public_id))
    failed = reported.exclude(verdict=Verdict.DELIVERED).exists()
    why = tuple(visible(one) for one in causes(found, payload.system, visibility=hidden, reported=failed))
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
