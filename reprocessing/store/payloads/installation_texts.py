"""Seal and erase the texts that the installation's data key encrypts: of consumer reports, filters and patches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, LiteralString

from reprocessing.domain.payloads.sealing import Part
from reprocessing.store import rows
from reprocessing.store.payloads import content


@dataclass(frozen=True, slots=True)
class _Column:
    """SQL of a column with texts: its `table`; `text` reads the text of a row x; `change` sets the text."""

    part: Part
    table: LiteralString
    text: LiteralString
    change: LiteralString


_REPORTS: Final = _Column(Part.REPORT, "redrive_report", "nullif(x.message, '')", "message = s.becomes")
#: Texts that people searched for, and patches of edits: of bulk actions, and of requests for approval of them.
_TYPED: Final = (
    _Column(
        Part.FILTER, "redrive_bulk_action", "x.filter ->> 'text'",
        "filter = jsonb_set(x.filter, '{text}', to_jsonb(s.becomes))",
    ),
    _Column(
        Part.FILTER, "redrive_bulk_action", "x.filter ->> 'value'",
        "filter = jsonb_set(x.filter, '{value}', to_jsonb(s.becomes))",
    ),
    _Column(
        Part.PATCH, "redrive_bulk_action", "x.arguments ->> 'patch'",
        "arguments = jsonb_set(x.arguments, '{patch}', to_jsonb(s.becomes))",
    ),
    _Column(
        Part.FILTER, "redrive_approval", "x.arguments #>> '{filter,text}'",
        "arguments = jsonb_set(x.arguments, '{filter,text}', to_jsonb(s.becomes))",
    ),
    _Column(
        Part.FILTER, "redrive_approval", "x.arguments #>> '{filter,value}'",
        "arguments = jsonb_set(x.arguments, '{filter,value}', to_jsonb(s.becomes))",
    ),
    _Column(
        Part.PATCH, "redrive_approval", "x.arguments ->> 'patch'",
        "arguments = jsonb_set(x.arguments, '{patch}', to_jsonb(s.becomes))",
    ),
)  # fmt: skip


_READ: Final[LiteralString] = """
SELECT x.id, {text} AS text FROM {table} x
 WHERE x.id > %(above)b::bigint AND (left({text}, 1) = chr(26)) = %(sealed)b ORDER BY x.id LIMIT 500
"""

_REPLACE: Final[LiteralString] = """
UPDATE {table} x SET {change}
  FROM unnest(%(ids)b::bigint[], %(former)b::text[], %(becomes)b::text[]) AS s(id, former, becomes)
 WHERE x.id = s.id AND {text} = s.former
"""


@dataclass(frozen=True, slots=True)
class _Text:
    id: int
    text: str


def seal_texts() -> int:
    """Seal all readable texts of consumer reports, filters and patches; return how many."""
    done = 0
    for column in (_REPORTS, *_TYPED):
        for found in _texts(column, sealed=False):
            done += _replace(column, found, [content.sealed_text(text.text, column.part) for text in found])
    return done


def erase_filters(value: str, erased: str) -> int:
    """Replace the value by `erased` in the sealed texts of filters and patches; return in how many.

    Raises:
        PayloadUnreadable: the installation's data key is not available.
    """
    done = 0
    for column in _TYPED:
        for found in _texts(column, sealed=True):
            opened = [(text, content.opened_text(text.text, column.part)) for text in found]
            with_value = [(text, said) for text, said in opened if value in said]
            becomes = [content.sealed_text(said.replace(value, erased), column.part) for _, said in with_value]
            done += _replace(column, [text for text, _ in with_value], becomes)
    return done


def _texts(column: _Column, *, sealed: bool) -> Iterator[list[_Text]]:
    """Yield lists of the texts of a column that are sealed (`sealed`), or that are readable."""
    statement = _READ.format(table=column.table, text=column.text)
    above = 0
    while found := rows.fetch(_Text, statement, {"above": above, "sealed": sealed}):
        yield found
        above = found[-1].id


def _replace(column: _Column, found: list[_Text], becomes: list[str]) -> int:
    """Replace texts, except those that were changed or erased since they were read; return how many were replaced."""
    statement = _REPLACE.format(table=column.table, text=column.text, change=column.change)
    former = [text.text for text in found]
    return rows.execute(statement, {"ids": [text.id for text in found], "former": former, "becomes": becomes})
