"""A filter is the same in an address, in the database and in words."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reprocessing.domain.errors import InvalidFilter
from reprocessing.domain.lifecycle import LetterState, ParkedReason
from reprocessing.domain.parking_lot.message_filter import MessageFilter

IDS = st.none() | st.integers(1, 2**63 - 1)
TEXTS = st.none() | st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1).map(
    str.strip
).filter(bool)
TIMES = st.none() | st.datetimes(datetime(1971, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
STATES = st.sets(st.sampled_from([one.value for one in LetterState]), min_size=1)
REASONS = st.sets(st.sampled_from([one.value for one in ParkedReason]))

FIELDS: list[dict[str, Any]] = [
    {}, {"selector": "body:customer.id"}, {"selector": "attribute:kind", "value": "x"},
]  # fmt: skip


@st.composite
def filters(draw: st.DrawFn) -> MessageFilter:
    """Draw any filter that an address can express."""
    states, reasons = draw(STATES), draw(REASONS)
    died, finished = sorted(filter(None, [draw(TIMES), draw(TIMES)])), sorted(filter(None, [draw(TIMES)]))
    return MessageFilter(
        dlq=draw(IDS), group=draw(IDS), source=draw(IDS), target=draw(IDS), rule=draw(IDS), run=draw(IDS),
        states=tuple(one.value for one in LetterState if one in states),
        reasons=tuple(one.value for one in ParkedReason if one in reasons),
        presumed=draw(st.sampled_from([None, True])), key=draw(TEXTS), named=draw(TEXTS), text=draw(TEXTS),
        sent_after=died[0] if len(set(died)) > 1 else None, sent_before=died[-1] if died else None,
        finished_after=finished[0] if finished else None,
        assigned=draw(st.sampled_from([None, "", "ann"])),
        fields=draw(st.sampled_from([(), ("order_id:4711",), ("order_id:47*", "customer:ann lee")])),
        **draw(st.sampled_from(FIELDS)),
    )  # fmt: skip


@pytest.mark.soak
@given(filters())
@settings(max_examples=60)
def test_a_filter_is_read_back_from_its_stored_form_and_its_address(criteria: MessageFilter) -> None:
    query: dict[str, list[str]] = {}
    for name, value in criteria.to_query():
        query.setdefault(name, []).append(value)
    assert MessageFilter.read(json.loads(json.dumps(criteria.stored()))) == criteria
    assert MessageFilter.from_query(query) == criteria


@given(st.dictionaries(st.text(max_size=20), st.lists(st.text(max_size=20), max_size=2), max_size=3))
@settings(max_examples=60)
def test_any_address_is_read_or_refused_in_a_sentence(query: dict[str, list[str]]) -> None:
    try:
        MessageFilter.from_query(query)
    except InvalidFilter as error:
        assert str(error).endswith(".")  # noqa: PT017  # most addresses are read


@pytest.mark.parametrize(
    "name", ["dlq", "group", "source", "target", "rule", "run", "state", "reason", "sent_after", "presumed"]
)
@pytest.mark.parametrize("value", ["x", "-1", "9" * 40, "\u0661", "1e3", "\0"])
def test_an_invalid_value_is_never_ignored(name: str, value: str) -> None:
    with pytest.raises(InvalidFilter, match=name):
        MessageFilter.from_query({name: [value]})


def test_old_names_of_filters_and_nobody_are_understood() -> None:
    asked = {"dlq__id__exact": ["7"], "reason__exact": ["stale"], "q": [" account-7 "], "text": [""]}
    assert MessageFilter.from_query(asked) == MessageFilter(dlq=7, reasons=("stale",), named="account-7")
    assert [MessageFilter.from_query({"assigned": [one]}).assigned for one in ("", "-", "ann")] == [None, "", "ann"]


def test_a_filter_is_told_in_words() -> None:
    at = datetime(2026, 3, 1, 8, tzinfo=UTC)
    told = MessageFilter(dlq=7, reasons=("stale",), named="a", finished_after=at, assigned="").sentence(
        {"dlq": "shop-dlq"}
    )
    assert MessageFilter().sentence() == "parked messages"
    assert MessageFilter(named="a").sentence(single=True) == 'parked message with the id, key or search value "a"'
    assert MessageFilter(reasons=("no_sequence",)).sentence() == "parked messages whose reason is no sequence"
    assert told == (
        'parked messages of the DLQ shop-dlq and whose reason is stale and with the id, key or search value "a" and in '
        "this state since 2026-03-01 08:00:00 UTC or later and assigned to nobody"
    )


MARCH = "2026-03-01 00:00:00+00:00"


def test_every_condition_is_told_in_words() -> None:
    at = datetime(2026, 3, 1, 8, tzinfo=UTC)
    every = MessageFilter(
        dlq=1, group=2, source=3, target=4, rule=5, run=6, states=("parked", "discarded"), key="k", text="secret",
        reasons=("stale", "no_key"), sent_after=at, sent_before=at, finished_before=at, assigned="ann",
    )  # fmt: skip
    told = (
        "parked or discarded messages of the DLQ 1 and of the group 2 and that failed in 3 and whose target is 4 "
        "and that the rule 5 decided about and of the run 6 and whose reason is stale or no key "
        'and with the ordering key "k"{} and first sent at 2026-03-01 08:00:00 UTC or later '
        "and first sent before 2026-03-01 08:00:00 UTC and in this state since before 2026-03-01 08:00:00 UTC and "
        "assigned to ann{}"
    )
    assert every.sentence() == told.format(' and whose body contains "secret"', "")
    assert every.sentence(covered=True) == told.format("", " and whose body contains a text")
    assert every.recorded()["text"] == "(a text in their bodies)"
    assert MessageFilter().recorded() == {"states": ["parked"]}


def test_the_value_of_a_field_is_told_unless_values_are_covered() -> None:
    absent = MessageFilter(selector="body:sum")
    given_ = MessageFilter(selector="body:sum", value="12")
    told = [criteria.sentence(covered=covered) for criteria in (absent, given_) for covered in (False, True)]
    assert [text.removeprefix("parked messages whose body:sum ") for text in told] == [
        "has no value", "has no value", 'is "12"', "has a given value",
    ]  # fmt: skip


def test_without_conditions_that_read_bodies_the_others_stay() -> None:
    criteria = MessageFilter(dlq=7, key="a", text="x", selector="body:sum", value="12")
    assert criteria.without_bodies() == MessageFilter(dlq=7, key="a")


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ({"key": ["x" * 1_025]}, "The value of key is not a text of at most 1,024 characters."),
        ({"key": ["a", "b"]}, "The filter key was given several times. Give it once."),
        ({"dlq": ["x"]}, "The filter dlq takes the number of an id, not 'x'."),
        ({"dlq": [str(2**63)]}, f"The filter dlq takes the number of an id, not '{2**63}'."),
        ({"x": ["7"]}, "There is no filter 'x'. Remove it from the address."),
        (
            {"state": ["parked", "gone"]},
            f"The filter state has no value 'gone'. It takes: {', '.join(state.value for state in LetterState)}.",
        ),
        (
            {"field": [f"order_id:{number}" for number in range(4)]},
            "A filter has at most 3 conditions on search fields. Leave out some.",
        ),
        ({"sent_after": ["x"]}, "The filter sent_after takes a time such as 2026-03-01T08:00 (UTC), not 'x'."),
        (
            {"parked_after": ["2026-03-01"], "parked_before": ["2026-03-01"]},
            f"No message was parked both after {MARCH} and before {MARCH}. Swap the two times.",
        ),
    ],
)  # fmt: skip
def test_a_filter_that_cannot_be_read_is_refused_in_a_sentence(query: dict[str, list[str]], why: str) -> None:
    with pytest.raises(InvalidFilter) as refused:
        MessageFilter.from_query(query)
    assert str(refused.value) == why


def test_the_longest_text_is_a_filter_and_times_may_have_a_zone() -> None:
    asked = {"key": ["x" * 1_024], "dlq": ["7", "7"], "sent_after": ["2026-03-01T08:00+01:00"], "state": ["delivered"]}
    found = MessageFilter.from_query(asked)
    assert (found.key, found.dlq, found.states) == ("x" * 1_024, 7, ("delivered",))
    assert found.sent_after == datetime(2026, 3, 1, 7, tzinfo=UTC)
