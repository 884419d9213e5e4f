"""Let something happen before or after a function that the code under test calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


def happens_before(
    patch: pytest.MonkeyPatch, place: object, name: str, happens: Callable[[], object], *, once: bool = False
) -> None:
    """Call `happens` before each call of this function, or only before the next call."""
    real = getattr(place, name)

    def call(*args: Any, **options: Any) -> Any:  # noqa: ANN401  those of the function
        if once:
            patch.setattr(place, name, real)
        happens()
        return real(*args, **options)

    patch.setattr(place, name, call)


def happens_after(
    patch: pytest.MonkeyPatch, place: object, name: str, happens: Callable[[], object], *, once: bool = False
) -> None:
    """Call `happens` after each call of this function, or only after the next call."""
    real = getattr(place, name)

    def call(*args: Any, **options: Any) -> Any:  # noqa: ANN401  those of the function
        if once:
            patch.setattr(place, name, real)
        done = real(*args, **options)
        happens()
        return done

    patch.setattr(place, name, call)
