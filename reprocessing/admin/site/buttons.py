"""Make the buttons of admin pages. A button leads to another page, or says which permission the person lacks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from django.http import HttpRequest


@dataclass(frozen=True, slots=True)
class Button:
    """A button that leads to the page at `address`.

    Attributes:
        closed: why this person may not use the button; empty: the person may use it.
        grave: whether the button has the colour of a warning.
        how: only for releases from the parking lot: what the next page also asks for, "at" (a time) or "to" (a target).
    """

    label: str
    address: str
    closed: str = ""
    grave: bool = False
    how: str = ""


#: Text of a closed button: the person may change such objects, but DLQs of other teams use this object, too.
SHARED: Final = "DLQs of other teams also use this, so you need the permission to see all DLQs"


def button(  # noqa: PLR0913  # each by its name
    request: HttpRequest, label: str, address: str, takes: tuple[str, str], *, grave: bool = False, shared: bool = False
) -> Button:
    """Return a button, which is disabled and shows the reason if this person may not use it.

    `takes`: the required permission, and what it allows in words, such as "stop DLQs". `shared`: whether the object
    that the button changes is also used by DLQs that this person does not see. The person may then not change it.
    """
    permission, allows = takes
    closed = "" if request.user.has_perm(f"reprocessing.{permission}") else f"You may not {allows}"
    closed = closed or (SHARED if shared else "")
    return Button(label, address, closed, grave)
