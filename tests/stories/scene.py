"""What stories are told with: messages that die by SQS's own hand, drains, and the independent judge at the end."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any
from uuid import uuid4

from django.conf import settings

from redrive_service.sandbox.judge import Experiment, Judgement, ServiceRecords, judge
from redrive_service.sandbox.servers.process import RunningServer, Server
from reprocessing.gateways.redis.send_rate import Rates
from reprocessing.models import Letter, Source, Target
from reprocessing.pipeline.runs import drain
from reprocessing.pipeline.runs.drain import DrainContext
from reprocessing.store.runs.progress import RunCounts
from tests.faults.fleet import environment
from tests.reprocessing.pipeline.bench import Workbench, sandbox_calls, sandbox_page

Message = dict[str, Any]


def text(value: str, kind: str = "String") -> dict[str, str]:
    return {"DataType": kind, "StringValue": value}


def lettered(body: str, *, group: str | None = None, **attributes: str) -> Message:
    """A message to be published; in a FIFO queue with its group."""
    fifo = {"MessageGroupId": group, "MessageDeduplicationId": uuid4().hex} if group else {}
    return {"MessageBody": body, "MessageAttributes": {name: text(value) for name, value in attributes.items()}, **fifo}


def published(sqs: Any, url: str, messages: Iterable[Message]) -> None:  # noqa: ANN401  # boto3's clients have no type
    left = iter(messages)
    while some := list(islice(left, 10)):
        answer = sqs.send_message_batch(
            QueueUrl=url, Entries=[{"Id": str(place), **one} for place, one in enumerate(some)]
        )
        assert not answer.get("Failed")


def dead(bench: Workbench, url: str, messages: Iterable[Message]) -> None:
    """Messages published to a source of this bench whose consumer fails every one: SQS buries them in the dlq."""
    policy = {"deadLetterTargetArn": bench.dlq.arn, "maxReceiveCount": "1"}
    bench.sqs.set_queue_attributes(QueueUrl=url, Attributes={"RedrivePolicy": json.dumps(policy)})
    published(bench.sqs, url, messages)
    while bench.left(url):
        bench.sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, VisibilityTimeout=0)


def another_source(bench: Workbench) -> Source:
    url = bench.queue(f"{bench.name}-{uuid4().hex[:6]}")
    target = Target.objects.create(arn=bench.arn(url), url=url, region="eu-west-1")
    return Source.objects.create(dlq=bench.dlq, arn=target.arn, target=target)


def hands(bench: Workbench, *, owner: str = "a test", stop: Callable[[], bool] = lambda: False) -> DrainContext:
    return DrainContext(bench.conf, Rates.at(settings.REDIS_URL), lambda: 0.0, owner, stop)


def drained(bench: Workbench, name: str = "", **options: Any) -> RunCounts:  # noqa: ANN401  # those of `hands`
    """The whole dlq captured, enlisted and replayed; what its letters have come to. At home in a thread of its own."""
    with_these = hands(bench, **options)
    drain.capture_dlq(bench.dlq, with_these, on_progress=lambda _: None, seconds=30)
    run = drain.start_run(bench.dlq, name=name or f"drain of {bench.name}", asked_by="a test")
    return drain.replay_run(run, with_these, on_progress=lambda _: None)


@contextmanager
def beat_process(folder: Path, **more: str) -> Iterator[None]:
    """Run beat in a process of its own, with these variables in its environment."""
    beat = RunningServer(Server(
        name="beat", log=folder / "beat.log", environment={**environment(), **more},
        command=[sys.executable, "-m", "celery", "-A", "redrive_service", "beat", "--loglevel", "INFO"],
    ))  # fmt: skip
    try:
        yield
    finally:
        beat.stop()


class Witness:
    """What the local SQS sees from now on, for the judge."""

    def __init__(self) -> None:
        self._first: int = sandbox_page(2**40)["end"]

    def calls(self) -> Iterator[Message]:
        """Every call since, in its order."""
        return sandbox_calls(since=self._first)

    def judges(self, *benches: Workbench, **promised: Any) -> Judgement:  # noqa: ANN401  # the experiment's own
        """The judgement over what these dlqs and the queues behind them have seen; `promised` as of an Experiment."""
        dlqs = [one.dlq.pk for one in benches]
        sources = Source.objects.filter(dlq__in=dlqs).values_list("target__url", flat=True)
        experiment = Experiment(
            sources=frozenset(map(_name, sources)) | promised.pop("strangers", frozenset()),
            dlqs=frozenset(_name(one.dlq_url) for one in benches),
            fifo=all(one.fifo for one in benches),
            **promised,
        )
        return judge(experiment, self.calls(), None, _books(dlqs))


def _name(url: str) -> str:
    return url.rpartition("/")[2]


def _books(dlqs: list[int]) -> ServiceRecords:
    """What the service says of its letters, by the ids under which they died."""
    said: dict[str, set[str]] = {}
    for message_id, state in Letter.objects.filter(dlq__in=dlqs).values_list("message_id", "state"):
        said.setdefault(state, set()).add(message_id)
    still = {one for state in ("captured", "waiting", "sending", "awaiting") for one in said.get(state, ())}
    return ServiceRecords(
        parked=frozenset(said.get("parked", ())),
        discarded=frozenset(said.get("discarded", ())),
        duplicates=frozenset(said.get("duplicate", ())),
        open=frozenset(still),
    )
