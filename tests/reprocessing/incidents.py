"""Reading incidents, and counting statements."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from reprocessing.models import Incident
from reprocessing.store import rows


def is_open(kind: str) -> dict[str, Mapping[str, Any]]:
    """The facts of the open incidents of this kind, by subject."""
    return dict(Incident.objects.filter(kind=kind, ended_at=None).values_list("subject", "facts"))


def told(kind: str) -> list[tuple[str, int, bool]]:
    """Every incident of this kind: its subject, how often it was announced, and whether it is open."""
    found = Incident.objects.filter(kind=kind).order_by("pk")
    return [(one.subject, one.times, one.ended_at is None) for one in found]


@contextmanager
def statements() -> Iterator[list[str]]:
    """What is asked of Postgres past the ORM, statement by statement."""
    asked: list[str] = []
    execute: Callable[..., None] = rows._execute

    def counting(cursor: object, statement: str, parameters: object) -> None:
        asked.append(statement)
        execute(cursor, statement, parameters)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows, "_execute", counting)
        yield asked
