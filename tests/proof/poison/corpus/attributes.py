"""Attribute sets: all names, types and values that SQS takes, and what looks like marks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tests.proof.poison.corpus.payload import Payload, Typed, text

_LONGEST: Final = 256
_FOREIGN: Final = "6ba7b810-9dad-11d1-80b4-00c04fd430c8"
_PUNCTUATION: Final = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"


def some() -> Iterator[Payload]:
    """Every one; their bodies differ, so that each is told from the others."""
    for name, attributes in (_NAMES | _TYPES | _VALUES | _MARKS).items():
        body = f'{{"attributes": "{len(name)} {name}"}}'
        yield Payload(f"attributes: {name}", body, attributes, spent=name in _SPENT)
    for name, value in _NUMBERS.items():
        yield Payload(f"attributes: number {name}", f"number {name}", {"amount": ("Number", value)})
    for name, group in _GROUPS.items():
        yield Payload(f"group: {name}", f"of group {name}", group=group)
    for name, trace in _TRACES.items():
        yield Payload(f"trace: {name}", f"traced {name}", trace=trace)
    yield Payload(
        "attributes: ten, a group and a trace", "all of it at once", _ten("x"), group="all-at-once",
        trace="Root=1-67891233-abcdef012345678912345678",
    )  # fmt: skip


def _ten(value: str) -> Typed:
    return {f"attribute-{number}": text(f"{value}{number}") for number in range(10)}


_NAMES: Final[dict[str, Typed]] = {
    "ten": _ten("ten-"),
    "nine": {f"nine-{number}": text("of nine") for number in range(9)},
    "eight": {f"eight-{number}": text("of eight") for number in range(8)},
    "seven": {f"seven-{number}": text("of seven") for number in range(7)},
    "a name of 256": {"n" * _LONGEST: text("long name")},
    "ten names of 256": {f"{number}" + ".-_a" * 63 + "end": text("long names") for number in range(10)},
    "dots and hyphens": {"a.b-c_d.E-F_9": text("dotted"), "-": text("hyphen"), "_": text("underscore")},
    "names alike": {"name": text("lower"), "Name": text("title"), "NAME": text("upper")},
    "names of digits": {"0": text("nought"), "1": text("one"), "999999999999": text("many")},
    "names of Python": {"__class__": text("dunder"), "None": text("none"), "null": text("nil")},
    "nearly reserved": {"AWSx": text("nearly"), "amazonas.river": text("a river"), "aws-trace": text("a hyphen")},
    "names of headers": {
        "Content-Type": text("text/html; charset=utf-7"), "Host": text("evil.test"), "Content-Length": text("0"),
        "Transfer-Encoding": text("chunked"), "Webhook-Id": text("forged"),
    },
    "names of Lambda": {
        "RequestID": text("r-1"), "ErrorCode": text("two hundred"), "ErrorMessage": text("not-a-lambda"),
    },
    "extended client's size": {"ExtendedPayloadSize": ("Number", "1048577"), "SQSLargePayloadSize": ("Number", "9")},
}  # fmt: skip
_TYPES: Final[dict[str, Typed]] = {
    "labels": {"a": ("String.json", "{}"), "b": ("Number.int", "7"), "c": ("Binary.gzip", b"\x1f\x8b\x08")},
    "labels of 256": {
        "a": ("String." + "s" * 249, "long label"), "b": ("Number." + "n" * 249, "1"),
        "c": ("Binary." + "b" * 249, b"\x00"),
    },
    "labels of dots": {"a": ("String.a.b.c", "dotted label"), "b": ("String.-_-", "punctuated label")},
    "labels that lie": {"a": ("String.Binary", "text"), "b": ("Binary.String", b"bytes"), "c": ("Number.uuid", "0")},
    "binary that is text": {"key": ("Binary", b"key in bytes"), "n": ("Binary", b"12")},
}  # fmt: skip
_VALUES: Final[dict[str, Typed]] = {
    "all bytes": {"raw": ("Binary", bytes(range(256)))},
    "all bytes backwards": {"raw": ("Binary.png", bytes(reversed(range(256))))},
    "one NUL": {"raw": ("Binary", b"\x00")},
    "no UTF-8": {"raw": ("Binary", b"\xff\xfe\x00\xc3\x28\xed\xa0\x80\xf4\x90\x80\x80" * 20)},
    "ten binaries": {f"raw-{number}": ("Binary", bytes([number]) * 100) for number in range(10)},
    "base64 as text": {"raw": text("AAECAwQFBgcICQ==")},
    "JSON as text": {"doc": text('{"key": "json in an attribute", "n": NaN}')},
    "one character": {"a": text("x"), "b": text("\U0010ffff")},
    "10000 characters": {"a": text("long value " * 1_000)},
    "blank key": {"key": text(" "), "n": text("\t")},
    "equal values": {name: text("the same value") for name in ("a", "b", "c")},
}
_NUMBERS: Final = {
    "of 38 digits": "9" * 38,
    "of 38 digits, negative": "-" + "9" * 38,
    "of 38 digits and a point": "1." + "3" * 37,
    "1e126": "1e126",
    "1e-128": "1e-128",
    "minus nought": "-0",
    "noughts before and behind": "007.500",
    "a plus and an exponent": "+1E5",
    "without whole part": ".5",
    "without fraction": "5.",
    "of one": "1",
}
_MARKS: Final[dict[str, Typed]] = {
    "garbage for a mark": {"RedriveId": text("garbage, no mark")},
    "a mark without attempt": {"RedriveId": text(_FOREIGN)},
    "a mark of attempt nought": {"RedriveId": text(f"{_FOREIGN}:0")},
    "a mark of a huge attempt": {"RedriveId": text(f"{_FOREIGN}:999999999")},
    "a mark of a far too huge attempt": {"RedriveId": text(f"{_FOREIGN}:{'9' * 100}")},
    "a mark of a negative attempt": {"RedriveId": text(f"{_FOREIGN}:-1")},
    "a foreign mark": {"RedriveId": text(f"{_FOREIGN}:1")},
    "a foreign mark of another type": {"RedriveId": ("String.uuid", f"{_FOREIGN}:2")},
    "a mark in capitals": {"RedriveId": text(f"{_FOREIGN.upper()}:1")},
    "a mark in bytes": {"RedriveId": ("Binary", f"{_FOREIGN}:1".encode())},
    "a mark that is a number": {"RedriveId": ("Number", "5")},
    "a foreign mark among ten": {**dict(list(_ten("mark-").items())[:9]), "RedriveId": text(f"{_FOREIGN}:3")},
    "a garbled mark among ten": {**dict(list(_ten("mark-").items())[:9]), "RedriveId": text("garbled")},
    "all marks, in garbage": {
        "RedriveId": text("g-1"), "IdempotencyKey": text("g-2"), "OriginalMessageId": text("g-3"),
        "ReprocessedFrom": text("g-4"),
    },
    "a key of 1000 characters": {"IdempotencyKey": text("k" * 1_000)},
    "a key in bytes": {"IdempotencyKey": ("Binary", bytes(range(200, 256)))},
    "counters of earlier tools": {"redrive_attempt": ("Number", "3"), "sqs-dlq-replay-nb": ("Number", "4")},
    "counters in garbage": {"redrive_attempt": text("three"), "sqs-dlq-replay-nb": text("-1")},
    "counters far too high": {"redrive_attempt": text("9" * 200), "sqs-dlq-replay-nb": ("Number", "1e30")},
    "a counter of blanks": {"redrive_attempt": text(" "), "sqs-dlq-replay-nb": text("\t1")},
    "a counter in other digits": {"redrive_attempt": text("٣"), "sqs-dlq-replay-nb": text("²")},
    "a counter in bytes": {"redrive_attempt": ("Binary", b"1")},
}  # fmt: skip
_SPENT: Final = frozenset({"counters of earlier tools"})
_GROUPS: Final = {
    "of one character": "g",
    "of 128": "g" * 128,
    "of punctuation": _PUNCTUATION,
    "of a mark": f"{_FOREIGN}:1",
    "of SQL": "';DROP_TABLE--",
    "of HTML": "<script>alert(1)</script>",
    "of a number": "0",
}
_TRACES: Final = {
    "as X-Ray has it": "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1",
    "of garbage": "not a trace at all",
    "of line ends": "Root=1\r\nX-Injected: trace",
    "of 4000 characters": "t" * 4_000,
    "of emoji": "\U0001f600 trace",
}
