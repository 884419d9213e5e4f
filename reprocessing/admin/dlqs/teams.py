"""The page of a Django group. It shows the DLQs of the group, if the group is a team."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin
from django.contrib.auth.models import Group
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html_join
from django.utils.safestring import SafeString

from reprocessing.admin.site import visible_rows
from reprocessing.models import DeadLetterQueue

admin.site.unregister(Group)


@admin.register(Group)
class TeamAdmin(GroupAdmin):
    """The list and the pages of Django groups. A group is used as a role or as a team.

    A role has permissions (see manage.py make_roles). A team sees some DLQs, which are set in the form of each DLQ.
    """

    readonly_fields = ("dead_letter_queues",)

    def get_object(self, request: HttpRequest, *args: Any, **options: Any) -> Group | None:  # noqa: ANN401  Django's own
        """Return the group; None: there is no such group.

        Its added attribute `seen_dlqs` has the DLQs of the group that the person who sent the request sees.
        """
        group = super().get_object(request, *args, **options)
        if group is not None:
            seen = visible_rows.rows(request, DeadLetterQueue.objects.filter(teams=group))
            group.seen_dlqs = list(seen.order_by("name"))  # type: ignore[attr-defined]  # for the field below
        return group

    @admin.display(description="dead-letter queues", empty_value="none")
    def dead_letter_queues(self, group: Group) -> SafeString:
        """Return links to the DLQs of the group that this person sees."""
        page = "admin:reprocessing_deadletterqueue_change"
        links = ((reverse(page, args=[dlq.pk]), dlq.name) for dlq in getattr(group, "seen_dlqs", ()))
        return format_html_join(", ", '<a href="{}">{}</a>', links)
