"""Rules to try on a workbench, and heads that are asked about."""

from __future__ import annotations

import uuid
from typing import Any

from reprocessing.models import Rule
from reprocessing.pipeline.routing import route
from reprocessing.pipeline.routing.route import RoutedLanes, RuleBook
from reprocessing.store.ordering import lane_state, lanes
from reprocessing.store.ordering.lane_state import LaneState
from reprocessing.store.routing import rule_changes
from tests.reprocessing.pipeline.bench import Workbench

LEASE = 8.0
BY_KEY: dict[str, Any] = {"ordering_key": "attribute:key", "tenant": "attribute:tenant"}


def rule(name: str, action: str, *conditions: str, enabled: bool = True, **fields: object) -> Rule:
    said = {"action": action, "conditions": list(conditions), "enabled": enabled, **fields}
    rule_changes.save_rule(name, said, by="anna", reason="a test")
    return Rule.objects.get(name=name)


def disable(row: Rule, *, wake: bool = False) -> None:
    rule_changes.set_enabled(row.pk, enabled=False, by="anna", reason="a test")
    if wake:
        route.wake_stopped(RuleBook.load())


def change_the_rules() -> None:
    """Begin a new version of the rulebook, by a rule that matches nothing."""
    rule("other", "discard", "body:kind equals never", position=1)


def leased() -> list[LaneState]:
    found = lanes.lease(uuid.uuid4().hex, limit=1_000, lease=LEASE)
    return lane_state.advance([lane.lane_id for lane in found], [lane.fence for lane in found], keep=True, lease=LEASE)


def ask(lane_states: list[LaneState], book: RuleBook | None = None) -> RoutedLanes:
    return route.route_heads(lane_states, book or RuleBook.load(), lease=LEASE)


def ask_all(bench: Workbench, *bodies: str, **attributes: str) -> RoutedLanes:
    """Enqueue letters, each on its own lane, and ask the rules about them."""
    bench.enqueue(*bodies, **attributes)
    return ask(leased())
