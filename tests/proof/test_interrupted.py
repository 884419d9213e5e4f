"""Ctrl-C: no other case is begun, and what it broke off counts for nothing."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from tests.proof.failpoints.test_every_cell import Run
from tests.proof.ledger import Ledger


@pytest.fixture
def _ctrl_c() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


class _Booth:
    """Its first trial passes; in the middle of its second one Ctrl-C is pressed."""

    def __init__(self, answers: bool) -> None:
        self._answers, self.ended, self.tried = answers, Event(), 0

    def tries(self, cell: str, repetition: int) -> dict[str, Any]:
        self.tried += 1
        if self.tried == 1:
            return {"why": [], "figures": {}}
        os.kill(os.getpid(), signal.SIGINT)
        self.ended.wait(10)
        assert self._answers, "the booth has ended"
        return {"why": ["not finished"], "figures": {}}

    def end(self) -> None:
        self.ended.set()


@pytest.mark.usefixtures("_ctrl_c")
@pytest.mark.parametrize("answers", [True, False])
def test_ctrl_c_ends_the_trials_under_way_and_begins_no_other(
    answers: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ledger, booth = Ledger(tmp_path / "ledger.jsonl"), _Booth(answers)
    some: Any = [booth]
    with pytest.raises(KeyboardInterrupt):
        Run(ledger, lambda: booth.tried < 5).through(some)
    assert (booth.ended.is_set(), booth.tried, [one.passed for one in ledger.entries()]) == (True, 2, [True])
    assert capsys.readouterr().out.split("\n")[-2] == "The trials under way are ended, and count for nothing."
