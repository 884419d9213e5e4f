"""What a message carries: body, message attributes and trace header, checked and digested once."""

import re
from base64 import b64decode
from binascii import Error as NotBase64
from dataclasses import dataclass
from hashlib import md5
from typing import Final

from redrive_service.sandbox.sqs.errors import SqsError, invalid_parameter, invalid_value, missing_parameter, wrong_type
from redrive_service.sandbox.sqs.parameters import Request

MOST_ATTRIBUTES: Final = 10
_LONGEST_NAME: Final = 256
# The characters XML 1.0 cannot carry ([API] SendMessage).
_FORBIDDEN: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# Recorded answers of AWS accept letters beyond ASCII in names, against the page; nothing else of \W.
_NAME: Final = re.compile(r"[\w.-]+")
_RESERVED: Final = re.compile(r"(?i)(aws|amazon)\.")
_TYPE: Final = re.compile(r"(String|Number|Binary)(\.[A-Za-z0-9_.-]+)?")
_NUMBER: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_MOST_DIGITS: Final = 38
_STRING_VALUE: Final = b"\x01"
_BINARY_VALUE: Final = b"\x02"
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
    check_characters(body, "body")
    encoded = body.encode()
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


def check_characters(value: str, what: str) -> None:
    """Refuses characters that SQS does not carry."""
    if value.isascii() and value.isprintable():
        return
    if _FORBIDDEN.search(value):
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


def digest_of(attributes: Attributes) -> tuple[str, int]:
    """MD5 as AWS defines it - sorted by name; lengths big-endian; 1 for text, 2 for binary - and the size in bytes."""
    parts: list[bytes] = []
    lengths = 0
    for name in sorted(attributes):
        value = attributes[name]
        text = value.get("StringValue")
        raw = b64decode(value["BinaryValue"]) if text is None else text.encode()
        for part in (name.encode(), value["DataType"].encode()):
            parts += (len(part).to_bytes(4, "big"), part)
            lengths += len(part)
        parts += (_BINARY_VALUE if text is None else _STRING_VALUE, len(raw).to_bytes(4, "big"), raw)
        lengths += len(raw)
    return md5(b"".join(parts), usedforsecurity=False).hexdigest(), lengths


def _read_attribute(name: str, value: object) -> dict[str, str]:
    if not isinstance(value, dict):
        raise wrong_type(f"MessageAttributes.{name}", "an attribute")
    _check_name(name)
    for unused in ("StringListValues", "BinaryListValues"):
        if value.get(unused):
            sentence = "Message attribute list values in SendMessage operation are not supported."
            raise SqsError("UnsupportedOperation", sentence)
    kind = _read_type(name, value.get("DataType"))
    if kind.startswith("Binary"):
        return {"BinaryValue": _read_binary(name, value), "DataType": kind}
    text = value.get("StringValue")
    if text is not None and not isinstance(text, str):
        raise wrong_type(f"MessageAttributes.{name}.StringValue", "a string")
    if not text or value.get("BinaryValue") is not None:
        raise _empty(name, kind)
    if kind.startswith("Number"):
        _check_number(name, text)
    else:
        check_characters(text, f"attribute '{name}'")
    return {"StringValue": text, "DataType": kind}


def _check_name(name: str) -> None:
    if len(name) > _LONGEST_NAME:
        raise invalid_parameter(f"Length of message attribute name must be at most {_LONGEST_NAME} characters.")
    if not _NAME.fullmatch(name):
        raise invalid_parameter(f"Invalid non-alphanumeric character was found in the message attribute name '{name}'.")
    if _RESERVED.match(name):
        raise invalid_parameter(f"You can't use message attribute names beginning with 'AWS.' or 'Amazon.': '{name}'.")
    if name.startswith(".") or name.endswith(".") or ".." in name:
        raise invalid_parameter(f"The message attribute name '{name}' has a period at an end or two in succession.")


def _read_type(name: str, kind: object) -> str:
    if kind is not None and not isinstance(kind, str):
        raise wrong_type(f"MessageAttributes.{name}.DataType", "a string")
    if not kind:
        raise invalid_parameter(f"The message attribute '{name}' must contain a non-empty message attribute type.")
    if len(kind) > _LONGEST_NAME or not _TYPE.fullmatch(kind):
        raise invalid_parameter(
            f"The message attribute '{name}' has an invalid message attribute type, the set of supported type prefixes "
            "is Binary, Number, and String."
        )
    return kind


def _read_binary(name: str, value: Request) -> str:
    encoded = value.get("BinaryValue")
    if encoded is not None and not isinstance(encoded, str):
        raise wrong_type(f"MessageAttributes.{name}.BinaryValue", "base64 text")
    if not encoded or value.get("StringValue") is not None:
        raise _empty(name, "Binary")
    try:
        b64decode(encoded, validate=True)
    except NotBase64:
        raise wrong_type(f"MessageAttributes.{name}.BinaryValue", "base64 text") from None
    return encoded


def _check_number(name: str, text: str) -> None:
    digits = sum(character.isdigit() for character in re.split("[eE]", text, maxsplit=1)[0])
    if not _NUMBER.fullmatch(text) or digits > _MOST_DIGITS:
        raise invalid_parameter(f"Can't cast the value of message (user) attribute '{name}' to a number.")


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
