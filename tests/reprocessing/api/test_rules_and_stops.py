"""Rules are enabled and disabled; a DLQ and everything is stopped and resumed."""

from __future__ import annotations

import pytest

from reprocessing.models import AuditEntry, GlobalStop, ManagedObject, Rule
from reprocessing.store.routing import rule_changes
from tests.reprocessing.admin.parking_lot.parked_messages import dlq
from tests.reprocessing.api.callers import problem, program, told

pytestmark = pytest.mark.django_db


def test_a_rule_is_enabled_and_disabled() -> None:
    caller = program()
    rule_changes.save_rule("hold-acme", {"action": "hold", "conditions": ["tenant equals acme"]}, by="ann", reason="x")
    looked = told(caller.post("/rules/hold-acme/enable"))
    assert (looked["says"], looked["rule"]["enabled"]) == (["hold-acme would be enabled."], False)
    done = told(caller.post("/rules/hold-acme/enable", confirm=True))
    assert (done["changed"], done["rule"]["enabled"], Rule.objects.get().enabled) == (True, True, True)
    assert told(caller.post("/rules/hold-acme/enable", confirm=True))["changed"] is False
    assert told(caller.post("/rules/hold-acme/disable", confirm=True))["rule"]["enabled"] is False
    entries = AuditEntry.objects.filter(rule__name="hold-acme", act="changed").values_list("by", flat=True)
    assert list(entries) == [f"owner of {caller.name}, API token {caller.name}"] * 2
    (listed,) = told(caller.get("/rules"))["items"]
    assert (listed["name"], listed["conditions"]) == ("hold-acme", ["tenant equals acme"])


def test_a_rule_that_a_file_manages_is_changed_there() -> None:
    caller = program()
    rule_changes.save_rule("hold-acme", {"action": "hold", "conditions": []}, by="ann", reason="x")
    ManagedObject.objects.create(kind="rules", name="hold-acme", written={}, applied_by="ann")
    assert "A configuration file manages hold-acme" in problem(
        caller.post("/rules/hold-acme/enable", confirm=True), 409
    )
    assert not Rule.objects.get().enabled


def test_a_dlq_is_stopped_and_resumed() -> None:
    caller = program()
    dlq("orders")
    assert told(caller.post("/dlqs/orders/stop"))["says"] == [
        "orders would be stopped: nothing is sent until it is resumed."
    ]
    stop = told(caller.post("/dlqs/orders/stop", confirm=True, reason="consumer is down"))
    assert (stop["changed"], stop["stopped"]["reason"]) == (True, "consumer is down")
    assert told(caller.post("/dlqs/orders/stop", confirm=True))["changed"] is False
    assert told(caller.get("/dlqs"))["items"][0]["stopped"]["reason"] == "consumer is down"
    told(caller.post("/stop", confirm=True, reason="INC-7"))
    resumed = told(caller.post("/dlqs/orders/resume", confirm=True))
    assert (resumed["changed"], resumed["stopped"]) == (True, None)
    assert resumed["says"][1].endswith('("INC-7").')
    assert told(caller.post("/resume", confirm=True))["changed"] is True
    assert told(caller.post("/resume", confirm=True))["says"] == ["Everything is not stopped."]


def test_a_hold_after_a_restore_is_not_lifted() -> None:
    caller = program()
    GlobalStop.objects.create(id=2, by="the service", reason="restored", restored_to="2026-01-01T00:00:00Z")
    assert "after_restore" in problem(caller.post("/resume", confirm=True), 409)
    assert GlobalStop.objects.count() == 1
