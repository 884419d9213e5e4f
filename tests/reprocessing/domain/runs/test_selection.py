"""A selection is stored with its run and read again as it was."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from hypothesis import given, settings
from hypothesis import strategies as st

from reprocessing.domain.runs.selection import ALL_LETTERS, Selection

TEXTS = st.none() | st.text(min_size=1)
TIMES = st.none() | st.datetimes(timezones=st.just(UTC))


@given(
    st.builds(
        Selection, st.none() | st.integers(1), TEXTS, TIMES, TIMES, TEXTS, st.lists(st.text(min_size=1)).map(tuple)
    )
)
@settings(max_examples=30)
def test_a_stored_selection_is_read_back(selection: Selection) -> None:
    assert Selection.read(json.loads(json.dumps(selection.stored("orders")))) == selection


def test_a_stored_selection_with_only_a_limit_is_read() -> None:
    assert Selection.read({"dlq": "orders", "limit": 5}) == Selection(limit=5)
    assert ALL_LETTERS.stored("orders") == {"dlq": "orders", "limit": None}


def test_a_selection_is_told_in_words() -> None:
    at = datetime(2026, 3, 1, 8, tzinfo=UTC)
    told = Selection(limit=5, source="shop", sent_after=at, sent_before=at, key="anna", message_ids=("a", "b"))
    assert str(ALL_LETTERS) == "all messages"
    assert str(told) == (
        "5 messages that failed in shop and first sent at 2026-03-01T08:00:00+00:00 or later and first sent before "
        "2026-03-01T08:00:00+00:00 and with the ordering key anna and named by message id (2)"
    )
