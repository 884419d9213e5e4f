"""The parts: replayers, capturers, a sweeper, the consumer behind the source, those who bury letters, and a person."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from django.db import Error as DatabaseError

from reprocessing.domain.errors import QueueUnreachable, StepsFailed
from reprocessing.models import DeadLetterQueue, Letter, Rule, Run
from reprocessing.models.run import RunState
from reprocessing.pipeline.maintenance import recover
from reprocessing.pipeline.outcomes import resolve_outcomes
from reprocessing.pipeline.parking_lot import act_on_parked
from reprocessing.pipeline.replay import replay_slice
from reprocessing.pipeline.runs import feed_run
from reprocessing.store.ordering import lanes
from reprocessing.store.routing import rule_changes
from reprocessing.store.runs import run_transitions
from reprocessing.store.safety import stops
from tests.proof.simulation.house import Buckets
from tests.proof.simulation.near import Near
from tests.proof.simulation.plot import BEGIN, VISIBILITY, Event, Plot
from tests.proof.simulation.stage import Crash, Stage, mine

SOMEBODY = "a person"


@dataclass(slots=True)
class Cast:
    """Who is in a world, and what they share.

    Attributes:
        healing: nothing goes wrong any more.
        pace: how many times longer everybody rests; above 1 while a long outage lasts, which takes too many steps else.
        ended: the world is over: whoever is killed now does not come back.
        at_work: the consumer has received what it has not written down yet.
        consumed: the consumer's log, for the judge.
        released: how often a person released each letter, by message id.
    """

    stage: Stage
    near: Near
    rates: Buckets
    plot: Plot
    dlq: int
    dlq_url: str
    source_url: str
    healing: bool = False
    pace: float = 1.0
    ended: bool = False
    at_work: bool = False
    buried: int = 0
    consumed: list[dict[str, Any]] = field(default_factory=list)
    released: Counter[str] = field(default_factory=Counter)
    _failures: Counter[str] = field(default_factory=Counter)

    def parts(self) -> Iterator[tuple[str, Callable[[], None], bool]]:
        replayers, capturers = self.plot.workers
        for number in range(replayers):
            yield f"replayer-{number}", self._again(self.replay, 0.3, 4.0), True
        for number in range(capturers):
            yield f"capturer-{number}", self._again(self.capture, 2.0, 9.0), True
        yield "sweeper", self._again(self.sweep, 2.0, 10.0), True
        yield "consumer", self.consume, False
        yield "undertaker", self.bury, False
        yield "person", self._again(self.meddle, 5.0, 20.0), False

    def _again(self, act: Callable[[], None], least: float, most: float) -> Callable[[], None]:
        """A part that is played again and again, by a new process after each death of the old one."""

        def part() -> None:
            while not self.ended:
                try:
                    self._once(act, least, most)
                except Crash:
                    self._bury_the_process()

        return part

    def _once(self, act: Callable[[], None], least: float, most: float) -> None:
        """What failed is not tried again in the same moment: where every fifth commit is lost, no time would go by."""
        try:
            act()
        except (DatabaseError, QueueUnreachable, StepsFailed):
            self.stage.bury()
            least, most = 0.1, 1.0
        self.stage.sleep(self.stage.dice.uniform(least, most) * self.pace)

    def _bury_the_process(self) -> None:
        self.stage.bury()
        if self.ended or mine.actor is None:
            raise Crash
        mine.actor.doomed = mine.actor.frozen_at_the_wire = False
        self.stage.sleep(self.stage.dice.uniform(0.5, 3.0))

    # -- the service

    def replay(self) -> None:
        view, only = self.plot.conf, None
        if self.stage.dice.random() < 0.5:
            only = lanes.hint(limit=view.lanes_per_task, lifetime=5.0) or None
        strictly = only is not None and view.lanes_per_task == 1
        owner = f"{mine.actor and mine.actor.name}:{self.stage.dice.getrandbits(48):x}"
        turn = replay_slice.Slice(
            owner=owner, conf=view, rates=self.rates, dice=self.stage.dice.random, only=only, strictly=strictly
        )
        turn.run(seconds=view.slice.total_seconds())

    def capture(self) -> None:
        dlq = DeadLetterQueue.objects.select_related("default_source").get(pk=self.dlq)
        if feed_run.is_wanted(dlq):
            feed_run.poll_dlq(dlq, conf=self.plot.conf, dice=self.stage.dice.random, seconds=30)

    def sweep(self) -> None:
        resolve_outcomes.resolve_letters(conf=self.plot.conf, dice=self.stage.dice.random)
        recover.sweep_all(conf=self.plot.conf)

    # -- the world around it

    def consume(self) -> None:
        """One consumer of the source: what it does not delete comes to sight again, and then dies.

        Where it gets a message several times, it pauses for less than the visibility: else its messages may be in
        flight at both looks, and `absence` presumes what fails later (ADR 0016, what is left).
        """
        idle = 4.0 if self.plot.receives == 1 else 0.75 * VISIBILITY
        while True:
            got = self.near.receive_message(
                QueueUrl=self.source_url, MaxNumberOfMessages=2, MessageAttributeNames=["All"]
            ).get("Messages", [])
            for one in got:
                self.at_work = True  # what is deleted is not yet written down
                self._process(one)
            self.at_work = False
            self.stage.sleep(self.stage.dice.uniform(0.05, 0.5 if got else idle) * (1.0 if got else self.pace))

    def _process(self, one: dict[str, Any]) -> None:
        name = str(one["MessageAttributes"]["event"]["StringValue"])
        began = self.stage.now
        self.stage.sleep(self.stage.dice.uniform(0.01, VISIBILITY / 10))
        fails = self._fails(name)
        self._failures[name] += fails
        if not fails:
            self.near.delete_message(QueueUrl=self.source_url, ReceiptHandle=one["ReceiptHandle"])
        self.consumed.append({
            "message_id": one["MessageId"], "started": began, "ended": self.stage.now,
            "outcome": "failed" if fails else "ok",
        })  # fmt: skip

    def _fails(self, name: str) -> bool:
        event = next(event for event in self.plot.events if event.name == name)
        if self.plot.outage.fails(event.key, self.stage.now - BEGIN):
            return True
        often = {"well": 0, "fails once": 1, "fails twice": 2, "poison": 1_000_000}[event.temper]
        return self._failures[name] < often

    def bury(self) -> None:
        for event in sorted(self.plot.events, key=lambda one: (one.at, one.n)):
            self.stage.sleep(max(0.0, BEGIN + event.at - self.stage.now))
            for copy in range(event.copies):
                self._send(event, copy)
        while True:
            self.stage.sleep(3_600)

    def _send(self, event: Event, copy: int) -> None:
        attributes = {"event": event.name, "n": str(event.n), **({"key": event.key} if event.key else {})}
        group = {"MessageGroupId": event.key, "MessageDeduplicationId": f"{event.name}-{copy}"}
        self.near.send_message(
            QueueUrl=self.dlq_url, MessageBody=f"body of {event.name}", **(group if self.plot.fifo else {}),
            MessageAttributes={k: {"DataType": "String", "StringValue": v} for k, v in attributes.items()},
        )  # fmt: skip
        self.buried += 1

    def meddle(self) -> None:
        if self.healing:
            self._let_go()
        elif self.plot.meddles:
            self.stage.dice.choice((self._release_some, self._pause, self._stop, self._let_go))()

    def _let_go(self) -> None:
        stops.resume(None, by=SOMEBODY, reason="it goes on")
        stops.resume(self.dlq, by=SOMEBODY, reason="it goes on")
        for run in Run.objects.filter(state=RunState.PAUSED):
            run_transitions.resume(run.pk, by=SOMEBODY, reason="it goes on")
        if self.healing:
            for rule in Rule.objects.filter(enabled=True, action="hold"):
                rule_changes.set_enabled(rule.pk, enabled=False, by=SOMEBODY, reason="it holds no more")
            if self.plot.dlq["when_parked"] == "hold":
                self._settle_held()

    def _settle_held(self) -> None:
        parked = Letter.objects.filter(dlq=self.dlq, state="parked").order_by("id")
        act_on_parked.discard(list(parked.values_list("id", flat=True)), by=SOMEBODY, reason="it is in the way")

    def _release_some(self) -> None:
        parked = Letter.objects.filter(dlq=self.dlq, state="parked").order_by("id").values_list("id", "message_id")
        for pk, message_id in list(parked)[:2]:
            done = act_on_parked.release([pk], by=SOMEBODY, reason="once more").done
            self.released[message_id] += len(done)

    def _pause(self) -> None:
        for run in Run.objects.filter(dlq=self.dlq, state=RunState.RUNNING):
            run_transitions.pause(run.pk, by=SOMEBODY, reason="a moment")

    def _stop(self) -> None:
        stops.stop(self.stage.dice.choice((None, self.dlq)), by=SOMEBODY, reason="a moment")
