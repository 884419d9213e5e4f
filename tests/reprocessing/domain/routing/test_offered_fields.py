"""Fields and values of messages are offered as conditions that match these messages."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reprocessing.domain.message.envelope import Attribute
from reprocessing.domain.message.identity import LetterFacts, Selector
from reprocessing.domain.payloads.masking import MASK
from reprocessing.domain.routing import offered_fields
from reprocessing.domain.routing.conditions import Condition
from reprocessing.domain.routing.message_fields import BODY_LIMIT, MessageFields
from reprocessing.domain.routing.offered_fields import FIELDS, OfferedFields


def message(body: bytes, **attributes: str) -> MessageFields:
    named = {name: Attribute("String", value) for name, value in attributes.items()}
    facts = LetterFacts("m-1", body, named, {})
    return MessageFields(facts, "orders", "arn:aws:sqs:eu-west-1:0:shop", Selector.parse("attribute:kind"))


def found(*bodies: Any, values: bool = True) -> OfferedFields:  # noqa: ANN401  JSON values
    return offered_fields.offered_fields([message(json.dumps(body).encode()) for body in bodies], values=values)


def names(offered: OfferedFields) -> list[str]:
    return [field.name for field in offered.fields]


def values(offered: OfferedFields, name: str) -> list[tuple[str, str, int]]:
    (field,) = [field for field in offered.fields if field.name == name]
    return [(value.text, value.types, value.count) for value in field.values]


def test_values_of_all_json_types_are_offered_as_conditions_compare_them() -> None:
    bodies = [{"v": value} for value in (1, "1", 1.0, True, "true", None, [1], {"a": None}, "", "x" * 101, "a\nb")]
    offered = found(*bodies)
    assert values(offered, "body:v") == [("1", "number and text", 3), ("true", "boolean and text", 2)]
    (field,) = [field for field in offered.fields if field.name == "body:v"]
    assert (field.count, field.more) == (9, 3)  # null is missing, an object has members; three texts fit no condition


def test_each_offered_value_matches_the_message_that_has_it() -> None:
    hostile = {'a"b': 1, "a.b": 2, "a b": "3", "<script>": "</script>", "\u202e": 4, "": 5, "é": 6, "a\\": 7, "'`": "8",
               "x" * 300: 9, "a\nb": 10, "in": {"equals": "x"}, "deep": {"a": {"b": {"c": {"d": 1}}}}}  # fmt: skip
    source = message(json.dumps(hostile).encode(), customer="acme, inc")
    offered = offered_fields.offered_fields([source], values=True)
    conditions = [value.condition for field in offered.fields for value in field.values]
    parsed = list(map(Condition.parse, conditions))
    assert [str(one) for one in parsed if one.holds(source.read(one.field)) is not True] == []
    assert "attribute:customer equals acme, inc" in conditions
    assert 'body:"<script>" equals </script>' in conditions
    assert [name for name in names(offered) if "x" * 300 in name or "\n" in name or "c.d" in name] == []


def test_fields_are_limited_and_frequent_ones_come_first() -> None:
    bodies = [{"customer": "acme", "id": n, **({f"f{i}": i for i in range(300)} if not n else {})} for n in range(10)]
    offered = found(*bodies)
    assert (len(offered.fields), offered.more) == (FIELDS, 303 - FIELDS)
    assert names(offered)[:3] == ["source", "body:customer", "body:id"]


def test_a_body_with_more_fields_than_are_read_and_a_large_or_broken_body_do_no_harm() -> None:
    members = json.dumps(dict.fromkeys(map(str, range(5_000)), 1)).encode()
    wide = offered_fields.offered_fields([message(members)], values=True)
    assert len(wide.fields) == FIELDS
    for body in (b"", b"\xff", b"[" * 100, b'"text"', b"7", b"[1, 2]", b" " * (BODY_LIMIT + 1)):
        assert names(offered_fields.offered_fields([message(body)], values=True)) == ["source"]


def test_without_the_right_to_values_only_names_are_offered() -> None:
    body = json.dumps({"customer": "canary", "4111-1111-1111-1111": "canary", "ann@example.com": 1}).encode()
    source = message(body, kind="order.paid", token="canary")
    offered = offered_fields.offered_fields([source], values=False)
    assert names(offered) == ["source", "type", "attribute:kind", "attribute:token", "body:customer"]
    shown = {field.name: [value.text for value in field.values] for field in offered.fields if field.values}
    assert shown == {"source": ["shop"], "type": ["order.paid"]}
    odd = offered_fields.offered_fields([message(b"{}", kind="card 4111")], values=False)
    assert values(odd, "type") == []


def test_masked_values_are_not_offered() -> None:
    offered = found({"card": MASK, "total": 1})
    assert (values(offered, "body:card"), values(offered, "body:total")) == ([], [("1", "number", 1)])


@pytest.mark.parametrize("shows", [True, False])
def test_arguments_of_a_celery_task_are_offered(*, shows: bool) -> None:
    task = {
        "body": "W1tdLCB7InRlbmFudCI6ICJhY21lIn0sIHt9XQ==", "content-type": "application/json",
        "content-encoding": "utf-8", "headers": {"task": "shop.ship", "id": "1"},
        "properties": {"body_encoding": "base64", "delivery_info": {}},
    }  # fmt: skip
    offered = offered_fields.offered_fields([message(json.dumps(task).encode())], values=shows)
    assert names(offered) == ["source", "task", "task:kwargs.tenant"]
    assert values(offered, "task:kwargs.tenant") == ([("acme", "text", 1)] if shows else [])
