"""One server on loopback before every target: it lets letters pass, or does with a letter what the test says.

Endpoints and functions end here: that is a stand-in, which decides nothing by itself. What is for SQS goes on to the
local SQS, what is for SNS and EventBridge to moto. Whoever asks for a role gets it.
"""

from __future__ import annotations

import json
import re
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from dataclasses import replace as replaced
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any
from urllib.parse import parse_qsl, urlencode

from tests.reprocessing.gateways.stand_ins import (
    Asked,
    Said,
    StandIn,
    assumed,
    function_error,
    lambda_error,
    role_of,
    standing_in,
)

FUNCTIONS = "/2015-03-31/functions/"
HOOKS = "/hooks/"
ASSUMED = "KEY-OF-A-ROLE"  #: by which requests under a role are known
FAR = datetime(2100, 1, 1, tzinfo=UTC)
WAIT = 70  #: seconds that a target asks to be waited for
_MEMBER = "PublishBatchRequestEntries.member."
_PASSED_ON = ("content-type", "x-amzn-requestid", "x-amzn-query-error")


class Does(StrEnum):
    """What becomes of a letter at its target."""

    TAKES = "takes"
    FAILS = "fails"  #: refused, for a reason that is not the letter's
    POISONS = "poisons"  #: refused for what the letter is
    LOSES = "loses"  #: taken, and nobody hears of it
    ASKS_TO_WAIT = "asks to wait"  #: for `WAIT` seconds


@dataclass
class Gateway:
    """What passes it.

    Attributes:
        does: what is done with a letter in which this word stands; all others are taken.
        asked: every request of ours that would give letters to a target, also one that was refused.
        taken: those, or parts of them, that were let through.
        slowness: seconds that an endpoint or a function takes.
        overlaps: keys of which two letters were at an endpoint or a function at the same time.
        roles: those that were assumed.
    """

    sqs: str
    moto: str
    does: dict[str, Does] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)
    taken: list[Asked] = field(default_factory=list)
    slowness: float = 0.0
    overlaps: list[str] = field(default_factory=list)
    roles: list[str] = field(default_factory=list)
    server: StandIn | None = None
    _open: set[str] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def url(self) -> str:
        assert self.server
        return self.server.url

    def forget(self) -> None:
        self.slowness = 0.0
        for one in (self.does, self.asked, self.taken, self.overlaps, self.roles, self._open):
            one.clear()

    def answer(self, asked: Asked) -> Said:
        if asked.path.startswith((HOOKS, FUNCTIONS)):
            self.asked.append(asked)
            return self._slow(asked)
        if _action(asked) == "AssumeRole":
            self.roles.append(role_of(asked))
            return assumed(ASSUMED, FAR)
        entries = entries_of(asked)
        if entries is None:
            return _forwarded(asked, self.sqs if _action(asked).startswith("AmazonSQS") else self.moto)
        self.asked.append(asked)
        return self._batch(asked, entries)

    def fate(self, text: str) -> Does:
        return next((does for word, does in self.does.items() if word in text), Does.TAKES)

    def _slow(self, asked: Asked) -> Said:
        text = asked.body.decode()
        keys = {f"key-{one}" for one in re.findall(r"key-(\d+)", text)}
        with self._lock:
            self.overlaps += keys & self._open
            self._open |= keys
        threading.Event().wait(self.slowness)
        with self._lock:
            self._open -= keys
        fate = self.fate(text)
        if fate in (Does.TAKES, Does.LOSES):
            self.taken.append(asked)
        if fate is Does.LOSES:
            return Said(hangs_up=True)
        return _by_endpoint(fate) if asked.path.startswith(HOOKS) else _by_function(fate)

    def _batch(self, asked: Asked, entries: list[str]) -> Said:
        fates = [self.fate(entry) for entry in entries]
        kept = {number for number, fate in enumerate(fates) if fate in (Does.TAKES, Does.LOSES)}
        passing = replaced(asked, body=_only(asked, kept)) if len(kept) < len(entries) else asked
        said = Said(200)
        if kept:
            self.taken.append(passing)
            said = _forwarded(passing, self.sqs if _action(asked).startswith("AmazonSQS") else self.moto)
        if Does.LOSES in fates:
            return Said(hangs_up=True)
        return said if len(kept) == len(entries) or said.status >= 400 else _merged(asked, said, fates)


def entries_of(asked: Asked) -> list[str] | None:
    """The letters of a batch, each as a text in which its words stand; None where it is another request."""
    match _action(asked):
        case "AmazonSQS.SendMessageBatch":
            return [load["MessageBody"] for load in json.loads(asked.body)["Entries"]]
        case "AWSEvents.PutEvents":
            return [load["Detail"] for load in json.loads(asked.body)["Entries"]]
        case "PublishBatch":
            return [member["Message"] for member in members(asked)]
        case _:
            return None


def members(asked: Asked) -> list[dict[str, str]]:
    found: dict[int, dict[str, str]] = {}
    for name, value in parse_qsl(asked.body.decode(), keep_blank_values=True):
        if name.startswith(_MEMBER):
            number, _, rest = name.removeprefix(_MEMBER).partition(".")
            found.setdefault(int(number), {})[rest] = value
    return [found[number] for number in sorted(found)]


def _action(asked: Asked) -> str:
    named = asked.headers.get("x-amz-target")
    return named or dict(parse_qsl(asked.body.decode())).get("Action", "")


def _only(asked: Asked, kept: set[int]) -> bytes:
    """The request with these entries alone."""
    if _action(asked) != "PublishBatch":
        request: dict[str, Any] = json.loads(asked.body)
        request["Entries"] = [one for number, one in enumerate(request["Entries"]) if number in kept]
        return json.dumps(request).encode()
    rest = [(n, v) for n, v in parse_qsl(asked.body.decode(), keep_blank_values=True) if not n.startswith(_MEMBER)]
    some = [one for number, one in enumerate(members(asked)) if number in kept]
    rest += [(f"{_MEMBER}{at}.{name}", value) for at, one in enumerate(some, 1) for name, value in one.items()]
    return urlencode(rest).encode()


def _merged(asked: Asked, said: Said, fates: list[Does]) -> Said:
    """What was answered, with those that were kept back among it as failed."""
    bad = {number: fate for number, fate in enumerate(fates) if fate in (Does.FAILS, Does.POISONS)}
    answer: dict[str, Any]
    match _action(asked):
        case "AmazonSQS.SendMessageBatch":
            answer = json.loads(said.body) or {}
            answer["Failed"] = [
                {"Id": str(number), "SenderFault": True, "Message": "m", "Code": _code(fate, "InvalidMessageContents")}
                for number, fate in bad.items()
            ]
            return Said(200, json.dumps(answer).encode(), {"Content-Type": "application/x-amz-json-1.0"})
        case "AWSEvents.PutEvents":
            taken = iter((json.loads(said.body) or {"Entries": []})["Entries"])
            failed = {
                number: {"ErrorCode": _code(fate, "MalformedDetail"), "ErrorMessage": "m"}
                for number, fate in bad.items()
            }
            entries = [failed[number] if number in failed else next(taken) for number in range(len(fates))]
            answer = {"FailedEntryCount": len(bad), "Entries": entries}
            return Said(200, json.dumps(answer).encode(), {"Content-Type": "application/x-amz-json-1.1"})
        case _:
            return _published(said, bad)


def _published(said: Said, bad: Mapping[int, Does]) -> Said:
    good = re.search(rb"<Successful>.*</Successful>", said.body, re.DOTALL)
    failed = "".join(
        f"<member><Id>{number}</Id><Code>{_code(fate, 'InvalidParameter')}</Code><Message>m</Message>"
        "<SenderFault>true</SenderFault></member>"
        for number, fate in bad.items()
    )
    text = (
        '<PublishBatchResponse xmlns="http://sns.amazonaws.com/doc/2010-03-31/"><PublishBatchResult>'
        f"{good[0].decode() if good else ''}<Failed>{failed}</Failed></PublishBatchResult></PublishBatchResponse>"
    )
    return Said(200, text.encode(), {"Content-Type": "text/xml"})


def _code(fate: Does, poison: str) -> str:
    return poison if fate is Does.POISONS else "KMSDisabled"


def _by_endpoint(fate: Does) -> Said:
    match fate:
        case Does.FAILS:
            return Said(500)
        case Does.POISONS:
            return Said(422)
        case Does.ASKS_TO_WAIT:
            return Said(429, headers={"Retry-After": str(WAIT)})
        case _:
            return Said(204, b"")


def _by_function(fate: Does) -> Said:
    match fate:
        case Does.FAILS:
            return function_error("Unhandled", {"errorType": "ValueError"})
        case Does.POISONS:
            return lambda_error(400, "InvalidRequestContentException")
        case Does.ASKS_TO_WAIT:
            return lambda_error(429, "TooManyRequestsException", **{"Retry-After": str(WAIT)})
        case _:
            return Said()


def _forwarded(asked: Asked, to: str) -> Said:
    headers = {name: value for name, value in asked.headers.items() if name not in ("content-length", "connection")}
    request = urllib.request.Request(to + asked.path, data=asked.body, headers=headers, method="POST")
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            status, body, told = answer.status, answer.read(), answer.headers
    except urllib.error.HTTPError as error:
        status, body, told = error.code, error.read(), error.headers
    return Said(status, body, {name: value for name, value in told.items() if name.lower() in _PASSED_ON})


@contextmanager
def gateway(sqs: str, moto: str) -> Iterator[Gateway]:
    made = Gateway(sqs, moto)
    with standing_in(made.answer) as running:
        made.server = running
        yield made
