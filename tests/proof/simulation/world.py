"""One world from its beginning to its end: trouble, then healing; then the judge, and what the tables must not say."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from reprocessing.models import Breaker, DeadLetterQueue, Letter, Rule, Source, Target
from tests.conftest import empty
from tests.proof.simulation.cast import Cast
from tests.proof.simulation.house import Buckets, set_up
from tests.proof.simulation.near import REGION, Near
from tests.proof.simulation.plot import BEGIN, VISIBILITY, Plot
from tests.proof.simulation.stage import Actor, Odds, Stage, WorldIsStuck
from tests.proof.simulation.verdict import UNFINISHED, judged
from tests.proof.simulation.wire import Wire

#: Seconds, of the world's own, within which everything is finished once nothing goes wrong any more.
BOUND: Final = 1_800.0
_LOOKS_EVERY = 5.0
#: Seconds of an outage that pass at the usual pace; a longer one takes about as many steps, each longer.
_PACED: Final = 600.0
#: Seconds after such an outage within which everybody moves again.
_UP_AGAIN: Final = 10.0
_LEFT = """
SELECT (SELECT count(*) FROM redrive_letter), (SELECT count(*) FROM redrive_letter WHERE state = ANY(%s)),
       (SELECT count(*) FROM redrive_lane WHERE phase = 'leased')  -- until its lease is over, where its owner died
         + (SELECT count(*) FROM redrive_attempt WHERE closed_at IS NULL),  -- a last one, of which nobody heard the end
       (SELECT count(*) FROM redrive_dlq_copy c JOIN redrive_dlq d ON d.id = c.dlq_id
         WHERE state = 'held' OR (state = 'delete' AND (visible_until > redrive_now() OR NOT d.fifo)))
"""  # a FIFO queue takes no handle that is past its time: what it deleted without saying so, nobody can tell


@dataclass(frozen=True, slots=True)
class Ending:
    """How a world ended.

    Attributes:
        broken: what was promised and not kept, in sentences.
        struck: faults that fired, by name.
        digest: of all that happened, step by step: the same seed tells the same tale.
        healed: seconds from the last fault until everything was finished.
        excused: sends that a frozen process put on the wire after its time: PROTOCOL names them.
    """

    seed: int
    broken: tuple[str, ...]
    struck: Counter[str]
    steps: int
    letters: int
    digest: str
    healed: float
    excused: int
    duplicates: int
    states: tuple[str, ...] = field(repr=False)
    tale: tuple[str, ...] = field(repr=False)


class Theatre:
    def __init__(self) -> None:
        self.stage = Stage()
        self.near = Near(self.stage)
        self.rates = Buckets(self.stage)
        self._wire = Wire(self.stage)
        self._actors: dict[str, Actor] = {}

    @contextmanager
    def opened(self) -> Iterator[Theatre]:
        self.stage.bury = self._wire.hang_up
        empty()
        with set_up(self.stage, self.near), self._wire.strung():
            try:
                yield self
            finally:
                for actor in self._actors.values():
                    actor.dismiss()

    def play(self, plot: Plot) -> Ending:
        """One world; the tables are empty afterwards.

        Raises:
            KeyboardInterrupt: Ctrl-C was pressed; everybody has left the stage.
        """
        with self.stage.interrupt:
            return self._played(plot)

    def _played(self, plot: Plot) -> Ending:
        self.stage.begin(plot.seed, plot.odds, BEGIN)
        self.near.begin(plot.seed, lag=plot.conf.count_lag.total_seconds())
        self.rates.begin()
        self._wire.begin()
        cast = self._furnish(plot)
        broken: list[str] = []
        healed = 0.0
        try:
            self._engage(cast)
            self.stage.run(lambda: self.stage.now > BEGIN + plot.trouble)
            self._outlast(cast)
            cast.healing = True
            last = self.stage.now
            self.stage.run(_Looks(self, cast, last + BOUND))
            healed = self.stage.now - last
            broken += [f"{actor.name} left the stage before the end" for actor in self.stage.actors if actor.over]
            if healed >= BOUND:
                broken.append(f"{BOUND:g} s after the last fault it was not over: {self._left(cast)}")
        except WorldIsStuck as error:
            broken.append(f"The world is stuck: {error}.")
        finally:
            self._dismiss(cast)
        ending = self._judged(cast, broken, healed)
        empty()
        return ending

    def _outlast(self, cast: Cast) -> None:
        """Let the rest of the outage pass without other faults, at a slower pace where it is long."""
        self.stage.odds, until = Odds(), BEGIN + cast.plot.outage.ends
        cast.pace = max(1.0, (until - self.stage.now) / _PACED)
        self.stage.run(lambda: self.stage.now > until)
        if cast.pace > 1:
            cast.pace = 1.0
            for actor in self.stage.actors:
                actor.wake = min(actor.wake, self.stage.now + _UP_AGAIN)

    def seen(self) -> list[str]:
        names = {one["message_id"]: _event(one) for call in self.near.log for one in call["sent"] if one["message_id"]}
        lines = []
        for call in self.near.log:
            sent = [f"{_event(one)}{'' if one['accepted'] else ' refused'}" for one in call["sent"]]
            others = [
                names.get(one["message_id"]) for one in call["received"] + call["deleted"] + call["dead_lettered"]
            ]
            if sent or others:
                end = call["code"] or ("" if call["answered"] else "unanswered")
                lines.append(f"{call['at']:.3f} {call['n']} {call['action']} {call['queue']} {sent or others} {end}")
        return lines

    def is_over(self, cast: Cast) -> bool:
        """Whether every letter is finished, every queue empty, and the consumer at rest."""
        letters, unfinished, leased, copies = self._wire.ask(_LEFT, list(UNFINISHED))[0]
        if cast.buried < sum(one.copies for one in cast.plot.events) or letters < cast.buried:
            return False
        quiet = not cast.at_work and not any(self._depth(url) for url in (cast.dlq_url, cast.source_url))
        return not unfinished + leased + copies and quiet

    # -- before and after

    def _furnish(self, plot: Plot) -> Cast:
        end = ".fifo" if plot.fifo else ""
        made = {"FifoQueue": "true"} if plot.fifo else {}
        dlq_url = self.near.create_queue(QueueName=f"dlq{end}", Attributes=made)["QueueUrl"]
        policy = f'{{"deadLetterTargetArn": "{self._arn(dlq_url)}", "maxReceiveCount": {plot.receives}}}'
        settings = {**made, "RedrivePolicy": policy, "VisibilityTimeout": str(VISIBILITY)}
        source_url = self.near.create_queue(QueueName=f"source{end}", Attributes=settings)["QueueUrl"]
        dlq = DeadLetterQueue.objects.create(name="dlq", url=dlq_url, arn=self._arn(dlq_url), region=REGION, **plot.dlq)
        proved = {"watched_by": dlq} if plot.target["proof"] == "absence" else {}
        target = Target.objects.create(
            arn=self._arn(source_url), url=source_url, region=REGION, **{**plot.target, **proved}
        )
        Breaker.objects.filter(target=target).update(**plot.breaker, ramp=plot.breaker["ramp_from"])
        Source.objects.create(dlq=dlq, arn=target.arn, target=target)
        if plot.rule:
            Rule.objects.create(
                name="a-rule", enabled=True, conditions=["attribute:event equals e1"], created_by="us", **plot.rule
            )
        return Cast(self.stage, self.near, self.rates, plot, dlq.pk, dlq_url, source_url)

    def _arn(self, url: str) -> str:
        found = self.near.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
        return str(found["Attributes"]["QueueArn"])

    def _depth(self, url: str) -> int:
        asked = {"QueueUrl": url, "AttributeNames": ["All"]}
        found: Any = self.near.core.handle("GetQueueAttributes", asked, now=self.stage.now)["Attributes"]
        names = ("ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible")
        return sum(int(found[name]) for name in names)

    def _engage(self, cast: Cast) -> None:
        self.stage.actors = []
        for name, part, mortal in cast.parts():
            if name not in self._actors:
                self._actors[name] = Actor(self.stage, name)
            actor = self._actors[name]
            actor.play(part, mortal=mortal)
            self.stage.actors.append(actor)

    def _dismiss(self, cast: Cast) -> None:
        cast.ended = True
        self.stage.clear()

    def _judged(self, cast: Cast, broken: list[str], healed: float) -> Ending:
        plot, stage = cast.plot, self.stage
        found = judged(cast, self._wire.ask)
        return Ending(
            plot.seed, (*broken, *found.broken), stage.struck, stage.steps, cast.buried,
            hashlib.sha256("\n".join(stage.tale).encode()).hexdigest()[:16], healed, found.excused, found.duplicates,
            _states(), tuple(stage.tale),
        )  # fmt: skip

    def _left(self, cast: Cast) -> str:
        found = self._wire.ask("SELECT state, count(*) FROM redrive_letter GROUP BY 1 ORDER BY 1")
        lanes = self._wire.ask("SELECT phase, why, count(*) FROM redrive_lane GROUP BY 1, 2 ORDER BY 1, 2")
        copies = self._wire.ask(
            "SELECT state, message_id, visible_until, attempt_id FROM redrive_dlq_copy WHERE state <> 'gone'"
        )
        depths = [self._depth(url) for url in (cast.dlq_url, cast.source_url)]
        return f"{dict(found)}, lanes {lanes}, copies {copies}, in dlq and source {depths}"


class _Looks:
    def __init__(self, theatre: Theatre, cast: Cast, until: float) -> None:
        self._theatre, self._cast, self._until, self._next = theatre, cast, until, 0.0

    def __call__(self) -> bool:
        now = self._theatre.stage.now
        if now < self._next:
            return False
        self._next = now + _LOOKS_EVERY
        return now >= self._until or self._theatre.is_over(self._cast)


def _event(sent: Mapping[str, Any]) -> str:
    attempt = sent["attributes"].get("RedriveId", "").rpartition(":")[2]
    return f"{sent['attributes'].get('event')}{f' attempt {attempt}' if attempt else ''}"


def _states() -> tuple[str, ...]:
    found = Letter.objects.order_by("id").values_list("payload__body", "state", "reason", "detail", "attempts")
    return tuple(
        f"{bytes(body).decode().split()[-1]}: {state} {reason} {detail} after {often}"
        for body, state, reason, detail, often in found
    )


def last_words(ending: Ending) -> str:
    """What to say of a world that broke a promise: how to see it again, and what was broken."""
    return "\n".join([again(ending.seed), *ending.broken[:10]])


def again(seed: int) -> str:
    return f".venv/bin/python -m tests.proof.simulation {seed}"
