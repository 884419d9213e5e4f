"""The steps: what dies, what workers do and leave undone, what consumers and people do, and time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    precondition,
    rule,
)

from reprocessing.conf import Conf
from reprocessing.domain.selection import Selection
from reprocessing.models import DeadLetter, DeadLetterQueue, Rule, Run, amendments, operations, stops
from reprocessing.models.operations import Asked
from reprocessing.models.run import RunKind, RunState
from reprocessing.pipeline import gather, park, plan, promote, purge, recover, route
from tests.proof.machine.ground import Buried, Ground, Policy
from tests.proof.machine.promises import Watch
from tests.proof.machine.turns import Turn, fresh

SOMEBODY: Final = "a person"
#: The so-many-th statement, commit or request at which a worker dies; 0: it lives.
DEATHS = st.one_of(st.just(0), st.integers(1, 45))
SENDS = st.sampled_from((None, "refused", "unreached", "unanswered", "partial"))
RECEIVES = st.sampled_from((
    None, ("ReceiveMessage", "early expiry"), ("ReceiveMessage", "unanswered"), ("ReceiveMessage", "false empty"),
    ("DeleteMessageBatch", "unanswered"), ("DeleteMessageBatch", "partial"), ("DeleteMessageBatch", "refused"),
))  # fmt: skip
YES_NO = st.booleans()
_ROUNDS: Final = 60
_AFTER_ALL: Final = 6 * 86_400.0  # what is gone for so long could turn up no more
_TELLS = "SELECT count(*) FROM redrive_review WHERE by = %s AND reason = %s"
_BRAKES = """
SELECT state, retry_at <= redrive_now(), canary_until > redrive_now(),
       EXISTS (SELECT FROM redrive_halt) OR EXISTS (SELECT FROM redrive_dlq WHERE stopped_at IS NOT NULL)
  FROM redrive_breaker
"""
_RUNNING = "SELECT id FROM redrive_run WHERE state = 'running'"
_LEASES = "SELECT id FROM redrive_lane WHERE id = %s AND fence = %s AND phase = 'leased'"
_UNEXPIRED = _LEASES + " AND due_at > redrive_now()"
_HELD = "SELECT id, fence, extract(epoch FROM due_at)::float8 FROM redrive_lane WHERE phase = 'leased'"
_STILL = "SELECT id FROM redrive_lane WHERE id = %s AND fence = %s"
_ROWS = """
SELECT n::text FROM redrive_lane n WHERE id = ANY(%(lanes)s)
UNION ALL SELECT l::text FROM redrive_letter l WHERE lane_id = ANY(%(lanes)s)
UNION ALL SELECT (a.id, a.outcome, a.closed_at, a.taken_at, a.holds_lane, a.detail)::text FROM redrive_attempt a
           WHERE lane_id = ANY(%(lanes)s)
UNION ALL SELECT c::text FROM redrive_custody c JOIN redrive_letter l ON l.id = c.letter_id
           WHERE lane_id = ANY(%(lanes)s)
UNION ALL SELECT c::text FROM redrive_claim c JOIN redrive_letter l ON l.id = c.letter_id WHERE lane_id = ANY(%(lanes)s)
ORDER BY 1
"""


class Machine(RuleBasedStateMachine):
    """One example after the other on one ground."""

    turns: Bundle[Turn] = Bundle("turns")
    taken: Bundle[dict[str, Any]] = Bundle("taken")

    def __init__(self, ground: Ground, told: Callable[[], None] = lambda: None) -> None:
        super().__init__()
        self.ground, self.told = ground, told
        self.watch: Watch | None = None
        self.serial = 0

    @initialize(
        policy=st.builds(
            Policy, fifo=st.sampled_from((False, False, True)), keyed=st.sampled_from((True, True, False)),
            absence=YES_NO, settled=YES_NO, captured=YES_NO, manual=st.sampled_from((False, False, True)),
            max_attempts=st.sampled_from((2, 1, 3)), backoff=st.sampled_from((0, 2)),
            hold=st.sampled_from((False, False, True)), deliver_stale=st.sampled_from((False, False, True)),
            waves=st.sampled_from((False, False, True)), by_event=YES_NO,
            custody_limit=st.sampled_from((20_000, 2)), intent_size=st.sampled_from((50, 1)),
        ),
        deaths=st.lists(st.tuples(st.integers(0, 1), YES_NO), min_size=2, max_size=3),
    )  # fmt: skip
    def begin(self, policy: Policy, deaths: list[tuple[int, bool]]) -> None:
        self.ground.begin(policy)
        self.watch = Watch(self.ground)
        for key, other in deaths:
            self._bury(f"k{key}", late=False, other=other)
        self._capture()
        if policy.manual:
            self._run("first", None)

    # -- what dies

    @rule(key=st.integers(0, 1), late=YES_NO, odd=YES_NO)
    def bury(self, key: int, late: bool, odd: bool) -> None:
        """A letter; a late one belongs before the latest of its key, an odd one has neither key nor number."""
        self._bury(None if odd else f"k{key}", late=late)

    @precondition(lambda self: self.watch is not None and self.watch.buried)
    @rule(which=st.integers(0, 7), other=YES_NO)
    def bury_a_twin(self, which: int, other: bool) -> None:
        """A letter of an event that is buried already, with the same body or another one."""
        known = list(self._watch.buried.values())
        self._bury(None, late=False, twin=known[which % len(known)], other=other)

    @precondition(lambda self: self.watch is not None and self.watch.arrivals)
    @rule(which=st.integers(0, 7))
    def come_again(self, which: int) -> None:
        """Somebody's own tool puts a copy of what was delivered into the dlq."""
        one = self._watch.arrivals[which % len(self._watch.arrivals)]
        if one.original not in self._watch.letters:
            return  # it is forgotten: nobody could know it
        origin = self._watch.buried[one.original]
        marks = {"RedriveId": f"{one.public_id}:{one.no}", "OriginalMessageId": one.original}
        said = {name: {"DataType": "String", "StringValue": text} for name, text in marks.items()}
        self._put(origin.body, origin.attributes | said, origin.key)

    # -- workers, whole turns

    @rule(dies_at=DEATHS, wrong=RECEIVES)
    def capture(self, dies_at: int, wrong: tuple[str, str] | None) -> None:
        """The dlq is emptied; where it is automatic, what it held is enlisted once it has run dry."""
        self.ground.perform(self._capture, dies_at=dies_at, wrong=wrong)

    @rule(dies_at=DEATHS, wrong=SENDS)
    def turn(self, dies_at: int, wrong: str | None) -> None:
        """A worker's whole turn."""
        self.serial += 1
        turn = fresh(self.ground, self.serial)
        with self._leases_hold():
            self.ground.perform(lambda: turn.run(seconds=2.0), dies_at=dies_at, wrong=_sending(wrong))

    @rule(dies_at=DEATHS)
    def sweep(self, dies_at: int) -> None:
        """Promotion, and what dead workers left behind."""
        self.ground.perform(self._sweep, dies_at=dies_at)

    @precondition(lambda self: self.watch is not None and not self._lies_about())
    @rule()
    def forget(self) -> None:
        """Long after, history is purged."""
        self.ground.wait(_AFTER_ALL)
        self.ground.perform(lambda: purge.letters(conf=self._forgetful()))

    # -- workers, step by step; one that is not heard of any more has died

    @precondition(lambda self: self._are("waiting", "sending"))
    @rule(target=turns, steps=st.integers(1, 3), wrong=SENDS)
    def begin_turn(self, steps: int, wrong: str | None) -> Any:  # noqa: ANN401  Hypothesis's
        """Lanes are leased; what may go is committed; it goes: so far, or not so far."""
        return self._begin(steps, wrong) or multiple()

    @rule(target=turns, turn=consumes(turns), late=YES_NO, replaced=YES_NO, wrong=SENDS)
    def go_on(self, turn: Turn, late: bool, replaced: bool, wrong: str | None) -> Any:  # noqa: ANN401  as above
        """A turn takes its next step: perhaps when its leases are over, and others have taken its lanes."""
        if late:
            self.ground.wait(9.0)
        if replaced:
            self.turn(dies_at=0, wrong=None)
        return turn if self._go_on(turn, wrong) else multiple()

    @precondition(lambda self: self._are("waiting", "sending"))
    @rule(steps=st.integers(1, 3), wrong=SENDS, others=st.sampled_from(("a step", "a turn")))
    def freeze(self, steps: int, wrong: str | None, others: str) -> None:
        """A turn stands still until others have its lanes, and comes back in the middle of their work, or after it."""
        turn = self._begin(steps, wrong)
        self.ground.wait(9.0)
        other = self._begin(3, None) if others == "a step" else None
        if other is None:
            self.turn(dies_at=0, wrong=None)
        while turn and self._go_on(turn, wrong):
            pass
        if other:
            self._settle(other)

    # -- the consumer behind the target

    @precondition(lambda self: self._lies_at_the_origin())
    @rule(target=taken, most=st.integers(1, 3))
    def receive(self, most: int) -> Any:  # noqa: ANN401  as above
        """It takes messages; what it leaves alone comes to sight again, and then dies."""
        asked = {"QueueUrl": self.ground.origin_url, "MaxNumberOfMessages": most, "MessageAttributeNames": ["All"]}
        return multiple(*self.ground.near.receive_message(**asked).get("Messages", []))

    @rule(one=consumes(taken))
    def process(self, one: dict[str, Any]) -> None:
        """It is well with one; when the message is another receive's by then, this changes nothing."""
        before = one["MessageId"] in self.ground.lies_in(self.ground.origin_url)
        self.ground.perform(
            lambda: self.ground.near.delete_message(QueueUrl=self.ground.origin_url, ReceiptHandle=one["ReceiptHandle"])
        )
        if before and one["MessageId"] not in self.ground.lies_in(self.ground.origin_url):
            self._watch.consumed.add(one["MessageId"])

    @precondition(lambda self: self._lies_at_the_origin())
    @rule()
    def fail(self) -> None:
        """Whatever it has comes back to the dlq."""
        for _ in range(2):
            self.ground.near.receive_message(QueueUrl=self.ground.origin_url, MaxNumberOfMessages=10)
            self.ground.wait(2.5)
        self.ground.near.receive_message(QueueUrl=self.ground.origin_url, MaxNumberOfMessages=10)

    # -- people and time

    @rule(seconds=st.sampled_from((1.0, 5.0, 9.0, 21.0, 400.0)))
    def wait(self, seconds: float) -> None:
        self.ground.wait(seconds)

    @precondition(lambda self: self._are("captured"))
    @rule(limit=st.sampled_from((None, 1, 2)), dies_at=DEATHS)
    def run(self, limit: int | None, dies_at: int) -> None:
        """A person has letters replayed that are in no run yet."""
        self.serial += 1
        name = f"run-{self.serial}"
        self.ground.perform(lambda: self._run(name, limit), dies_at=dies_at)

    @precondition(lambda self: self._are("parked"))
    @rule(discard=YES_NO)
    def decide(self, discard: bool) -> None:
        """About what is parked."""
        parked = dict(DeadLetter.objects.filter(state="parked").values_list("id", "message_id"))
        if not parked:
            return
        act = park.discard if discard else park.release
        done = self._audited(lambda why: act(list(parked), by=SOMEBODY, reason=why).done)
        if not discard:
            self._watch.released.update(parked[one] for one in done)

    @rule(act=st.sampled_from(("pause", "resume", "abort", "stop", "stop all")))
    def meddle(self, act: str) -> None:
        match act:
            case "pause":
                for one in Run.objects.filter(state=RunState.RUNNING):
                    self._audited(lambda why, run=one.pk: operations.pause(run, by=SOMEBODY, reason=why))  # type: ignore[misc]
            case "abort":
                for run in Run.objects.filter(kind=RunKind.DRAIN, state__in=("planned", "running", "paused")):
                    self._abort(run)
            case "resume":
                self._let_go()
            case _:
                dlq = self.ground.dlq if act == "stop" else None
                self._audited(lambda why: stops.stop(dlq, by=SOMEBODY, reason=why).new)

    @rule(action=st.sampled_from(("hold", "delay", "quarantine", "discard")), on=YES_NO)
    def amend(self, action: str, on: bool) -> None:
        """A rule about every second event is made, or switched."""
        fields = {
            "action": action, "delay": 5.0 if action == "delay" else None, "enabled": on,
            "conditions": ["attribute:half equals 1"],
        }  # fmt: skip
        self._audited(lambda why: amendments.put("a-rule", fields, by=SOMEBODY, reason=why).differences)
        self.ground.perform(lambda: route.wake(route.Book.load()))

    # -- what holds, and how it ends

    @invariant()
    def every_promise_is_kept(self) -> None:
        self.told()
        if self.watch is not None:
            broken = self.watch.broken()
            assert not broken, " ".join(broken)

    def teardown(self) -> None:
        """Nothing goes wrong any more, everything is let go: then everything is finished within bound."""
        if self.watch is None:
            return
        self._let_go()
        for one in Rule.objects.filter(enabled=True):
            amendments.switch(one.pk, enabled=False, by=SOMEBODY, reason="it is over")
        route.wake(route.Book.load())
        for run in Run.objects.filter(kind=RunKind.DRAIN, state=RunState.PLANNED):
            self._abort(run)
        DeadLetterQueue.objects.update(mode="automatic")
        left = ["nothing was looked at"]
        for _ in range(_ROUNDS):
            self._heal()
            self.every_promise_is_kept()
            if not (left := self._watch.unfinished()):
                return
        raise AssertionError(" ".join(left))

    # -- a turn's steps

    def _begin(self, steps: int, wrong: str | None) -> Turn | None:
        turn = self._lease()
        for _ in range(steps - 1):
            if turn and not self._go_on(turn, wrong):
                return None
        return turn

    def _go_on(self, turn: Turn, wrong: str | None) -> bool:
        """The next step; whether there will be another one."""
        if turn.has_sent:
            return self._settle(turn)
        if turn.intended:
            self._send(turn, wrong)
            return True
        return self._intend(turn)

    def _lease(self) -> Turn | None:
        self.serial += 1
        turn = Turn(fresh(self.ground, self.serial))
        with self._leases_hold():
            return turn if turn.lease() else None

    def _intend(self, turn: Turn) -> bool:
        state, may_retry, canary_out, stopped = self.ground.wire.ask(_BRAKES)[0]
        running = {row[0] for row in self.ground.wire.ask(_RUNNING)}
        if not turn.intend():
            return False
        assert not stopped, "what is stopped sent nothing"
        assert {one.run_id for one in turn.intended} <= running, "a run that does not run sent nothing"
        trial = may_retry or (state == "half_open" and not canary_out)
        few = state == "closed" or (len(turn.intended) <= 1 and trial)
        assert few, f"a breaker that is {state} let {len(turn.intended)} go"
        return True

    def _send(self, turn: Turn, wrong: str | None) -> None:
        late = [one for one in turn.intended if not self.ground.wire.ask(_UNEXPIRED, one.lane_id, one.fence)]
        calls = len(self.ground.near.log)
        self.ground.perform(turn.send, wrong=_sending(wrong))
        assert not (late and len(self.ground.near.log) > calls), "whose lease is over starts no request"

    def _settle(self, turn: Turn) -> bool:
        """What became of it is recorded, where the lane is still the turn's; else nothing is written."""
        lost = [one.lane_id for one in turn.intended if not self.ground.wire.ask(_LEASES, one.lane_id, one.fence)]
        before = self._rows(lost)
        goes_on = turn.settle()
        assert self._rows(lost) == before, "a stale owner wrote nothing"
        return goes_on

    # -- how it is done

    def _are(self, *states: str) -> bool:
        return self.watch is not None and any(one.state in states for one in self.watch.letters.values())

    @property
    def _watch(self) -> Watch:
        assert self.watch is not None
        return self.watch

    def _bury(self, key: str | None, *, late: bool, twin: Buried | None = None, other: bool = False) -> None:
        policy = self.ground.policy
        known = [one.n for one in self._watch.buried.values() if one.key == key]
        number = 10 * len(self._watch.buried) + 10 if policy.fifo or not known or not late else max(known) - 5
        event = f"e{len(self._watch.buried)}"
        if policy.fifo and key is None:
            key = twin.key if twin else "k0"
        if twin:
            event, key = twin.event, twin.key
            number = number if policy.fifo else twin.n
        said = {"event": event, "half": str(int(event[1:]) % 2), "n": str(number), **({"key": key} if key else {})}
        attributes: dict[str, dict[str, Any]] = {
            name: {"DataType": "String", "StringValue": text} for name, text in said.items()
        }
        attributes["bytes"] = {"DataType": "Binary.odd", "BinaryValue": b"\x00\xff\x1f"}
        body = f"body of {event}{' otherwise' if other else ''} \u00e4\t{{"
        message_id = self._put(body, attributes, key)
        self._watch.buried[message_id] = Buried(message_id, event, key, number, body, attributes)

    def _put(self, body: str, attributes: dict[str, dict[str, Any]], key: str | None) -> str:
        self.serial += 1
        group = {"MessageGroupId": key or "k0", "MessageDeduplicationId": f"d{self.serial}"}
        sent = self.ground.near.send_message(
            QueueUrl=self.ground.dlq_url, MessageBody=body, MessageAttributes=attributes,
            **(group if self.ground.policy.fifo else {}),
        )  # fmt: skip
        return str(sent["MessageId"])

    def _capture(self) -> None:
        gather.letters(self.ground.watched(), conf=self.ground.policy.conf, dice=lambda: 0.0, seconds=30)

    def _sweep(self) -> None:
        promote.letters(conf=self.ground.policy.conf, dice=lambda: 0.0)
        recover.dlqs(conf=self.ground.policy.conf)

    def _run(self, name: str, limit: int | None) -> None:
        dlq = self.ground.watched()
        plan.places(dlq)
        run = operations.plan(dlq, Asked(name=name, by=SOMEBODY, selection=Selection(limit=limit)))
        operations.select(run.pk, by=SOMEBODY, reason="they are wanted")
        operations.start(run, by=SOMEBODY, reason="they are wanted")

    def _abort(self, run: Run) -> None:
        self._audited(lambda why: operations.abort(run, by=SOMEBODY, reason=why, stop_dlq=False))

    def _let_go(self) -> None:
        self._audited(lambda why: stops.resume(None, by=SOMEBODY, reason=why))
        self._audited(lambda why: stops.resume(self.ground.dlq, by=SOMEBODY, reason=why))
        for one in Run.objects.filter(state=RunState.PAUSED):
            self._audited(lambda why, run=one.pk: operations.resume(run, by=SOMEBODY, reason=why))  # type: ignore[misc]

    def _audited(self, act: Callable[[str], Any]) -> Any:  # noqa: ANN401  whatever the act says
        """Do what a person does; when something was done, a review says who and why."""
        self.serial += 1
        why = f"reason {self.serial}"
        done = act(why)
        told = self.ground.wire.ask(_TELLS, SOMEBODY, why)[0][0]
        assert bool(told) == bool(done), f"{told} reviews tell of {done!r}"
        return done

    @contextmanager
    def _leases_hold(self) -> Iterator[None]:
        """Nobody takes a lane whose lease goes on."""
        before = self.ground.wire.ask(_HELD)
        yield
        taken = [row for row in before if row[2] > self.ground.stage.now and not self.ground.wire.ask(_STILL, *row[:2])]
        assert not taken, f"lanes were taken from those who had leased them: {taken}"

    def _rows(self, some: list[int]) -> list[tuple[Any, ...]]:
        return self.ground.wire._admin.execute(_ROWS, {"lanes": some}).fetchall() if some else []

    def _lies_about(self) -> bool:
        return any(self.ground.lies_in(url) for url in (self.ground.dlq_url, self.ground.origin_url))

    def _lies_at_the_origin(self) -> bool:
        return self.watch is not None and bool(self.ground.lies_in(self.ground.origin_url))

    def _forgetful(self) -> Conf:
        return replace(self.ground.policy.conf, history=timedelta(days=1))

    def _heal(self) -> None:
        self._let_go()
        self.ground.wait(10.0)
        self._capture()
        if self.ground.policy.hold:
            parked = list(DeadLetter.objects.filter(state="parked").values_list("id", flat=True))
            park.discard(parked, by=SOMEBODY, reason="it is in the way")
        self.serial += 1
        fresh(self.ground, self.serial).run(seconds=2.0)
        self._consume()
        self._sweep()

    def _consume(self) -> None:
        near, url = self.ground.near, self.ground.origin_url
        while got := near.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages", []):
            for one in got:
                near.delete_message(QueueUrl=url, ReceiptHandle=one["ReceiptHandle"])
                self._watch.consumed.add(one["MessageId"])


def _sending(wrong: str | None) -> tuple[str, str] | None:
    return ("SendMessageBatch", wrong) if wrong else None
