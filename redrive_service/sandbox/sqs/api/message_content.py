"""Validate the content of a message (body, message attributes, trace header), and calculate its MD5 digests."""

import re
import struct
from base64 import b64decode
from dataclasses import dataclass
from functools import lru_cache
from hashlib import md5
from typing import Final

from redrive_service.sandbox.sqs.api.errors import (
    SqsError,
    invalid_parameter,
    invalid_value,
    missing_parameter,
    wrong_type,
)
from redrive_service.sandbox.sqs.api.parameters import Request

MOST_ATTRIBUTES: Final = 10  # max attributes of a message (AWS)
_LONGEST_NAME: Final = 256
# Characters that XML 1.0 does not allow (AWS, SendMessage).
_FORBIDDEN: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_ALLOWED_ASCII: Final = bytes([0x9, 0xA, 0xD, *range(0x20, 0x80)])
# Characters in names of attributes. AWS accepts letters outside of ASCII, although its documentation says otherwise.
_NAME: Final = re.compile(r"[\w.-]+")
_RESERVED: Final = re.compile(r"(?i)(aws|amazon)\.")
_TYPE: Final = re.compile(r"(String|Number|Binary)(\.[A-Za-z0-9_.-]+)?")
_NUMBER: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_MOST_DIGITS: Final = 38
_FRAME: Final = 4
_STRING_VALUE: Final = b"\x01"
_BINARY_VALUE: Final = b"\x02"
_LENGTH: Final = struct.Struct(">I").pack
# Number of fields of a usual attribute: DataType and one value.
_PLAIN: Final = 2
# Bytes that an attribute adds to its digest, besides name, type and value: three lengths, and one byte for its kind.
_FRAMES: Final = 3 * _FRAME + 1
TRACE_HEADER: Final = "AWSTraceHeader"

Attributes = dict[str, dict[str, str]]


@dataclass(slots=True, eq=False)
class Content:
    """The validated content of a message. It never changes, so copies of a message in other queues share it.

    `size` is the number of bytes of the body, and of names, types and values of the message attributes. The trace
    header (AWSTraceHeader) is not counted.
    """

    body: str
    md5: str
    size: int
    attributes: Attributes
    attributes_md5: str | None
    trace: str | None
    trace_md5: str | None


def read_content(entry: Request, body: str) -> Content:
    """Check and return the content of a sent message with this body. Raises SqsError if the content is invalid."""
    encoded = check_characters(body, "body")
    size = len(encoded)
    attributes: Attributes = {}
    attributes_md5 = None
    if entry.get("MessageAttributes"):
        attributes, frames = read_attributes(entry, "MessageAttributes")
        attributes_md5, attributes_size = _digest(frames)
        size += attributes_size
    trace = trace_md5 = None
    if entry.get("MessageSystemAttributes"):
        trace, trace_md5 = _read_trace(entry)
    digest = md5(encoded, usedforsecurity=False).hexdigest()
    return Content(body, digest, size, attributes, attributes_md5, trace, trace_md5)


def check_characters(value: str, what: str, name: str = "") -> bytes:
    """Return the text in UTF-8. Refuse characters that SQS does not allow.

    `what` says in the error what the text is ("body" or "attribute"), and `name` the attribute's name.
    """
    if value.isascii():
        encoded = value.encode()
        if not encoded.translate(None, _ALLOWED_ASCII):
            return encoded
    elif not _FORBIDDEN.search(value):
        return value.encode()
    allowed = "#x9 | #xA | #xD | #x20 to #xD7FF | #xE000 to #xFFFD | #x10000 to #x10FFFF"
    which = f"{what} '{name}'" if name else what
    raise SqsError("InvalidMessageContents", f"Invalid characters in the message {which}. Allowed are: {allowed}")


def read_attributes(entry: Request, parameter: str) -> tuple[Attributes, dict[str, bytes]]:
    """Return two maps by attribute name: the message attributes, and the bytes that each adds to the MD5 digest.

    An attribute has its DataType, and StringValue or BinaryValue (base64).

    Raises:
        SqsError: an attribute is invalid.
    """
    raw = entry.get(parameter)
    if not isinstance(raw, dict):
        raise wrong_type(parameter, "a map of attributes")
    if len(raw) > MOST_ATTRIBUTES:
        reason = f"Number of message attributes [{len(raw)}] exceeds the allowed maximum [{MOST_ATTRIBUTES}]."
        raise invalid_parameter(reason)
    attributes: Attributes = {}
    frames: dict[str, bytes] = {}
    for name, value in raw.items():
        frames[name] = _frame(name, value)
        attributes[name] = value if len(value) == _PLAIN else _without_more(value)
    return attributes, frames


def texts_in(attributes: Attributes) -> dict[str, str]:
    """Return the values of the text and number attributes, by name."""
    return {name: value["StringValue"] for name, value in attributes.items() if "StringValue" in value}


def digest_of(attributes: Attributes) -> str:
    """Return the MD5 of valid message attributes, as AWS calculates it."""
    return _digest({name: _frame(name, value) for name, value in attributes.items()})[0]


def _digest(frames: dict[str, bytes]) -> tuple[str, int]:
    """Return the MD5 of the attributes as AWS defines it (attributes sorted by name), and their size in bytes."""
    whole = b"".join(map(frames.__getitem__, sorted(frames)))
    return md5(whole, usedforsecurity=False).hexdigest(), len(whole) - len(frames) * _FRAMES


def _frame(name: str, value: object) -> bytes:
    """Return the bytes that an attribute adds to the MD5 digest. Raises SqsError if the attribute is invalid."""
    if not isinstance(value, dict):
        raise wrong_type(f"MessageAttributes.{name}", "an attribute")
    kind = value.get("DataType")
    if not isinstance(kind, str):
        raise wrong_type(f"MessageAttributes.{name}.DataType", "a string") if kind is not None else _no_type(name)
    label = _label(name, kind)
    text = value.get("StringValue")
    more = len(value) > _PLAIN
    if more or not text:
        _refuse_lists(value)
    if kind[0] == "B":
        encoded = _read_binary(name, value)
        return label + _LENGTH(len(encoded)) + encoded
    if not text or not isinstance(text, str) or (more and value.get("BinaryValue") is not None):
        raise _no_text(name, kind, text)
    if kind[0] == "N" and not (text.isdecimal() and len(text) <= _MOST_DIGITS and text.isascii()):
        _check_number(name, text)
    plain = text.isascii() and text.isprintable()
    encoded = text.encode() if plain else check_characters(text, "attribute", name)
    return label + _LENGTH(len(encoded)) + encoded


def _refuse_lists(value: Request) -> None:
    if value.get("StringListValues") or value.get("BinaryListValues"):
        sentence = "Message attribute list values in SendMessage operation are not supported."
        raise SqsError("UnsupportedOperation", sentence)


def _without_more(value: dict[str, str]) -> dict[str, str]:
    """Return a valid attribute with only its type and its value. Other fields are dropped."""
    kind = value["DataType"]
    field = "BinaryValue" if kind[0] == "B" else "StringValue"
    return {field: value[field], "DataType": kind}


def _no_text(name: str, kind: str, text: object) -> SqsError:
    if text is None or isinstance(text, str):
        return _empty(name, kind)
    return wrong_type(f"MessageAttributes.{name}.StringValue", "a string")


@lru_cache(maxsize=4096)
def _label(name: str, kind: str) -> bytes:
    """Return the bytes that name, type and kind of value of an attribute add to the MD5 digest. Results are cached.

    Raises:
        SqsError: the name or the type is invalid.
    """
    _check_name(name)
    _check_type(name, kind)
    parts = name.encode(), kind.encode()
    value = _BINARY_VALUE if kind[0] == "B" else _STRING_VALUE
    return b"".join(_LENGTH(len(part)) + part for part in parts) + value


def _check_name(name: str) -> None:
    if len(name) > _LONGEST_NAME:
        raise invalid_parameter(f"Length of message attribute name must be at most {_LONGEST_NAME} characters.")
    if not _NAME.fullmatch(name):
        raise invalid_parameter(f"Invalid non-alphanumeric character was found in the message attribute name '{name}'.")
    if _RESERVED.match(name):
        raise invalid_parameter(f"You can't use message attribute names beginning with 'AWS.' or 'Amazon.': '{name}'.")
    if name.startswith(".") or name.endswith(".") or ".." in name:
        raise invalid_parameter(f"The message attribute name '{name}' has a period at an end or two in succession.")


def _check_type(name: str, kind: str) -> None:
    if not kind:
        raise _no_type(name)
    if len(kind) > _LONGEST_NAME or not _TYPE.fullmatch(kind):
        raise invalid_parameter(
            f"The message attribute '{name}' has an invalid message attribute type, the set of supported type prefixes "
            "is Binary, Number, and String.",
        )


def _no_type(name: str) -> SqsError:
    return invalid_parameter(f"The message attribute '{name}' must contain a non-empty message attribute type.")


def _read_binary(name: str, value: Request) -> bytes:
    encoded = value.get("BinaryValue")
    if encoded is not None and not isinstance(encoded, str):
        raise wrong_type(f"MessageAttributes.{name}.BinaryValue", "base64 text")
    if not encoded or value.get("StringValue") is not None:
        raise _empty(name, "Binary")
    try:
        return b64decode(encoded, validate=True)
    except ValueError:
        raise wrong_type(f"MessageAttributes.{name}.BinaryValue", "base64 text") from None


def _check_number(name: str, text: str) -> None:
    if not _NUMBER.fullmatch(text) or (len(text) > _MOST_DIGITS and _digits(text) > _MOST_DIGITS):
        raise invalid_parameter(f"Can't cast the value of message (user) attribute '{name}' to a number.")


def _digits(text: str) -> int:
    return sum(character.isdigit() for character in text.lower().partition("e")[0])


def _empty(name: str, kind: str) -> SqsError:
    return invalid_parameter(f"Message (user) attribute '{name}' must contain a non-empty value of type '{kind}'.")


def _read_trace(entry: Request) -> tuple[str, str]:
    attributes, frames = read_attributes(entry, "MessageSystemAttributes")
    unknown = sorted(set(attributes) - {TRACE_HEADER})
    if unknown:
        raise invalid_value(unknown[0], "MessageSystemAttributes", f"Only {TRACE_HEADER} is supported.")
    header = attributes[TRACE_HEADER]
    if header["DataType"] != "String":
        raise invalid_parameter(f"Message (system) attribute '{TRACE_HEADER}' must be of type String.")
    return header["StringValue"], _digest(frames)[0]


def too_large(most: int, *, in_batch: bool) -> SqsError:
    """Return the error for content of more than `most` bytes. If `in_batch`, use AWS's text for batch calls."""
    verb = "cannot be validated" if in_batch else "are invalid"
    return invalid_parameter(f"One or more parameters {verb}. Reason: Message must be shorter than {most} bytes.")


def no_body(body: object) -> SqsError:
    """Return the error for a missing or invalid body."""
    return missing_parameter("MessageBody") if body in (None, "") else wrong_type("MessageBody", "a string")
