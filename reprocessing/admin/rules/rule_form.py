"""Making, changing and removing a rule: what it would do to letters is shown before it is written."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import partial
from typing import Any, Final

from django import forms
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.urls import reverse

from reprocessing.admin.messages.message_page import may_see_payloads
from reprocessing.admin.rules import conditions_field, rule_draft
from reprocessing.admin.rules.rule_draft import Origin
from reprocessing.admin.site import confirmed_action, examined_form
from reprocessing.admin.site.confirmed_action import Done, NotDone, Question
from reprocessing.admin.site.examined_form import Asked, Look, Sheet
from reprocessing.admin.site.fields import choice, moment, number, slug, text
from reprocessing.domain.errors import RuleIsUnclear
from reprocessing.domain.routing.first_match import Action
from reprocessing.models import DeadLetterQueue, RateClass, Review, Rule
from reprocessing.models.dlq import Jitter
from reprocessing.models.target import FORTNIGHT
from reprocessing.pipeline.dlqs import examine
from reprocessing.pipeline.routing import preview, route
from reprocessing.pipeline.routing.preview import Share
from reprocessing.store.ordering import lanes
from reprocessing.store.routing import rule_changes, rules

ADD, CHANGE, DELETE = "reprocessing.add_rule", "reprocessing.change_rule", "reprocessing.delete_rule"
#: Letters that a preview at the desk asks about; manage.py test_rules asks about all.
MOST: Final = 20_000
#: Seconds that it asks them: conditions may take long, each letter some tenths of a second at the most.
_PATIENCE: Final = 1.0
_DAYS: Final = 7
_WORDS: Final = {
    Action.REPLAY: "replay: as usual, or with what is said below instead",
    Action.DELAY: "delay: replayed after a rest",
    Action.DIVERT: "divert: sent to another target",
    Action.QUARANTINE: "quarantine: parked for a person",
    Action.DISCARD: "discard: given up",
    Action.HOLD: "hold: kept where it is, until the rule says otherwise",
}


class RuleSheet(Sheet):
    """What a rule says."""

    sections = (
        ("Which letters", ("name", "dlq", "conditions", "position")),
        ("What becomes of them", ("action", "delay", "target", "enabled")),
        ("(Pace and rests)", ("rate_class", "backoff_base", "backoff_cap", "backoff_jitter")),
        ("(When it holds)", ("valid_from", "valid_until")),
    )

    name = slug("A name of your own: letters, digits, - and _.")
    dlq = forms.ModelChoiceField(
        DeadLetterQueue.objects.order_by("name"), required=False, label="Letters of", empty_label="every dlq"
    )
    conditions = conditions_field.ConditionsField(
        max_length=200_000, label="Conditions", help_text=conditions_field.HELP, initial="[]",
        widget=forms.Textarea(attrs={"rows": 6, "class": "code", "spellcheck": "false"}),
    )  # fmt: skip
    position = forms.IntegerField(
        min_value=0, max_value=2**31 - 1, initial=100, label="Position",
        help_text="Lower ones are asked first; the first whose conditions all hold decides.",
    )  # fmt: skip
    action = forms.ChoiceField(label="Then", choices=[(one.value, words) for one, words in _WORDS.items()])
    delay = number("Delayed by so many seconds", least=0.001, most=FORTNIGHT)
    target = text("To", "A target that is known, or a queue's URL or ARN; to replay or divert.")
    enabled = forms.BooleanField(required=False, label="It decides at once", help_text="Else it decides nothing yet.")
    rate_class = forms.ModelChoiceField(
        RateClass.objects.order_by("name"), required=False, label="Rate class", empty_label="none"
    )
    backoff_base = number("First rest after a failure, seconds", "Empty: as the dlq says.", least=0, most=FORTNIGHT)
    backoff_cap = number("Longest rest, seconds", "All three, or none.", least=0, most=FORTNIGHT)
    backoff_jitter = choice("How the rest is spread", Jitter.choices, empty="as the dlq says")
    valid_from = moment("From (UTC)")
    valid_until = moment("Until (UTC)")

    def __init__(self, data: QueryDict | None, row: Rule | None, begin: Mapping[str, Any]) -> None:
        self.row = row
        super().__init__(data, initial={"opened": str(rules.version()), **(_stands(row) if row else {}), **begin})
        if row:
            del self.fields["name"]

    def clean(self) -> dict[str, Any]:
        """Refused when somebody changed the rules since the sheet was opened."""
        given = super().clean() or self.cleaned_data
        if given.get("opened") != str(rules.version()):
            raise forms.ValidationError(
                f"Somebody changed the rules since you opened this page: {last()} Open it again."
            )
        return given

    def said(self) -> tuple[str, dict[str, Any]]:
        """The rule's name, and what is said of it, by the names of its columns.

        Raises:
            TargetIsUnclear: what letters are to go to is none, or could be several.
            QueueIsOutOfReach: it is a queue, and could not be asked.
        """
        given = self.cleaned_data
        found = {one: given[one] for one in rule_changes.FIELDS if one != "target"}
        to = given["target"]
        found["target"] = (examine.known(to) or examine.queue(to)) if to else None
        found["backoff_jitter"] = given["backoff_jitter"] or None
        if found["backoff_base"] is not None and found["backoff_cap"] is not None and not found["backoff_jitter"]:
            found["backoff_jitter"] = Jitter.FULL.value
        return self.row.name if self.row else given["name"], found


def page(request: HttpRequest, rule: int | None = None) -> HttpResponse:
    """The sheet of a new rule, or of one that was made."""
    row = Rule.objects.select_related("dlq", "target", "rate_class").filter(pk=rule).first() if rule else None
    if rule and row is None:
        raise Http404
    origin = rule_draft.origin(request) if row is None else None
    begin = origin.begin() if origin else {}
    asks = request.POST if request.method == "POST" else {}
    filled = "example" in asks or (origin is not None and asks.get("do") == "fill")
    asked = Asked(
        permission=CHANGE if row else ADD,
        title=f"Change {row.name}" if row else "Make a rule",
        intro=f"It is shown what it would do to the letters of the last {_DAYS} days before anything is written.",
        button="Change it" if row else "Make it",
        back=_there(row),
        about=row.name if row else "Rules",
        make=lambda data: RuleSheet(None if filled else data, row, begin),
        look=partial(_look, sees=may_see_payloads(request.user)),
        write=_write,
        preview="reprocessing/admin/rule_preview.html",
        extra={"origin": origin, "examples": conditions_field.EXAMPLES, "may_fill": may_see_payloads(request.user)},
    )
    if filled:
        begin |= _filled(request, asked.permission, origin)
        return examined_form.show(request, asked)
    return examined_form.page(request, asked)


def _filled(request: HttpRequest, permission: str, origin: Origin | None) -> dict[str, Any]:
    """The sheet as it was sent, with the example that was taken over, or the conditions that were ticked."""
    values = "values" in request.POST
    if not request.user.has_perm(permission) or (values and not request.user.has_perm("reprocessing.view_payload")):
        raise PermissionDenied
    sent = {name: request.POST[name] for name in RuleSheet.base_fields if name in request.POST}
    said = sent.get("conditions", "[]")
    if "example" in request.POST:
        said = conditions_field.with_example(said, request.POST["example"])
    elif origin is not None:
        ticked = request.POST.getlist("add")
        said = rule_draft.added(origin, said, ticked, values=values, by=request.user.get_username())
    return sent | {"conditions": said, "enabled": "enabled" in request.POST}


def removal(request: HttpRequest, rule: int) -> HttpResponse:
    """The page that asks why a rule is removed."""
    return confirmed_action.page(
        request, permission=DELETE, question=partial(_question, rule), act=partial(_remove, rule)
    )


def _there(row: Rule | None) -> str:
    name = "admin:reprocessing_rule_"
    return reverse(f"{name}change", args=[row.pk]) if row else reverse(f"{name}changelist")


def _look(form: RuleSheet, *, sees: bool) -> Look:
    name, fields = form.said()
    row = rule_changes.drafted(name, fields)
    new = row._state.adding  # noqa: SLF001 - Django's own word for it
    if new != (form.row is None):
        raise RuleIsUnclear(f'A rule is named "{name}" already. Give this one another name, or change that one.')
    changes = [one for one in rule_changes.differences(name, fields) if not new or one.after not in (None, [], False)]
    version = form.cleaned_data["opened"]
    shown = _preview(row, sees=sees)
    return Look(payload=(name, fields, version), changes=changes, new=new, version=version, preview=shown)


def _preview(row: Rule, *, sees: bool) -> dict[str, Any]:
    """What it would do; which letters hold what is not told to those who may not see payloads."""
    mine = rules.bound(row)
    closed = [] if sees else [str(one) for one in mine.rule.conditions if one.reads_values]
    if closed:
        return {"closed": closed}
    others = [one for one in rules.in_force().rules if one.rule.id != mine.rule.id]
    since = lanes.clock() - timedelta(days=_DAYS)
    found = preview.letters(
        [*others, mine], since=since, dlq=row.dlq_id, focus=mine.rule.id, most=MOST, stop=_impatient()
    )
    return {"found": found, "shares": list(map(_share, found.shares)), "days": _DAYS, "enabled": row.enabled}


def _impatient() -> Callable[[], bool]:
    """Whether a person has waited long enough."""
    until = time.monotonic() + _PATIENCE
    return lambda: time.monotonic() >= until


def _share(one: Share) -> dict[str, Any]:
    """A share with its counts as a template reads them: of a Counter it would ask how many `items` there are."""
    counts = {"acting": one.would_act_on, "before": one.matched_before, "taken": one.taken_first}
    return {"is": one, **{name: sorted(counted.items()) for name, counted in counts.items()}}


def _write(look: Look, by: str, reason: str) -> Done:
    name, fields, seen = look.payload
    with transaction.atomic():
        if str(rules.lock().version) != seen:
            raise RuleIsUnclear(f"Somebody changed the rules since you looked: {last()} Open this page again.")
        done = rule_changes.put(name, fields, by=by, reason=reason)
    route.wake(route.Book.load())
    word = "made" if done.new else "changed"
    holds = "It decides about every letter whose turn it is." if fields["enabled"] else "It decides nothing yet."
    return Done(reverse("admin:reprocessing_rule_change", args=[done.id]), f"{name} is {word}. {holds}")


def _question(key: int) -> Question:
    row = Rule.objects.filter(pk=key).first()
    if row is None:
        raise Http404
    return Question(
        title=f"Remove {row.name}",
        button="Remove it",
        says=(
            "It decides nothing more. What it held or delayed is asked about anew; what it quarantined stays parked.",
        ),
        seen=str(rules.version()),
        back=_there(row),
        about=row.name,
        facts=(("It has decided about", f"{row.hits:,} letter{'' if row.hits == 1 else 's'}"), ("It does", row.action)),
    )


def _remove(key: int, given: Mapping[str, Any], by: str) -> Done | NotDone:
    with transaction.atomic():
        if str(rules.lock().version) != given["seen"]:
            return NotDone(f"Somebody changed the rules since you looked: {last()}")
        name = Rule.objects.values_list("name", flat=True).get(pk=key)
        rule_changes.remove(key, by=by, reason=given["reason"])
    route.wake(route.Book.load())
    rule_changes.erase(key)
    return Done(_there(None), f"{name} is removed.")


def _stands(row: Rule) -> dict[str, Any]:
    found = {one: getattr(row, one) for one in rule_changes.FIELDS}
    return {**found, "conditions": rule_draft.written(row.conditions), "target": row.target.arn if row.target else ""}


def last() -> str:
    """Who did something to a rule last."""
    last = Review.objects.filter(before__has_key="rule").order_by("-pk").first()
    return f'{last.by} ("{last.reason}").' if last else "nobody knows who."
