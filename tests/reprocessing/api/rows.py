"""Rows that the API shows: a DLQ with messages in several states, a run, a rule, a bulk action."""

from __future__ import annotations

from uuid import uuid4

from reprocessing.domain.parking_lot.message_filter import MessageFilter
from reprocessing.models import BulkActionKind, Letter, Run, Wave
from reprocessing.store.ordering.lanes import database_now
from reprocessing.store.parking_lot import bulk_actions
from reprocessing.store.routing import rule_changes
from tests.reprocessing.admin.parking_lot.parked_messages import dlq, failure_group, parked


def one_of_everything(name: str = "orders") -> Letter:
    """One of each thing that has an address, with predictable names; return a parked message."""
    source = dlq(name)
    letter = parked(source, key="key-1", body=b'{"card": "4111"}')
    letter.group = failure_group(source)
    letter.save()
    for state, more in (
        ("discarded", {"finished_at": database_now(), "reason": ""}), ("captured", {"finished_at": None, "reason": ""}),
    ):  # fmt: skip
        other = parked(source, key=f"key-{state}")
        Letter.objects.filter(pk=other.pk).update(state=state, **more)
    run = Run.objects.create(
        name=f"run-of-{name}", dlq=source.dlq, selection={}, asked_by="ann", reason="a test", selected=0
    )
    Wave.objects.create(run=run, no=1, size=1)
    fields = {"action": "hold", "conditions": [], "dlq": source.dlq}
    rule_changes.save_rule(f"rule-of-{name}", fields, by="ann", reason="a test")
    bulk_actions.create(uuid4(), BulkActionKind.NOTE, MessageFilter(dlq=source.dlq_id), {}, by="ann", reason="a test")
    return letter
