"""What a person can do from a letter's page: each deed with its address, or why it is not open to them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, PermissionsMixin
from django.urls import NoReverseMatch, reverse

from reprocessing.domain.lifecycle import LetterState
from reprocessing.models import DeadLetter

_EDITS: Final = ("reprocessing.edit_parkedletter", "reprocessing.view_payload")


@dataclass(frozen=True, slots=True)
class Way:
    """A button. `closed`: why it is not open to this person; empty: it is."""

    label: str
    address: str
    closed: str = ""


def deeds(offered: Iterable[Sequence[str]]) -> list[Way]:
    """The deeds that a desk offers: name, address or its name, label, and why it is closed to this person, or empty."""
    return [Way(label, _address(address), closed) for _, address, label, closed in offered]


def of(letter: DeadLetter, user: AbstractBaseUser | AnonymousUser) -> dict[str, Any]:
    """Beside what a desk offers: to edit the letter, and to make a rule of it."""
    parked = letter.state == LetterState.PARKED
    return {"edit": _edit(letter, user) if parked else None, "rule_way": _rule(letter, user), "is_parked": parked}


def _edit(letter: DeadLetter, user: AbstractBaseUser | AnonymousUser) -> Way:
    missing = [one for one in _EDITS if not _has(user, one)]
    closed = "Editing takes the permissions to edit letters and to see payloads" if missing else ""
    return Way("Edit…", reverse("admin:parkedletter_edit", args=[letter.pk]), closed)


def _rule(letter: DeadLetter, user: AbstractBaseUser | AnonymousUser) -> Way:
    closed = "" if _has(user, "reprocessing.add_rule") else "Making rules takes the permission to"
    return Way("Make a rule…", f"{reverse('admin:reprocessing_rule_add')}?letter={letter.pk}", closed)


def _has(user: AbstractBaseUser | AnonymousUser, permission: str) -> bool:
    return isinstance(user, PermissionsMixin) and user.has_perm(permission)


def _address(text: str) -> str:
    try:
        return reverse(text) if text.startswith("admin:") else text
    except NoReverseMatch:
        return text
