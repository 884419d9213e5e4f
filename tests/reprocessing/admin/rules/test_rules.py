"""A rule is enabled and disabled with a reason, and only if no rule changed meanwhile."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from reprocessing.models import AuditEntry, Letter, Rule, Target
from reprocessing.store.routing import rule_changes, rules
from tests.reprocessing.admin.parking_lot.parked_messages import LOOKS, dlq, parked, person, post

pytestmark = pytest.mark.django_db
SWITCHES = ("view_rule", "change_rule")


def _rule() -> Rule:
    said = {"action": "hold", "conditions": ["body:kind equals bad"], "enabled": False}
    rule_changes.save_rule("bad", said, by="bob", reason="a test")
    return Rule.objects.get()


def _address(row: Rule, to: str = "enable") -> str:
    return f"/admin/reprocessing/rule/{row.pk}/{to}"


def _form(client: Client, row: Rule) -> dict[str, Any]:
    return {"seen": client.get(_address(row)).context["form"]["seen"].value(), "reason": "a bad tenant"}


def test_enabling_is_recorded_with_user_and_reason() -> None:
    row, client = _rule(), person("ann", *SWITCHES)
    assert "bad is enabled." in post(client, _address(row), **_form(client, row)).lower()
    row.refresh_from_db()
    assert (row.enabled, rules.version()) == (True, 2)
    review = AuditEntry.objects.order_by("id")[1]
    assert (review.act, review.rule, review.by, review.reason) == ("changed", row, "ann", "a bad tenant")


def test_changed_rules_or_a_missing_reason_prevent_it() -> None:
    row, client = _rule(), person("ann", *SWITCHES)
    form = _form(client, row)
    assert "This field is required" in post(client, _address(row), **form | {"reason": " "})
    rule_changes.save_rule("bad", {"position": 5}, by="bob", reason="a test")
    page = post(client, _address(row), **form)
    assert "Somebody changed the rules after you opened this page: bob (&quot;a test&quot;)." in page
    row.refresh_from_db()
    assert (row.enabled, AuditEntry.objects.count()) == (False, 2)


def test_a_message_of_a_removed_rule_says_so() -> None:
    row, letter, client = _rule(), parked(dlq(), reason="quarantined"), person("ann", *LOOKS, *SWITCHES, "delete_rule")
    Letter.objects.update(rule=row, route="quarantine")
    page = f"/admin/reprocessing/letter/{letter.pk}/change/"
    assert "the rule <a" in client.get(page).content.decode()
    assert "bad is removed." in post(client, _address(row, "remove"), **_form(client, row))
    assert "quarantine, by a removed rule" in client.get(page).content.decode()
    assert client.get("/admin/reprocessing/parkedletter/").status_code == 200


def _is_invalid() -> None:
    Rule.objects.update(conditions=["body:kind resembles bad"])


def _has_a_watched_target() -> None:
    watched = dlq("own").dlq
    Rule.objects.update(action="divert", target=Target.objects.create(arn=watched.arn, url=watched.url, region="x"))


@pytest.mark.parametrize(
    ("happens", "why"), [(_is_invalid, "is not a condition"), (_has_a_watched_target, "own is watched, as own")]
)
def test_rule_is_not_enabled_if_it(happens: Callable[[], None], why: str) -> None:
    row, client = _rule(), person("ann", *SWITCHES)
    happens()
    page = post(client, _address(row), **_form(client, row))
    assert "Nothing was done." in page
    assert why in page
    row.refresh_from_db()
    assert row.enabled is False


@pytest.mark.parametrize(("action", "again"), [("hold", False), ("quarantine", True)])
def test_a_quarantine_says_that_a_released_message_is_not_quarantined_again(action: str, again: bool) -> None:
    row, client = _rule(), person("ann", *SWITCHES)
    Rule.objects.update(action=action)
    page = client.get(_address(row)).content.decode()
    assert "It decides about each message before the message is sent." in page
    assert ("releases a message that the rule quarantined, the rule does not quarantine it again" in page) is again


def test_the_page_and_the_list_show_a_rule_in_words() -> None:
    said = {"action": "hold", "conditions": ["tenant equals acme", "type exists"], "enabled": True}
    rule_changes.save_rule("first", said, by="bob", reason="a test")
    client, row = person("ann", *SWITCHES), Rule.objects.get()
    page = client.get(f"/admin/reprocessing/rule/{row.pk}/change/").content.decode()
    assert re.findall(r'<div class="readonly">(.*?)</div>', page)[3:5] == [
        "all DLQs", "tenant equals acme and type exists",
    ]  # fmt: skip
    source = dlq("orders")
    listed = client.get("/admin/reprocessing/rule/?dlq__isnull=True").content.decode()
    assert re.findall(r'<li class="selected">\s*<a href="[?]dlq__isnull=True">([^<]*)<', listed)[-1] == "all DLQs"
    Rule.objects.update(
        dlq=source.dlq, action="divert", conditions=[], target=source.target, error_count=2, last_error="too long"
    )
    page = client.get(f"/admin/reprocessing/rule/{row.pk}/change/").content.decode()
    assert re.findall(r'<div class="readonly">(.*?)</div>', page)[3:5] == [
        "orders", "none: the rule matches every message",
    ]  # fmt: skip
    listed = client.get("/admin/reprocessing/rule/").content.decode()
    cells = dict(re.findall(r'<td class="field-(\w+)[^"]*">(.*?)</td>', listed))
    assert (cells["applies_to"], cells["does"], cells["problem"]) == (
        "orders", f"divert to {source.target}", "2 errors: too long",
    )  # fmt: skip


def test_disabled_rule_says_so() -> None:
    row, client = _rule(), person("ann", *SWITCHES)
    assert "The rule is disabled already." in client.get(_address(row, "disable")).content.decode()
