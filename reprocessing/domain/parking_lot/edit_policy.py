"""Decide what a person may edit in a parked letter, and check an edit: SQS's limits, valid JSON, changed keys."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Final

from reprocessing.domain.message import json_view, s3_pointer
from reprocessing.domain.message.envelope import Attribute, Attributes
from reprocessing.domain.message.identity import LetterFacts, Selector, SelectorSource, select_key
from reprocessing.domain.message.json_view import Unreadable
from reprocessing.domain.message.redrive_attributes import (
    EARLIER_COUNTERS,
    MOST_ATTRIBUTES,
    MarkNames,
    attributes_size,
    is_name,
)
from reprocessing.domain.ordering.placement import KeyPolicy
from reprocessing.domain.sources.failed_delivery import FAILURE_ATTRIBUTES

#: Characters that SQS does not accept (SendMessage): all characters that XML 1.0 does not allow.
_FORBIDDEN: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_TYPE: Final = re.compile(r"(?:String|Number|Binary)(?:\.[A-Za-z0-9_.-]+)?")
_LONGEST_TYPE: Final = 256
_NUMBER: Final = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")
_DIGITS: Final = 38  #: max digits of a Number attribute (SQS developer guide)
#: Attributes of tracing systems, in lower case.
_TRACES: Final = frozenset({
    "awstraceheader", "b3", "baggage", "elastic-apm-traceparent", "newrelic", "sentry-trace", "traceparent",
    "tracestate", "uber-trace-id", "x-amzn-trace-id", "x-b3-sampled", "x-b3-spanid", "x-b3-traceid",
    "x-datadog-parent-id", "x-datadog-sampling-priority", "x-datadog-trace-id", "_datadog",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class LockedAttribute:
    """An attribute that people cannot edit, because of `why`."""

    why: str


@dataclass(frozen=True, slots=True)
class SensitiveAttribute:
    """An attribute that can be edited, but from which the service reads a key, the message type or the tenant."""

    why: str


@dataclass(frozen=True, slots=True)
class CustomAttribute:
    """An attribute that can be edited, and from which the service reads nothing."""


AttributeClass = LockedAttribute | SensitiveAttribute | CustomAttribute
#: The selectors of a DLQ, by the name of what they read, such as "the ordering key".
SelectorsByPurpose = Mapping[str, Selector]


def selectors_by_purpose(policy: KeyPolicy, *, message_type: str = "", tenant: str = "") -> dict[str, Selector]:
    """Return the selectors of a DLQ that read attributes or the body, by purpose, such as "the ordering key".

    An edit of a message can change the values that these selectors read.
    """
    named = {
        "the ordering key": policy.ordering,
        "the sequence": policy.sequence,
        "the idempotency key": policy.idempotency,
    }
    named |= {"the message type": Selector.parse(message_type)} if message_type else {}
    named |= {"the tenant": Selector.parse(tenant)} if tenant else {}
    return {
        what: selector
        for what, selector in named.items()
        if selector.source in {SelectorSource.ATTRIBUTE, SelectorSource.BODY}
    }


def attribute_class(name: str, names: MarkNames, selectors: SelectorsByPurpose) -> AttributeClass:
    """Return whether people may edit the attribute `name`: locked, sensitive (a selector reads it), or custom.

    `names`: the names of the marks (attributes that the service adds), which are locked.
    """
    if name in {getattr(names, field.name) for field in fields(names)} or name in EARLIER_COUNTERS:
        return LockedAttribute("it was added by this service, or by an earlier redrive")
    if name in s3_pointer.SIZES:
        return LockedAttribute("it has the size of a body in S3")
    if name.lower() in _TRACES:
        return LockedAttribute("it links the message to its trace")
    if name in FAILURE_ATTRIBUTES:
        return LockedAttribute("AWS added it when delivery failed")
    for what, selector in selectors.items():
        if selector == Selector(SelectorSource.ATTRIBUTE, name):
            return SensitiveAttribute(f"{what} is read from it")
    return CustomAttribute()


def why_not_editable(body: bytes, attributes: Attributes) -> str:
    """Return why a body cannot be edited as text; "": it can be edited."""
    return why_no_body(body, attributes) or why_not_text(body)


def why_no_body(body: bytes, attributes: Attributes) -> str:
    """Return why these bytes are no body to edit, but a pointer to a body in S3; "": they are the message's body."""
    return "it is a pointer to a body in S3" if s3_pointer.read(body, attributes) is not None else ""


def why_not_text(raw: bytes) -> str:
    """Return why these bytes cannot be edited in a browser's text field, which would change them; "": they can."""
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return "it is not text (not UTF-8)"
    if _FORBIDDEN.search(text):
        return "it has characters that a web page cannot show and send back"
    lines = text.replace("\r\n", "")
    if "\r" in lines or ("\n" in lines and len(lines) != len(text)):
        return "it has different line ends, which a browser would make equal"
    return ""


def with_original_line_ends(text: str, like: bytes) -> bytes:
    """Return a browser's text as bytes, with the line ends of the original `like`: browsers always send CR LF."""
    ends = "\r\n" if b"\r\n" in like else "\n"
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\n", ends).encode(errors="surrogatepass")


def body_problems(body: bytes) -> list[str]:
    """Return sentences, without message data, that say why SQS does not accept a body; empty: SQS accepts it."""
    if not body:
        return ["The body is empty; SQS does not accept empty messages."]
    found = _unsendable(body)
    return [f"The body {found}."] if found else []


def problems(body: bytes, attributes: Attributes, *, former: Attributes, names: MarkNames, largest: int) -> list[str]:
    """Return sentences that say why SQS or the target does not accept an edited message; they quote no value.

    Args:
        body: the body to send.
        attributes: the attributes to send.
        former: the attributes before the edit. Unchanged attributes are not checked. As many attributes as before are
            always allowed.
        names: the names of the marks (attributes that the service adds), which count towards SQS's limit of 10.
        largest: max bytes of a message that the target accepts.
    """
    changed = [(name, attribute) for name, attribute in attributes.items() if former.get(name) != attribute]
    found = [problem for name, attribute in changed for problem in _problems_of(name, attribute)]
    room = MOST_ATTRIBUTES - sum(1 for field in fields(names) if getattr(names, field.name))
    if len(attributes) > max(len(former), room):
        found.append(
            f"There are {len(attributes)} attributes; SQS accepts {MOST_ATTRIBUTES}, of which the service adds "
            f"{MOST_ATTRIBUTES - room}. Remove {len(attributes) - max(len(former), room)}."
        )
    weight = len(body) + attributes_size(attributes)
    if weight > largest:
        found.append(f"Body and attributes have {weight:,} bytes; its target accepts {largest:,}.")
    return found


def json_problem(before: bytes, after: bytes) -> str:
    """Return why an edit broke a JSON body, with line and column; "": it is valid, or was no JSON before the edit."""
    if before.lstrip()[:1] not in {b"{", b"["} or isinstance(json_view.read(before), Unreadable):
        return ""
    found = json_view.read(after)
    if not isinstance(found, Unreadable):
        return ""
    try:
        json.loads(after.decode(), parse_int=str, parse_float=str)
    except json.JSONDecodeError as error:
        return f"The body was JSON and no longer is: {error.msg}, line {error.lineno}, column {error.colno}."
    except (ValueError, RecursionError):
        pass
    return f"The body was readable JSON and no longer is: {found.why}."


def changed_selectors(selectors: SelectorsByPurpose, before: LetterFacts, after: LetterFacts) -> list[str]:
    """Return sentences about the keys, message type and tenant that an edit changes, with their selectors."""
    return [
        f"This changes {selector}, from which {what} is read."
        for what, selector in selectors.items()
        if select_key(selector, before) != select_key(selector, after)
    ]


def _problems_of(name: str, attribute: Attribute) -> Iterator[str]:
    if not is_name(name):
        yield "An attribute's name has 1 to 256 letters, digits, _ . and -, and does not begin with AWS."
        return
    if len(attribute.type) > _LONGEST_TYPE or not _TYPE.fullmatch(attribute.type):
        yield f"The type of {name} is not valid: String, Number or Binary, with an optional label after a full stop."
    if not attribute.value:
        yield f"{name} is empty; SQS does not accept empty values. Remove it, or enter a value."
    elif isinstance(attribute.value, str):
        if found := _unsendable(attribute.value.encode(errors="surrogatepass")):
            yield f"{name} {found}."
        number = _NUMBER.fullmatch(attribute.value) if attribute.type.startswith("Number") else None
        digits = len(number[1].replace(".", "").strip("0")) if number else 0
        if attribute.type.startswith("Number") and (number is None or digits > _DIGITS):
            yield f"{name} is a Number, and its value is not a number of at most {_DIGITS} digits."


def _unsendable(raw: bytes) -> str:
    try:
        found = _FORBIDDEN.search(raw.decode())
    except UnicodeDecodeError:
        return "is not UTF-8, and SQS accepts only UTF-8"
    if not found:
        return ""
    return f"has a character that SQS does not accept (U+{ord(found[0]):04X}, character {found.start() + 1:,})"
