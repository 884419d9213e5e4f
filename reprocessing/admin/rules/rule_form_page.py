"""The page that adds or changes a rule: a form that shows what the conditions match, a preview, and a confirmation."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from django.core.exceptions import PermissionDenied, ValidationError
from django.db import transaction
from django.http import HttpRequest, HttpResponse, QueryDict
from django.template.response import TemplateResponse
from django.urls import reverse

from reprocessing.admin.messages import show_payload
from reprocessing.admin.messages.message_page import may_see_payloads
from reprocessing.admin.rules import condition_builder, conditions_field, offered_conditions, rule_draft, rule_effect
from reprocessing.admin.rules.rule_effect import DAYS
from reprocessing.admin.rules.rule_form import RuleForm, decides, last_change
from reprocessing.admin.site import preview_form, visible_rows
from reprocessing.admin.site.confirmed_action import Done
from reprocessing.admin.site.preview import Preview
from reprocessing.admin.site.preview_form import FormPage
from reprocessing.domain.errors import InvalidRule
from reprocessing.models import DeadLetterQueue, Rule
from reprocessing.pipeline.dlqs.examine import Finding, Severity
from reprocessing.pipeline.routing import route
from reprocessing.store.payloads import viewed_content
from reprocessing.store.rights.visible_dlqs import VisibleDlqs
from reprocessing.store.routing import rule_changes, rules

ADD, CHANGE, DELETE = "reprocessing.add_rule", "reprocessing.change_rule", "reprocessing.delete_rule"
_NOT_ENABLED: Final = "The rule will be {}, but not enabled: it decides nothing until you enable it."
_TO_ENABLE: Final = (
    "To enable it now, tick Enabled below and preview again. To enable it later, press “Enable…” on its page."
)
_LIVE: Final = "live"  # the value of `do` that requests only the part of the page that shows what the conditions match


def page(request: HttpRequest, rule: int | None = None) -> HttpResponse:
    """Show the form of a rule, then the preview. Save when the person confirms the preview.

    `rule`: the id of the rule; None: a new rule.
    """
    every = Rule.objects.select_related("dlq", "target", "rate_class")
    row = visible_rows.changeable_or_403(request, every, rule) if rule else None
    return _RulePage(request, row, ADD if row is None else CHANGE).answer()


class _RulePage:
    """A request for the page that adds or changes a rule.

    Attributes:
        begin: initial values of the form. They come from the message from which the rule is made or, if a button only
            changed the conditions, from the submitted form.
        builder: the conditions, as the page shows them.
    """

    def __init__(self, request: HttpRequest, row: Rule | None, permission: str) -> None:
        self.request, self.row, self.permission = request, row, permission
        self.seen = visible_rows.of(request)
        self.sent = request.POST if request.method == "POST" else QueryDict()
        self.source = rule_draft.source_message(request) if row is None else None
        self.begin: dict[str, Any] = self.source.begin() if self.source else {}
        otherwise = self.begin.get("conditions") or rule_draft.to_json(row.conditions if row else [])
        self.builder = condition_builder.read(self.sent, otherwise)

    def answer(self) -> HttpResponse:
        """Return the answer to the request: the page, the part of the page with the rule's effect, or a redirect.

        An open page requests that part again when its form changes. A redirect follows after saving.
        """
        do = self.sent.get("do")
        fills = "example" in self.sent or (self.source is not None and do == "fill")
        rearranges = fills or bool(condition_builder.BUTTONS & self.sent.keys())
        if not self.request.user.has_perm(self.permission):
            raise PermissionDenied
        if rearranges:
            self._rearrange(fills=fills)
        elif not self.builder.rows:
            self.builder.with_blank_row()
        if do == _LIVE:
            return TemplateResponse(self.request, "reprocessing/admin/rule_live.html", self._live())
        asked = self._asked()
        if rearranges:
            return preview_form.show_initial(self.request, asked)
        return preview_form.page(self.request, asked)

    def _asked(self) -> FormPage:
        row = self.row
        return FormPage(
            permission=self.permission,
            title=f"Change {row.name}" if row else "Add a rule",
            intro=f"The preview shows what the rule would do to messages of the last {DAYS} days. It saves nothing.",
            button=f"{'Save' if row else 'Add'}{'' if 'enabled' in self.sent else ', not enabled'}",
            back=_there(row),
            about=row.name if row else "Rules",
            make=self._form,
            make_preview=partial(_make_preview, sees=partial(_sees_values, self.request)),
            write=partial(_write, self.seen),
            preview="reprocessing/admin/rule_preview.html",
            extra={
                "source": self.source, "examples": conditions_field.EXAMPLES,
                "may_fill": may_see_payloads(self.request.user), "builder": self.builder,
            } | self._live(),
        )  # fmt: skip

    def _form(self, data: QueryDict | None) -> RuleForm:
        if data is not None:
            data = data.copy()
            data["conditions"] = self.builder.text
        return RuleForm(self.seen, data, self.row, self.begin, self.builder)

    def _rearrange(self, *, fills: bool) -> None:
        """Change the conditions as the pressed button says, and keep the other submitted values."""
        sent = self.sent
        self.begin |= {name: sent[name] for name in RuleForm.base_fields if name in sent}
        self.begin["enabled"] = "enabled" in sent
        if fills:
            self.builder = condition_builder.of_text(self._filled(), shown_as=self.builder.shown_as)
        else:
            self.builder = condition_builder.changed(self.builder, sent)
        self.begin["conditions"] = self.builder.text

    def _filled(self) -> str:
        """Add the chosen example, or conditions on the chosen fields, to the conditions. Return them as JSON."""
        sent, values = self.sent, "values" in self.sent
        if values and not self.request.user.has_perm("reprocessing.view_payload"):
            raise PermissionDenied
        if "example" in sent or self.source is None:
            return conditions_field.with_example(self.builder.text, sent.get("example", ""))
        by = self.request.user.get_username()
        return rule_draft.with_conditions(self.source, self.builder.text, sent.getlist("add"), values=values, by=by)

    def _live(self) -> dict[str, Any]:
        """Return template values: fields that are offered for conditions, and what the rule would do to messages."""
        form = self._form(self.sent) if self.sent else None
        if form is not None:
            form.full_clean()
        given = form.cleaned_data if form is not None else {}
        dlq = given.get("dlq") or (None if form is not None else self._first_dlq())
        found = offered_conditions.offers(self.request, dlq, for_all=self.seen.are_all, sent=self.sent)
        return {
            "offers": found, "row_offers": found.of_rows(self.builder.rows),
            "effect": self._effect({"action": self.row.action if self.row else ""} | given | {"dlq": dlq})
            if self.sent.get("do") not in {"look", "write"}
            else None,
            "outdated": str(self.sent.get("opened", rules.version())) != str(rules.version()),
            "last_change": partial(last_change, self.seen),
        }  # fmt: skip

    def _first_dlq(self) -> DeadLetterQueue | None:
        if self.row is not None:
            return self.row.dlq
        return self.source.letter.dlq if self.source else None

    def _effect(self, given: dict[str, Any]) -> dict[str, Any]:
        if self.builder.lacks_value:
            return {"problem": "Enter a value."}
        try:
            conditions = conditions_field.parsed(self.builder.text)
        except ValidationError as error:
            return {"problem": " ".join(error.messages)}
        if not conditions:
            return {"problem": "Add a condition to see what it matches."}
        if given["dlq"] is None and not self.seen.are_all:  # messages of other teams are not counted
            return {"problem": "Choose a dead-letter queue to see what the conditions match."}
        sees = partial(_sees_values, self.request)
        return rule_effect.draft_effect(self.row, given | {"conditions": conditions}, sees=sees)


def _there(row: Rule | None) -> str:
    name = "admin:reprocessing_rule_"
    return reverse(f"{name}change", args=[row.pk]) if row else reverse(f"{name}changelist")


def _sees_values(request: HttpRequest, dlq: int | None) -> bool:
    """Return whether this person may see all values in the messages of a DLQ, including masked values.

    `dlq`: the id of the DLQ; None: all DLQs.
    """
    if not may_see_payloads(request.user):
        return False
    return show_payload.may_reveal(request) or not viewed_content.masks_fields(dlq)


def _make_preview(form: RuleForm, *, sees: Callable[[int | None], bool]) -> Preview:
    name, fields = form.entered()
    row = rule_changes.draft_rule(name, fields)
    new = row._state.adding  # noqa: SLF001 - Django's own word for it
    if new != (form.row is None):
        raise InvalidRule(f'A rule named "{name}" exists already. Use another name, or change that rule.')
    found = rule_changes.differences(name, fields)
    changes = [change for change in found if not new or (change.after is not None and change.after != [])]
    warning = Finding(Severity.WARN, _NOT_ENABLED.format("added" if new else "saved"), _TO_ENABLE)
    findings = [] if row.enabled or not changes else [warning]
    version = form.cleaned_data["opened"]
    shown = rule_effect.effect(row, sees=sees(row.dlq_id))
    about = rule_changes.counted_messages(row, rule_changes.find_rule(name))
    return Preview(
        payload=(name, fields, version), changes=changes, findings=findings, new=new, version=version, preview=shown,
        about=about,
    )  # fmt: skip


def _write(seen: VisibleDlqs, preview: Preview, by: str, reason: str) -> Done:
    name, fields, version = preview.payload
    with transaction.atomic():
        if str(rules.lock().version) != version:
            raise InvalidRule(
                f"Somebody changed the rules after you opened this page: {last_change(seen)} Open the page again."
            )
        done = rule_changes.save_rule(name, fields, by=by, reason=reason)
    route.wake_stopped(route.RuleBook.load())
    sentence = f"{name} is {'added' if done.new else 'changed'}"
    if fields["enabled"]:
        sentence += f". {decides(fields['action'])}"
    else:
        sentence += ", not enabled: it decides nothing until you enable it."
    return Done(reverse("admin:reprocessing_rule_change", args=[done.id]), sentence)
