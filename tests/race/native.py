"""A dlq that AWS's own redrive may be asked to empty."""

from __future__ import annotations

import json
from typing import Any

from reprocessing.gateways.sqs import Begun
from reprocessing.models import DeadLetterQueue
from reprocessing.pipeline.aws import native_redrive
from reprocessing.pipeline.aws.native_redrive import Open, Refusal
from reprocessing.pipeline.runs import plan
from reprocessing.store.aws.native_redrive_lock import Standing
from tests.conditions import eventually
from tests.reprocessing.pipeline.bench import Clock, Workbench


def mine(**fields: object) -> Workbench:
    """A workbench whose origin names its dlq, as AWS asks of a dlq that it is to empty."""
    bench = Workbench(**fields)  # type: ignore[arg-type]  # those of a workbench
    policy = json.dumps({"deadLetterTargetArn": bench.dlq.arn, "maxReceiveCount": 1})
    bench.sqs.set_queue_attributes(QueueUrl=bench.origin_url, Attributes={"RedrivePolicy": policy})
    return bench


def start(bench: Workbench, **options: Any) -> Begun | Refusal | Open | Standing:  # noqa: ANN401  those of start
    """Have AWS move the dlq's messages to its origin, which nothing that is sent into a dlq died in."""
    asked: dict[str, Any] = {"to": bench.target.arn, "per_second": None, "by": "anna", "reason": "a bulk", **options}
    return native_redrive.start(bench.dlq, **asked)


def tasks(bench: Workbench) -> list[str]:
    """What has become of what AWS was asked, newest first."""
    listed = bench.sqs.list_message_move_tasks(SourceArn=bench.dlq.arn, MaxResults=10)["Results"]
    return [one["Status"] for one in listed]


def begin_outside(bench: Workbench, **options: Any) -> None:  # noqa: ANN401  those of boto3's
    """Have AWS do the same behind our back."""
    bench.sqs.start_message_move_task(SourceArn=bench.dlq.arn, DestinationArn=bench.target.arn, **options)


def let_it_end_unseen(bench: Workbench) -> None:
    """Wait until AWS is done."""
    eventually(lambda: not {"RUNNING", "CANCELLING"} & set(tasks(bench)), within=10)


def let_it_end(bench: Workbench) -> None:
    """Wait until AWS is done, and have that seen."""
    let_it_end_unseen(bench)
    native_redrive.look(bench.dlq)


def is_aws_s(bench: Workbench) -> bool:
    """Whether the row says so."""
    return DeadLetterQueue.objects.get(pk=bench.dlq.pk).native_at is not None


def captured_and_in_sight(bench: Workbench, clock: Clock, *bodies: str) -> None:
    """Letters of a dry run, whose copies have come to sight again, in SQS as here."""
    for body in bodies:
        bench.bury(body)
    bench.capture()
    plan.places(bench.dlq)
    bench.show_again()
    clock.advance(bench.conf.receive_visibility + 1)
