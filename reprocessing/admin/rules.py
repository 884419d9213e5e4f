"""Rules and rate classes: what they say and what they have come to; a rule is enabled and disabled here, with a reason.

What a rule says is the command's, which shows what it would do before it is written: manage.py add_rule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin
from django.db import transaction
from django.db.models import Model
from django.http import HttpRequest

from reprocessing.admin.history import History
from reprocessing.domain.errors import RuleIsUnclear
from reprocessing.models import RateClass, Rule, Rulebook, amendments
from reprocessing.models import rules as statements
from reprocessing.pipeline import route

if TYPE_CHECKING:
    SwitchForm = forms.ModelForm[Rule]  # generic for the type checker alone
else:
    SwitchForm = forms.ModelForm

_SAID = (
    "name", "position", "dlq", "conditions", "action", "delay", "target", "rate_class", "backoff_base", "backoff_cap",
    "backoff_jitter", "valid_from", "valid_until", "made_by", "made_at",
)  # fmt: skip
_COME_TO = ("hits", "last_hit_at", "errs", "trouble")


class Switch(SwitchForm):
    """Whether a rule decides, as it was seen, and why that is changed."""

    seen = forms.CharField(widget=forms.HiddenInput)
    why = forms.CharField(
        max_length=2_000, label="Reason", widget=forms.Textarea(attrs={"rows": 3}), help_text="Recorded with your name."
    )

    class Meta:
        model = Rule
        fields = ("enabled",)

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - Django's own
        super().__init__(*args, **kwargs)
        self.initial["seen"] = _seen()

    def clean(self) -> dict[str, Any]:
        """Refused when any rule is another than was seen, or when this one cannot be asked."""
        given = super().clean() or self.cleaned_data
        statements.lock()
        if given.get("seen") != _seen():
            raise forms.ValidationError(
                "Nothing was changed: somebody changed the rules since you opened this page. Open it again."
            )
        if given.get("enabled"):
            try:
                amendments.check(Rule.objects.select_related("target").get(pk=self.instance.pk))
            except RuleIsUnclear as error:
                raise forms.ValidationError({"enabled": str(error)}) from error
        return given


@admin.register(Rule)
class Rules(History):
    """What decides about letters from their content."""

    form = Switch
    change_list_template = "admin/change_list.html"
    list_display = ("name", "position", "enabled", "dlq", "action", "target", "hits", "last_hit_at", "errs", "trouble")
    list_filter = ("enabled", "action", "dlq")
    list_select_related = ("dlq", "target")
    search_fields = ("name__exact",)
    ordering = ("position", "pk")
    fieldsets = (
        ("What it says (manage.py add_rule; test_rules tells what it would do)", {"fields": _SAID}),
        ("What it has come to", {"fields": _COME_TO}),
        ("Whether it decides", {"fields": ("enabled", "why", "seen")}),
    )
    readonly_fields = (*_SAID, *_COME_TO)

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Who may enable and disable rules."""
        return request.user.has_perm("reprocessing.change_rule")

    def save_model(
        self,
        request: HttpRequest,
        obj: Rule,
        form: forms.ModelForm[Rule],
        change: bool,  # noqa: FBT001 - Django's own
    ) -> None:
        """Enable or disable it; what it stopped is asked about anew once that is committed."""
        if "enabled" in form.changed_data:
            amendments.switch(
                obj.pk, enabled=obj.enabled, by=request.user.get_username(), reason=form.cleaned_data["why"]
            )
            transaction.on_commit(_wake)


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


def _seen() -> str:
    return str(statements.version())


def _wake() -> None:
    route.wake(route.Book.load())
