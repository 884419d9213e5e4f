"""The list of moto's lies names tests that exist; strictness does the rest."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.contract.moto_lies import LIES


def test_every_lie_names_a_test() -> None:
    modules = [ast.parse(path.read_text()) for path in Path(__file__).parent.glob("test_*.py")]
    tests = {node.name for module in modules for node in module.body if isinstance(node, ast.FunctionDef)}
    assert {name.partition("[")[0] for name in LIES} - tests == set()
