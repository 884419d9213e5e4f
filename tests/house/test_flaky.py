"""A test that fails once is run again alone, and is reported."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import flaky

PASSES = "def test_passes():\n    pass\n"
ONCE = """
from pathlib import Path

def test_fails_once():
    seen = Path(__file__).with_name("seen")
    if not seen.exists():
        seen.touch()
        raise AssertionError
"""
TWICE = "def test_fails():\n    raise AssertionError\n"

pytestmark = pytest.mark.soak


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project of its own: none of this one's plugins and settings."""
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p no:django")
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    return tmp_path


def closing_lines(capfd: pytest.CaptureFixture[str]) -> list[str]:
    return [line for line in capfd.readouterr().out.splitlines() if line.startswith(("FLAKY", "FAILED TWICE"))]


@pytest.mark.long
def test_a_test_that_fails_twice_fails_the_run(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (folder / "test_some.py").write_text(PASSES + ONCE + TWICE)
    assert flaky.run(["-n", "2", "test_some.py"]) == 1
    assert closing_lines(capfd) == [
        "FLAKY test_some.py::test_fails_once: failed once, passed alone. Find its cause.",
        "FAILED TWICE test_some.py::test_fails",
    ]


@pytest.mark.long
def test_many_failures_are_not_run_again(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    many = "import pytest\n@pytest.mark.parametrize('n', range(11))\ndef test_fails(n):\n    raise AssertionError\n"
    (folder / "test_some.py").write_text(many)
    assert flaky.run(["-n", "2", "test_some.py"]) == 1
    assert closing_lines(capfd) == []


@pytest.mark.long
def test_a_run_without_a_failure_is_run_once_and_one_that_passes_alone_is_no_failure(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (folder / "test_some.py").write_text(PASSES)
    assert flaky.run(["-n", "2", "test_some.py"]) == 0
    assert "Run again" not in capfd.readouterr().out
    (folder / "test_some.py").write_text(PASSES + ONCE)
    assert flaky.run(["-n", "2", "test_some.py"]) == 0
