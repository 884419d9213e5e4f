"""The dlqs: how each stands, and the part of its policy that can be changed without an examination."""

from __future__ import annotations

from functools import partial

from django import forms
from django.contrib import admin
from django.db import transaction
from django.db.models import Model
from django.http import HttpRequest

from reprocessing.admin.history import History
from reprocessing.admin.policy import POLICY, Policy, values
from reprocessing.models import Act, DeadLetterQueue, Review, parking

_ADDRESS = ("name", "url", "arn", "region", "fifo", "retention", "added_at")
_COMMANDED = (
    "ordering_key",
    "sequence",
    "idempotency_key",
    "missing_key",
    "default_origin",
    "delete_when",
    "parking_url",
    "role_arn",
)
_STOP = ("stopped_at", "stopped_by", "stop_reason")
_STANDING = ("depth_visible", "depth_in_flight", "depth_at", "next_poll_at", "drained_through", "trouble")


@admin.register(DeadLetterQueue)
class Queues(History):
    """Watched dlqs. What a change wrote is recorded with who, why, before and after."""

    form = Policy
    change_list_template = "admin/change_list.html"
    list_display = ("name", "mode", "stopped_at", "depth_visible", "depth_in_flight", "depth_at", "trouble")
    list_filter = ("mode",)
    search_fields = ("name",)
    ordering = ("name",)
    fieldsets = (
        (None, {"fields": _ADDRESS}),
        ("Policy", {"fields": POLICY}),
        ("Policy that manage.py add_dlq changes, after an examination", {"fields": _COMMANDED}),
        ("Stopped (manage.py stop_redrive, resume_redrive)", {"fields": _STOP}),
        ("How it stands", {"fields": _STANDING}),
        ("Why it is changed", {"fields": ("why", "seen")}),
    )
    readonly_fields = (*_ADDRESS, *_COMMANDED, *_STOP, *_STANDING)

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Who may change a policy."""
        return request.user.has_perm("reprocessing.change_deadletterqueue")

    def save_model(
        self,
        request: HttpRequest,
        obj: DeadLetterQueue,
        form: forms.ModelForm[DeadLetterQueue],
        change: bool,  # noqa: FBT001 - Django's own
    ) -> None:
        """Write what was changed and nothing else: beat and workers write the other columns at the same time."""
        if not isinstance(form, Policy) or not form.changed_policy:
            return
        after, written = values(obj), list(form.changed_policy)
        if {"interval", "crontab"} & set(written):
            obj.next_poll_at = None  # the old schedule's next time is none of the new one's
            written.append("next_poll_at")
        obj.save(update_fields=written)
        if "parked_head" in written:
            transaction.on_commit(partial(parking.let_go, obj.pk))
        Review.objects.create(
            act=Act.CHANGED,
            dlq=obj,
            by=request.user.get_username(),
            reason=form.cleaned_data["why"],
            before={name: form.before[name] for name in form.changed_policy},
            after={name: after[name] for name in form.changed_policy},
        )
