"""The ground that examples are played on: queues, policy, a clock, and faults for the next step."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

from django.db import Error as DatabaseError
from django.db import connection, connections

from redrive_service.sandbox.sqs.queues.message import Message
from reprocessing.conf import Conf
from reprocessing.domain.errors import QueueUnreachable
from reprocessing.models import Breaker, DeadLetterQueue, Source, Target
from tests.conftest import empty
from tests.proof.simulation.house import Buckets, set_up
from tests.proof.simulation.near import REGION, Near
from tests.proof.simulation.plot import BEGIN, VISIBILITY
from tests.proof.simulation.stage import Actor, Crash, Odds, Stage, mine
from tests.proof.simulation.wire import Wire

#: Seconds for which a FIFO queue swallows a repeat.
SWALLOWS: Final = 300.0
_BREAKER: Final[dict[str, Any]] = {
    "threshold": 2,
    "at_least": 4,
    "cooldown": 3.0,
    "cooldown_cap": 6.0,
    "canaries_to_close": 1,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What the world of one example is like; the simplest first."""

    fifo: bool = False
    keyed: bool = True
    absence: bool = False
    settled: bool = False
    captured: bool = False
    manual: bool = False
    max_attempts: int = 1
    backoff: int = 0
    hold: bool = False
    deliver_stale: bool = False
    waves: bool = False
    by_event: bool = False
    held_copies_limit: int = 20_000
    intent_size: int = 50

    def of_dlq(self) -> dict[str, Any]:
        by_attributes = {"ordering_key": "attribute:key", "sequence": "attribute:n"}
        by_group = {"ordering_key": "system:MessageGroupId", "sequence": "system:SequenceNumber"}
        return {
            "mode": "manual" if self.manual else "automatic", "new_key_delay": 0, "fifo": self.fifo,
            **(by_group if self.fifo else by_attributes if self.keyed else {}),
            "delete_when": "captured" if self.fifo or self.captured else "terminal", "max_attempts": self.max_attempts,
            "backoff_base": self.backoff, "backoff_cap": 5, "backoff_jitter": "none",
            "when_parked": "hold" if self.hold else "aside", "stale": "deliver" if self.deliver_stale else "park",
            "waves": self.waves, "wave_success": 0.5, "held_copies_limit": self.held_copies_limit,
            "idempotency_key": "attribute:event" if self.by_event else "message-id",
        }  # fmt: skip

    def of_target(self) -> dict[str, Any]:
        return {
            "fifo": self.fifo, "proof": "absence" if self.absence else "accepted", "visibility": VISIBILITY,
            "advance": "settled" if self.absence and self.settled else "accepted", "window": 2.0 * VISIBILITY,
            "rate": None,
        }  # fmt: skip

    @property
    def conf(self) -> Conf:
        return Conf(
            lease=timedelta(seconds=8), slice=timedelta(seconds=2), intent_size=self.intent_size, long_poll=0,
            count_lag=timedelta(0), receive_visibility=12,
        )  # fmt: skip


@dataclass(slots=True)
class Fused(Stage):
    """A stage on which whoever is at work dies at the point to which its fuse reaches; below 0: at none."""

    fuse: int = -1

    def _strike(self, actor: Actor, name: str) -> None:
        self.fuse -= 1
        if self.fuse == 0:
            self.note("crash", name)
            actor.doomed = True
            raise Crash


class Alone(Actor):
    """The only one on the stage: it never yields, and time goes on as it says."""

    def __init__(self, stage: Stage) -> None:
        self.stage, self.name = stage, "somebody"
        self.wake = 0.0
        self.blocked = None
        self.doomed = self.over = self.frozen_at_the_wire = False
        self.mortal = True

    def leave(self) -> None:
        if self.doomed:
            raise Crash
        self.stage.now = max(self.stage.now, self.wake)


@dataclass(slots=True)
class Unwell(Near):
    """SQS, of which one call goes wrong where the step says so: its action, and how."""

    wrong: tuple[str, str] | None = None

    def _fault(self, action: str) -> str | None:
        if self.wrong is None or self.wrong[0] != action:
            return None
        fault, self.wrong = self.wrong[1], None
        self.stage.note(f"SQS {fault}", action)
        return fault


class Ground:
    policy: Policy
    dlq: int
    dlq_url: str
    source_url: str

    def __init__(self) -> None:
        self.stage = Fused()
        self.near = Unwell(self.stage)
        self.rates = Buckets(self.stage)
        self.wire = Wire(self.stage)
        self._alone = Alone(self.stage)

    @contextmanager
    def opened(self) -> Iterator[Ground]:
        self.stage.now, self.stage.bury = BEGIN, self.wire.hang_up
        empty()
        known = connections["default"]
        logging.disable(logging.ERROR)
        mine.actor = self._alone
        try:
            with set_up(self.stage, self.near), self.wire.strung():
                self.wire.set_clock()
                yield self
        finally:
            mine.actor = None
            logging.disable(logging.NOTSET)
            empty()
            connection.close()
            connections["default"] = known  # it is the one that pytest will close
            connection.close()  # it may have died first

    def begin(self, policy: Policy) -> None:
        """A new world: two queues, nothing in them."""
        empty()
        self.stage.begin(0, Odds(), BEGIN)
        self.stage.fuse, self._alone.doomed, self._alone.wake = -1, False, BEGIN
        self.near.begin(0)
        self.near.wrong = None
        self.rates.begin()
        self.policy = policy
        end = ".fifo" if policy.fifo else ""
        made = {"FifoQueue": "true"} if policy.fifo else {}
        self.dlq_url = self.near.create_queue(QueueName=f"dlq{end}", Attributes=made)["QueueUrl"]
        redrive = f'{{"deadLetterTargetArn": "{self._arn(self.dlq_url)}", "maxReceiveCount": 1}}'
        settings = {**made, "RedrivePolicy": redrive, "VisibilityTimeout": str(VISIBILITY)}
        self.source_url = self.near.create_queue(QueueName=f"source{end}", Attributes=settings)["QueueUrl"]
        dlq = DeadLetterQueue.objects.create(
            name="dlq", url=self.dlq_url, arn=self._arn(self.dlq_url), region=REGION, **policy.of_dlq()
        )
        watched = {"watched_by": dlq} if policy.absence else {}
        target = Target.objects.create(
            arn=self._arn(self.source_url), url=self.source_url, region=REGION, **policy.of_target(), **watched
        )
        Breaker.objects.filter(target=target).update(**_BREAKER, ramp_from=1, ramp=1)
        Source.objects.create(dlq=dlq, arn=target.arn, target=target)
        self.dlq = dlq.pk

    def watched(self) -> DeadLetterQueue:
        return DeadLetterQueue.objects.select_related("default_source").get(pk=self.dlq)

    def lies_in(self, url: str) -> Mapping[str, Message]:
        """What is in a queue, in sight or not, by message id; nobody notices the look."""
        self.near.core.advance(self.stage.now)
        queue = self.near.core._account.queues[url.rpartition("/")[2]]
        return {one.message_id: one for one in queue.messages.values()}

    def wait(self, seconds: float) -> None:
        self.stage.now += seconds

    def perform(self, act: Callable[[], object], *, dies_at: int = 0, wrong: tuple[str, str] | None = None) -> bool:
        """Do something as a worker does it; whether it came to its end.

        Args:
            act: what is done.
            dies_at: the worker is killed at its so-many-th statement, commit or request; 0: it is not.
            wrong: the first call of this action goes wrong like this.
        """
        self.stage.fuse, self.near.wrong = dies_at or -1, wrong
        try:
            act()
            done = True
        except (Crash, DatabaseError, QueueUnreachable):
            done = False
        finally:
            self.stage.fuse, self.near.wrong = -1, None
        if self._alone.doomed:  # what dies may say something else with its last breath
            self._alone.doomed = done = False
            self.stage.bury()
        elif not done:
            connection.close()
        return done

    def _arn(self, url: str) -> str:
        found = self.near.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
        return str(found["Attributes"]["QueueArn"])


@dataclass(frozen=True, slots=True)
class Buried:
    """What died: its ids, its place, and its bytes.

    Attributes:
        n: its place among those of its key.
    """

    message_id: str
    event: str
    key: str | None
    n: int
    body: str
    attributes: dict[str, dict[str, Any]] = field(hash=False)
