"""How steps are done: a turn's, one after the other; a person's, with its review; and how an example heals."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

from hypothesis.stateful import RuleBasedStateMachine

from reprocessing.conf import Conf
from reprocessing.domain.runs.selection import Selection
from reprocessing.models import Letter, Run
from reprocessing.models.run import RunState
from reprocessing.pipeline.maintenance import recover
from reprocessing.pipeline.outcomes import resolve_outcomes
from reprocessing.pipeline.parking_lot import act_on_parked
from reprocessing.pipeline.runs import feed_run, plan
from reprocessing.store.runs import plans, run_transitions
from reprocessing.store.runs.plans import RunRequest
from reprocessing.store.safety import stops
from tests.proof.machine.ground import Buried, Ground
from tests.proof.machine.promises import Watch
from tests.proof.machine.turns import Turn, fresh

SOMEBODY: Final = "a person"
_TELLS = "SELECT count(*) FROM redrive_audit_entry WHERE by = %s AND reason = %s"
_BRAKES = """
SELECT state, retry_at <= redrive_now(), canary_until > redrive_now(),
       EXISTS (SELECT FROM redrive_global_stop) OR EXISTS (SELECT FROM redrive_dlq WHERE stopped_at IS NOT NULL)
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
UNION ALL SELECT c::text FROM redrive_dlq_copy c JOIN redrive_letter l ON l.id = c.letter_id
           WHERE lane_id = ANY(%(lanes)s)
UNION ALL SELECT c::text FROM redrive_claim c JOIN redrive_letter l ON l.id = c.letter_id WHERE lane_id = ANY(%(lanes)s)
ORDER BY 1
"""


class Actions(RuleBasedStateMachine):
    def __init__(self, ground: Ground, told: Callable[[], None] = lambda: None) -> None:
        super().__init__()
        self.ground, self.told = ground, told
        self.watch: Watch | None = None
        self.serial = 0

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
        self.ground.perform(turn.send, wrong=sending(wrong))
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

    def _bury(self, key: str | None, *, late: bool, equal: Buried | None = None, other: bool = False) -> None:
        policy = self.ground.policy
        known = [one.n for one in self._watch.buried.values() if one.key == key]
        number = 10 * len(self._watch.buried) + 10 if policy.fifo or not known or not late else max(known) - 5
        event = f"e{len(self._watch.buried)}"
        if policy.fifo and key is None:
            key = equal.key if equal else "k0"
        if equal:
            event, key = equal.event, equal.key
            number = number if policy.fifo else equal.n
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
        feed_run.poll_dlq(self.ground.watched(), conf=self.ground.policy.conf, dice=lambda: 0.0, seconds=30)

    def _sweep(self) -> None:
        resolve_outcomes.resolve_letters(conf=self.ground.policy.conf, dice=lambda: 0.0)
        recover.sweep_all(conf=self.ground.policy.conf)

    def _run(self, name: str, limit: int | None) -> None:
        dlq = self.ground.watched()
        plan.place_captured(dlq)
        run = plans.create_plan(dlq, RunRequest(name=name, by=SOMEBODY, selection=Selection(limit=limit)))
        plans.select_letters(run.pk, by=SOMEBODY, reason="they are wanted")
        run_transitions.start(run, by=SOMEBODY, reason="they are wanted")

    def _abort(self, run: Run) -> None:
        self._audited(lambda why: run_transitions.abort(run, by=SOMEBODY, reason=why, stop_dlq=False))

    def _let_go(self) -> None:
        self._audited(lambda why: stops.resume(None, by=SOMEBODY, reason=why))
        self._audited(lambda why: stops.resume(self.ground.dlq, by=SOMEBODY, reason=why))
        for one in Run.objects.filter(state=RunState.PAUSED):
            self._audited(lambda why, run=one.pk: run_transitions.resume(run, by=SOMEBODY, reason=why))  # type: ignore[misc]

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
        before = self.ground.wire.ask(_HELD)
        yield
        taken = [row for row in before if row[2] > self.ground.stage.now and not self.ground.wire.ask(_STILL, *row[:2])]
        assert not taken, f"lanes were taken from those who had leased them: {taken}"

    def _rows(self, some: list[int]) -> list[tuple[Any, ...]]:
        return self.ground.wire._admin.execute(_ROWS, {"lanes": some}).fetchall() if some else []

    def _lies_about(self) -> bool:
        return any(self.ground.lies_in(url) for url in (self.ground.dlq_url, self.ground.source_url))

    def _lies_at_the_source(self) -> bool:
        return self.watch is not None and bool(self.ground.lies_in(self.ground.source_url))

    def _forgetful(self) -> Conf:
        return replace(self.ground.policy.conf, history=timedelta(days=1))

    def _heal(self) -> None:
        self._let_go()
        self.ground.wait(10.0)
        self._capture()
        if self.ground.policy.hold:
            parked = list(Letter.objects.filter(state="parked").values_list("id", flat=True))
            act_on_parked.discard(parked, by=SOMEBODY, reason="it is in the way")
        self.serial += 1
        fresh(self.ground, self.serial).run(seconds=2.0)
        self._consume()
        self._sweep()

    def _consume(self) -> None:
        near, url = self.ground.near, self.ground.source_url
        while got := near.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages", []):
            for one in got:
                near.delete_message(QueueUrl=url, ReceiptHandle=one["ReceiptHandle"])
                self._watch.consumed.add(one["MessageId"])


def sending(wrong: str | None) -> tuple[str, str] | None:
    return ("SendMessageBatch", wrong) if wrong else None
