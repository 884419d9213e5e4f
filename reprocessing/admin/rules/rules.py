"""Rules and rate classes: what they say and what they have come to; what can be done to a rule is a page of its own."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import Model
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path, reverse

from reprocessing.admin.rules import rule_form, rule_switch
from reprocessing.admin.site.readonly_admin import History
from reprocessing.models import RateClass, Rule, Rulebook

_SAID = (
    "name", "position", "enabled", "dlq", "conditions", "action", "delay", "target", "rate_class", "backoff_base",
    "backoff_cap", "backoff_jitter", "valid_from", "valid_until", "made_by", "made_at",
)  # fmt: skip


@admin.register(Rule)
class Rules(History):
    """What decides about letters from their content."""

    change_list_template = "admin/change_list.html"
    change_form_template = "reprocessing/admin/rule.html"
    list_display = ("name", "position", "enabled", "dlq", "action", "target", "hits", "last_hit_at", "errs", "trouble")
    list_filter = ("enabled", "action", "dlq")
    list_select_related = ("dlq", "target")
    search_fields = ("name__exact",)
    ordering = ("position", "pk")
    fieldsets = (
        ("What it says", {"fields": _SAID}),
        ("What it has come to", {"fields": ("hits", "last_hit_at", "errs", "trouble")}),
    )

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Who may make rules."""
        return request.user.has_perm(rule_form.ADD)

    def get_urls(self) -> list[URLPattern]:
        """Django's, the sheet of a rule, its switch, and its removal."""
        wrap, name = self.admin_site.admin_view, "reprocessing_rule"
        return [
            path("<int:rule>/edit", wrap(rule_form.page), name=f"{name}_edit"),
            path("<int:rule>/remove", wrap(rule_form.removal), name=f"{name}_remove"),
            *(
                path(f"<int:rule>/{to}", wrap(rule_switch.page), {"to": to}, f"{name}_{to}")
                for to in rule_switch.Switch
            ),
            *super().get_urls(),
        ]

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Where one is made."""
        return rule_form.page(request)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Its page, and what can be done to it."""
        row, user = self.get_object(request, object_id), request.user
        to = rule_switch.Switch.DISABLE if row is not None and row.enabled else rule_switch.Switch.ENABLE
        more = {
            "may_change": user.has_perm(rule_form.CHANGE),
            "may_remove": user.has_perm(rule_form.DELETE),
            "switch_words": f"{to.value.capitalize()} it…",
            "switch_address": row and reverse(f"admin:reprocessing_rule_{to}", args=[row.pk]),
        }
        return super().change_view(request, object_id, form_url, {**more, **(extra_context or {})})


@admin.register(RateClass)
class RateClasses(History):
    """Letters that rules put together; see manage.py add_rate_class."""

    list_display = ("name", "rate", "burst", "backoff_base", "backoff_cap", "backoff_jitter")
    ordering = ("name",)


@admin.register(Rulebook)
class Rulebooks(History):
    """The version of all rules, and when one begins or ends next."""

    list_display = ("__str__", "changes_at")
    ordering = ("pk",)
