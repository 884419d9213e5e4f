"""What somebody who waits is told: how far it is, every few seconds, and nothing that the service logs."""

from __future__ import annotations

import logging
from io import StringIO
from pathlib import Path

import pytest

from tests.conditions import eventually
from tests.proof import progress
from tests.proof.planted.bugs import BUGS
from tests.proof.planted.stage import Stage
from tests.proof.planted.test_planted import SHOWN


def test_who_waits_is_told_again_and_again_how_far_it_is_until_it_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(progress, "say", said.append)
    with progress.telling("nothing"):
        pass
    with progress.telling("lots", lambda: f"{len(said)} done, ", every=0.01):
        eventually(lambda: len(said) > 1, within=30)
    assert said[:2] == ["lots: 0 done, 0 s", "lots: 1 done, 0 s"]


def test_what_is_logged_is_not_seen_on_the_console_and_heard_all_the_same(caplog: pytest.LogCaptureFixture) -> None:
    console = logging.StreamHandler(StringIO())
    root = logging.getLogger()
    root.addHandler(console)
    try:
        with progress.quiet_console():
            root.warning("unseen")
        root.warning("seen")
    finally:
        root.removeHandler(console)
    assert console.stream.getvalue() == "seen\n"
    assert [one.message for one in caplog.records] == ["unseen", "seen"]


@pytest.mark.soak
def test_of_the_tests_without_a_bug_it_is_told_how_many_are_done(tmp_path: Path) -> None:
    with Stage(tmp_path) as stage:
        assert stage._how_far(0) == "0 of all done, "
        stage.unbroken([bug for bug in BUGS if bug.name in SHOWN])
        assert stage._how_far(0) == "2 of 2 done, "
