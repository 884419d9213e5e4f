"""The page that shows a person which actions they may do, and which permission each action needs."""

from __future__ import annotations

from typing import Final

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.views.decorators.http import require_safe

from reprocessing.admin.site import visible_rows
from reprocessing.models import DeadLetterQueue
from reprocessing.store.rights import roles
from reprocessing.store.rights.visible_dlqs import ALL_DLQS

#: For each action of the admin, in words: the permission that the action requires.
PERMISSIONS: Final = {
    "See DLQs and the dashboard": "reprocessing.view_deadletterqueue",
    "See the DLQs of all teams; change targets and rules that DLQs of several teams use": ALL_DLQS,
    "See messages": "reprocessing.view_letter",
    "See the parking lot": "reprocessing.view_parkedletter",
    "See payloads and consumer reports": "reprocessing.view_payload",
    "Reveal masked values": "reprocessing.reveal_payload",
    "Release parked messages": "reprocessing.release_parkedletter",
    "Discard parked messages, and restore them": "reprocessing.discard_parkedletter",
    "Edit parked messages": "reprocessing.edit_parkedletter",
    "Assign parked messages, and add notes": "reprocessing.assign_parkedletter",
    "Export messages and the audit log": "reprocessing.export_letter",
    "Change, merge, split and rename failure groups": "reprocessing.change_failuregroup",
    "Plan, start, pause, resume and abort runs": "reprocessing.operate_run",
    "Open and close circuit breakers": "reprocessing.reset_breaker",
    "Stop and resume key queues": "reprocessing.stop_lane",
    "Stop and resume DLQs": "reprocessing.stop_deadletterqueue",
    "Stop and resume everything": "reprocessing.stop_sends",
    "Add DLQs": "reprocessing.add_deadletterqueue",
    "Change DLQs": "reprocessing.change_deadletterqueue",
    "Add targets": "reprocessing.add_target",
    "Change targets": "reprocessing.change_target",
    "Add rules": "reprocessing.add_rule",
    "Change, enable and disable rules": "reprocessing.change_rule",
    "Remove rules": "reprocessing.delete_rule",
    "Add notifications": "reprocessing.add_notificationroute",
    "Change notifications": "reprocessing.change_notificationroute",
    "Make a change that needs a second person, without the second person": "reprocessing.act_alone",
    "Unlock objects that a configuration file manages": "reprocessing.unlock_managedobject",
    "Remove notifications": "reprocessing.delete_notificationroute",
    "Delete saved filters of other people in one's own teams": "reprocessing.delete_savedfilter",
    "Make API tokens": "reprocessing.add_apitoken",
    "Revoke API tokens": "reprocessing.change_apitoken",
}


@require_safe
def page(request: HttpRequest) -> HttpResponse:
    """Show for each action the permission it needs, and whether this person has it. Also show roles and groups."""
    user = request.user
    context = {
        **admin.site.each_context(request),
        "title": "Your permissions",
        "actions": [(action, permission, user.has_perm(permission)) for action, permission in PERMISSIONS.items()],
        "groups": list(user.groups.order_by("name").values_list("name", flat=True)),
        "sees_all": visible_rows.of(request).are_all,
        "dlqs": visible_rows.rows(request, DeadLetterQueue.objects.order_by("name")).values_list("name", flat=True),
        "roles": roles.ROLES,
        "is_superuser": user.is_superuser,
    }
    return TemplateResponse(request, "reprocessing/admin/permissions.html", context)
