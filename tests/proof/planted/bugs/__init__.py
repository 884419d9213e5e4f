"""The planted bugs, by the part of the product that they break."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import Final

from tests.proof.planted.bug import Bug

_MODULES: Final = [import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__)]
BUGS: Final[tuple[Bug, ...]] = tuple(bug for module in _MODULES for bug in module.BUGS)
