"""Encrypt (seal) and erase texts that belong to no DLQ: of consumer reports, of filters' searches, and of patches.

The installation's data key encrypts these texts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final, LiteralString

from reprocessing.domain.parking_lot.message_filter import SECRETS
from reprocessing.domain.payloads.sealing import Part
from reprocessing.store import rows
from reprocessing.store.payloads import content


@dataclass(frozen=True, slots=True)
class WholeValues:
    """Places in stored JSON and filters where a short value is erased, if the whole text at the place is the value.

    Elsewhere, a short value such as 47 may be a part of other numbers and texts by chance.

    Attributes:
        members: names of JSON members, and of conditions of filters, that have ordering keys or searched texts.
        conditions: whole conditions on search fields, such as "order_id:47".
        selectors: fields of messages that have the value. If a filter's `selector` is such a field, `value` is erased.
    """

    members: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()
    selectors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Column:
    """SQL for a column with texts. `text` reads the text of a row x of `table`; `change` sets it to `s.becomes`.

    `name`: the name of the filter's condition that the text is; empty: the text is no condition. `selector`: SQL that
    reads the condition `selector` of the same filter.
    """

    part: Part
    table: LiteralString
    text: LiteralString
    change: LiteralString
    name: str = ""
    selector: LiteralString = "NULL"


_REPORTS: Final = _Column(Part.REPORT, "redrive_report", "nullif(x.message, '')", "message = s.becomes")


def _of_filters(table: LiteralString, column: LiteralString, path: LiteralString) -> tuple[_Column, ...]:
    """Return the columns for the conditions of stored filters that may have message data (`message_filter.SECRETS`).

    `path`: where the filter is in the column's JSON, such as `filter,`; empty: the column is the filter.
    """
    return tuple(
        _Column(
            Part.FILTER, table, "x." + column + " #>> '{" + path + name + "}'",
            column + " = jsonb_set(x." + column + ", '{" + path + name + "}', to_jsonb(s.becomes))",
            name, "x." + column + " #>> '{" + path + "selector}'",
        )
        for name in SECRETS
    )  # fmt: skip


#: The columns with texts that people searched for, and with patches of edits: in bulk actions, in requests for
#: approval, and in saved filters.
_TYPED: Final = (
    *_of_filters("redrive_bulk_action", "filter", ""),
    *_of_filters("redrive_approval", "arguments", "filter,"),
    *_of_filters("redrive_saved_filter", "filter", ""),
    _Column(
        Part.PATCH, "redrive_bulk_action", "x.arguments ->> 'patch'",
        "arguments = jsonb_set(x.arguments, '{patch}', to_jsonb(s.becomes))",
    ),
    _Column(
        Part.PATCH, "redrive_approval", "x.arguments ->> 'patch'",
        "arguments = jsonb_set(x.arguments, '{patch}', to_jsonb(s.becomes))",
    ),
)  # fmt: skip


_READ: Final[LiteralString] = """
SELECT x.id, {text} AS text, ({selector})::text AS selector FROM {table} x
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
    selector: str | None


def seal_texts() -> int:
    """Encrypt all texts of consumer reports, filters and patches that are not encrypted yet; return how many."""
    done = 0
    for column in (_REPORTS, *_TYPED):
        for found in _texts(column, sealed=False):
            done += _replace(column, found, [content.sealed_text(text.text, column.part) for text in found])
    return done


def erase_filters(value: str, erased: str, *, whole_values_only: WholeValues | None) -> int:
    """Replace the value by `erased` in the encrypted texts of filters and patches; return how many texts changed.

    `whole_values_only`: the only places where the value is replaced; None: it is replaced inside of all texts.

    Raises:
        PayloadUnreadable: the installation's data key is not available.
    """
    done = 0
    for column in _TYPED:
        for found in _texts(column, sealed=True):
            opened = [(text, replace(text, text=content.opened_text(text.text, column.part))) for text in found]
            changed = [
                (text, after)
                for text, said in opened
                if (after := _erased(column, said, value, erased, whole_values_only)) != said.text
            ]
            becomes = [content.sealed_text(after, column.part) for _, after in changed]
            done += _replace(column, [text for text, _ in changed], becomes)
    return done


def _erased(column: _Column, opened: _Text, value: str, erased: str, places: WholeValues | None) -> str:
    """Return the text without the value. `opened`: the decrypted text. `places`: as in `erase_filters`."""
    if places is None:
        return opened.text.replace(value, erased)
    if column.name == "fields":
        lines = ((line, line.partition(":")) for line in opened.text.split("\n"))
        return "\n".join(
            name + colon + (erased if line in places.conditions else its) for line, (name, colon, its) in lines
        )
    is_place = column.name in places.members or (column.name == "value" and opened.selector in places.selectors)
    return erased if is_place and opened.text == value else opened.text


def _texts(column: _Column, *, sealed: bool) -> Iterator[list[_Text]]:
    """Yield the texts of a column, in lists of up to 500. `sealed`: only encrypted texts; false: only the others."""
    statement = _READ.format(table=column.table, text=column.text, selector=column.selector)
    above = 0
    while found := rows.fetch(_Text, statement, {"above": above, "sealed": sealed}):
        yield found
        above = found[-1].id


def _replace(column: _Column, found: list[_Text], becomes: list[str]) -> int:
    """Replace texts, unless they were changed or erased since they were read; return how many were replaced."""
    statement = _REPLACE.format(table=column.table, text=column.text, change=column.change)
    former = [text.text for text in found]
    return rows.execute(statement, {"ids": [text.id for text in found], "former": former, "becomes": becomes})
