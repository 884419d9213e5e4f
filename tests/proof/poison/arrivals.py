"""What arrived at a station's target, read without any of our code."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from tests.proof.poison.station import Form, Station
from tests.reprocessing.pipeline.bench import Workbench
from tests.reprocessing.pipeline.targets.kinds import Kind
from tests.reprocessing.pipeline.targets.wire import Sent, received

TEN = 10


def heard(station: Station, kind: Kind | None, bench: Workbench) -> Counter[Form]:
    if kind is None:
        found = [received(one) for one in _taken_out(bench)]
    elif station.kind in ("topic", "bus"):
        found = _once([one for request in kind.sent() for one in request])
    else:
        found = kind.heard()
    return Counter(_form(station, one) for one in found)


def _once(some: list[Sent]) -> list[Sent]:
    return list({(one.mark or object(), one.text): one for one in some}.values())


def _form(station: Station, one: Sent) -> Form:
    if station.kind == "bus":
        return (json.dumps(json.loads(one.text), sort_keys=True),)
    if not station.exact:
        return (one.text if station.kind == "topic" else station.form(one.text),)
    return one.text, frozenset(one.attributes.items()), one.group, one.trace


def _taken_out(bench: Workbench) -> Iterator[dict[str, Any]]:
    while some := bench.sqs.receive_message(
        QueueUrl=bench.source_url, MaxNumberOfMessages=TEN, MessageAttributeNames=["All"],
        MessageSystemAttributeNames=["All"],
    ).get("Messages"):  # fmt: skip
        yield from some
        entries = [{"Id": str(number), "ReceiptHandle": one["ReceiptHandle"]} for number, one in enumerate(some)]
        bench.sqs.delete_message_batch(QueueUrl=bench.source_url, Entries=entries)
