"""The steps: what dies, what workers do and leave undone, what consumers and people do, and time."""

from __future__ import annotations

from typing import Any, Final

from botocore.exceptions import ClientError
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, consumes, initialize, invariant, multiple, precondition, rule

from reprocessing.models import DeadLetterQueue, Letter, Rule, Run
from reprocessing.models.run import RunKind, RunState
from reprocessing.pipeline.maintenance import purge
from reprocessing.pipeline.parking_lot import act_on_parked
from reprocessing.pipeline.routing import route
from reprocessing.store.routing import rule_changes
from reprocessing.store.runs import run_transitions
from reprocessing.store.safety import stops
from tests.proof.machine.actions import SOMEBODY, Actions, sending
from tests.proof.machine.ground import Policy
from tests.proof.machine.promises import Watch
from tests.proof.machine.turns import Turn, fresh

#: The so-many-th statement, commit or request at which a worker dies; 0: it lives.
DEATHS = st.one_of(st.just(0), st.integers(1, 45))
SENDS = st.sampled_from((None, "refused", "unreached", "unanswered", "partial"))
RECEIVES = st.sampled_from((
    None, ("ReceiveMessage", "early expiry"), ("ReceiveMessage", "unanswered"), ("ReceiveMessage", "false empty"),
    ("DeleteMessageBatch", "unanswered"), ("DeleteMessageBatch", "partial"), ("DeleteMessageBatch", "refused"),
))  # fmt: skip
YES_NO = st.booleans()
#: In the end, and for each letter: where a key waits for the outcome before, its letters take a few rounds each.
_ROUNDS, _ROUNDS_EACH = 60, 6
_AFTER_ALL: Final = 6 * 86_400.0  # what is gone for so long could turn up no more


class Machine(Actions):
    turns: Bundle[Turn] = Bundle("turns")
    taken: Bundle[dict[str, Any]] = Bundle("taken")

    @initialize(
        policy=st.builds(
            Policy, fifo=st.sampled_from((False, False, True)), keyed=st.sampled_from((True, True, False)),
            absence=YES_NO, settled=YES_NO, captured=YES_NO, manual=st.sampled_from((False, False, True)),
            max_attempts=st.sampled_from((2, 1, 3)), backoff=st.sampled_from((0, 2)),
            hold=st.sampled_from((False, False, True)), deliver_stale=st.sampled_from((False, False, True)),
            waves=st.sampled_from((False, False, True)), by_event=YES_NO,
            held_copies_limit=st.sampled_from((20_000, 2)), intent_size=st.sampled_from((50, 1)),
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
    def bury_an_equal_letter(self, which: int, other: bool) -> None:
        """A letter of an event that is buried already, with the same body or another one."""
        known = list(self._watch.buried.values())
        self._bury(None, late=False, equal=known[which % len(known)], other=other)

    @precondition(lambda self: self.watch is not None and self.watch.arrivals)
    @rule(which=st.integers(0, 7))
    def come_again(self, which: int) -> None:
        one = self._watch.arrivals[which % len(self._watch.arrivals)]
        if one.original not in self._watch.letters:
            return  # it is forgotten: nobody could know it
        source = self._watch.buried[one.original]
        marks = {"RedriveId": f"{one.public_id}:{one.no}", "OriginalMessageId": one.original}
        said = {name: {"DataType": "String", "StringValue": text} for name, text in marks.items()}
        self._put(source.body, source.attributes | said, source.key)

    # -- workers, whole turns

    @rule(dies_at=DEATHS, wrong=RECEIVES)
    def capture(self, dies_at: int, wrong: tuple[str, str] | None) -> None:
        """The dlq is emptied; where it is automatic, what it held is enlisted once it has run dry."""
        self.ground.perform(self._capture, dies_at=dies_at, wrong=wrong)

    @rule(dies_at=DEATHS, wrong=SENDS)
    def turn(self, dies_at: int, wrong: str | None) -> None:
        self.serial += 1
        turn = fresh(self.ground, self.serial)
        with self._leases_hold():
            self.ground.perform(lambda: turn.run(seconds=2.0), dies_at=dies_at, wrong=sending(wrong))

    @rule(dies_at=DEATHS)
    def sweep(self, dies_at: int) -> None:
        self.ground.perform(self._sweep, dies_at=dies_at)

    @precondition(lambda self: self.watch is not None and not self._lies_about())
    @rule()
    def forget(self) -> None:
        self.ground.wait(_AFTER_ALL)
        self.ground.perform(lambda: purge.purge_expired(conf=self._forgetful()))

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

    @precondition(lambda self: self._lies_at_the_source())
    @rule(target=taken, most=st.integers(1, 3))
    def receive(self, most: int) -> Any:  # noqa: ANN401  as above
        """It takes messages; what it leaves alone comes to sight again, and then dies."""
        asked = {"QueueUrl": self.ground.source_url, "MaxNumberOfMessages": most, "MessageAttributeNames": ["All"]}
        return multiple(*self.ground.near.receive_message(**asked).get("Messages", []))

    @rule(one=consumes(taken))
    def process(self, one: dict[str, Any]) -> None:
        """It is well with one; when the message is another receive's by then, or its time is over, nothing changes."""
        before = one["MessageId"] in self.ground.lies_in(self.ground.source_url)
        self.ground.perform(lambda: self._acknowledge(one["ReceiptHandle"]))
        if before and one["MessageId"] not in self.ground.lies_in(self.ground.source_url):
            self._watch.consumed.add(one["MessageId"])

    def _acknowledge(self, handle: str) -> None:
        """A FIFO queue refuses a handle whose time is over: its consumer is given the message again."""
        try:
            self.ground.near.delete_message(QueueUrl=self.ground.source_url, ReceiptHandle=handle)
        except ClientError as error:
            if error.response["Error"]["Code"] != "InvalidParameterValue":
                raise

    @precondition(lambda self: self._lies_at_the_source())
    @rule()
    def fail(self) -> None:
        for _ in range(2):
            self.ground.near.receive_message(QueueUrl=self.ground.source_url, MaxNumberOfMessages=10)
            self.ground.wait(2.5)
        self.ground.near.receive_message(QueueUrl=self.ground.source_url, MaxNumberOfMessages=10)

    # -- people and time

    @rule(seconds=st.sampled_from((1.0, 5.0, 9.0, 21.0, 400.0)))
    def wait(self, seconds: float) -> None:
        self.ground.wait(seconds)

    @precondition(lambda self: self._are("captured"))
    @rule(limit=st.sampled_from((None, 1, 2)), dies_at=DEATHS)
    def run(self, limit: int | None, dies_at: int) -> None:
        self.serial += 1
        name = f"run-{self.serial}"
        self.ground.perform(lambda: self._run(name, limit), dies_at=dies_at)

    @precondition(lambda self: self._are("parked"))
    @rule(discard=YES_NO)
    def decide(self, discard: bool) -> None:
        parked = dict(Letter.objects.filter(state="parked").values_list("id", "message_id"))
        if not parked:
            return
        act = act_on_parked.discard if discard else act_on_parked.release
        done = self._audited(lambda why: act(list(parked), by=SOMEBODY, reason=why).done)
        if not discard:
            self._watch.released.update(parked[one] for one in done)

    @rule(act=st.sampled_from(("pause", "resume", "abort", "stop", "stop all")))
    def meddle(self, act: str) -> None:
        match act:
            case "pause":
                for one in Run.objects.filter(state=RunState.RUNNING):
                    self._audited(lambda why, run=one.pk: run_transitions.pause(run, by=SOMEBODY, reason=why))  # type: ignore[misc]
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
        self._audited(lambda why: rule_changes.save_rule("a-rule", fields, by=SOMEBODY, reason=why).differences)
        self.ground.perform(lambda: route.wake_stopped(route.RuleBook.load()))

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
            rule_changes.set_enabled(one.pk, enabled=False, by=SOMEBODY, reason="it is over")
        route.wake_stopped(route.RuleBook.load())
        for run in Run.objects.filter(kind=RunKind.DRAIN, state=RunState.PLANNED):
            self._abort(run)
        DeadLetterQueue.objects.update(mode="automatic")
        left = ["nothing was looked at"]
        for _ in range(_ROUNDS + _ROUNDS_EACH * len(self._watch.buried)):
            self._heal()
            self.every_promise_is_kept()
            if not (left := self._watch.unfinished()):
                return
        raise AssertionError(" ".join(left))
