"""The list of moto's lies names tests that exist; strictness does the rest."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.contract.moto_lies import LIES


@pytest.mark.parametrize("module", LIES)
def test_every_lie_names_a_test(module: str) -> None:
    (path,) = Path(__file__).parent.rglob(f"{module}.py")
    tree = ast.parse(path.read_text())
    tests = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert {name.partition("[")[0] for name in LIES[module]} - tests <= {"*"}
