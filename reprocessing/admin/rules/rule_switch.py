"""Enabling a rule, and disabling it: with a reason, and only while all rules are as they were seen."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from functools import partial
from typing import Any

from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse

from reprocessing.admin.rules import rule_form
from reprocessing.admin.site import confirmed_action
from reprocessing.admin.site.confirmed_action import Done, NotDone, Question
from reprocessing.domain.errors import RuleIsUnclear
from reprocessing.models import Rule
from reprocessing.pipeline.routing import route
from reprocessing.store.routing import rule_changes, rules


class Switch(StrEnum):
    """What can be done, by the last part of its address."""

    ENABLE = "enable"
    DISABLE = "disable"


def page(request: HttpRequest, rule: int, to: Switch) -> HttpResponse:
    """Asked for, the page that asks why; sent back with a reason, the deed."""
    return confirmed_action.page(
        request,
        permission=rule_form.CHANGE,
        question=partial(_question, rule, to),
        act=partial(_act, rule, to),
    )


def _found(key: int) -> Rule:
    row = Rule.objects.filter(pk=key).first()
    if row is None:
        raise Http404
    return row


def _question(key: int, to: Switch) -> Question:
    row, enables = _found(key), to is Switch.ENABLE
    says = (
        "It decides about every letter whose turn it is, where no rule before it does."
        if enables
        else "It decides nothing more. What it held or delayed is asked about anew; what it quarantined stays parked."
    )
    return Question(
        title=f"{to.value.capitalize()} {row.name}",
        button=f"{to.value.capitalize()} it",
        says=(says,),
        seen=str(rules.version()),
        back=reverse("admin:reprocessing_rule_change", args=[key]),
        about=row.name,
        facts=(("It has decided about", f"{row.hits:,} letter{'' if row.hits == 1 else 's'}"), ("It does", row.action)),
        idle=f"It is {to.value}d already." if row.enabled == enables else "",
    )


def _act(key: int, to: Switch, given: Mapping[str, Any], by: str) -> Done | NotDone:
    row = _found(key)
    try:
        with transaction.atomic():
            if str(rules.lock().version) != given["seen"]:
                return NotDone(f"Somebody changed the rules since you looked: {rule_form.last()}")
            rule_changes.switch(key, enabled=to is Switch.ENABLE, by=by, reason=given["reason"])
    except RuleIsUnclear as error:
        return NotDone(str(error))
    route.wake(route.Book.load())
    there = reverse("admin:reprocessing_rule_change", args=[key])
    return Done(there, f"{row.name} is {to.value}d.")
