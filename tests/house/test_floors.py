"""What the import contracts cannot say: every module is on a floor, and no import goes in a circle."""

from __future__ import annotations

import tomllib
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Final

import grimp
import pytest

ROOT: Final = Path(__file__).resolve().parents[2]
CONTRACTS: Final = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    return grimp.build_graph("reprocessing", exclude_type_checking_imports=True, cache_dir=None)


@pytest.mark.parametrize("container", ["reprocessing.admin", "reprocessing.management", "reprocessing.pipeline"])
def test_every_module_of_a_capability_is_on_a_floor(graph: grimp.ImportGraph, container: str) -> None:
    layers = next(made["layers"] for made in CONTRACTS if made.get("containers") == [container])
    placed = {f"{container}.{name.strip('()')}" for layer in layers for name in layer.replace(":", "|").split(" | ")}
    modules = {name for name in graph.find_descendants(container) if not graph.find_children(name)}
    homeless = {name for name in modules if not any(f"{name}.".startswith(f"{home}.") for home in placed)}
    assert homeless == set()


def test_no_module_imports_itself_through_others(graph: grimp.ImportGraph) -> None:
    imports = {name: graph.find_modules_directly_imported_by(name) for name in graph.modules}
    TopologicalSorter(imports).prepare()  # a circle is an error that names its modules
