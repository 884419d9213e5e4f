"""A trap at a point: counts the passages of this process, and strikes at one of them, once."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

from tests.proof.failpoints.points import Point


class Trap:
    """Set in the process that is to meet the fault; production code knows nothing of it."""

    def __init__(self, point: Point, strike: Callable[[], None], *, passage: int, folder: Path) -> None:
        self._point, self._strike, self._passage, self._folder = point, strike, passage, folder
        self._passed = 0
        self._guard = threading.Lock()
        self._inside = threading.local()

    def set(self) -> None:
        if self._point.within:
            _wrap(self._point.within, self._entering)
        _wrap(self._point.where, self._watching)

    def _entering(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def entered(*args: Any, **options: Any) -> Any:  # noqa: ANN401  those of the function
            self._inside.depth = getattr(self._inside, "depth", 0) + 1
            try:
                return function(*args, **options)
            finally:
                self._inside.depth -= 1

        return entered

    def _watching(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def watched(*args: Any, **options: Any) -> Any:  # noqa: ANN401  those of the function
            counts = self._is_inside() and self._point.only(*args, **options)
            if counts and not self._point.after:
                self._pass()
            came_to = function(*args, **options)
            if counts and self._point.after and came_to:
                self._pass()
            return came_to

        return watched

    def _is_inside(self) -> bool:
        return self._point.within is None or getattr(self._inside, "depth", 0) > 0

    def _pass(self) -> None:
        with self._guard:
            self._passed += 1
            due = self._passed == self._passage
        (self._folder / "passed").touch()
        if due:
            self._strike()


def find(where: str) -> tuple[Any, str]:
    """Return the module or class that a point names, and the name of the function in it.

    Raises:
        AttributeError, ImportError: the product has no such function.
    """
    module, _, path = where.partition(":")
    owner: Any = importlib.import_module(module)
    *owners, name = path.split(".")
    for attribute in owners:
        owner = getattr(owner, attribute)
    getattr(owner, name)
    return owner, name


def _wrap(where: str, by: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
    owner, name = find(where)
    setattr(owner, name, by(getattr(owner, name)))
