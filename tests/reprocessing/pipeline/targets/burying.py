"""Messages with attributes of every type, as they come to lie in a dlq."""

from __future__ import annotations

import uuid
from typing import Any

from reprocessing.domain.message.envelope import Attributes
from tests.reprocessing.pipeline.bench import Workbench
from tests.reprocessing.pipeline.targets.wire import Typed


def bury(bench: Workbench, body: str, typed: Typed, *, group: str | None = None, trace: str | None = None) -> str:
    """A message in the dlq; its id."""
    rest: dict[str, Any] = {"MessageGroupId": group} if group else {}
    if bench.fifo:
        rest["MessageDeduplicationId"] = uuid.uuid4().hex
    if trace:
        rest["MessageSystemAttributes"] = {"AWSTraceHeader": {"DataType": "String", "StringValue": trace}}
    attributes = {
        name: {"DataType": kind, "BinaryValue" if isinstance(held, bytes) else "StringValue": held}
        for name, (kind, held) in typed.items()
    }
    sent = bench.sqs.send_message(QueueUrl=bench.dlq_url, MessageBody=body, MessageAttributes=attributes, **rest)
    return str(sent["MessageId"])


def typed(attributes: Attributes) -> Typed:
    return {name: (one.type, one.value) for name, one in attributes.items()}
