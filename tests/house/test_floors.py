"""What the import contracts cannot say: every module has its floor, no import goes in a circle, folders are small."""

from __future__ import annotations

import tomllib
from collections import Counter
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Final

import grimp
import pytest

ROOT: Final = Path(__file__).resolve().parents[2]
CONTRACTS: Final = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
PYTHON: Final = ("benchmarks", "redrive_service", "reprocessing", "tests")
COMMANDS: Final = "reprocessing/management/commands"  #: Django looks for commands in this one folder


@pytest.mark.parametrize(
    "container", ["reprocessing.admin", "reprocessing.api", "reprocessing.management", "reprocessing.pipeline"]
)
def test_every_module_of_a_capability_is_on_a_floor(container: str) -> None:
    graph = grimp.build_graph("reprocessing", cache_dir=None)
    layers = next(made["layers"] for made in CONTRACTS if made.get("containers") == [container])
    placed = {f"{container}.{name.strip('()')}" for layer in layers for name in layer.replace(":", "|").split(" | ")}
    modules = {name for name in graph.find_descendants(container) if not graph.find_children(name)}
    homeless = {name for name in modules if not any(f"{name}.".startswith(f"{home}.") for home in placed)}
    assert homeless == set()


@pytest.mark.parametrize("package", ["reprocessing", "redrive_service"])
def test_no_module_imports_itself_through_others_not_even_for_types_alone(package: str) -> None:
    graph = grimp.build_graph(package, cache_dir=None)
    imports = {name: graph.find_modules_directly_imported_by(name) for name in graph.modules}
    TopologicalSorter(imports).prepare()  # a circle is an error that names its modules


def test_a_folder_holds_at_most_fifteen_modules() -> None:
    modules = [path for top in PYTHON for path in (ROOT / top).rglob("*.py") if path.name != "__init__.py"]
    sizes = Counter(str(module.parent.relative_to(ROOT)) for module in modules)
    assert {folder for folder, size in sizes.items() if size > 15} == {COMMANDS}
