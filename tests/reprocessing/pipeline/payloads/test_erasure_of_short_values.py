"""Erasures of values of fewer than 4 characters: equal texts that are something else stay."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

import pytest

from reprocessing.domain.parking_lot.message_filter import MessageFilter
from reprocessing.models import (
    ApiCall,
    ApiToken,
    AuditEntry,
    BulkAction,
    BulkActionKind,
    DeadLetterQueue,
    Letter,
    Run,
)
from reprocessing.pipeline.payloads import erase
from reprocessing.store.ordering import lanes
from reprocessing.store.parking_lot import bulk_actions
from reprocessing.store.search import stored_filters
from tests.reprocessing.pipeline.bench import KEYED, Workbench

pytestmark = pytest.mark.django_db(transaction=True)

FIELDS = {**KEYED, "idempotency_key": "attribute:key"}


def _erase(criteria: MessageFilter) -> erase.Erased:
    return erase.erase(criteria, by="eva", reason="request 17", on_progress=lambda _: None)


def test_a_short_key_is_erased_where_it_is_a_whole_value_and_longer_texts_stay() -> None:
    bench = Workbench(fields=FIELDS)
    bench.bury("1", key="42", n="1")
    bench.bury("2", key="421", n="1")
    bench.capture()
    entry = AuditEntry.objects.create(
        act="noted",
        dlq=bench.dlq,
        by="eva",
        reason="42",
        after={
            "key": "42",
            "letters": 42,
            "of": ["42"],
            "idempotency_key": "42",
            "filter": {"fields": "order:42\norder:421\na:b:42", "key": "42", "text": "42"},
        },
    )
    Run.objects.create(name="r42", dlq=bench.dlq, asked_by="a", selection={"key": "42", "message_ids": ["42"]})
    token = ApiToken.objects.create(name="ci", token_hash=b"x", scopes=["messages:read"], added_by="ann")
    for key, answer in (("k1", {"key": "42"}), ("k2", {"key": "421", "messages": 42}), ("k3", {"42": "other"})):
        ApiCall.objects.create(
            token=token, key=key, request_hash=b"x", status=200, answer=json.dumps(answer).encode(),
            made_at=lanes.database_now(),
        )  # fmt: skip
    assert erase.count_erasable(MessageFilter(states=(), key="42")).history == {"audit_entry": 1, "run": 1}
    done = _erase(MessageFilter(states=(), key="42"))
    entry.refresh_from_db()
    erased = {"fields": "order:42\norder:421\na:b:42", "key": "[erased]", "text": "[erased]"}
    others = {"letters": 42, "of": ["42"], "idempotency_key": "42"}
    assert entry.after == {"key": "[erased]", "filter": erased, **others}
    assert (entry.reason, Run.objects.get(name="r42").selection) == ("42", {"key": "[erased]", "message_ids": ["42"]})
    assert (done.counts["messages"], set(ApiCall.objects.values_list("key", flat=True))) == (1, {"k2", "k3"})
    assert [Letter.objects.filter(ordering_key=key).count() for key in ("42", "421")] == [0, 1]
    certificate = AuditEntry.objects.get(act="erased", letter=None)
    assert certificate.after["texts"] == "not searched, because the value is short"


def test_a_short_value_of_a_field_is_erased_only_from_conditions_on_this_field() -> None:
    bench = Workbench(fields=FIELDS)
    DeadLetterQueue.objects.filter(pk=bench.dlq.pk).update(search_fields=["shop=body:shop.id", "qty=body:qty"])
    of_others = {"key": "7", "ordering_key": "7", "idempotency_key": "7", "named": "7", "text": "7", "value": "7"}
    after = {
        **of_others, "fields": "shop:7\nqty:7\nshop:71", "at": [{"selector": "body:shop.id", "value": "7"}],
        "qty": {"selector": "body:qty", "value": "7"},
    }  # fmt: skip
    entry = AuditEntry.objects.create(act="noted", dlq=bench.dlq, by="eva", reason="7", after=after)
    token = ApiToken.objects.create(name="ci", token_hash=b"x", scopes=["messages:read"], added_by="ann")
    ApiCall.objects.create(
        token=token, key="k", request_hash=b"x", status=200, answer=b'{"key": "7"}', made_at=lanes.database_now()
    )
    _erase(MessageFilter(states=(), fields=("shop:7",)))
    entry.refresh_from_db()
    assert entry.after == after | {
        "fields": "shop:[erased]\nqty:7\nshop:71", "at": [{"selector": "body:shop.id", "value": "[erased]"}],
    }  # fmt: skip
    assert ApiCall.objects.count() == 1


BY_KEY, BY_FIELD = MessageFilter(states=(), key="42"), MessageFilter(states=(), fields=("order:42",))
OF_BODY = {"selector": "body:order.id", "value": "42"}


@pytest.mark.parametrize("is_encrypted", [False, True], ids=["readable", "encrypted"])
@pytest.mark.parametrize(
    ("wanted", "typed", "left"),
    [(BY_KEY, {"named": "42"}, {"named": "[erased]"}), (BY_KEY, {"text": "42"}, {"text": "[erased]"}),
     (BY_KEY, {"text": "a 42"}, {"text": "a 42"}), (BY_KEY, {"fields": ("order:42",)}, {"fields": ("order:42",)}),
     (BY_KEY, {"selector": "attribute:key", "value": "42"}, {"value": "[erased]"}),
     (BY_FIELD, {"fields": ("order:42", "qty:42")}, {"fields": ("order:[erased]", "qty:42")}),
     (BY_FIELD, {"text": "42", "named": "42"}, {"text": "42", "named": "42"}),
     (BY_FIELD, OF_BODY, {"value": "[erased]"}),
     (BY_FIELD, OF_BODY | {"selector": "body:qty"}, {"value": "42"})],
    ids=["key", "text", "part", "key in a field", "key in a body", "field", "field in texts",
         "field in a body", "other place"],
)  # fmt: skip
def test_a_short_value_is_erased_from_filters_of_bulk_actions_where_it_is_known_to_be_it(
    request: pytest.FixtureRequest, is_encrypted: bool, wanted: MessageFilter, typed: dict[str, Any],
    left: dict[str, Any],
) -> None:  # fmt: skip
    if is_encrypted:
        request.getfixturevalue("encrypted")
    bench = Workbench(fields=FIELDS)
    DeadLetterQueue.objects.filter(pk=bench.dlq.pk).update(search_fields=["order=body:order.id", "qty=body:qty"])
    criteria = MessageFilter(states=("parked",), dlq=bench.dlq.pk, **typed)
    bulk_actions.create(uuid4(), BulkActionKind.NOTE, criteria, {}, by="ann", reason="looked at")
    _erase(wanted)
    found = stored_filters.read_filter(BulkAction.objects.get().filter)
    assert {name: getattr(found, name) for name in left} == left
