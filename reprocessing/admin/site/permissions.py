"""What the person who asks may do at the desk, and what each deed takes."""

from __future__ import annotations

from typing import Final

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.views.decorators.http import require_safe

from reprocessing.store.maintenance import roles

#: Each deed of the desk, and the permission that it takes.
DEEDS: Final = {
    "See dlqs and the board": "reprocessing.view_deadletterqueue",
    "See letters": "reprocessing.view_deadletter",
    "See the parking lot": "reprocessing.view_parkedletter",
    "See payloads, and what consumers said": "reprocessing.view_payload",
    "Replay parked letters": "reprocessing.release_parkedletter",
    "Discard parked letters, and restore discarded ones": "reprocessing.discard_parkedletter",
    "Edit parked letters": "reprocessing.edit_parkedletter",
    "Assign parked letters, and note something on them": "reprocessing.assign_parkedletter",
    "Export letters": "reprocessing.export_deadletter",
    "Say what becomes of groups": "reprocessing.change_lettergroup",
    "Plan, start, pause, resume and abort runs": "reprocessing.operate_run",
    "Move breakers by hand": "reprocessing.reset_breaker",
    "Stop lanes, and let them go on": "reprocessing.stop_lane",
    "Stop dlqs, and let them go on": "reprocessing.stop_deadletterqueue",
    "Stop everything, and let it go on": "reprocessing.stop_sends",
    "Add dlqs": "reprocessing.add_deadletterqueue",
    "Change the policy of dlqs": "reprocessing.change_deadletterqueue",
    "Add targets": "reprocessing.add_target",
    "Change targets": "reprocessing.change_target",
    "Add rules": "reprocessing.add_rule",
    "Change, enable and disable rules": "reprocessing.change_rule",
    "Remove rules": "reprocessing.delete_rule",
    "Add notifications": "reprocessing.add_notificationroute",
    "Change notifications": "reprocessing.change_notificationroute",
    "Remove notifications": "reprocessing.delete_notificationroute",
}


def page(request: HttpRequest) -> HttpResponse:
    """The page of this person's rights."""
    return require_safe(_page)(request)


def _page(request: HttpRequest) -> HttpResponse:
    user = request.user
    context = {
        **admin.site.each_context(request),
        "title": "Your rights",
        "deeds": [(deed, permission, user.has_perm(permission)) for deed, permission in DEEDS.items()],
        "groups": list(user.groups.order_by("name").values_list("name", flat=True)),
        "roles": roles.ROLES,
        "is_superuser": user.is_superuser,
    }
    return TemplateResponse(request, "reprocessing/admin/rights.html", context)
