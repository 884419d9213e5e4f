"""What a message carries: body, message attributes and trace header, checked and digested once."""

import re
import struct
from base64 import b64decode
from dataclasses import dataclass
from functools import lru_cache
from hashlib import md5
from typing import Final

from redrive_service.sandbox.sqs.errors import SqsError, invalid_parameter, invalid_value, missing_parameter, wrong_type
from redrive_service.sandbox.sqs.parameters import Request

MOST_ATTRIBUTES: Final = 10
_LONGEST_NAME: Final = 256
# The characters XML 1.0 cannot carry ([API] SendMessage).
_FORBIDDEN: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_ALLOWED_ASCII: Final = bytes([0x9, 0xA, 0xD, *range(0x20, 0x80)])
# Recorded answers of AWS accept letters beyond ASCII in names, against the page; nothing else of \W.
_NAME: Final = re.compile(r"[\w.-]+")
_RESERVED: Final = re.compile(r"(?i)(aws|amazon)\.")
_TYPE: Final = re.compile(r"(String|Number|Binary)(\.[A-Za-z0-9_.-]+)?")
_NUMBER: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_MOST_DIGITS: Final = 38
_FRAME: Final = 4
_STRING_VALUE: Final = 1
_BINARY_VALUE: Final = 2
_VALUE: Final = struct.Struct(">BI").pack
# What is neither name, type nor value: three lengths, and what kind of value it is.
_FRAMES: Final = 3 * _FRAME + 1
TRACE_HEADER: Final = "AWSTraceHeader"

Attributes = dict[str, dict[str, str]]


@dataclass(slots=True, eq=False, kw_only=True)
class Content:
    """Checked content. Never changed after it was made, and shared by all copies of a message.

    `size` is in bytes: body plus names, types and values of the message attributes; the trace header is free.
    """

    body: str
    md5: str
    size: int
    attributes: Attributes
    attributes_md5: str | None
    trace: str | None
    trace_md5: str | None


def read_content(entry: Request, body: str) -> Content:
    """The content of one send, or the SqsError that SQS answers. `body` was checked to be there."""
    encoded = check_characters(body, "body")
    size = len(encoded)
    attributes: Attributes = {}
    attributes_md5 = None
    if entry.get("MessageAttributes"):
        attributes = read_attributes(entry, "MessageAttributes")
        attributes_md5, attributes_size = digest_of(attributes)
        size += attributes_size
    trace = trace_md5 = None
    if entry.get("MessageSystemAttributes"):
        trace, trace_md5 = _read_trace(entry)
    return Content(
        body=body,
        md5=md5(encoded, usedforsecurity=False).hexdigest(),
        size=size,
        attributes=attributes,
        attributes_md5=attributes_md5,
        trace=trace,
        trace_md5=trace_md5,
    )


def check_characters(value: str, what: str) -> bytes:
    """The text in UTF-8; refuses characters that SQS does not carry."""
    if value.isascii():
        encoded = value.encode()
        if not encoded.translate(None, _ALLOWED_ASCII):
            return encoded
    elif not _FORBIDDEN.search(value):
        return value.encode()
    allowed = "#x9 | #xA | #xD | #x20 to #xD7FF | #xE000 to #xFFFD | #x10000 to #x10FFFF"
    raise SqsError("InvalidMessageContents", f"Invalid characters in the message {what}. Allowed are: {allowed}")


def read_attributes(entry: Request, parameter: str) -> Attributes:
    """The checked message attributes, each with its DataType and either StringValue or BinaryValue (base64)."""
    raw = entry.get(parameter)
    if not isinstance(raw, dict):
        raise wrong_type(parameter, "a map of attributes")
    if len(raw) > MOST_ATTRIBUTES:
        reason = f"Number of message attributes [{len(raw)}] exceeds the allowed maximum [{MOST_ATTRIBUTES}]."
        raise invalid_parameter(reason)
    return {name: _read_attribute(name, value) for name, value in raw.items()}


def texts_in(attributes: Attributes) -> dict[str, str]:
    """The attributes that are texts or numbers, and their values."""
    return {name: value["StringValue"] for name, value in attributes.items() if "StringValue" in value}


def digest_of(attributes: Attributes) -> tuple[str, int]:
    """MD5 as AWS defines it - sorted by name; lengths big-endian; 1 for text, 2 for binary - and the size in bytes."""
    parts: list[bytes] = []
    for name, value in sorted(attributes.items()):
        text = value.get("StringValue")
        if text is None:
            raw = b64decode(value["BinaryValue"])
            parts += _label(name, value["DataType"]), _VALUE(_BINARY_VALUE, len(raw)), raw
        else:
            raw = text.encode()
            parts += _label(name, value["DataType"]), _VALUE(_STRING_VALUE, len(raw)), raw
    whole = b"".join(parts)
    return md5(whole, usedforsecurity=False).hexdigest(), len(whole) - len(attributes) * _FRAMES


def _read_attribute(name: str, value: object) -> dict[str, str]:
    if not isinstance(value, dict):
        raise wrong_type(f"MessageAttributes.{name}", "an attribute")
    kind = value.get("DataType")
    if not isinstance(kind, str):
        raise wrong_type(f"MessageAttributes.{name}.DataType", "a string") if kind is not None else _no_type(name)
    _label(name, kind)
    if value.get("StringListValues") or value.get("BinaryListValues"):
        sentence = "Message attribute list values in SendMessage operation are not supported."
        raise SqsError("UnsupportedOperation", sentence)
    if kind[0] == "B":
        return {"BinaryValue": _read_binary(name, value), "DataType": kind}
    return {"StringValue": _read_string(name, kind, value), "DataType": kind}


def _read_string(name: str, kind: str, value: Request) -> str:
    text = value.get("StringValue")
    if text is not None and not isinstance(text, str):
        raise wrong_type(f"MessageAttributes.{name}.StringValue", "a string")
    if not text or value.get("BinaryValue") is not None:
        raise _empty(name, kind)
    if kind[0] == "N":
        _check_number(name, text)
    else:
        check_characters(text, f"attribute '{name}'")
    return text


@lru_cache(maxsize=4096)
def _label(name: str, kind: str) -> bytes:
    """Name and type, checked, as the digest wants them; they repeat from message to message."""
    _check_name(name)
    _check_type(name, kind)
    parts = name.encode(), kind.encode()
    return b"".join(len(part).to_bytes(_FRAME, "big") + part for part in parts)


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


def _read_binary(name: str, value: Request) -> str:
    encoded = value.get("BinaryValue")
    if encoded is not None and not isinstance(encoded, str):
        raise wrong_type(f"MessageAttributes.{name}.BinaryValue", "base64 text")
    if not encoded or value.get("StringValue") is not None:
        raise _empty(name, "Binary")
    try:
        b64decode(encoded, validate=True)
    except ValueError:
        raise wrong_type(f"MessageAttributes.{name}.BinaryValue", "base64 text") from None
    return encoded


def _check_number(name: str, text: str) -> None:
    if not _NUMBER.fullmatch(text) or (len(text) > _MOST_DIGITS and _digits(text) > _MOST_DIGITS):
        raise invalid_parameter(f"Can't cast the value of message (user) attribute '{name}' to a number.")


def _digits(text: str) -> int:
    return sum(character.isdigit() for character in text.lower().partition("e")[0])


def _empty(name: str, kind: str) -> SqsError:
    return invalid_parameter(f"Message (user) attribute '{name}' must contain a non-empty value of type '{kind}'.")


def _read_trace(entry: Request) -> tuple[str, str]:
    attributes = read_attributes(entry, "MessageSystemAttributes")
    unknown = sorted(set(attributes) - {TRACE_HEADER})
    if unknown:
        raise invalid_value(unknown[0], "MessageSystemAttributes", f"Only {TRACE_HEADER} is supported.")
    header = attributes[TRACE_HEADER]
    if header["DataType"] != "String":
        raise invalid_parameter(f"Message (system) attribute '{TRACE_HEADER}' must be of type String.")
    return header["StringValue"], digest_of(attributes)[0]


def check_size(content: Content, most: int, *, in_batch: bool) -> None:
    """Refuses content of more than `most` bytes."""
    if content.size > most:
        verb = "cannot be validated" if in_batch else "are invalid"
        raise invalid_parameter(
            f"One or more parameters {verb}. Reason: Message must be shorter than {most} bytes.",
        )


def read_body(entry: Request) -> str:
    """The body that an entry must have."""
    body = entry.get("MessageBody")
    if body is not None and not isinstance(body, str):
        raise wrong_type("MessageBody", "a string")
    if not body:
        raise missing_parameter("MessageBody")
    return body
