"""EXPLAINs every statement that the service executes: which tables it scans, and how many buffers it reads."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, LiteralString

import psycopg
import pytest
from django.db import connection, transaction

from reprocessing.models import rows

Node = dict[str, Any]

#: Tables that grow with the letters. A sequential scan of the others is the cheapest way to read them.
LARGE: Final = frozenset({
    "redrive_letter", "redrive_payload", "redrive_attempt", "redrive_lane", "redrive_custody", "redrive_claim",
})  # fmt: skip
_VERBS: Final = ("SELECT", "INSERT", "UPDATE", "DELETE", "WITH")


@dataclass(frozen=True, slots=True)
class Explained:
    """One execution of a statement.

    Attributes:
        name: the function that executed it, with its module.
        text: the statement in one line.
        asked: letters that it was asked for: its longest list, or the rows that it found or wrote; 1 at least.
        buffers: shared buffers that it hit or read.
        scanned: large tables that it scanned sequentially.
        plan: as PostgreSQL explains it.
    """

    name: str
    text: str
    asked: int
    buffers: int
    scanned: frozenset[str]
    plan: Node

    @property
    def buffers_a_letter(self) -> float:
        return self.buffers / self.asked


@contextmanager
def explained() -> Iterator[list[Explained]]:
    """Every statement of the models and the store, and of the ORM, while this lasts."""
    found: list[Explained] = []
    run = rows._execute

    def of_rows(cursor: psycopg.Cursor[Any], statement: LiteralString, parameters: Mapping[str, Any]) -> None:
        found.append(_explain(statement, parameters))
        run(cursor, statement, parameters)

    def of_the_orm(execute: Any, sql: Any, params: Any, many: bool, context: Any) -> Any:  # noqa: ANN401, FBT001  # Django's
        if not many and isinstance(sql, str) and sql.startswith(_VERBS):
            found.append(_explain(sql, params))
        return execute(sql, params, many, context)

    with pytest.MonkeyPatch.context() as patch, connection.execute_wrapper(of_the_orm):
        patch.setattr(rows, "_execute", of_rows)
        yield found


def _explain(statement: str, parameters: Mapping[str, Any] | Sequence[Any] | None) -> Explained:
    """Weigh the cheaper of two executions, each undone: the first one marks the dead index entries that it meets.

    A bitmap scan never marks them, and so reads them again with each execution.
    """
    plan = min((_plan(statement, parameters) for _ in range(2)), key=_buffers)
    values = parameters.values() if isinstance(parameters, Mapping) else parameters or ()
    lists = (len(value) for value in values if isinstance(value, list | tuple))
    return Explained(
        _caller(), " ".join(statement.split()), max(1, _rows(plan), *lists), _buffers(plan), frozenset(_scanned(plan)),
        plan,
    )  # fmt: skip


def _plan(statement: str, parameters: Any) -> Node:  # noqa: ANN401  # psycopg's
    connection.ensure_connection()
    with transaction.atomic():
        raw = connection.connection
        [[answer]] = psycopg.Cursor(raw).execute(
            f"EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) {statement}", parameters, binary=False  # type: ignore[arg-type]
        ).fetchall()
        transaction.set_rollback(True)
    return answer[0]["Plan"]


def _caller() -> str:
    frame = sys._getframe(2)
    while frame:
        module, _, name = frame.f_globals["__name__"].partition("."), "", frame.f_code.co_name
        if module[0] == "reprocessing" and not frame.f_globals["__name__"].endswith(".rows"):
            return f"{frame.f_globals['__name__'].removeprefix('reprocessing.')}.{frame.f_code.co_qualname if hasattr(frame.f_code, 'co_qualname') else name}"
        frame = frame.f_back
    return "?"


def _buffers(plan: Node) -> int:
    return int(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])


def _rows(plan: Node) -> int:
    """The rows that it answers with, or that a part of it writes."""
    return max([int(plan["Actual Rows"]), *_written(plan)])


def _written(plan: Node) -> Iterator[int]:
    below = plan.get("Plans", ())
    if plan["Node Type"] == "ModifyTable":
        yield from (int(node["Actual Rows"]) for node in below)
    for node in below:
        yield from _written(node)


def _scanned(plan: Node) -> Iterator[str]:
    if plan["Node Type"] == "Seq Scan" and plan["Relation Name"] in LARGE and plan["Actual Loops"]:
        yield plan["Relation Name"]
    for node in plan.get("Plans", ()):
        yield from _scanned(node)
