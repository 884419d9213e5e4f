from __future__ import annotations

import json

import pytest

from reprocessing.domain.errors import InvalidSelector
from reprocessing.domain.message.envelope import Attribute
from reprocessing.domain.message.identity import LetterFacts
from reprocessing.domain.payloads.mask_rules import mask_rules
from reprocessing.domain.search.search_fields import (
    SearchField,
    SearchValue,
    list_problem,
    search_fields,
    values_of,
)

ORDER = search_fields(("order_id=body:order.id", "customer=attribute:customer", "sku=body:items[*].sku"))


def _facts(document: object, customer: str = "ann") -> LetterFacts:
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    return LetterFacts("m-1", body, {"customer": Attribute("String", customer)}, {})


def _values(document: object, *masks: str, customer: str = "ann") -> list[SearchValue]:
    return values_of(ORDER, _facts(document, customer), mask_rules(masks))


def test_a_field_is_written_as_it_is_read() -> None:
    assert str(SearchField.parse(" order_id=body:order.id ")) == "order_id=body:order.id"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("order_id", "Write NAME=WHERE"),
        ("Order=body:id", "lower-case"),
        ("dlq=body:id", "another meaning"),
        ("x=body:order.[", "not a selector"),
        ("x=message-id", "cannot be a search field"),
    ],
)
def test_a_field_that_is_not_valid_is_refused_with_the_reason(text: str, why: str) -> None:
    with pytest.raises(InvalidSelector, match=why):
        SearchField.parse(text)
    assert why in list_problem([text])


def test_a_dlq_has_at_most_10_fields_with_names_of_their_own() -> None:
    ten = [f"f{n}=body:f{n}" for n in range(10)]
    assert list_problem(ten) == ""
    assert "at most 10" in list_problem([*ten, "one_more=body:x"])
    assert "f1 is declared twice" in list_problem(["f1=body:a", "f1=body:b"])


def test_values_are_texts_and_numbers_and_those_of_a_list() -> None:
    document = {"order": {"id": 4711.0}, "items": [{"sku": "a"}, {"sku": "b"}, {"sku": "a"}, {"sku": None}]}
    assert _values(document) == [
        SearchValue("order_id", "4711"), SearchValue("customer", "ann"), SearchValue("sku", "a"),
        SearchValue("sku", "b"),
    ]  # fmt: skip


def test_a_value_is_cut_to_200_characters_and_has_no_spaces_around_it() -> None:
    assert _values({"order": {"id": " " + 3_000 * "x"}}, customer=" ann ") == [
        SearchValue("order_id", 200 * "x"), SearchValue("customer", "ann"),
    ]  # fmt: skip


@pytest.mark.parametrize("value", [None, True, {}, "", "  ", "\x1ahash", "nul\0"])
def test_what_is_no_text_and_no_number_has_no_value(value: object) -> None:
    assert _values({"order": {"id": value}}) == [SearchValue("customer", "ann")]


def test_a_body_that_is_no_json_has_the_values_of_attributes() -> None:
    assert _values(b"<order/>") == [SearchValue("customer", "ann")]


def test_a_long_list_has_20_values() -> None:
    assert len(_values({"items": [{"sku": f"s{n}"} for n in range(50)]})) == 20 + 1


@pytest.mark.parametrize("rule", ["id", "order", "order.id", "*.id"])
def test_a_value_that_mask_rules_hide_is_masked(rule: str) -> None:
    found = {value.name: value.masked for value in _values({"order": {"id": "4711"}}, rule)}
    assert found == {"order_id": True, "customer": False}


def test_a_value_that_has_a_masked_value_inside_is_masked() -> None:
    inner = json.dumps({"email": "ann@example.com"})
    assert [value.masked for value in _values({"order": {"id": inner}}, "email")] == [True, False]


def test_a_body_whose_fields_cannot_be_masked_one_by_one_has_only_masked_values() -> None:
    fields = search_fields(("order_id=body:order.id",))
    twice = b'{"order": {"id": "1"}, "order": {"id": "2"}, "card": 1}'
    (value,) = values_of(fields, _facts(twice), mask_rules(("card",))) or [SearchValue("", "", masked=True)]
    assert value.masked or value.value == "2"


def test_a_masked_attribute_is_masked() -> None:
    assert [value.masked for value in _values({}, "customer")] == [True]
