"""The table "This key" of a message's page: the messages with the same ordering key, and their attempts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from reprocessing.admin.messages.uncounted_attempts import attempts_in_lists
from reprocessing.models import Letter
from reprocessing.store.ordering import key_messages
from reprocessing.store.ordering.key_messages import KeyMessage


@dataclass(frozen=True, slots=True)
class KeyRow:
    """A message with the same ordering key. `attempts`: a text about its attempts, such as "3 of 3 (4 in all)"."""

    message: KeyMessage
    attempts: str


@dataclass(frozen=True, slots=True)
class KeyTable:
    """The messages with the same key, before and after the page's message.

    `more_before`, `more_after`: whether the key has further messages, which are left out.
    """

    before: tuple[KeyRow, ...]
    after: tuple[KeyRow, ...]
    more_before: bool
    more_after: bool


def key_table(letter: Letter) -> KeyTable | None:
    """Return the messages of the same key before and after a message.

    None: the message has no ordering key, or has no place in a key queue yet.
    """
    found = key_messages.messages_around(letter)
    if found is None:
        return None
    allowed = letter.dlq.max_attempts
    return KeyTable(_rows(found.before, allowed), _rows(found.after, allowed), found.more_before, found.more_after)


def _rows(found: Iterable[KeyMessage], allowed: int) -> tuple[KeyRow, ...]:
    return tuple(
        KeyRow(
            row,
            attempts_in_lists(row.attempts, earlier=row.attempts_before_release, spared=row.spared, allowed=allowed),
        )
        for row in found
    )
