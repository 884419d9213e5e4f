"""A field has one value, as text, or the reason why it has none."""

from __future__ import annotations

import pytest

from reprocessing.domain.errors import InvalidFilter
from reprocessing.domain.message.envelope import Attribute
from reprocessing.domain.message.identity import LetterFacts
from reprocessing.domain.parking_lot.field_value import NoValue, read_field, value_of

ATTRIBUTES = {"Tenant": Attribute("String", "acme"), "Raw": Attribute("Binary", b"\0")}
BODY = b'{"t": "x", "e": "", "n": 12345678901234567890123, "f": 1.50, "b": true, "z": null, "l": [1], "o": {"k": 1}}'


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("body:t", "x"), ("body:e", ""), ("body:n", "12345678901234567890123"), ("body:f", "1.5"), ("body:b", "true"),
        ("body:z", NoValue.MISSING), ("body:nowhere", NoValue.MISSING), ("body:l", NoValue.MANY), ("body:l[0]", "1"),
        ("body:o", NoValue.MANY), ("body:o.k", "1"), ("attribute:Tenant", "acme"), ("attribute:None", NoValue.MISSING),
        ("attribute:Raw", NoValue.UNREADABLE), ("body:length(n)", NoValue.UNREADABLE),
    ],
)  # fmt: skip
def test_a_field_has_its_value_as_text(field: str, value: object) -> None:
    assert value_of(read_field(field), LetterFacts("m", BODY, ATTRIBUTES, {})) == value


def test_a_body_that_is_no_json_cannot_be_read() -> None:
    assert value_of(read_field("body:t"), LetterFacts("m", b"<xml/>", {}, {})) is NoValue.UNREADABLE


@pytest.mark.parametrize("text", ["message-id", "body:", "body:a[", "attribute:a b", "country", "system:SenderId"])
def test_what_is_no_field_is_refused(text: str) -> None:
    with pytest.raises(InvalidFilter):
        read_field(text)
