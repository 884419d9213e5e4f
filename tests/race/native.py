"""A DLQ that AWS's own redrive can empty."""

from __future__ import annotations

import json
from typing import Any

from reprocessing.gateways.sqs import Begun
from reprocessing.models import DeadLetterQueue
from reprocessing.pipeline.aws import follow_redrives, native_redrive
from reprocessing.pipeline.aws.native_redrive import RedriveUnknown, Refusal
from reprocessing.pipeline.runs import plan
from reprocessing.store.aws.aws_redrive_handover import HandoverBlockers
from tests.conditions import eventually
from tests.reprocessing.pipeline.bench import Clock, Workbench


def mine(**fields: object) -> Workbench:
    """Return a workbench whose source queue names its DLQ, as AWS requires for a redrive."""
    bench = Workbench(**fields)  # type: ignore[arg-type]  # those of a workbench
    policy = json.dumps({"deadLetterTargetArn": bench.dlq.arn, "maxReceiveCount": 1})
    bench.sqs.set_queue_attributes(QueueUrl=bench.source_url, Attributes={"RedrivePolicy": policy})
    return bench


def start(bench: Workbench, **options: Any) -> Begun | Refusal | RedriveUnknown | HandoverBlockers:  # noqa: ANN401  those of start
    asked: dict[str, Any] = {"to": bench.target.arn, "per_second": None, "by": "anna", "reason": "a bulk", **options}
    return native_redrive.start(bench.dlq, **asked)


def tasks(bench: Workbench) -> list[str]:
    listed = bench.sqs.list_message_move_tasks(SourceArn=bench.dlq.arn, MaxResults=10)["Results"]
    return [one["Status"] for one in listed]


def begin_outside(bench: Workbench, **options: Any) -> None:  # noqa: ANN401  those of boto3's
    bench.sqs.start_message_move_task(SourceArn=bench.dlq.arn, DestinationArn=bench.target.arn, **options)


def let_it_end_unseen(bench: Workbench) -> None:
    eventually(lambda: not {"RUNNING", "CANCELLING"} & set(tasks(bench)), within=10)


def let_it_end(bench: Workbench) -> None:
    """Wait until AWS is done, and have the service see that."""
    let_it_end_unseen(bench)
    follow_redrives.read_redrives(bench.dlq)


def moved_outside(bench: Workbench) -> None:
    begin_outside(bench)
    let_it_end(bench)


def is_aws_s(bench: Workbench) -> bool:
    return DeadLetterQueue.objects.get(pk=bench.dlq.pk).aws_redrive_since is not None


def captured_and_in_sight(bench: Workbench, clock: Clock, *bodies: str) -> None:
    """Capture letters and place them, and let their copies become visible again, in SQS and in the database."""
    bench.bury_all(*bodies)
    bench.capture()
    plan.place_captured(bench.dlq)
    bench.show_again()
    clock.advance(bench.conf.receive_visibility + 1)
