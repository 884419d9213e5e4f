"""Tests that must run alone are left out of CI, which runs everything beside each other."""

from __future__ import annotations

import pytest


def test_each_test_that_runs_alone_is_long(request: pytest.FixtureRequest) -> None:
    alone = [item for item in request.session.items if item.get_closest_marker("alone")]
    assert [item.nodeid for item in alone if not item.get_closest_marker("long")] == []
