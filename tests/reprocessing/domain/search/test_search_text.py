from __future__ import annotations

import pytest

from reprocessing.domain.errors import InvalidFilter
from reprocessing.domain.search.field_condition import FieldCondition
from reprocessing.domain.search.search_text import SearchText, read_search, write_search

READ = [
    ("4711", SearchText(named="4711")),
    ("Ann Smith", SearchText(named="Ann Smith")),
    ("order_id:4711", SearchText(fields=(FieldCondition("order_id", "4711"),))),
    ("ORDER_ID:4711", SearchText(fields=(FieldCondition("order_id", "4711"),))),
    ("order_id:47*", SearchText(fields=(FieldCondition("order_id", "47", is_prefix=True),))),
    ('order_id:"47*"', SearchText(fields=(FieldCondition("order_id", "47*"),))),
    ('name:"Ann S"*', SearchText(fields=(FieldCondition("name", "Ann S", is_prefix=True),))),
    ('name:"Ann \\"A\\" Smith"', SearchText(fields=(FieldCondition("name", 'Ann "A" Smith'),))),
    ('"card declined"', SearchText(text="card declined")),
    ('text:"card declined" dlq:orders', SearchText(text="card declined", dlq="orders")),
    ("key:customer-7", SearchText(key="customer-7")),
    ('id:"a b"', SearchText(named="a b")),
    ("12:30", SearchText(named="12:30")),
    ("dlq:orders state:queued state:parked x", SearchText(named="x", dlq="orders", states=("waiting", "parked"))),
    ('state:"awaiting outcome" state:presumed-delivered', SearchText(states=("awaiting", "delivered"), presumed=True)),
    ("state:delivered state:presumed", SearchText(states=("delivered",))),
    ("state:presumed state:delivered", SearchText(states=("delivered",))),
    ("state:Presumed_Delivered", SearchText(states=("delivered",), presumed=True)),
    ("state:waiting", SearchText(states=("waiting",))),
    ("state:awaiting reason:stale group:17", SearchText(states=("awaiting",), reasons=("stale",), group=17)),
    ("   ", SearchText()),
]


@pytest.mark.parametrize(("text", "meant"), READ, ids=[text for text, _ in READ])
def test_a_search_means_what_is_written(text: str, meant: SearchText) -> None:
    assert read_search(text) == meant


@pytest.mark.parametrize("meant", [meant for _, meant in READ], ids=[text for text, _ in READ])
def test_a_search_is_written_so_that_it_is_read_again(meant: SearchText) -> None:
    assert read_search(write_search(meant)) == meant


@pytest.mark.parametrize(
    ("text", "cure"),
    [
        ("order_id: 4711", "order_id:VALUE, without a space"),
        ('"card', 'Write the text between two: "card declined"'),
        ("key:a key:b", "one key"),
        ('"a" "b"', "one text"),
        ("state:lost", "one of captured, queued, sending, awaiting-outcome, delivered, presumed-delivered, parked"),
        ("reason:lost", "Write reason: and one of attempts_spent"),
        ("group:x", "group:17"),
        ("order_id:4*", "at least 2 characters"),
        ("Ünïcode:x y_z:", "y_z:VALUE"),
        ("x" * 1_025, "1,024 characters"),
        ("a\0b", "1,024 characters"),
        ('""', "empty"),
    ],
)
def test_a_wrong_search_is_refused_with_what_to_write(text: str, cure: str) -> None:
    with pytest.raises(InvalidFilter) as refused:
        read_search(text)
    assert cure in str(refused.value)


@pytest.mark.parametrize("text", ["order_id", "key:4711", "Order:4711", "order_id:", "order_id:a\nb"])
def test_a_condition_of_an_address_that_is_not_valid_is_refused(text: str) -> None:
    with pytest.raises(InvalidFilter):
        FieldCondition.parse(text)


@pytest.mark.parametrize("text", ["order_id:4711", "order_id:47*", r"order_id:47\*", "at:12:30"])
def test_a_condition_is_written_as_it_is_read(text: str) -> None:
    assert str(FieldCondition.parse(text)) == text
