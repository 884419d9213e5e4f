"""Several requests at a time: told of as they end, and not begun for ever."""

from __future__ import annotations

from threading import Event
from types import SimpleNamespace

import pytest

from reprocessing.gateways.aws import request_threads
from reprocessing.gateways.aws.request_threads import run_as_completed

PATIENCE = 60.0


def test_what_has_ended_is_told_of_while_another_takes_longer() -> None:
    heard = Event()
    asked = run_as_completed(
        lambda one: one if one == "soon" else str(heard.wait(PATIENCE)), ["late", "soon"], 2, within=60
    )
    assert next(asked) == "soon"
    heard.set()
    assert list(asked) == ["True"]
    assert list(run_as_completed(str, [], 2, within=60)) == []


def test_when_its_time_is_over_nothing_more_is_begun_and_what_was_begun_is_told_of(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 100.0

    def lasts(work: str) -> str:
        nonlocal now
        now += 13
        return work

    monkeypatch.setattr(request_threads, "time", SimpleNamespace(monotonic=lambda: now))
    assert list(run_as_completed(lasts, ["a", "b", "c"], 1, within=20)) == ["a", "b"]
