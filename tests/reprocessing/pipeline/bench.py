"""A workbench for the pipeline: real queues in the local SQS, rows in Postgres, one turn at a time."""

from __future__ import annotations

import json
import os
import time
import urllib.request
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from dataclasses import replace as replaced
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from django.conf import settings
from django.db import connection, transaction

from reprocessing.conf import Conf
from reprocessing.domain.replay.verdicts import Outcome, Refused, Unknown
from reprocessing.domain.runs.selection import Selection
from reprocessing.gateways.redis.send_rate import Rates
from reprocessing.models import Attempt, Breaker, DeadLetterQueue, DlqCopy, Lane, Letter, Run, Source, Target
from reprocessing.pipeline.outcomes import resolve_outcomes
from reprocessing.pipeline.replay import replay_slice, send_batches
from reprocessing.pipeline.replay.replay_slice import Report
from reprocessing.pipeline.runs import feed_run, plan
from reprocessing.pipeline.runs.feed_run import PollResult
from reprocessing.store.ordering import lanes
from reprocessing.store.replay.intent import IntendedSend
from reprocessing.store.runs import enlistment, selection

#: No waiting for what SQS's counts or long polls would need on AWS.
BRISK = replaced(Conf(), long_poll=0, count_lag=timedelta(0), lease=timedelta(seconds=8))

Outcomes = dict[int, Outcome]

#: In nanoseconds; what SQS dates by.
MILLISECOND = 1_000_000


def _passed(millisecond: int) -> None:
    while time.time_ns() // MILLISECOND == millisecond:
        pass


class Killed(Exception):
    """A worker is killed at this place."""


class Clock:
    """The database's clock, for leases and deadlines."""

    def __init__(self) -> None:
        self._ahead = 0.0

    def advance(self, seconds: float) -> None:
        self._ahead += seconds
        self._set()

    def restore(self) -> None:
        self._ahead = 0.0
        self._set()

    def _set(self) -> None:
        with connection.cursor() as cursor:
            cursor.execute(
                "CREATE OR REPLACE FUNCTION redrive_now() RETURNS timestamptz LANGUAGE sql VOLATILE PARALLEL SAFE AS "
                f"$$SELECT clock_timestamp() + make_interval(secs => {self._ahead})$$"
            )


def sandbox_page(since: int, queue: str = "") -> dict[str, Any]:
    """Return a page of the local SQS's call log, of one queue or of all."""
    asked = f"{os.environ['AWS_ENDPOINT_URL_SQS']}/_sandbox/calls?since={since}" + (f"&queue={queue}" if queue else "")
    with urllib.request.urlopen(asked, timeout=30) as answer:
        return dict(json.load(answer))


def sandbox_calls(queue: str = "", since: int = 0) -> Iterator[dict[str, Any]]:
    """Yield the calls of the log in their order."""
    end = since + 1
    while since < end:
        page = sandbox_page(since, queue)
        yield from page["calls"]
        since, end = page["next"], page["end"]


def fake_time(monotonic: Callable[[], float], since_boot: Callable[[], float] | None = None) -> SimpleNamespace:
    """A stand-in for `time`: the monotonic clock, and the one that goes on while the machine sleeps."""
    return SimpleNamespace(
        monotonic=monotonic, sleep=time.sleep, clock_gettime=lambda _: (since_boot or monotonic)()
    )  # fmt: skip


@pytest.fixture
def clock(transactional_db: None) -> Iterator[Clock]:
    """The database's clock, which a test can move."""
    ours = Clock()
    yield ours
    ours.restore()


@dataclass
class Workbench:
    """A DLQ and its source queue."""

    fifo: bool = False
    conf: Conf = BRISK
    visibility: int = 30
    fields: dict[str, Any] = field(default_factory=dict)
    target_fields: dict[str, Any] = field(default_factory=dict)
    absence: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        self.sqs: Any = boto3.client("sqs")
        self.name = f"t-{uuid.uuid4().hex[:10]}"
        suffix = ".fifo" if self.fifo else ""
        self.dlq_url = self.queue(f"{self.name}-dlq{suffix}")
        self.source_url = self.queue(f"{self.name}{suffix}")
        self.target = Target.objects.create(
            arn=self.arn(self.source_url), url=self.source_url, region="eu-west-1", fifo=self.fifo,
            visibility=self.visibility, **{"rate": None, **self.target_fields},
        )  # fmt: skip
        Breaker.objects.filter(target=self.target).update(ramp_from=1, ramp=1)
        self.dlq = DeadLetterQueue.objects.create(
            name=self.name, url=self.dlq_url, arn=self.arn(self.dlq_url), region="eu-west-1", fifo=self.fifo,
            **{
                "delete_when": "captured" if self.fifo else "terminal",
                "new_key_delay": 0, "backoff_base": 0, "waves": False, **self.fields,
            },
        )  # fmt: skip
        self.source = Source.objects.create(dlq=self.dlq, arn=self.arn(self.source_url), target=self.target)
        if self.absence is not None:
            self.judge_by_absence(**self.absence)

    def queue(self, name: str) -> str:
        attributes = {"FifoQueue": "true"} if name.endswith(".fifo") else {}
        return str(self.sqs.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"])

    def another_target(self, **fields: object) -> Target:
        """Return the target of a new queue."""
        url = self.queue(f"{self.name}-{uuid.uuid4().hex[:6]}")
        return Target.objects.create(arn=self.arn(url), url=url, region="eu-west-1", **fields)

    def arn(self, url: str) -> str:
        found = self.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
        return str(found["Attributes"]["QueueArn"])

    def judge_by_absence(self, **fields: object) -> None:
        """Set outcome "absence", with this DLQ as evidence. With window 0, letters are presumed delivered at once."""
        at_once = {"visibility": 0} if fields.get("window") == 0 else {}
        Target.objects.filter(pk=self.target.pk).update(
            **{"proof": "absence", "advance": "settled", "watched_by": self.dlq, **at_once, **fields}
        )

    def bury(self, body: str, *, key: str | None = None, **attributes: str) -> str:
        """Send a message to the DLQ, and return its id. The next message gets a later millisecond."""
        attributes = {**attributes, **({"key": key} if key else {})}
        rest = {"MessageGroupId": key or "g", "MessageDeduplicationId": uuid.uuid4().hex} if self.fifo else {}
        sent = self.sqs.send_message(
            QueueUrl=self.dlq_url, MessageBody=body, **rest,
            MessageAttributes={n: {"DataType": "String", "StringValue": v} for n, v in attributes.items()},
        )  # fmt: skip
        _passed(time.time_ns() // MILLISECOND)
        return str(sent["MessageId"])

    def capture(self, seconds: float = 10) -> PollResult:
        return feed_run.poll_dlq(
            DeadLetterQueue.objects.get(pk=self.dlq.pk), conf=self.conf, dice=lambda: 0.0, seconds=seconds
        )

    def enlist(self, limit: int | None = None) -> Run:
        name = f"run-{uuid.uuid4().hex[:8]}"
        run = Run.objects.create(
            name=name, dlq=self.dlq, state="running", asked_by="a test", started_at=lanes.database_now()
        )  # fmt: skip
        plan.place_captured(self.dlq)
        if limit is None:
            plan.enlist(self.dlq, run)
        else:
            with transaction.atomic():
                selection.select_letters(self.dlq.pk, run.pk, Selection(limit=limit))
                enlistment.enlist_letters(self.dlq.pk, run.pk)
        return run

    def ready(self, limit: int | None = None) -> Run:
        """Capture the buried messages, and enlist them in a new run."""
        self.capture()
        return self.enlist(limit)

    def bury_all(self, *bodies: str, **attributes: str) -> list[str]:
        """Bury messages with these bodies and the same attributes, and return their ids."""
        return [self.bury(body, **attributes) for body in bodies]

    def enqueue(self, *bodies: str, **attributes: str) -> Run:
        """Bury messages, capture them, and enlist them in a new run."""
        self.bury_all(*bodies, **attributes)
        return self.ready()

    def enqueue_lane(self, *numbers: str, key: str = "k") -> Run:
        """Enqueue messages of one key; the numbers are their bodies and their sequence."""
        for number in numbers:
            self.bury(number, key=key, n=number)
        return self.ready()

    def redrive(self, *bodies: str, **attributes: str) -> Report:
        """Enqueue messages, and send them in one turn."""
        self.enqueue(*bodies, **attributes)
        return self.replay()

    def replay(self, seconds: float = 10, **options: Any) -> Report:  # noqa: ANN401  the fields of a slice
        every: dict[str, Any] = {"rates": Rates.at(settings.REDIS_URL), "dice": lambda: 0.0, **options}
        return replay_slice.Slice(owner=uuid.uuid4().hex, conf=self.conf, **every).run(seconds=seconds)

    def replay_and_die(self, *, sent: bool) -> None:
        """Run a turn whose worker is killed between intent and settlement, after sending or before."""
        post = send_batches.letters

        def dying(*args: Any, **options: Any) -> None:  # noqa: ANN401  those of deliver
            if sent:
                post(*args, **options)
            raise Killed

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(send_batches, "letters", dying)
            patch.setattr(replay_slice.Slice, "_hand_back", lambda _: None)  # whoever is killed hands nothing back
            with pytest.raises(Killed):
                self.replay()

    def replay_unheard(self) -> None:
        """Run a turn whose letters are sent, and whose outcomes are unknown."""
        post = send_batches.letters

        def deaf(intended: Sequence[IntendedSend], *rest: Any, **options: Any) -> Outcomes:  # noqa: ANN401  as above
            post(intended, *rest, **options)
            return {attempt.attempt_id: Unknown("the reply was lost") for attempt in intended}

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(send_batches, "letters", deaf)
            self.replay(seconds=1)

    @contextmanager
    def meanwhile(self, happens: Callable[[], object]) -> Iterator[None]:
        """Call this once, between the next send and its settlement."""
        post = send_batches.letters
        with pytest.MonkeyPatch.context() as patch:

            def slow(*args: Any, **options: Any) -> Outcomes:  # noqa: ANN401  as above
                outcomes = post(*args, **options)
                patch.undo()
                try:
                    happens()
                finally:
                    connection.close()  # this is the thread of the wire: it has one of its own
                return outcomes

            patch.setattr(send_batches, "letters", slow)
            yield

    @contextmanager
    def refusing(self, body: str, *, poison: bool = False, quoting: str = "") -> Iterator[None]:
        """Refuse the message with this body, and say `quoting` as the target's own text."""
        post = send_batches.letters

        def refuse(intended: Sequence[IntendedSend], *rest: Any, **options: Any) -> Outcomes:  # noqa: ANN401
            refused = Refused("Busy", quoting or "not now", poison=poison, quotes=bool(quoting))
            out: Outcomes = {letter.attempt_id: refused for letter in intended if bytes(letter.body) == body.encode()}
            others = [letter for letter in intended if letter.attempt_id not in out]
            return out | (post(others, *rest, **options) if others else {})

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(send_batches, "letters", refuse)
            yield

    def show_again(self) -> None:
        """Make all hidden copies visible."""
        for copy in DlqCopy.objects.filter(dlq=self.dlq).exclude(state="gone"):
            self.sqs.change_message_visibility(QueueUrl=self.dlq_url, ReceiptHandle=copy.handle, VisibilityTimeout=0)

    def come_back(self, sent: dict[str, Any]) -> None:
        """Send a delivered message to the DLQ again, under a new message id."""
        group = {"MessageGroupId": "g", "MessageDeduplicationId": uuid.uuid4().hex} if self.fifo else {}
        self.sqs.send_message(
            QueueUrl=self.dlq_url, MessageBody=sent["Body"], MessageAttributes=sent["MessageAttributes"], **group
        )

    def take_back(self, sent: dict[str, Any]) -> PollResult:
        """Let a delivered message die into the DLQ again, and capture it."""
        self.come_back(sent)
        return self.capture()

    def lose_worker(self, clock: Clock, *, sent: bool = True) -> None:
        """Kill a worker, as `replay_and_die` does, and let its leases end."""
        self.replay_and_die(sent=sent)
        clock.advance(self.conf.lease.total_seconds() + 1)

    def letter(self, **which: object) -> Letter:
        return Letter.objects.get(dlq=self.dlq, **which)

    def states(self) -> dict[str, str]:
        """Return the letters' states by body."""
        found = Letter.objects.filter(dlq=self.dlq).values_list("payload__body", "state")
        return {bytes(body).decode(): state for body, state in found}

    def history(self) -> list[tuple[int, str | None, int]]:
        """Return number, outcome and epoch of every attempt."""
        found = Attempt.objects.filter(letter__dlq=self.dlq).order_by("id")
        return list(found.values_list("no", "outcome", "epoch"))

    def lane(self, **which: object) -> Lane:
        return Lane.objects.get(dlq=self.dlq, **which)

    def promote(self) -> int:
        return resolve_outcomes.resolve_letters(conf=self.conf, dice=lambda: 0.0)

    def outlast(self, clock: Clock, seconds: float) -> int:
        """See the target empty twice, so many seconds apart, capture the DLQ, and promote."""
        self.promote()
        clock.advance(seconds)
        self.promote()
        self.capture()
        return self.promote()

    def delivered_bodies(self, url: str | None = None) -> list[str]:
        return [message["Body"] for message in self.delivered(url)]

    def delivered(self, url: str | None = None) -> list[dict[str, Any]]:
        """Receive and delete all messages of the source queue."""
        url = url or self.source_url
        got: list[dict[str, Any]] = []
        while found := self.sqs.receive_message(
            QueueUrl=url, MaxNumberOfMessages=10, MessageAttributeNames=["All"], MessageSystemAttributeNames=["All"]
        ).get("Messages"):
            got += found
            for message in found:
                self.sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
        return got

    def arrivals(self) -> list[dict[str, Any]]:
        """Return the accepted sends to the source queue in order, from the local SQS's call log."""
        calls = sandbox_calls(self.source_url.rsplit("/", 1)[-1])
        return [entry for call in calls for entry in call["sent"] if entry["accepted"]]

    def left(self, url: str | None = None) -> int:
        found = self.sqs.get_queue_attributes(QueueUrl=url or self.dlq_url, AttributeNames=["All"])["Attributes"]
        return int(found["ApproximateNumberOfMessages"]) + int(found["ApproximateNumberOfMessagesNotVisible"])


#: Fields of a DLQ whose messages name their ordering key and their sequence.
KEYED: dict[str, Any] = {"ordering_key": "attribute:key", "sequence": "attribute:n"}


def enqueued(*bodies: str, **options: Any) -> Workbench:  # noqa: ANN401  # the fields of a workbench
    """A workbench whose DLQ's messages wait to be sent."""
    bench = Workbench(**options)
    bench.enqueue(*bodies)
    return bench


def redriven(*bodies: str, **options: Any) -> Workbench:  # noqa: ANN401  # as above
    """A workbench whose messages were sent in one turn."""
    bench = enqueued(*bodies, **options)
    bench.replay()
    return bench
