"""The demo's checklist on the dashboard: things to try in the admin, and which of these the person has done."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from django.contrib.auth.models import PermissionsMixin
from django.http import HttpRequest
from django.urls import reverse

from reprocessing import conf
from reprocessing.admin.site import visible_rows
from reprocessing.models import AuditAct, AuditEntry, Run


@dataclass(frozen=True, slots=True)
class FirstStep:
    """An entry of the checklist: a link with its label, and the text that follows the link."""

    label: str
    address: str
    text: str
    is_done: bool


def first_steps(request: HttpRequest) -> list[FirstStep]:
    """Return the checklist; empty without the setting FIRST_STEPS, which only the demo has."""
    user = request.user
    if not (conf.current().first_steps and isinstance(user, PermissionsMixin)):
        return []
    entries = visible_rows.rows(request, AuditEntry.objects.filter(by=request.user.get_username()))
    done = set(entries.values_list("act", flat=True).distinct())
    run = visible_rows.rows(request, Run.objects).order_by("-selected", "pk").first()
    runs = reverse("admin:reprocessing_run_changelist")
    return [
        FirstStep(
            "See how the run went", reverse("admin:reprocessing_run_change", args=[run.pk]) if run else runs,
            "waves, rate and outcomes of the redrive that you watched", is_done=False,
        ),
        FirstStep(
            "Show a payload", reverse("admin:reprocessing_parkedletter_changelist"),
            "open a parked message, and show its body; the audit log records each view", AuditAct.REVEALED in done,
        ),
        FirstStep(
            "Decide about the parked messages", reverse("admin:reprocessing_parkedletter_changelist"),
            "edit a parked message and release it; discard the others. Released unedited, they fail again and open the "
            "circuit breaker", done >= _EDITED_AND_RELEASED,
        ),
        FirstStep(
            "Stop everything", reverse("admin:stop"),
            "nothing is sent until you resume", AuditAct.STOPPED in done,
        ),
    ]  # fmt: skip


_EDITED_AND_RELEASED: Final = {AuditAct.EDITED, AuditAct.RELEASED}
