"""Read the keys of a letter (ordering key, sequence, idempotency key), and compute the letter's digests and ids.

A selector, such as attribute:OrderId, says where a key is in the message.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from functools import cached_property
from typing import assert_never
from uuid import UUID

from reprocessing.domain.errors import InvalidSelector
from reprocessing.domain.message import json_view
from reprocessing.domain.message.envelope import Attributes
from reprocessing.domain.message.json_view import JsonValue, Unreadable
from reprocessing.domain.routing import jmespath_query
from reprocessing.domain.routing.jmespath_query import Failed

#: Max characters of a key, because keys are stored in a database index and in a message attribute.
KEY_LENGTH = 1024
#: Names of the attributes that SQS itself sets on a message (AWS: ReceiveMessage).
SYSTEM_ATTRIBUTES = frozenset((
    "AWSTraceHeader", "ApproximateFirstReceiveTimestamp", "ApproximateReceiveCount", "DeadLetterQueueSourceArn",
    "MessageDeduplicationId", "MessageGroupId", "SenderId", "SentTimestamp", "SequenceNumber",
))  # fmt: skip
ATTRIBUTE_NAME = re.compile(r"[A-Za-z0-9_.-]{1,256}")
_SHAPES = "system:NAME, attribute:NAME, body:JMESPATH, message-id, content-hash or none"
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")  # characters that PostgreSQL cannot store


class SelectorSource(StrEnum):
    """The part of a message that a selector reads."""

    SYSTEM = "system"
    ATTRIBUTE = "attribute"
    BODY = "body"
    MESSAGE_ID = "message-id"
    CONTENT_HASH = "content-hash"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Selector:
    """Says where a key is in a message, such as attribute:OrderId. `str(selector)` is the text that `parse` reads."""

    source: SelectorSource
    name: str = ""

    def __str__(self) -> str:
        return f"{self.source}:{self.name}" if self.name else self.source.value

    @classmethod
    def parse(cls, text: str) -> Selector:
        """Parse a text into a selector, which says where a key is. Raise InvalidSelector, which names valid forms."""
        word, colon, name = text.strip().partition(":")
        if word not in list(SelectorSource):
            raise InvalidSelector(f'"{text}" is not a selector. Write {_SHAPES}.')
        source = SelectorSource(word)
        if problem := _problem(source, name, named=bool(colon)):
            raise InvalidSelector(f'"{text}" is not a selector: {problem}')
        return cls(source, name)


@dataclass(frozen=True)
class LetterFacts:
    """The parts of a letter that selectors read. `system`: SQS's own attributes. The body is parsed at most once."""

    message_id: str
    body: bytes
    attributes: Attributes
    system: Mapping[str, str]

    @cached_property
    def document(self) -> JsonValue | Unreadable:
        """Return the parsed JSON of the body, or `Unreadable` if the body is not readable JSON."""
        return json_view.read(self.body)


@dataclass(frozen=True, slots=True)
class Missing:
    """The letter has no usable key: the key is absent, empty, or neither text nor number."""


@dataclass(frozen=True, slots=True)
class TooLong:
    """The key is longer than allowed. `length` and `limit` are numbers of characters."""

    length: int
    limit: int


Selected = str | Missing | Unreadable | TooLong


def select_key(selector: Selector, letter: LetterFacts) -> Selected:
    """Return the key that a selector reads from a letter, or why the letter has no usable key. Never raises.

    A key has 1 to 1,024 characters.
    """
    match selector.source:
        case SelectorSource.SYSTEM:
            return _key(letter.system.get(selector.name))
        case SelectorSource.ATTRIBUTE:
            attribute = letter.attributes.get(selector.name)
            return _key(attribute.value if attribute else None)
        case SelectorSource.BODY:
            found = letter.document
            return found if isinstance(found, Unreadable) else _key(jmespath_query.search(selector.name, found))
        case SelectorSource.MESSAGE_ID:
            return _key(letter.message_id)
        case SelectorSource.CONTENT_HASH:
            return body_hash(letter.body).hex()
        case SelectorSource.NONE:
            return Missing()
        case _ as never:
            assert_never(never)


def select_values(selector: Selector, letter: LetterFacts, *, most: int) -> list[str]:
    """Return the texts and numbers that a selector reads from a letter, of any length; several if it reads a list.

    `most`: how many members of a list are read. Never raises: a value that cannot be read is left out.
    """
    found: object
    match selector.source:
        case SelectorSource.BODY if not isinstance(letter.document, Unreadable):
            found = jmespath_query.search(selector.name, letter.document)
        case SelectorSource.ATTRIBUTE:
            attribute = letter.attributes.get(selector.name)
            found = attribute.value if attribute else None
        case _:
            found = select_key(selector, letter)
    texts = [_text(value) for value in (found[:most] if isinstance(found, list) else [found])]
    return [text for text in texts if isinstance(text, str) and not _UNSTORABLE.search(text)]


def key_hash(key: str) -> bytes:
    """Return the SHA-256 of a key. The database finds lanes and reserved idempotency keys by this hash."""
    return hashlib.sha256(key.encode(errors="surrogatepass")).digest()


def body_hash(body: bytes) -> bytes:
    """Return the SHA-256 of a body. Attributes are excluded, because trace ids and redrive attributes change."""
    return hashlib.sha256(body).digest()


def deduplication_id(public_id: UUID, epoch: int) -> str:
    """Return the MessageDeduplicationId of a letter.

    `public_id` is the redrive id. `epoch` is a number that rises with every known failure and every edit of the letter.
    So the next attempt has a new id, and SQS does not drop it as a duplicate.
    """
    return hashlib.sha256(f"{public_id}:{epoch}".encode()).hexdigest()


def _problem(source: SelectorSource, name: str, *, named: bool) -> str | None:
    match source:
        case SelectorSource.SYSTEM if name not in SYSTEM_ATTRIBUTES:
            return f"SQS has no such attribute. Name one of {', '.join(sorted(SYSTEM_ATTRIBUTES))}."
        case SelectorSource.ATTRIBUTE if not ATTRIBUTE_NAME.fullmatch(name):
            return "an attribute's name has letters, digits, _ . and -, 256 at most. Write attribute:NAME."
        case SelectorSource.BODY:
            return jmespath_query.problem(name)
        case SelectorSource.MESSAGE_ID | SelectorSource.CONTENT_HASH | SelectorSource.NONE if named:
            return f"{source} takes no name. Write {source} alone."
        case _:
            return None


def _key(value: object) -> Selected:
    found = _text(value)
    return _fitting(found) if isinstance(found, str) else found


def _text(value: object) -> str | Missing | Unreadable:
    match value:
        case bool():
            return Missing()
        case int() | Decimal():
            return json_view.number_text(value)
        case float() if value - value == 0:  # not infinite, not NaN: the result of a JMESPath function
            return json_view.number_text(Decimal(repr(value)))
        case str() if value.strip():
            return value
        case Failed(why, exhausted=True):  # not Missing: the key may be there, but costs too much to read
            return Unreadable(why)
        case _:
            return Missing()


def _fitting(text: str) -> str | TooLong | Unreadable:
    if len(text) > KEY_LENGTH:
        return TooLong(len(text), KEY_LENGTH)
    if _UNSTORABLE.search(text):
        return Unreadable("the key holds a NUL or half a surrogate pair")
    return text
