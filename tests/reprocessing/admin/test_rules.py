"""A rule is enabled and disabled by a person with a reason, and never over what somebody else changed."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from pytest_django import DjangoCaptureOnCommitCallbacks

from reprocessing.domain.lifecycle import LanePhase, LetterState
from reprocessing.models import DeadLetterQueue, Review, Rule, Target, amendments, rules
from tests.reprocessing.admin.lot import dlq, person, post
from tests.reprocessing.commands.stock import add_lane, add_letter

pytestmark = pytest.mark.django_db
SWITCHES = ("view_rule", "change_rule")


def _rule(*, enabled: bool = False) -> Rule:
    said = {"action": "hold", "conditions": ["body:kind equals bad"], "enabled": enabled}
    amendments.put("bad", said, by="bob", reason="a test")
    return Rule.objects.get()


def _address(row: Rule) -> str:
    return f"/admin/reprocessing/rule/{row.pk}/change/"


def _form(client: Client, row: Rule) -> dict[str, Any]:
    bound = client.get(_address(row)).context["adminform"].form
    return {"seen": bound["seen"].value(), "why": "a bad tenant"}


def test_it_is_enabled_with_who_and_why() -> None:
    row, client = _rule(), person("ann", *SWITCHES)
    post(client, _address(row), **_form(client, row), enabled="on")
    row.refresh_from_db()
    assert (row.enabled, rules.version()) == (True, 2)
    review = Review.objects.order_by("id")[1]
    assert (review.act, review.rule, review.by, review.reason) == ("changed", row, "ann", "a bad tenant")


def test_disabling_it_wakes_what_it_held(
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    row, client = _rule(enabled=True), person("ann", *SWITCHES)
    origin = dlq()
    lane = add_lane(origin, LanePhase.HELD, why="rule bad holds it")
    add_letter(origin, LetterState.WAITING, lane=lane, rule=row, route="hold", route_version=rules.version())
    with django_capture_on_commit_callbacks(execute=True):
        post(client, _address(row), **_form(client, row))
    lane.refresh_from_db()
    assert (lane.phase, lane.why) == (LanePhase.READY, "")


def test_nothing_is_done_when_a_rule_was_changed_meanwhile_or_no_reason_is_given() -> None:
    row, client = _rule(), person("ann", *SWITCHES)
    form = _form(client, row)
    assert "This field is required" in post(client, _address(row), **form | {"why": " "}, enabled="on")
    amendments.put("bad", {"position": 5}, by="bob", reason="a test")
    assert "somebody changed the rules since" in post(client, _address(row), **form, enabled="on")
    row.refresh_from_db()
    assert (row.enabled, Review.objects.count()) == (False, 2)


def test_one_that_cannot_be_asked_is_not_enabled() -> None:
    row, client = _rule(), person("ann", *SWITCHES)
    Rule.objects.update(conditions=["body:kind resembles bad"])
    assert "is no condition" in post(client, _address(row), **_form(client, row), enabled="on")
    row.refresh_from_db()
    assert row.enabled is False


def test_one_whose_queue_is_watched_by_now_is_not_enabled() -> None:
    row, client = _rule(), person("ann", *SWITCHES)
    arn, url = "arn:aws:sqs:eu-west-1:0:own", "http://127.0.0.1:9/0/own"
    target = Target.objects.create(arn=arn, url=url, region="eu-west-1")
    Rule.objects.update(action="divert", target=target)
    DeadLetterQueue.objects.create(name="own", arn=arn, url=url, region="eu-west-1")
    assert "own is watched, as own" in post(client, _address(row), **_form(client, row), enabled="on")
    row.refresh_from_db()
    assert row.enabled is False


def test_whoever_may_only_look_switches_nothing() -> None:
    row, client = _rule(), person("eve", "view_rule")
    assert client.get(_address(row)).status_code == 200
    client.handler.enforce_csrf_checks = False
    assert client.post(_address(row), {"why": "x", "seen": "1", "enabled": "on"}).status_code == 403
