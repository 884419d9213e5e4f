"""One letter with all that is known of it: its bytes for those who may see them, and its history."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, PermissionsMixin
from django.db.models import QuerySet

from reprocessing.admin.reading import Readable, readable, visible
from reprocessing.domain.envelope import unpack
from reprocessing.models import DeadLetter, Payload

_LINES = 200  # of each table; a letter with more of them is told so by its counts


@dataclass(frozen=True, slots=True)
class Row:
    """One attribute of a message."""

    name: str
    type: str
    value: Readable


@dataclass(frozen=True, slots=True)
class Contents:
    """What a payload holds."""

    body: Readable
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
        "contents": payload and contents(payload),
        "attempts": _newest(letter.history.select_related("target", "run").order_by("-no")),
        "copies": _newest(letter.copies.select_related("attempt").order_by("-visible_until")),
        "claims": _newest(letter.claims.select_related("target")),
        "reviews": _newest(letter.reviews.order_by("-at")),
    }


def contents(payload: Payload) -> Contents:
    """A payload in a form to be read; what is sent are its bytes."""
    attributes = unpack(bytes(payload.attributes))
    return Contents(
        body=readable(bytes(payload.body)),
        attributes=tuple(
            Row(visible(name), visible(one.type), _value(one.value)) for name, one in sorted(attributes.items())
        ),
        system=tuple((visible(name), visible(str(value))) for name, value in _sorted(payload.system)),
    )


def _value(value: str | bytes) -> Readable:
    return readable(value if isinstance(value, bytes) else value.encode(errors="surrogatepass"))


def _sorted(system: Mapping[str, str]) -> list[tuple[str, str]]:
    return sorted(system.items())


def _newest(rows: QuerySet[Any]) -> list[Any]:
    return list(rows[:_LINES])
