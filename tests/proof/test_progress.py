"""What somebody who waits sees: nothing that the service logs."""

from __future__ import annotations

import logging
from io import StringIO

import pytest

from tests.proof.progress import quiet_console


def test_what_is_logged_is_not_seen_on_the_console_and_heard_all_the_same(caplog: pytest.LogCaptureFixture) -> None:
    console = logging.StreamHandler(StringIO())
    root = logging.getLogger()
    root.addHandler(console)
    try:
        with quiet_console():
            root.warning("unseen")
        root.warning("seen")
    finally:
        root.removeHandler(console)
    assert console.stream.getvalue() == "seen\n"
    assert [one.message for one in caplog.records] == ["unseen", "seen"]
