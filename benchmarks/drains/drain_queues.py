"""The queues of a drain: create and fill them, and register a DLQ with the service."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from benchmarks.drains.drain_plan import Plan

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

POLL: Final = 5  #: seconds between polls of the DLQ; with the default (60 s), an outcome would mostly wait for a poll
#: Max captured messages that stay in the DLQ, invisible. SQS allows 120,000 messages in flight.
HELD_COPIES: Final = 100_000
WINDOW: Final = 30  #: seconds; also the source queue's visibility timeout


def create(sqs: SQSClient, plan: Plan, name: str) -> tuple[str, str]:
    """Create a DLQ and its source queue; return their URLs.

    With outcome `absence`, messages that fail in the source queue go to the DLQ.
    """
    end = ".fifo" if plan.kind == "fifo" else ""
    fifo: Any = {"FifoQueue": "true"} if end else {}
    dlq = sqs.create_queue(QueueName=f"{name}-dlq{end}", Attributes={"VisibilityTimeout": "900", **fifo})["QueueUrl"]
    policy: Any = {"VisibilityTimeout": str(WINDOW), **fifo}
    if plan.outcome == "absence":
        arn = sqs.get_queue_attributes(QueueUrl=dlq, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
        policy["RedrivePolicy"] = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": 1})
    return dlq, sqs.create_queue(QueueName=f"{name}{end}", Attributes=policy)["QueueUrl"]


def fill(sqs: SQSClient, plan: Plan, dlq: str, label: str, letters: range) -> None:
    """Send the letters of these numbers to a DLQ. Their keys begin with `label`."""
    for start in range(0, len(letters), plan.batch):
        numbers = letters[start : start + plan.batch]
        sent = sqs.send_message_batch(QueueUrl=dlq, Entries=[_letter(plan, label, number) for number in numbers])
        if sent.get("Failed"):
            raise SystemExit(f"The local SQS refused letters: {sent['Failed'][0]}")


def _letter(plan: Plan, label: str, number: int) -> Any:  # noqa: ANN401 - boto3's own shape
    key = f"{label}-{plan.key(number)}"
    body = json.dumps({"key": key, "n": number, "rest": ""})
    told = {"account": key, "sequence": str(number)}
    letter = {
        "Id": str(number),
        "MessageBody": f"{body[:-2]}{'x' * (plan.body - len(body))}{body[-2:]}",
        "MessageAttributes": {name: {"DataType": "String", "StringValue": value} for name, value in told.items()},
    }
    if plan.kind == "fifo":
        letter |= {"MessageGroupId": key, "MessageDeduplicationId": f"{label}-{number}"}
    return letter


def watch(plan: Plan, dlq: str, source: str, endpoint: str | None) -> int:
    """Register the DLQ without rate limit, ramp-up and waves, because these only delay sends; return its id.

    `endpoint`: URL of the HTTP endpoint that is the target; None: the target is the source queue.
    """
    from django_celery_beat.models import IntervalSchedule  # noqa: PLC0415

    from reprocessing.gateways.sqs import QueueAddress, describe  # noqa: PLC0415
    from reprocessing.models import Breaker, DeadLetterQueue, Source, Target  # noqa: PLC0415  # Django is set up by now
    from reprocessing.pipeline.runs import feed_run  # noqa: PLC0415  # as above

    there, here, fifo = QueueAddress.of(source), QueueAddress.of(dlq), plan.kind == "fifo"
    home = describe(there).arn
    often, _ = IntervalSchedule.objects.get_or_create(every=POLL, period=IntervalSchedule.SECONDS)
    watched = DeadLetterQueue.objects.create(
        name="drain", url=dlq, arn=describe(here).arn, region=here.region, mode="observe", new_key_delay=0, fifo=fifo,
        waves=False, held_copies_limit=HELD_COPIES, backoff_base=0, interval=often, **_keys(plan),
    )  # fmt: skip
    if endpoint:
        target = Target.objects.create(kind="http", arn=endpoint, url=endpoint, region=here.region, rate=None)
    else:
        target = Target.objects.create(
            arn=home, url=source, region=there.region, rate=None, fifo=fifo, proof=plan.outcome, window=WINDOW,
            visibility=WINDOW, watched_by=watched if plan.outcome == "absence" else None,
        )  # fmt: skip
    # The breaker never opens, because it would change the measured rate when letters fail on purpose.
    Breaker.objects.filter(target=target).update(ramp_from=1, ramp=1, threshold=1_000_000, at_least=1_000_000)
    Source.objects.create(dlq=watched, arn=home, target=target)
    feed_run.automatic_run(watched)
    return int(watched.pk)


def _keys(plan: Plan) -> dict[str, str]:
    """Return the DLQ's settings of keys, as `add_dlq` sets them; for FIFO, also that a capture deletes messages."""
    if plan.kind == "keyless":
        return {}
    if plan.kind == "fifo":
        return {
            "ordering_key": "system:MessageGroupId", "sequence": "system:SequenceNumber", "delete_when": "captured",
        }  # fmt: skip
    return {"ordering_key": "attribute:account", "sequence": "attribute:sequence"}


def set_mode(dlq: int, mode: str) -> None:
    """Set the DLQ's mode: `automatic` while the service drains, `observe` while a loop does. A poll is due at once."""
    from django.db import connection  # noqa: PLC0415  # as above

    from reprocessing.models import DeadLetterQueue  # noqa: PLC0415  # as above

    DeadLetterQueue.objects.filter(pk=dlq).update(mode=mode, next_poll_at=None)
    connection.close()  # the connections to PostgreSQL are counted


def empty(sqs: SQSClient, queue: str) -> None:
    """Delete all messages of a queue, because the next round needs the memory. SQS allows this once a minute."""
    with suppress(sqs.exceptions.PurgeQueueInProgress):
        sqs.purge_queue(QueueUrl=queue)
