"""The hook of a Celery app: Celery's own requests and signals, with messages as kombu hands them over."""

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
    """What a message needs of its channel."""

    def decode_body(self, body: str, _encoding: str | None) -> str:
        return body


class Desk:
    """An app whose tasks fail, with the hook installed, and what it has reported."""

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
            channel=Channel(),  # type: ignore[arg-type]  # all that is asked of it
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


def test_a_failed_task_is_reported_with_its_message_and_its_reason(desk: Desk) -> None:
    desk.run(failing(desk))

    (said,) = desk.said()
    assert {name: said[name] for name in ("message_id", "redrive_id", "type", "message")} == {
        "message_id": "m-1",
        "redrive_id": "0b5c6a7e-1111-4222-8333-444455556666:2",
        "type": "ValueError",
        "message": "no stock",
    }
    assert len(said["fingerprint"]) == 16


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"acks_late": False}, "failed"),
        ({"acks_late": False, "acks_on_failure": False}, "failed"),
        ({"acks_late": True, "acks_on_failure": True}, "failed"),
        ({"acks_late": True, "acks_on_failure": False}, "retrying"),
        ({"acks_late": True, "acks_on_failure_or_timeout": False}, "retrying"),
    ],
)
def test_a_failure_is_final_when_celery_acknowledges_it(desk: Desk, options: dict[str, Any], expected: str) -> None:
    desk.run(failing(desk, **options))

    assert [one["verdict"] for one in desk.said()] == [expected]


@pytest.mark.parametrize(
    ("error", "options", "expected"),
    [
        (TimeLimitExceeded(5), {"acks_late": True, "acks_on_timeout": True}, "failed"),
        (TimeLimitExceeded(5), {"acks_late": True, "acks_on_timeout": False, "acks_on_failure": True}, "retrying"),
        (TimeLimitExceeded(5), {"acks_late": False}, "failed"),
        (Reject("no", requeue=False), {"acks_late": True}, "retrying"),
        (Reject("no", requeue=False), {"acks_late": False}, "failed"),
    ],
)
def test_what_the_main_process_ends_is_known_by_the_tasks_id(
    desk: Desk, error: Exception, options: dict[str, Any], expected: str
) -> None:
    task = failing(desk, **options)
    signals.task_received.send(sender=None, request=Request(desk.message(task, "m-1"), app=desk.app, task=task))
    signals.task_failure.send(sender=task, task_id="task-1", exception=error, args=[], kwargs={}, traceback=None)
    signals.task_failure.send(sender=task, task_id="task-2", exception=error, args=[], kwargs={}, traceback=None)

    assert [(one["message_id"], one["verdict"]) for one in desk.said()] == [("m-1", expected)]
    assert desk.reporter.counts == Counts(taken=1, heard=1, nameless=1)


def test_of_tasks_received_only_the_last_thousand_are_remembered(desk: Desk) -> None:
    task = failing(desk)
    for number in range(1_001):
        request = Request(desk.message(task, "m-1", id=f"task-{number}"), app=desk.app, task=task)
        signals.task_received.send(sender=None, request=request)
    for number in (0, 1):
        signals.task_failure.send(sender=task, task_id=f"task-{number}", exception=Reject(), traceback=None)

    assert len(desk.said()) == 1


def test_a_retry_is_reported_with_what_made_it_necessary(desk: Desk) -> None:
    sent = retry(desk)

    assert [(one["verdict"], one["type"], one["message"]) for one in desk.said()] == [
        ("retrying", "ValueError", "no stock"),
    ]
    assert len(sent) == 1


def test_a_retry_carries_the_names_of_the_first_message(desk: Desk) -> None:
    (headers,) = retry(desk)
    desk.run(failing(desk), "m-2", **{hook.HEADER: headers[hook.HEADER]})

    assert [(one["message_id"], one["verdict"]) for one in desk.said()] == [("m-1", "retrying"), ("m-1", "failed")]


def test_a_task_that_another_one_sends_carries_no_names(desk: Desk) -> None:
    sent: list[dict[str, Any]] = []
    signals.after_task_publish.connect(lambda headers, **_: sent.append(headers), weak=False, dispatch_uid="sent")
    other = failing(desk)

    @desk.app.task(name="desk.send")
    def send() -> None:
        other.apply_async()

    try:
        desk.run(send)
    finally:
        signals.after_task_publish.disconnect(dispatch_uid="sent")

    assert [hook.HEADER in one for one in sent] == [False]


def order() -> None:
    raise ValueError("no stock")


def retry(desk: Desk) -> list[dict[str, Any]]:
    """Run a task that retries once; the headers it was published with."""
    sent: list[dict[str, Any]] = []
    signals.after_task_publish.connect(lambda headers, **_: sent.append(headers), weak=False, dispatch_uid="sent")

    @desk.app.task(name="desk.retry", bind=True)
    def again(self: Any) -> None:  # noqa: ANN401
        try:
            order()
        except ValueError as error:
            raise self.retry(exc=error) from error

    try:
        desk.run(again)
    finally:
        signals.after_task_publish.disconnect(dispatch_uid="sent")
    return sent


@pytest.mark.parametrize(("acknowledges", "expected"), [(False, []), (True, ["delivered"])])
def test_success_is_reported_by_an_app_that_acknowledges(
    desk: Desk, stub: Stub, *, acknowledges: bool, expected: list[str]
) -> None:
    other = Desk(stub, acknowledges=acknowledges)

    @other.app.task(name="desk.work")
    def work() -> None:
        pass

    other.run(work)

    assert [one["verdict"] for one in other.said()] == expected


def test_the_tasks_of_another_app_are_its_own(desk: Desk, stub: Stub) -> None:
    other = Desk(stub)
    desk.run(failing(desk))

    assert len(desk.said()) == 1
    assert other.reporter.counts == Counts()


def test_a_task_that_came_from_elsewhere_is_counted_and_left_out(desk: Desk) -> None:
    failing(desk).apply()

    assert desk.said() == []
    assert desk.reporter.counts == Counts(nameless=1)


def test_a_pool_process_that_ends_sends_what_waits(desk: Desk) -> None:
    desk.run(failing(desk))
    signals.worker_process_shutdown.send(sender=None, pid=1, exitcode=0)

    assert [one["message_id"] for one in desk.stub.reports] == ["m-1"]


def test_whatever_is_wrong_with_a_task_the_hook_raises_nothing(desk: Desk) -> None:
    receivers = [
        hook._Hook(desk.app, desk.reporter).failed,
        hook._Hook(desk.app, desk.reporter).retried,
        hook._Hook(desk.app, desk.reporter).succeeded,
        hook._Hook(desk.app, desk.reporter).published,
        hook._Hook(desk.app, desk.reporter).received,
    ]

    assert [receive(sender=None, request=None, headers=None) for receive in receivers] == [None] * 5
