"""Mutmut asks for a test's cases by their names, in a process that has collected them before."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

_TESTS: Final = r"""
import pytest

@pytest.mark.parametrize("text", ["a\nb", "\ufeff", "é"], ids=str)
def test_function(text): pass

class TestClass:
    @pytest.mark.parametrize("number", [1], ids=["back\\slash"])
    @pytest.mark.parametrize("text", ["a\nb"])
    def test_method(self, number, text): pass
"""
_TWICE: Final = """
import sys, pytest

class Names:
    def pytest_collection_modifyitems(self, items): sys.stderr.write(f"{[item.nodeid for item in items]}\\n")

for _ in range(2):
    pytest.main(["--collect-only", "-c", "/dev/null", "-p", "no:cacheprovider", *sys.argv[1:]], plugins=[Names()])
"""


def test_cases_have_the_same_names_when_they_are_collected_again(tmp_path: Path) -> None:
    file = tmp_path / "test_anything.py"
    file.write_text(_TESTS)
    found = subprocess.run(
        [sys.executable, "-c", _TWICE, str(file), "-p", "tests.proof.case_names"],
        env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    first, second = found.stderr.splitlines()
    assert first == second
    assert first.count("::test_") == 4
