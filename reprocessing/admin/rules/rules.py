"""The lists and pages of rules and rate classes, and the pages that enable, disable and remove a rule."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from functools import partial
from typing import Any

from django.contrib import admin
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse

from reprocessing.admin.approvals import requested
from reprocessing.admin.configuration.managed_admin import ManagedAdmin
from reprocessing.admin.rules import rule_form, rule_form_page
from reprocessing.admin.site import confirmed_action, visible_rows
from reprocessing.admin.site.buttons import Button, button
from reprocessing.admin.site.confirmed_action import Done, NotDone, Question
from reprocessing.admin.site.preview import value_text
from reprocessing.admin.site.readonly_admin import Page, ReadOnlyAdmin
from reprocessing.domain.configuration.keys import Kind
from reprocessing.domain.errors import InvalidRule
from reprocessing.models import RateClass, Rule, Rulebook
from reprocessing.pipeline.routing import route
from reprocessing.store.rights.visible_dlqs import VisibleDlqs
from reprocessing.store.routing import rule_changes, rules

_FIELDS = (
    "name", "position", "enabled", "applies_to", "matches", "action", "delay", "target", "rate_class", "backoff_base",
    "backoff_cap", "backoff_jitter", "valid_from", "valid_until", "created_by", "made_at",
)  # fmt: skip
_ENDS = (
    "The rule decides about no more messages. The other rules decide about messages that it held or delayed. Messages "
    "that it quarantined stay parked."
)


class Switch(StrEnum):
    """The action of a page: enable, disable or remove a rule. The value is also the last part of the page's URL."""

    ENABLE = "enable"
    DISABLE = "disable"
    REMOVE = "remove"

    @property
    def permission(self) -> str:
        """Return the permission that the action requires."""
        return rule_form_page.DELETE if self is Switch.REMOVE else rule_form_page.CHANGE


@admin.register(Rule)
class Rules(ManagedAdmin):
    """The list and the pages of rules."""

    managed_kind = Kind.RULE
    changing = ("edit", "enable", "disable", "remove")
    add_permission = rule_form_page.ADD
    list_display = (
        "name",
        "position",
        "enabled",
        "applies_to",
        "does",
        "match_count",
        "last_hit_at",
        "problem",
        "in_file",
    )
    list_filter = ("enabled", "action", "dlq")
    list_select_related = ("dlq", "target")
    search_fields = ("name__exact",)
    ordering = ("position", "pk")
    fieldsets = (
        ("Rule", {"fields": _FIELDS}),
        ("Results so far", {"fields": ("match_count", "last_hit_at", "error_count", "last_error")}),
    )

    @admin.display(description="dead-letter queue", ordering="dlq")
    def applies_to(self, row: Rule) -> str:
        """Return the name of the rule's DLQ, or a text that says that the rule is for all DLQs."""
        return row.dlq.name if row.dlq else "all DLQs"

    @admin.display(description="conditions")
    def matches(self, row: Rule) -> str:
        """Return the conditions of the rule as text, as in the preview of the form."""
        return value_text(row.conditions) or "none: the rule matches every message"

    @admin.display(description="action", ordering="action")
    def does(self, row: Rule) -> str:
        """Return the action, with the target if the rule has one."""
        return f"{row.action} to {row.target}" if row.target else row.action

    @admin.display(description="problem", ordering="error_count")
    def problem(self, row: Rule) -> str:
        """Return for how many messages the rule could not be evaluated, and the last reason; empty: for none."""
        errors = f"{row.error_count:,} error{'' if row.error_count == 1 else 's'}: "
        return f"{errors if row.error_count else ''}{row.last_error}"

    def add_page(self, request: HttpRequest) -> HttpResponse:
        """Return the page with the form of a new rule."""
        return rule_form_page.page(request)

    def pages(self) -> Iterable[Page]:
        """Return the page that changes a rule, and the pages that enable, disable and remove a rule."""
        switches = ((f"<int:rule>/{to}", _page, to.value, {"to": to}) for to in Switch)
        return ("<int:rule>/edit", rule_form_page.page, "edit", {}), *switches

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the page of a rule. If the rule is not enabled, a sentence beside the button "Enable…" says so."""
        row = self.get_object(request, object_id)
        more: dict[str, Any] = {}
        if row is not None and not row.enabled:
            mark, address = self.mark(row), reverse("admin:reprocessing_rule_enable", args=[row.pk])
            locked = mark is not None and mark.unlocked_at is None
            found = [offered for offered in self.buttons(request, row) if offered.address == address and not locked]
            more = {"not_enabled": True, "enable": found[0] if found else None}
        return super().change_view(request, object_id, form_url, {**more, **(extra_context or {})})

    def buttons(self, request: HttpRequest, row: Rule) -> Iterable[Button]:
        """Return the buttons of a rule's page: change, enable or disable, and remove."""
        switch = "disable" if row.enabled else "enable"
        changes, removes = ("change_rule", "change rules"), ("delete_rule", "remove rules")
        pages = (("change", "edit", changes), (switch, switch, changes), ("remove", "remove", removes))
        shared = visible_rows.is_shared(request, row)
        for label, page, takes in pages:
            address = reverse(f"admin:reprocessing_rule_{page}", args=[row.pk])
            yield button(request, f"{label.capitalize()}…", address, takes, grave=page == "remove", shared=shared)


@admin.register(RateClass)
class RateClasses(ManagedAdmin):
    """The list of rate classes. A rule can assign a rate class, with its own rate limit and backoff, to messages."""

    managed_kind = Kind.RATE_CLASS
    list_display = ("name", "rate", "burst", "backoff_base", "backoff_cap", "backoff_jitter", "in_file")
    ordering = ("name",)


@admin.register(Rulebook)
class Rulebooks(ReadOnlyAdmin):
    """The page with the version number of the set of all rules, and when the next rule becomes valid or expires."""

    list_display = ("__str__", "changes_at")
    ordering = ("pk",)


def _page(request: HttpRequest, rule: int, to: Switch) -> HttpResponse:
    visible_rows.changeable_or_403(request, Rule.objects, rule)
    act = partial(_act, visible_rows.of(request), rule, to)
    question = partial(_question, request, rule, to)
    return confirmed_action.page(request, permission=to.permission, question=question, act=act)


def _question(request: HttpRequest, key: int, to: Switch) -> Question:
    row = get_object_or_404(Rule, pk=key)
    counts = row.enabled or to is Switch.ENABLE
    is_so = to is not Switch.REMOVE and row.enabled == (to is Switch.ENABLE)
    return Question(
        title=f"{to.capitalize()} {row.name}",
        button=to.capitalize(),
        says=(f"{rule_form.decides(row.action)} An earlier rule that matches decides instead.",)
        if to is Switch.ENABLE
        else (_ENDS,),
        seen=str(rules.version()),
        back=reverse("admin:reprocessing_rule_change", args=[key]),
        about=row.name,
        facts=(("Messages matched", f"{row.match_count:,}"), ("Action", row.action)),
        idle=f"The rule is {to.value}d already." if is_so else "",
        notice=requested.notice(request, rule_changes.messages_of(row)) if counts else "",
    )


def _act(seen: VisibleDlqs, key: int, to: Switch, given: Mapping[str, Any], by: str) -> Done | NotDone:
    row, reason = get_object_or_404(Rule, pk=key), given["reason"]
    try:
        with transaction.atomic():
            if str(rules.lock().version) != given["seen"]:
                return NotDone(f"Somebody changed the rules after you opened this page: {rule_form.last_change(seen)}")
            if to is Switch.REMOVE:
                rule_changes.remove(key, by=by, reason=reason)
            else:
                rule_changes.set_enabled(key, enabled=to is Switch.ENABLE, by=by, reason=reason)
    except InvalidRule as error:
        return NotDone(str(error))
    route.wake_stopped(route.RuleBook.load())
    if to is not Switch.REMOVE:
        return Done(reverse("admin:reprocessing_rule_change", args=[key]), f"{row.name} is {to.value}d.")
    rule_changes.erase(key)
    return Done(reverse("admin:reprocessing_rule_changelist"), f"{row.name} is removed.")
