"""Make the buttons on a message's page. A button that a person may not use shows the reason."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse

from reprocessing.admin.site.buttons import Button
from reprocessing.domain.lifecycle import LetterState
from reprocessing.models import Letter


def action_buttons(offered: Iterable[Sequence[str]]) -> list[Button]:
    """Return a button for each action.

    Args:
        offered: for each action its name, a URL or URL name, a label, and why it is not allowed (empty: allowed).
    """
    return [Button(label, _address(address), closed) for _, address, label, closed in offered]


def page_buttons(letter: Letter, request: HttpRequest) -> dict[str, Any]:
    """Return template context: buttons that edit the message (only if it is parked) and make a rule from it."""
    parked, has_perm = letter.state == LetterState.PARKED, request.user.has_perm
    may_edit = has_perm("reprocessing.edit_parkedletter") and has_perm("reprocessing.view_payload")
    closed = "" if may_edit else "This needs the permissions to edit messages and to see payloads"
    edit = Button("Edit…", reverse("admin:parkedletter_edit", args=[letter.pk]), closed)
    closed = "" if has_perm("reprocessing.add_rule") else "This needs the permission to add rules"
    rule = Button("Add a rule…", f"{reverse('admin:reprocessing_rule_add')}?letter={letter.pk}", closed)
    return {"edit": edit if parked else None, "rule_way": rule, "is_parked": parked}


def _address(text: str) -> str:
    try:
        return reverse(text) if text.startswith("admin:") else text
    except NoReverseMatch:
        return text
