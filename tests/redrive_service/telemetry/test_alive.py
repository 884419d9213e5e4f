"""The file that a liveness probe looks at; that worker and beat touch it is shown in deployment/test_composed.py."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from redrive_service.environment import read
from redrive_service.telemetry.alive import touch
from tests.redrive_service.test_environment import COMPLETE, problems


def test_a_touched_file_is_new(tmp_path: Path) -> None:
    file = tmp_path / "alive"
    touch(str(file))
    os.utime(file, (1, 1))
    touch(str(file))
    assert file.stat().st_mtime > 1


def test_without_a_path_nothing_is_touched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    touch(read(COMPLETE).alive_file)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_touched_stops_no_process(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    touch(str(tmp_path / "no folder" / "alive"))
    assert caplog.messages == ["redrive.alive.touch_failed error=No such file or directory"]


@pytest.mark.parametrize("path", ["alive", "/no/such/folder/alive"])
def test_a_path_that_cannot_be_touched_is_told_at_the_start(path: str) -> None:
    assert problems({**COMPLETE, "REDRIVE_ALIVE_FILE": path}) == [
        "REDRIVE_ALIVE_FILE must be the absolute path of a file in an existing folder: /tmp/alive"
    ]
