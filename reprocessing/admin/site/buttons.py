"""Buttons that lead to another page, or say which permission is missing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from django.http import HttpRequest


@dataclass(frozen=True, slots=True)
class Button:
    """A button.

    Attributes:
        closed: why this person may not use the button; empty: the person may.
        grave: the button has the colour of a warning.
        how: what the next page of a release also asks for: a time or a target.
    """

    label: str
    address: str
    closed: str = ""
    grave: bool = False
    how: str = ""


#: Why a person who may change things of the own DLQs may not change this one.
SHARED: Final = "DLQs of other teams use it, too: this takes the permission to see all DLQs"


def button(  # noqa: PLR0913  # each by its name
    request: HttpRequest, label: str, address: str, takes: tuple[str, str], *, grave: bool = False, shared: bool = False
) -> Button:
    """Return a button for this person. `takes`: the required permission, and what it allows, such as "stop DLQs".

    `shared`: DLQs that this person does not see use the object, so the person may not change it.
    """
    permission, allows = takes
    closed = "" if request.user.has_perm(f"reprocessing.{permission}") else f"You may not {allows}"
    closed = closed or (SHARED if shared else "")
    return Button(label, address, closed, grave)
