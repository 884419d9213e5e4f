"""A rule is enabled and disabled with a reason, and only if no rule changed meanwhile."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from reprocessing.domain.lifecycle import LanePhase, LetterState
from reprocessing.models import AuditEntry, DeadLetterQueue, Rule, Target
from reprocessing.store.routing import rule_changes, rules
from tests.reprocessing.admin.parking_lot.parked_messages import dlq, person, post
from tests.reprocessing.commands.stock import add_lane, add_letter

pytestmark = pytest.mark.django_db
SWITCHES = ("view_rule", "change_rule")


def _rule(*, enabled: bool = False) -> Rule:
    said = {"action": "hold", "conditions": ["body:kind equals bad"], "enabled": enabled}
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


def test_disabling_releases_held_key_queues() -> None:
    row, client = _rule(enabled=True), person("ann", *SWITCHES)
    source = dlq()
    lane = add_lane(source, LanePhase.HELD, why="rule bad holds it")
    add_letter(source, LetterState.WAITING, lane=lane, rule=row, route="hold", rulebook_version=rules.version())
    page = f"/admin/reprocessing/rule/{row.pk}/change/"
    assert _address(row, "disable") in client.get(page).content.decode()
    post(client, _address(row, "disable"), **{**_form(client, row), "seen": rules.version()})
    lane.refresh_from_db()
    assert (lane.phase, lane.why) == (LanePhase.READY, "")


def test_changed_rules_or_a_missing_reason_prevent_it() -> None:
    row, client = _rule(), person("ann", *SWITCHES)
    form = _form(client, row)
    assert "This field is required" in post(client, _address(row), **form | {"reason": " "})
    rule_changes.save_rule("bad", {"position": 5}, by="bob", reason="a test")
    page = post(client, _address(row), **form)
    assert "Somebody changed the rules after you opened this page: bob (&quot;a test&quot;)." in page
    row.refresh_from_db()
    assert (row.enabled, AuditEntry.objects.count()) == (False, 2)


def test_invalid_rule_is_not_enabled() -> None:
    row, client = _rule(), person("ann", *SWITCHES)
    Rule.objects.update(conditions=["body:kind resembles bad"])
    page = post(client, _address(row), **_form(client, row))
    assert "Nothing was done." in page
    assert "is not a condition" in page
    row.refresh_from_db()
    assert row.enabled is False


def test_rule_with_a_watched_target_is_not_enabled() -> None:
    row, client = _rule(), person("ann", *SWITCHES)
    arn, url = "arn:aws:sqs:eu-west-1:0:own", "http://127.0.0.1:9/0/own"
    target = Target.objects.create(arn=arn, url=url, region="eu-west-1")
    Rule.objects.update(action="divert", target=target)
    DeadLetterQueue.objects.create(name="own", arn=arn, url=url, region="eu-west-1")
    assert "own is watched, as own" in post(client, _address(row), **_form(client, row))
    row.refresh_from_db()
    assert row.enabled is False


def test_disabled_rule_says_so() -> None:
    row, client = _rule(), person("ann", *SWITCHES)
    assert "The rule is disabled already." in client.get(_address(row, "disable")).content.decode()
