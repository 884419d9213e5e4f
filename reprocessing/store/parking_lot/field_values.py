"""Read a field of the content of many letters: find the letters with a value, or group letters by their values.

The bodies are read here and not by SQL, because PostgreSQL can read neither encrypted bodies nor JMESPath.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Final, LiteralString

from reprocessing.domain.errors import InvalidFilter
from reprocessing.domain.message.envelope import unpack_attributes
from reprocessing.domain.message.identity import LetterFacts, Selector, SelectorSource
from reprocessing.domain.parking_lot.field_value import FieldValue, NoValue, value_of
from reprocessing.domain.routing import jmespath_query
from reprocessing.models import DeadLetterQueue
from reprocessing.store import rows
from reprocessing.store.payloads import content, sealed_search, viewed_content
from reprocessing.store.payloads.content import IS_SEALED

_READ = """
SELECT l.id, l.message_id, l.dlq_id, l.first_sent_at, coalesce(v.body, p.body) AS body,
       coalesce(v.attributes, p.attributes) AS attributes
  FROM redrive_letter l JOIN redrive_payload p ON p.letter_id = l.id
  LEFT JOIN redrive_revision v ON v.id = l.revision_id
 WHERE l.id = ANY(%(letters)b::bigint[]) ORDER BY l.id
"""

# Letters whose body may have the value. Either the body is encrypted, or it has the text (or the digits of the
# integer), or it has an escape sequence such as \u0041, or a number with an exponent such as 4.2e1, which may be the
# value.
_MAY_HAVE: Final[LiteralString] = rf"""
SELECT l.id FROM redrive_letter l JOIN redrive_payload p ON p.letter_id = l.id
  LEFT JOIN redrive_revision v ON v.id = l.revision_id
  CROSS JOIN LATERAL (SELECT coalesce(v.body, p.body) AS body) b
 WHERE l.id = ANY(%(letters)b::bigint[])
   AND ({IS_SEALED.format("b.body")} OR position(%(text)b::bytea IN b.body) > 0
        OR position('\x5c75'::bytea IN b.body) > 0
        OR (%(number)b::bool AND encode(b.body, 'escape') ~ '[:,[[:space:]]-?[0-9]+(\.[0-9]+)?[eE]'))
"""  # noqa: S608  # the inserted text is a constant
_INTEGER: Final = re.compile(r"-?[0-9]+", re.ASCII)
#: A text that JSON may only write as it is, or with \u. It is not a number with a fraction, which has several forms.
_PLAIN: Final = re.compile(r"(?![-+.0-9eE]*\Z)[^\"\\/\x00-\x1f]+")


@dataclass(frozen=True, slots=True)
class _Content:
    id: int
    message_id: str
    dlq_id: int
    first_sent_at: datetime
    body: bytes = field(repr=False)
    attributes: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class ValueGroup:
    """How many letters have a value in a field. `sample`: id of the oldest of these letters, sent at `oldest`."""

    value: FieldValue
    letters: int
    oldest: datetime
    sample: int


@dataclass(frozen=True, slots=True)
class ValueGroups:
    """Groups of letters by the value of a field, the largest first. `read`: how many letters were read."""

    groups: tuple[ValueGroup, ...]
    read: int


def letters_with(wanted: Selector, value: str | None, among: Sequence[int], *, seconds: float | None) -> list[int]:
    """Return the ids of those letters of `among` that have the value in the field `wanted`.

    `value` None: return letters without the field. The field is read from the bytes that would be sent, with edits.
    `seconds`: the time limit; None: no limit.

    Raises:
        InvalidFilter: the search took longer than `seconds`.
    """
    sought: FieldValue = NoValue.MISSING if value is None else value
    ends = None if seconds is None else time.monotonic() + seconds
    found: list[int] = []
    for chunk in _chunks(_candidates(wanted, value, among)):
        if ends is not None and time.monotonic() > ends:
            raise InvalidFilter(
                f"Reading the field took longer than {seconds:g} seconds and was stopped. Narrow the filter by DLQ, "
                "group or dates."
            )
        found += [one.id for one in chunk if value_of(wanted, _facts(one)) == sought]
    return found


def group_letters(wanted: Selector, among: Sequence[int], *, seconds: float) -> ValueGroups:
    """Group the letters `among` by the value of the field `wanted`. Values that masking rules hide are masked.

    Letters are read in chunks, until `seconds` have passed; at least one chunk is read, even if that takes longer.
    """
    ends, groups, read = time.monotonic() + seconds, dict[FieldValue, ValueGroup](), 0
    rules = lru_cache(lambda dlq: viewed_content.rules_of(DeadLetterQueue.objects.get(pk=dlq)))
    for chunk in _chunks(among):
        for one in chunk:
            shown = viewed_content.masked_by(rules(one.dlq_id), one.body, unpack_attributes(one.attributes))
            value = value_of(wanted, LetterFacts(one.message_id, shown.body, shown.attributes, {}))
            read += 1
            groups[value] = _add_to_group(groups.get(value), value, one)
        if time.monotonic() > ends:
            break
    return ValueGroups(tuple(sorted(groups.values(), key=lambda group: -group.letters)), read)


def _candidates(wanted: Selector, value: str | None, among: Sequence[int]) -> Sequence[int]:
    """Return letters of `among` that may have the value. PostgreSQL leaves out bodies without the value's text."""
    is_read = wanted.source is SelectorSource.BODY and jmespath_query.is_path(wanted.name)
    if not is_read or value is None or not (_PLAIN.fullmatch(value) or _INTEGER.fullmatch(value)):
        return among
    is_number = bool(_INTEGER.fullmatch(value))
    text = value.removeprefix("-") if is_number else value
    return rows.column(int, _MAY_HAVE, {"letters": list(among), "text": text.encode(), "number": is_number})


def _add_to_group(group: ValueGroup | None, value: FieldValue, one: _Content) -> ValueGroup:
    if group is None:
        return ValueGroup(value, 1, one.first_sent_at, one.id)
    is_older = one.first_sent_at < group.oldest
    oldest, sample = (one.first_sent_at, one.id) if is_older else (group.oldest, group.sample)
    return ValueGroup(value, group.letters + 1, oldest, sample)


def _chunks(among: Sequence[int]) -> Iterator[list[_Content]]:
    """Yield these letters in lists, with their bytes. Letters without readable bytes are left out."""
    for chunk in sealed_search.chunks(among):
        readable, _ = content.opened_or_why(rows.fetch(_Content, _READ, {"letters": chunk}))
        yield readable


def _facts(one: _Content) -> LetterFacts:
    return LetterFacts(one.message_id, one.body, unpack_attributes(one.attributes), {})
