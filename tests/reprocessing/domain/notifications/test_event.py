"""An event has the facts that its text needs, and no others."""

from __future__ import annotations

import pytest

from reprocessing.domain.notifications.event import LONGEST_FACT, Event, EventKind
from tests.reprocessing.domain.notifications.events import event


def test_an_event_without_a_required_fact_is_refused() -> None:
    with pytest.raises(ValueError, match="breaker_open lacks the facts why"):
        Event(EventKind.BREAKER_OPEN, "breaker:1", {"target": "orders", "breaker_id": 1})


def test_a_fact_that_no_text_knows_is_refused() -> None:
    with pytest.raises(ValueError, match="beat_silent has no facts named body"):
        Event(EventKind.BEAT_SILENT, "beat", {"seconds": 1, "body": "a payload"})


@pytest.mark.parametrize("subject", ["", "x" * 201])
def test_an_empty_or_long_subject_is_refused(subject: str) -> None:
    with pytest.raises(ValueError, match="needs a subject"):
        event(EventKind.BEAT_SILENT, subject)


def test_a_fact_is_shown_on_one_line_visibly_and_cut() -> None:
    long = event(EventKind.BREAKER_OPEN, why="five\nfailures \u202eback " + "x" * 1_000).shown_facts["why"]
    assert isinstance(long, str)
    assert long.startswith("five failures <U+202E>back xxx")
    assert (len(long), long[-1]) == (LONGEST_FACT, "…")
