"""Rules to try on a workbench, and heads that are asked about."""

from __future__ import annotations

import uuid
from typing import Any

from reprocessing.models import Rule
from reprocessing.pipeline.routing import route
from reprocessing.pipeline.routing.route import Book, Turned
from reprocessing.store.ordering import lanes
from reprocessing.store.ordering.lanes import Standing
from reprocessing.store.routing import rule_changes
from tests.reprocessing.pipeline.bench import Workbench

LEASE = 8.0
BY_KEY: dict[str, Any] = {"ordering_key": "attribute:key", "tenant": "attribute:tenant"}


def rule(name: str, action: str, *conditions: str, enabled: bool = True, **fields: object) -> Rule:
    """A rule, made or changed by a person."""
    said = {"action": action, "conditions": list(conditions), "enabled": enabled, **fields}
    rule_changes.put(name, said, by="anna", reason="a test")
    return Rule.objects.get(name=name)


def leased() -> list[Standing]:
    """Every due lane, leased, with its head."""
    found = lanes.lease(uuid.uuid4().hex, limit=1_000, lease=LEASE)
    return lanes.advance(
        [one.lane_id for one in found], [one.fence for one in found], keep=True, lease=LEASE
    )  # fmt: skip


def ask(standings: list[Standing], book: Book | None = None) -> Turned:
    return route.heads(standings, book or Book.load(), lease=LEASE)


def ask_all(bench: Workbench, *bodies: str, **attributes: str) -> Turned:
    """Letters of these bodies, each a lane of its own, asked about once."""
    for one in bodies:
        bench.bury(one, **attributes)
    bench.ready()
    return ask(leased())
