"""A selector reads one key from a letter, or says why there is none."""

from __future__ import annotations

import hashlib
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reprocessing.domain.errors import InvalidSelector
from reprocessing.domain.message import json_view
from reprocessing.domain.message.envelope import Attribute
from reprocessing.domain.message.identity import (
    KEY_LENGTH,
    LetterFacts,
    Missing,
    Selected,
    Selector,
    TooLong,
    body_hash,
    deduplication_id,
    key_hash,
    select_key,
)  # fmt: skip
from reprocessing.domain.message.json_view import Unreadable
from reprocessing.domain.routing import jmespath_query

BODY = b'{"order": {"id": "o-1", "no": 7.50, "paid": true, "lines": [{"sku": "a"}], "none": null, "blank": " "}}'


def letter(body: bytes = BODY) -> LetterFacts:
    attributes = {"account": Attribute("String", "a-1"), "no": Attribute("Number.int", "007")}
    raw = {"raw": Attribute("Binary", b"a-1"), "blank": Attribute("String", "  ")}
    return LetterFacts("m-1", body, attributes | raw, {"MessageGroupId": "g-1", "SentTimestamp": "1700000000000"})


def selected(text: str, body: bytes = BODY) -> Selected:
    return select_key(Selector.parse(text), letter(body))


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("system:MessageGroupId", "g-1"), ("system:SequenceNumber", Missing()), ("attribute:account", "a-1"),
        ("attribute:no", "007"), ("attribute:raw", Missing()), ("attribute:blank", Missing()),
        ("attribute:absent", Missing()), ("body:order.id", "o-1"), ("body:order.no", "7.5"),
        ("body:order.lines[0].sku", "a"), ("body:join('-', [order.id, order.lines[0].sku])", "o-1-a"),
        ("body:length(order.lines)", "1"), ("body:to_number('0.5')", "0.5"), ("body:to_number(order.no)", "7.5"),
        ("body:to_number('nan')", Missing()), ("body:to_number('inf')", Missing()), ("body:order.paid", Missing()),
        ("body:order.none", Missing()), ("body:order.lines", Missing()), ("body:order", Missing()),
        ("body:order.blank", Missing()), ("body:abs(order.id)", Missing()),
        ("body:nobody_knows(order.id)", Missing()), ("message-id", "m-1"),
        ("content-hash", hashlib.sha256(BODY).hexdigest()), ("none", Missing()),
    ],
)  # fmt: skip
def test_a_selector_reads_its_key(text: str, key: Selected) -> None:
    assert selected(text) == key


def test_a_key_that_needs_too_many_steps_is_unreadable_and_not_missing() -> None:
    body = b"[" + b"1," * jmespath_query.STEPS + b"1]"
    why = f"the expression takes more than {jmespath_query.STEPS} steps on this message"
    assert selected("body:[*].a | [0]", body) == Unreadable(why)


@pytest.mark.parametrize("text", ["order", "@ || `1`", "to_number(@)", "length(@)", "[0]", "a == b && 'k'"])
@given(body=st.binary() | st.sampled_from([b"NaN", b'"\\u0000"', b"1e400", b"[1e999999999]", b"9" * 5_000]))
def test_no_body_makes_a_selector_raise(text: str, body: bytes) -> None:
    selected(f"body:{text}", body)


def test_a_body_that_is_not_json_cannot_be_read() -> None:
    assert selected("body:a", b"plain") == Unreadable("it is not JSON: Expecting value at character 0")
    assert selected("attribute:account", b"plain") == "a-1"


def test_a_body_is_parsed_once_for_all_its_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bytes] = []
    monkeypatch.setattr(json_view, "read", asked.append)
    facts = letter()
    for text in ("body:a", "body:b", "attribute:account"):
        select_key(Selector.parse(text), facts)
    assert asked == [BODY]


def test_a_key_that_is_too_long_or_cannot_be_stored_is_no_key() -> None:
    assert selected("body:@", b'"' + b"x" * KEY_LENGTH + b'"') == "x" * KEY_LENGTH
    assert selected("body:@", b'"' + b"x" * (KEY_LENGTH + 1) + b'"') == TooLong(KEY_LENGTH + 1, KEY_LENGTH)
    assert isinstance(selected("body:@", b'"a\\u0000b"'), Unreadable)


@pytest.mark.parametrize("text", ["system:SentTimestamp", "attribute:a.b", "body:a.b[0]", "message-id", "none"])
def test_a_selector_is_written_back(text: str) -> None:
    assert str(Selector.parse(f" {text} ")) == text


@pytest.mark.parametrize(
    ("text", "cure"),
    [
        ("", "Write system:NAME, attribute:NAME, body:JMESPATH"),
        ("order.id", "Write system:NAME, attribute:NAME, body:JMESPATH"), ("system:Group", "MessageGroupId"),
        ("system:", "MessageGroupId"), ("attribute:", "Write attribute:NAME"),
        ("attribute:a b", "Write attribute:NAME"), ("body:", "such as body:order.id"),
        ("body:" + "a" * 257, "256 characters"), ("body:a[", "See jmespath.org"),
        ("body:" + "(" * 250, "See jmespath.org"), ("body:" + "!" * 40 + "a", "Write a simpler one"),
        ("message-id:x", "Write message-id alone"), ("none:", "Write none alone"),
    ],
)  # fmt: skip
def test_an_invalid_selector_is_refused_with_what_to_write(text: str, cure: str) -> None:
    with pytest.raises(InvalidSelector) as refusal:
        Selector.parse(text)
    assert f'"{text}" is not a selector' in str(refusal.value)
    assert cure in str(refusal.value)


def test_digests_are_sha256_of_the_whole_value() -> None:
    assert key_hash("k") == hashlib.sha256(b"k").digest() != key_hash("K")
    assert body_hash(b"b") == hashlib.sha256(b"b").digest()


def test_a_deduplication_id_changes_with_the_epoch_and_with_nothing_else() -> None:
    one, other = UUID(int=1), UUID(int=2)
    assert deduplication_id(one, 1) == deduplication_id(one, 1)
    assert len({deduplication_id(one, 1), deduplication_id(one, 2), deduplication_id(other, 1)}) == 3
    assert len(deduplication_id(one, 1)) == 64
