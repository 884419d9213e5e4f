"""What counts as proved: what was tried, within a time that has an end, and written down."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.proof import conftest
from tests.proof.ledger import Ledger


def test_a_test_of_the_long_form_that_tried_nothing_fails(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.jsonl")
    item: Any = SimpleNamespace(funcargs={"ledger": ledger})
    for tries in (0, 1):
        calling = conftest.pytest_runtest_call(item)
        next(calling)
        for number in range(tries):
            ledger.note("layer", str(number), passed=True)
        with pytest.raises(StopIteration if tries else pytest.fail.Exception, match=None if tries else "Nothing was"):
            calling.send(None)


@pytest.mark.parametrize("minutes", ["x", "", "0", "-1", "nan", "inf"])
def test_a_time_without_end_and_none_at_all_are_refused(minutes: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conftest, "_MINUTES", minutes)
    with pytest.raises(pytest.UsageError, match="how many minutes"):
        conftest.pytest_configure()


def test_a_ledger_that_cannot_be_written_is_told_before_anything_is_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "ledger"
    file.touch(mode=0o700)
    monkeypatch.setattr(conftest, "HOME", file)
    with pytest.raises(pytest.UsageError, match="is no folder"):
        conftest.pytest_configure()


def test_what_failed_last_is_known_until_it_passes(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.jsonl")
    for name, passed in (("a", True), ("b", False), ("c", False), ("a", False), ("c", True)):
        ledger.note("layer", name, passed=passed)
    ledger.note("other", "d", passed=False)
    assert ledger.failing("layer") == ["a", "b"]
