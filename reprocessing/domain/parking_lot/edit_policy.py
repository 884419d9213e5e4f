"""What a person may alter of a letter, what speaks against that, and what it touches beside what was meant."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Final

from reprocessing.domain.message import json_view, s3_pointer
from reprocessing.domain.message.envelope import Attribute, Attributes
from reprocessing.domain.message.identity import LetterFacts, Selector, Source, select
from reprocessing.domain.message.json_view import Unreadable
from reprocessing.domain.message.redrive_attributes import ATTRIBUTES, MarkNames, is_name, size
from reprocessing.domain.ordering.placement import Policy
from reprocessing.domain.sources.failed_delivery import OF_ITS_DEATH

#: What SQS carries in a body and in an attribute's text (API reference, SendMessage): those of XML 1.0.
_FORBIDDEN: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_TYPE: Final = re.compile(r"(?:String|Number|Binary)(?:\.[A-Za-z0-9_.-]+)?")
_LONGEST_TYPE: Final = 256
_NUMBER: Final = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")
_DIGITS: Final = 38  #: of a Number (developer guide, message attributes)
_COUNTERS: Final = ("redrive_attempt", "sqs-dlq-replay-nb")
_SIZES: Final = ("ExtendedPayloadSize", "SQSLargePayloadSize")
_TRACES: Final = frozenset({
    "awstraceheader", "b3", "baggage", "elastic-apm-traceparent", "newrelic", "sentry-trace", "traceparent",
    "tracestate", "uber-trace-id", "x-amzn-trace-id", "x-b3-sampled", "x-b3-spanid", "x-b3-traceid",
    "x-datadog-parent-id", "x-datadog-sampling-priority", "x-datadog-trace-id", "_datadog",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Locked:
    """An attribute that stays as it is."""

    why: str


@dataclass(frozen=True, slots=True)
class Sensitive:
    """An attribute that somebody goes by."""

    why: str


@dataclass(frozen=True, slots=True)
class Custom:
    """An attribute of the letter's own."""


Standing = Locked | Sensitive | Custom
#: What each selector of a dlq is for, in words that stand behind "which says".
Keys = Mapping[str, Selector]


def keys(policy: Policy, *, message_type: str = "", tenant: str = "") -> dict[str, Selector]:
    """What a dlq and its rules go by."""
    named = {
        "which letters are replayed in order": policy.ordering,
        "where in that order it stands": policy.sequence,
        "which letters are the same": policy.idempotency,
    }
    named |= {"which type rules take it for": Selector.parse(message_type)} if message_type else {}
    named |= {"whose it is": Selector.parse(tenant)} if tenant else {}
    return {what: one for what, one in named.items() if one.source in {Source.ATTRIBUTE, Source.BODY}}


def standing(name: str, names: MarkNames, goes_by: Keys) -> Standing:
    """Whether an attribute may be altered."""
    if name in {getattr(names, one.name) for one in fields(names)} or name in _COUNTERS:
        return Locked("a mark of this service, or of an earlier redrive")
    if name in _SIZES:
        return Locked("the size of a body that lies in S3")
    if name.lower() in _TRACES:
        return Locked("it ties the letter to its trace")
    if name in OF_ITS_DEATH:
        return Locked("what AWS says of its death")
    told = [what for what, one in goes_by.items() if one.source is Source.ATTRIBUTE and one.name == name]
    return Sensitive(f"it says {told[0]}") if told else Custom()


def closed(body: bytes, attributes: Attributes) -> str:
    """Why a body cannot be edited as text; empty: it can."""
    if s3_pointer.read(body, attributes) is not None:
        return "it is a pointer to a body that lies in S3, and another pointer would be another body"
    return closed_text(body)


def closed_text(raw: bytes) -> str:
    """Why bytes would not come back from a browser's field as they went there; empty: they would."""
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return "it is not text (not UTF-8), and bytes cannot be typed"
    if _FORBIDDEN.search(text):
        return "it holds characters that no page can show and give back"
    lines = text.replace("\r\n", "")
    if "\r" in lines or ("\n" in lines and len(lines) != len(text)):
        return "its lines end in more than one way, and a browser would end them all alike"
    return ""


def typed(text: str, like: bytes) -> bytes:
    """What a browser sent back of a text, with the line ends that the text had: browsers make them all CR LF."""
    ends = "\r\n" if b"\r\n" in like else "\n"
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\n", ends).encode(errors="surrogatepass")


def body_problems(body: bytes) -> list[str]:
    """Why no queue would take a body, each a sentence that names no value; none: one would."""
    if not body:
        return ["The body is empty; SQS takes no such message."]
    found = _unsendable(body)
    return [f"The body {found}."] if found else []


def problems(body: bytes, attributes: Attributes, *, former: Attributes, names: MarkNames, largest: int) -> list[str]:
    """Why no queue would take attributes, or all together, each a sentence that names no value; none: one would.

    Args:
        body: as it is to be sent.
        attributes: likewise.
        former: those that it had. What stays as it was is asked about by nobody; to as many attributes it may keep,
            others leave room for our marks.
        names: of the marks.
        largest: bytes that its target takes.
    """
    return list(_problems(body, attributes, former, names, largest))


def json_problem(before: bytes, after: bytes) -> str:
    """Why what was a JSON object or list is none any more, with line and column; empty: it is, or was none."""
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
    return f"The body was JSON that can be read and no longer is: {found.why}."


def touched(goes_by: Keys, before: LetterFacts, after: LetterFacts) -> list[str]:
    """What somebody goes by and would be another: sentences."""
    return [
        f"This changes {one}, which says {what}."
        for what, one in goes_by.items()
        if select(one, before) != select(one, after)
    ]


def _problems(body: bytes, attributes: Attributes, former: Attributes, names: MarkNames, largest: int) -> Iterator[str]:
    for name, one in attributes.items():
        if former.get(name) != one:
            yield from _problems_of(name, one)
    room = ATTRIBUTES - sum(1 for one in fields(names) if getattr(names, one.name))
    if len(attributes) > max(len(former), room):
        yield (
            f"These are {len(attributes)} attributes; SQS takes {ATTRIBUTES}, and {ATTRIBUTES - room} of them are kept "
            f"free for what is added on replay. Remove {len(attributes) - max(len(former), room)}."
        )
    weight = len(body) + size(attributes)
    if weight > largest:
        yield f"With its attributes it has {weight:,} bytes; its target takes {largest:,}."


def _problems_of(name: str, one: Attribute) -> Iterator[str]:
    if not is_name(name):
        yield "The name of an attribute has letters, digits, _ . and - alone, 256 at most, and begins with no AWS."
        return
    if len(one.type) > _LONGEST_TYPE or not _TYPE.fullmatch(one.type):
        yield f"The type of {name} is none: String, Number or Binary, and perhaps a label behind a full stop."
    if not one.value:
        yield f"{name} is empty; SQS takes no attribute without a value. Remove it, or say something."
    elif isinstance(one.value, str):
        if found := _unsendable(one.value.encode(errors="surrogatepass")):
            yield f"{name} {found}."
        number = _NUMBER.fullmatch(one.value) if one.type.startswith("Number") else None
        if one.type.startswith("Number") and (number is None or _digits(number[1]) > _DIGITS):
            yield f"{name} is a Number, and what it says is none of {_DIGITS} digits at most."


def _digits(mantissa: str) -> int:
    return len(mantissa.replace(".", "").strip("0"))


def _unsendable(raw: bytes) -> str:
    try:
        found = _FORBIDDEN.search(raw.decode())
    except UnicodeDecodeError:
        return "is not UTF-8, which a queue cannot carry"
    return (
        f"holds a character that SQS does not carry (U+{ord(found[0]):04X}, the {found.start() + 1:,}.)"
        if found
        else ""
    )
