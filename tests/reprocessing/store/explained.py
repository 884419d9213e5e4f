"""EXPLAIN every statement: the tables that it scans, and the buffers that it reads."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, LiteralString

import psycopg
import pytest
from django.db import connection, transaction

from reprocessing.store import rows
from tests.conditions import eventually
from tests.reprocessing.store.seeded_letters import TABLES

Plan = dict[str, Any]

_PARAMETER: Final = re.compile(r"%\((\w+)\)b")
_VERBS: Final = ("SELECT", "INSERT", "UPDATE", "DELETE", "WITH")


_OTHER_SNAPSHOTS: Final = """
SELECT count(*) FROM pg_stat_activity
 WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_xmin IS NOT NULL
"""


@dataclass(frozen=True, slots=True)
class Explained:
    """One execution of a statement.

    Attributes:
        name: the function that executed it, with its module.
        text: the statement in one line.
        letters: what it was asked for: its longest list, or the rows that it found, counted or wrote; 1 at least.
        buffers: shared buffers that it hit or read.
        scanned: seeded tables that it scanned sequentially.
    """

    name: str
    text: str
    letters: int
    buffers: int
    scanned: frozenset[str]


@contextmanager
def explained() -> Iterator[list[Explained]]:
    """Explain every statement of the store and of the ORM in this block."""
    found: list[Explained] = []
    run = rows._execute

    def of_rows(cursor: psycopg.Cursor[Any], statement: LiteralString, parameters: Mapping[str, Any]) -> None:
        if not statement.startswith("SET "):  # PostgreSQL cannot explain it
            found.append(_explain(statement, parameters))
        run(cursor, statement, parameters)

    def of_the_orm(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:  # noqa: ANN401  # Django's
        if not many and sql.startswith(_VERBS):
            found.append(_explain(sql, params))
        return execute(sql, params, many, context)

    with pytest.MonkeyPatch.context() as patch, connection.execute_wrapper(of_the_orm):
        connection.ensure_connection()
        patch.setattr(connection.connection, "prepare_threshold", None)  # each plan is made for its parameters
        patch.setattr(rows, "_execute", of_rows)
        yield found
    assert found, "no statement was explained"


def _explain(statement: str, parameters: Mapping[str, Any] | Sequence[Any] | None) -> Explained:
    """Return the cheaper of two undone executions: an index scan marks dead entries, and skips them the next time.

    It cannot mark them while another session has an older snapshot, such as an autovacuum of PostgreSQL's own tables.
    """
    _wait_until_others_have_ended()
    eventually(_has_the_only_snapshot, within=60)
    plan = min((_plan(statement, parameters) for _ in range(2)), key=_buffers)
    values = parameters.values() if isinstance(parameters, Mapping) else parameters or ()
    lists = (len(value) for value in values if isinstance(value, list | tuple))
    return Explained(
        _caller(), " ".join(statement.split()), max(1, *_found(plan), *lists), _buffers(plan), frozenset(_scanned(plan))
    )  # fmt: skip


def _wait_until_others_have_ended() -> None:
    """Wait for transactions of other tests that began before now, in any database of this PostgreSQL.

    A snapshot keeps what was deleted after the beginning of the oldest transaction, whatever its database.
    """
    connection.ensure_connection()
    cursor = psycopg.ClientCursor[Any](connection.connection)
    [[now]] = cursor.execute("SELECT pg_current_xact_id()::text::bigint").fetchall()
    oldest = "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint"
    eventually(lambda: cursor.execute(oldest).fetchall()[0][0] >= now, within=60)


def _has_the_only_snapshot() -> bool:
    connection.ensure_connection()
    raw: Any = connection.connection
    return psycopg.ClientCursor(raw).execute(_OTHER_SNAPSHOTS).fetchone() == (0,)


def _plan(statement: str, parameters: Any) -> Plan:  # noqa: ANN401  # psycopg's
    connection.ensure_connection()
    with transaction.atomic():
        raw: Any = connection.connection
        is_prepared = isinstance(parameters, Mapping)
        asked, values = _prepared(raw, statement, parameters) if is_prepared else (statement, parameters)
        cursor = psycopg.ClientCursor(raw)
        [[answer]] = cursor.execute(f"EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) {asked}", values).fetchall()
        if is_prepared:
            cursor.execute("DEALLOCATE explained")
        transaction.set_rollback(True)
    plan: Plan = answer[0]["Plan"]
    return plan


def _prepared(raw: Any, statement: str, parameters: Mapping[str, Any]) -> tuple[str, list[Any]]:  # noqa: ANN401  psycopg's
    """Prepare a statement of the store, so that it has the plan for all parameters that it has in a worker."""
    names: list[str] = list(dict.fromkeys(_PARAMETER.findall(statement)))
    numbered = _PARAMETER.sub(lambda found: f"${names.index(found[1]) + 1}", statement).replace("%%", "%")
    psycopg.Cursor(raw).execute(f"PREPARE explained AS {numbered}", prepare=False)
    places = f"({', '.join(['%s'] * len(names))})" if names else ""
    return f"EXECUTE explained{places}", [parameters[name] for name in names]


def _caller() -> str:
    frame = sys._getframe(2)
    while frame.f_back:
        module, name = str(frame.f_globals["__name__"]), frame.f_code.co_name
        if module.startswith("reprocessing.") and module != rows.__name__:
            return f"{module.removeprefix('reprocessing.')}.{name}"
        frame = frame.f_back
    return "the test"


def _buffers(plan: Plan) -> int:
    """A node's count includes its children's, except CTEs that write and are not read."""
    own = int(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])
    return max(own, *(_buffers(node) for node in plan.get("Plans", ())), 0)


def _found(plan: Plan) -> Iterator[int]:
    yield int(plan["Actual Rows"])
    yield from _written(plan)


def _written(plan: Plan) -> Iterator[int]:
    below = plan.get("Plans", ())
    if plan["Node Type"] == "ModifyTable":
        yield from (int(node["Actual Rows"]) for node in below)
    for node in below:
        yield from _written(node)


def _scanned(plan: Plan) -> Iterator[str]:
    """A join reads one row of a table to see whether the other has any: that is no scan."""
    read = plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0) if plan["Actual Loops"] else 0
    if plan["Node Type"] == "Seq Scan" and plan["Relation Name"] in TABLES and read > 1:
        yield plan["Relation Name"]
    for node in plan.get("Plans", ()):
        yield from _scanned(node)
