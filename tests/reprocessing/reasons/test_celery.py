"""The hook of a Celery app, with Celery's own requests and signals, and messages as kombu delivers them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from celery import Celery, signals
from celery.exceptions import Reject, TimeLimitExceeded
from celery.worker.request import Request
from kombu.transport.virtual import Message

from reprocessing.reasons import Counts, Reporter
from reprocessing.reasons import celery as hook
from tests.reprocessing.reasons.stub import Stub

ATTRIBUTES = {"RedriveId": {"DataType": "String", "StringValue": "0b5c6a7e-1111-4222-8333-444455556666:2"}}


class Channel:
    def decode_body(self, body: str, _encoding: str | None) -> str:
        return body


class Desk:
    def __init__(self, stub: Stub, **options: Any) -> None:  # noqa: ANN401
        self.stub = stub
        self.app = Celery("desk", set_as_current=False, broker="memory://", backend=None)
        self.app.conf.update(task_ignore_result=True, task_store_errors_even_if_ignored=False)
        self.reporter: Reporter = hook.install(self.app, url=stub.url, token="token", every=60, **options)

    def run(self, task: Any, message_id: str = "m-1", **headers: Any) -> None:  # noqa: ANN401
        """Execute a task as a worker does with a message of SQS."""
        request = Request(self.message(task, message_id, **headers), app=self.app, task=task)
        signals.task_received.send(sender=None, request=request)
        request.execute()

    def message(self, task: Any, message_id: str, **headers: Any) -> Message:  # noqa: ANN401
        sqs_message = {"MessageId": message_id, "ReceiptHandle": "r", "MessageAttributes": ATTRIBUTES}
        return Message(
            {
                "body": json.dumps([[], {}, {}]),
                "content-type": "application/json",
                "content-encoding": "utf-8",
                "headers": {"id": "task-1", "task": task.name, "lang": "py", **headers},
                "properties": {
                    "delivery_tag": "r",
                    "delivery_info": {"sqs_message": sqs_message, "routing_key": "desk", "exchange": ""},
                },
            },
            channel=Channel(),  # type: ignore[arg-type]  # only decode_body is used
        )

    def said(self) -> list[dict[str, Any]]:
        self.reporter.close(within=10)
        return self.stub.reports


@pytest.fixture
def desk(stub: Stub, receivers_as_before: None) -> Desk:
    return Desk(stub)


def failing(desk: Desk, **options: Any) -> Any:  # noqa: ANN401
    @desk.app.task(name="desk.fail", **options)
    def fail() -> None:
        raise ValueError("no stock")

    return fail


def test_a_failed_task_is_reported_with_its_message_and_its_reason_when_its_process_ends(
    desk: Desk, stub: Stub
) -> None:
    other = Desk(stub)
    task = failing(desk)
    desk.run(task)
    task.apply()  # without a message of SQS
    signals.worker_process_shutdown.send(sender=None, pid=1, exitcode=0)
    (said,) = stub.reports
    assert (said["message_id"], said["redrive_id"]) == ("m-1", ATTRIBUTES["RedriveId"]["StringValue"])
    assert (said["verdict"], said["type"], said["message"]) == ("failed", "ValueError", "no stock")
    assert len(said["fingerprint"]) == 16
    assert desk.reporter.counts == Counts(taken=1, accepted=1, nameless=1)
    assert other.reporter.counts == Counts()  # the task is another app's


@pytest.mark.parametrize(
    ("error", "options", "expected"),
    [
        (ValueError(), {"acks_late": False}, "failed"),
        (ValueError(), {"acks_late": False, "acks_on_failure": False}, "failed"),
        (ValueError(), {"acks_late": True, "acks_on_failure": True}, "failed"),
        (ValueError(), {"acks_late": True, "acks_on_failure": False}, "retrying"),
        (ValueError(), {"acks_late": True, "acks_on_failure_or_timeout": False}, "retrying"),
        (TimeLimitExceeded(5), {"acks_late": True, "acks_on_timeout": True}, "failed"),
        (TimeLimitExceeded(5), {"acks_late": True, "acks_on_timeout": False, "acks_on_failure": True}, "retrying"),
        (TimeLimitExceeded(5), {"acks_late": False}, "failed"),
        (Reject("no", requeue=False), {"acks_late": True}, "retrying"),
        (Reject("no", requeue=False), {"acks_late": False}, "failed"),
    ],
)
def test_a_failure_is_final_if_celery_acknowledges_it(
    desk: Desk, error: Exception, options: dict[str, Any], expected: str
) -> None:
    assert hook.verdict(failing(desk, **options), error) == expected


def test_a_task_that_the_main_process_ends_is_known_by_its_id(desk: Desk) -> None:
    task, error = failing(desk, acks_late=True, acks_on_timeout=False), TimeLimitExceeded(5)
    signals.task_received.send(sender=None, request=Request(desk.message(task, "m-1"), app=desk.app, task=task))
    for task_id in ("task-1", "task-2"):
        signals.task_failure.send(sender=task, task_id=task_id, exception=error, args=[], kwargs={}, traceback=None)
    assert [(one["message_id"], one["verdict"]) for one in desk.said()] == [("m-1", "retrying")]
    assert desk.reporter.counts == Counts(taken=1, accepted=1, nameless=1)


def test_only_the_last_thousand_received_tasks_are_remembered(desk: Desk) -> None:
    task = failing(desk)
    for number in range(1_001):
        request = Request(desk.message(task, "m-1", id=f"task-{number}"), app=desk.app, task=task)
        signals.task_received.send(sender=None, request=request)
    for number in (0, 1):
        signals.task_failure.send(sender=task, task_id=f"task-{number}", exception=Reject(), traceback=None)
    assert len(desk.said()) == 1


def published(desk: Desk, task: Any) -> list[dict[str, Any]]:  # noqa: ANN401
    sent: list[dict[str, Any]] = []
    signals.after_task_publish.connect(lambda headers, **_: sent.append(headers), weak=False, dispatch_uid="sent")
    try:
        desk.run(task)
    finally:
        signals.after_task_publish.disconnect(dispatch_uid="sent")
    return sent


def test_a_retry_is_reported_with_its_reason_and_carries_the_first_messages_names(desk: Desk) -> None:
    @desk.app.task(name="desk.retry", bind=True)
    def again(self: Any) -> None:  # noqa: ANN401
        raise self.retry(exc=ValueError("no stock"))

    (headers,) = published(desk, again)
    desk.run(failing(desk), "m-2", **{hook.HEADER: headers[hook.HEADER]})
    assert [(one["message_id"], one["verdict"], one["type"], one["message"]) for one in desk.said()] == [
        ("m-1", "retrying", "ValueError", "no stock"), ("m-1", "failed", "ValueError", "no stock"),
    ]  # fmt: skip


def test_a_task_that_another_task_sends_carries_no_names(desk: Desk) -> None:
    other = failing(desk)

    @desk.app.task(name="desk.send")
    def send() -> None:
        other.apply_async()

    assert [hook.HEADER in one for one in published(desk, send)] == [False]


@pytest.mark.parametrize(("acknowledges", "expected"), [(False, []), (True, ["delivered"])])
def test_success_is_reported_if_the_app_acknowledges(
    desk: Desk, stub: Stub, *, acknowledges: bool, expected: list[str]
) -> None:
    other = Desk(stub, acknowledges=acknowledges)

    @other.app.task(name="desk.work")
    def work() -> None:
        pass

    other.run(work)
    assert [one["verdict"] for one in other.said()] == expected


@pytest.mark.parametrize("receiver", ["failed", "retried", "succeeded", "published", "received"])
def test_a_receiver_never_raises(desk: Desk, receiver: str) -> None:
    receive = getattr(hook._Hook(desk.app, desk.reporter), receiver)
    assert receive(sender=None, request=None, headers=None) is None
