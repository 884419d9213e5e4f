r"""A pytest plugin for mutmut, which collects the same tests several times in one process.

Pytest remembers the ids of a test's cases after the first collection and escapes them again at the next: `a\nb` becomes
`a\\nb`. Mutmut would ask for cases by names that they no longer have.
"""

from __future__ import annotations

import pytest


def pytest_pycollect_makeitem(obj: object) -> None:
    """Give the function marks that remember no ids."""
    marks = vars(obj).get("pytestmark") if hasattr(obj, "__dict__") else None
    if isinstance(marks, list):
        marks[:] = [_as_written(mark) for mark in marks]


def _as_written(mark: pytest.Mark) -> pytest.Mark:
    if mark.name != "parametrize":
        return mark
    return pytest.mark.parametrize.with_args(*mark.args, **mark.kwargs).mark
