"""Buttons that lead to another page, or say which permission is missing."""

from __future__ import annotations

from dataclasses import dataclass

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


def button(request: HttpRequest, label: str, address: str, takes: tuple[str, str], *, grave: bool = False) -> Button:
    """Return a button for this person. `takes`: the required permission, and what it allows, such as "stop DLQs"."""
    permission, allows = takes
    closed = "" if request.user.has_perm(f"reprocessing.{permission}") else f"You may not {allows}"
    return Button(label, address, closed, grave)
