"""The stations: a dlq with one target of each kind, the letters that travel beside a payload, and what is to arrive."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from reprocessing.domain.lifecycle import ParkedReason
from reprocessing.models import Letter
from tests import envelopes
from tests.proof.poison.corpus import Payload
from tests.proof.poison.corpus.celery_tasks import envelope
from tests.proof.poison.corpus.notices import notification
from tests.proof.poison.corpus.payload import text
from tests.reprocessing.pipeline.bench import Workbench
from tests.reprocessing.pipeline.targets.kinds import KINDS, Kind, World

MOST_ATTRIBUTES: Final = 10
_MARK: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}:[1-9][0-9]{0,8}")
_KEYLESS: Final = {"ordering_key": "none", "sequence": "system:SentTimestamp"}

Form = tuple[Any, ...]  #: what arrived, to be compared


@dataclass(frozen=True)
class Station:
    """One way to be replayed.

    Attributes:
        kind: of the target (targets.kinds).
        parks: the reasons for which a payload may be parked here; mates never are.
        rules: conditions of rules that no mate meets.
        dies: letters die in their queue, and SQS says so; else they are laid into the dlq.
        mate: the letters beside.
        form: of what arrived, as it is compared; the body alone says what it becomes.
        exact: attributes, group and trace are compared, too.
        some: the payloads that are for it.
    """

    name: str
    kind: str
    mate: Callable[[int], Payload]
    parks: frozenset[ParkedReason] = frozenset()
    fields: Mapping[str, Any] = field(default_factory=dict)
    target_fields: Mapping[str, Any] = field(default_factory=dict)
    rules: tuple[tuple[str, str], ...] = ()
    dies: bool = False
    exact: bool = False
    form: Callable[[str], str] = str
    some: Callable[[Payload], bool] = lambda _: True

    @property
    def fifo(self) -> bool:
        return KINDS[self.kind].fifo

    def kind_in(self, world: World) -> Kind:
        return KINDS[self.kind](world)


def expected(station: Station, bench: Workbench, payload: Payload, letter: Letter, group: str | None) -> Form:
    body = station.form(payload.body)
    if not station.exact:
        return (body,)
    return body, frozenset(_attributes(bench, payload, letter).items()), group, payload.trace


def _attributes(bench: Workbench, payload: Payload, letter: Letter) -> dict[str, tuple[str, str | bytes]]:
    """Those of the payload, and as many of the declared additions as there is room for; counted anew."""
    leaving = dict(payload.attributes)
    _, value = leaving.get("RedriveId", ("", ""))
    if isinstance(value, str) and _MARK.fullmatch(value):
        del leaving["RedriveId"]
    attempt = max(letter.history.all(), key=lambda one: one.no)
    added = {
        "RedriveId": f"{letter.public_id}:{attempt.no}",
        "IdempotencyKey": letter.idempotency_key or letter.message_id,
        "OriginalMessageId": letter.message_id,
        "ReprocessedFrom": bench.dlq.name,
    }
    for name, marked in added.items():
        more = {**leaving, name: text(marked)}
        fits = Payload("", payload.body, more).size <= bench.target.size_limit
        if name not in leaving and len(leaving) < MOST_ATTRIBUTES and fits:
            leaving = more
    return leaving


def _plain(number: int) -> Payload:
    return Payload(f"mate {number}", json.dumps({"mate": number}), {"mate": ("Number", str(number))})


def _keyed(number: int) -> Payload:
    key = f"mate-{number}"
    attributes = {"key": text(key), "n": ("Number", "1"), "idem": text(f"idem-{key}")}
    return Payload(f"mate {number}", json.dumps({"key": key, "n": 1}), attributes)


def _task(number: int) -> Payload:
    return Payload(f"mate {number}", json.dumps(envelope({"id": f"task-{number}", "root_id": f"task-{number}"})))


def _event(number: int) -> Payload:
    body = f'{{"version":"0","id":"1","detail-type":"paid","source":"shop","detail": {{"mate": {number}}} }}'
    return Payload(f"mate {number}", body)


_CHANGING: Final = ("id", "root_id", "eta", "expires", "retries", "correlation_id", "expiration")


def _adapted(body: str) -> str:
    """A task message without what its target asks to be changed; any other body as it is."""
    try:
        document = envelopes.opened(body.strip().encode())
        for part in (document["headers"], document["properties"]):
            for name in _CHANGING:
                part.pop(name, None)
        inner = json.loads(base64.b64decode(document["body"])) if not document["headers"].get("task") else None
        if isinstance(inner, dict):  # protocol 1 has its fields in the payload
            document["body"] = {name: one for name, one in inner.items() if name not in _CHANGING}
        return json.dumps(document, sort_keys=True)
    except (ValueError, TypeError, KeyError, AttributeError):
        return body


#: What SNS calls the parts of a notification; with others it is somebody else's.
_OF_SNS: Final = frozenset(notification()) | {"MessageAttributes", "SequenceNumber"}


def _told_once_more(body: str) -> str:
    """Of a notification its message, of anything else all; what names a thing twice is no notification."""
    try:
        document = json.loads(body, object_pairs_hook=_unambiguous)
        is_one = isinstance(document, dict) and document.get("Type") == "Notification" and document.keys() <= _OF_SNS
        whole = is_one and isinstance(document["Message"], str) and ":::" not in document["TopicArn"]
        return str(document["Message"]) if whole else body
    except (ValueError, KeyError, RecursionError):
        return body


def _unambiguous(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(found := dict(pairs)) < len(pairs):
        raise ValueError("a name stands twice")
    return found


def _detail(body: str) -> str:
    try:
        return json.dumps(json.loads(body)["detail"], sort_keys=True)
    except (ValueError, KeyError, TypeError, RecursionError):
        return body


_RULES: Final = (
    ("r-attribute", "attribute:key equals nobody-has-this"),
    ("r-pattern", "attribute:n regex ^(a+)+$"),
    ("r-body", "body:order.id equals nobody-has-this"),
    ("r-search", "body:length(order.lines) equals 77"),
    ("r-task", "task:kwargs.customer equals nobody-has-this"),
    ("r-type", "type equals nobody-has-this"),
    ("r-tenant", "tenant in nobody-has-this,nor-this"),
)
_WITHOUT_KEY: Final = frozenset(
    {
        ParkedReason.NO_ORDERING_KEY,
        ParkedReason.NO_SEQUENCE,
        ParkedReason.NO_IDEMPOTENCY_KEY,
        ParkedReason.UNREADABLE_BODY,
        ParkedReason.KEY_CONFLICT,
        ParkedReason.STALE,
    }
)
_FOREIGN: Final = frozenset({ParkedReason.UNKNOWN_SOURCE, ParkedReason.UNSUPPORTED_TARGET})
_REFUSED: Final = _FOREIGN | {ParkedReason.REFUSED, ParkedReason.TOO_LARGE}
_NO_TASK: Final = frozenset({ParkedReason.UNREADABLE_TASK, ParkedReason.EXPIRED, ParkedReason.PART_OF_GROUP})
_BY_BODY: Final = {"ordering_key": "body:key", "sequence": "body:n", "idempotency_key": "content-hash"}
_BY_ATTRIBUTE: Final = {"ordering_key": "attribute:key", "sequence": "attribute:n"}

STANDARD: Final = Station(
    "standard", "sqs", _plain, dies=True, exact=True, rules=_RULES,
    fields={**_KEYLESS, "message_type": "body:type", "tenant": "attribute:key"},
)  # fmt: skip
STATIONS: Final = {
    one.name: one
    for one in (
        STANDARD,
        Station("laid", "sqs", _plain, parks=_FOREIGN, fields=_KEYLESS, exact=True),
        Station("fifo", "sqs-fifo", _plain, fields={}, dies=True, exact=True),
        Station("keyed-by-body", "sqs", _keyed, parks=_WITHOUT_KEY, fields=_BY_BODY, dies=True, exact=True),
        Station(
            "keyed-by-attribute", "sqs", _keyed, parks=_WITHOUT_KEY, dies=True, exact=True,
            fields=_BY_ATTRIBUTE | {"idempotency_key": "attribute:idem"},
        ),
        Station(
            "keyed-or-alone", "sqs", _keyed, parks=_WITHOUT_KEY, dies=True, exact=True,
            fields=_BY_ATTRIBUTE | {"missing_key": "lane"},
        ),
        Station("celery", "celery", _task, parks=_NO_TASK, fields=_KEYLESS, dies=True, exact=True),
        Station(
            "celery-adapted", "celery", _task, parks=_NO_TASK, fields=_KEYLESS, dies=True, form=_adapted,
            target_fields={"strips_eta": True, "strips_expires": True, "resets_retries": True, "renews_id": True},
        ),
        Station("http", "http", _plain, parks=_REFUSED, fields=_KEYLESS),
        Station("lambda", "lambda", _plain, parks=_REFUSED, fields=_KEYLESS),
        Station(
            "topic", "topic", _plain, parks=_REFUSED, fields=_KEYLESS, form=_told_once_more,
            target_fields={"size_limit": 262_144},
        ),
        Station("bus", "bus", _event, parks=_REFUSED, fields=_KEYLESS, form=_detail),
    )
}  # fmt: skip
