"""Replay lanes for 5 s (a slice): lease them, apply rules, check the gate, send first letters, record outcomes."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

from django.db import Error as DatabaseError

from reprocessing.conf import Conf
from reprocessing.domain.aws.metric_names import SLICE_ERRORS, SLICES
from reprocessing.domain.lifecycle import LanePhase, LetterState
from reprocessing.domain.replay.verdicts import Wait
from reprocessing.gateways.redis.send_rate import Rates
from reprocessing.models.target import Proof
from reprocessing.pipeline.aws import follow_redrives, record_metrics
from reprocessing.pipeline.replay import gate, lease_lanes, settle, take_tokens
from reprocessing.pipeline.replay.lease_keeper import SEND_MARGIN
from reprocessing.pipeline.replay.send import Sender
from reprocessing.pipeline.replay.slow_targets import GROUP_AGE, GROUP_SIZE
from reprocessing.pipeline.replay.take_tokens import MeteredHeads
from reprocessing.pipeline.routing import route
from reprocessing.pipeline.routing.evaluate_rules import RuleBook
from reprocessing.store import rows
from reprocessing.store.ordering import lanes
from reprocessing.store.ordering.lane_state import LaneState
from reprocessing.store.ordering.lanes import HandedBack
from reprocessing.store.replay.intent import intend
from reprocessing.store.replay.settlement import LetterClosing
from reprocessing.store.safety import circuit_breakers, send_limits
from reprocessing.store.safety.outage_attempts import count_again
from reprocessing.store.safety.send_limits import SendLimit
from reprocessing.store.safety.used_up_attempts import last_failures

logger = logging.getLogger(__name__)
#: Every slice may wait this many seconds for a token of the rate limit. If the wait is longer, only one slice waits for
#: the target, so that waiting slices do not occupy all workers. Other slices give their lanes back for `DUE_LATER`.
TOKEN_WAIT = 0.25
DUE_LATER = timedelta(seconds=2)
_ASKS_EVERY = 5.0  # seconds between two questions to AWS whether it redrives messages itself
_LEASE_AGAIN_AFTER = 0.1  # seconds until a slice that has lanes tries to lease more, if the last try found none
_SEEN_FOR = 0.5  # seconds between two reads of send limits and rules, while nothing fails


@dataclass(slots=True)
class Report:
    """What one slice did: how many letters it sent, parked and so on. `left`: ids of lanes that it could not finish."""

    taken: int = 0
    failed: int = 0
    parked: int = 0
    duplicates: int = 0
    left: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Slice:
    """A slice: for 5 s by default, one worker leases lanes and sends their letters in order."""

    owner: str  # unique name of the slice, written to the lanes that it leases
    conf: Conf
    rates: Rates
    dice: Callable[[], float]  # random numbers for backoffs
    only: Sequence[int] | None = None  # ids of lanes to lease first; afterwards, any due lane is leased
    runs: Sequence[int] | None = None  # ids of runs; None: all
    strictly: bool = False  # lease no lane outside `only`
    stop: Callable[[], bool] = lambda: False  # called between rounds; if it returns True, the slice ends early
    book: RuleBook | None = None  # the rules as they were last loaded
    report: Report = field(default_factory=Report)
    _lane_states: dict[int, LaneState] = field(default_factory=dict)
    _full: set[int] = field(default_factory=set)  # ids of breakers whose targets are full; their lanes are not leased
    _has_worked: bool = False
    _asks_at: float = 0.0
    _next_lease_at: float = 0.0  # monotonic time of the next try to lease more lanes, while it has some
    _looks_at: float = 0.0  # monotonic time of the next load of send limits; earlier if an attempt fails
    _failed_before: int = 0  # number of failed attempts at the last load of send limits
    _wire: Sender = field(init=False)

    def run(self, *, seconds: float) -> Report:
        """Replay lanes for `seconds` at most, then give the remaining lanes back; return the report.

        Raises:
            django.db.Error: PostgreSQL failed. Letters that were being sent are recovered when their leases end.
        """
        end = time.monotonic() + seconds
        self._wire = Sender(self.conf, self.dice)
        with record_metrics.measured_work(SLICES, SLICE_ERRORS) as counted, rows.planned_once():
            counted.attempts, counted.sent = self._wire.attempts, self._wire.sent
            self._work(end)
            counted.idle = not self._has_worked
        return self.report

    def _work(self, end: float) -> None:
        try:
            while time.monotonic() < end and not self.stop() and (self._fill() or self._wire.open):
                self._rest(self._round(), end)
            self._remember(self._wire.await_fast_answers())
        finally:
            self._hand_back()
            self._wire.end()
        self._wire.deletion.finish()
        self.report.taken, self.report.failed = self._wire.taken, self._wire.failed

    def _fill(self) -> bool:
        few, now = self.conf.lanes_per_task, time.monotonic()
        most = self.conf.open_requests if self._wire.open and not self.strictly else few
        room = most - len(self._lane_states) - self._wire.open
        if room > 0 and len(self._lane_states) <= few // 2 and (now >= self._next_lease_at or not self._lane_states):
            if now >= self._asks_at:
                follow_redrives.check_before_leasing(self.runs)
                self._asks_at = now + _ASKS_EVERY
            taken = lease_lanes.lease_due(
                self.owner, room=room, lease=self.conf.lease, only=self.only, runs=self.runs, but=self._full,
                strictly=self.strictly,
            )  # fmt: skip
            self.only = None
            self._next_lease_at = 0.0 if taken else time.monotonic() + _LEASE_AGAIN_AFTER
            self._has_worked |= bool(taken)
            self._remember(taken)
        return bool(self._lane_states)

    def _rest(self, pause: float | None, end: float) -> None:
        left = max(0.0, end - time.monotonic())
        if self._wire.open:
            usual = 0.0 if self._lane_states else GROUP_AGE
            self._remember(self._wire.record_answers(min(left, usual if pause is None else pause)))
        elif pause is not None and self._lane_states:
            time.sleep(min(pause, left))

    def _remember(self, lane_states: Sequence[LaneState]) -> None:
        for lane in lane_states:
            if lane.phase == LanePhase.LEASED:
                self._lane_states[lane.lane_id] = lane
            else:
                self._lane_states.pop(lane.lane_id, None)

    def _round(self) -> float | None:
        """Apply rules and gate to lanes' first letters; send letters that pass. Return seconds to pause, or None."""
        going = self._through_the_gate(self._asked())
        if not going:
            return None
        metered = take_tokens.take_for_heads(
            going, targets=self._wire.targets, send_limits=self._wire.send_limits, rates=self.rates
        )
        if not metered.heads:
            return self._await_tokens(going, metered)
        chosen = metered.heads
        # From here on, these lanes are not handed back: their heads may be sent. Settlements or lease ends free them.
        self._forget({head.lane_id for head in chosen})
        began = time.monotonic()
        intended = intend(
            [head.lane_id for head in chosen], [head.fence for head in chosen],
            [head.letter_id or 0 for head in chosen],
            margin=max(SEND_MARGIN, self.conf.lease.total_seconds() / 2),  # leases are renewed after a third
            hold=self.conf.lease.total_seconds(), most=self.conf.max_unsettled,
            canary=self._wire.longest_wait({head.target_id or 0 for head in chosen}),
            book=self.book.version if self.book else 0,
        )  # fmt: skip
        sent = {attempt.lane_id for attempt in intended}
        if missed := [head for head in chosen if head.lane_id not in sent]:  # such as if another letter claimed the key
            self._looks_at = 0.0
            self._remember(lease_lanes.find_heads(missed, lease=self.conf.lease))
        if intended:
            self._remember(self._wire.letters(intended, metered.valid_until, began=began))
        return None

    def _await_tokens(self, going: Sequence[LaneState], metered: MeteredHeads) -> float | None:
        """Return the seconds to wait for tokens of the rate limit; None: the lanes were given back instead.

        Lanes are given back if the wait is longer than 0.25 s, and another slice waits for the target already.
        """
        targets = {head.target_id or 0 for head in going} if metered.pause > TOKEN_WAIT and not self.strictly else ()
        if all(self.rates.claim_wait(target, self.owner, metered.pause) for target in targets):
            self._keep(going)
            return metered.pause
        self._full |= {head.breaker_id or 0 for head in going}
        why = "Redis does not tell the target's rate" if metered.unknown else "another worker waits for the rate limit"
        self._wait([(head, Wait(DUE_LATER, why)) for head in going])
        return None

    def _asked(self) -> list[LaneState]:
        """Apply the rules to first letters (heads) that need a decision; return heads that have a current decision."""
        self._load_send_limits()
        self.book = RuleBook.load(self.book, next((limit.rules for limit in self._wire.send_limits.values()), None))
        if asked := [head for head in self._lane_states.values() if self._is_new(head)][: self.conf.intent_size]:
            turned = route.route_heads(asked, self.book, lease=self.conf.lease.total_seconds())
            self._forget({head.lane_id for head in asked})
            self._remember(turned.lane_states)
            self._wire.deletion.add(turned.deletable)
            self._looks_at = 0.0
            self._load_send_limits()  # loads the targets that rules chose
        most = max(self.conf.intent_size, GROUP_SIZE) if self._wire.open else self.conf.intent_size
        return [head for head in self._lane_states.values() if not self._is_new(head)][:most]

    def _is_new(self, head: LaneState) -> bool:
        """Return whether this head (a lane's first letter) needs a decision, since the rules have changed."""
        if self.book is None or (head.rulebook_version or 0) >= self.book.version:
            return False
        return bool(self.book.rules) or bool(head.rulebook_version)

    def _through_the_gate(self, heads: Sequence[LaneState]) -> list[LaneState]:
        room = Counter({limit.target_id: self._room(limit) for limit in self._wire.send_limits.values()})
        heads = self._recounted(heads)
        failures = last_failures({head.letter_id or 0 for head in heads if gate.is_spent(head)})
        judged = gate.judge_heads(heads, send_limits=self._wire.send_limits, room=room, failures=failures)
        self._full |= judged.full
        self._open(judged.opening)
        self._wait(judged.waiting)
        self._close(judged.closings)
        return judged.going

    def _recounted(self, heads: Sequence[LaneState]) -> list[LaneState]:
        """Return the heads (lanes' first letters) with their numbers of attempts, after spared ones were checked again.

        A failed attempt is spared (not counted) if the target was down; it counts if other letters succeeded meanwhile.
        """
        counted = count_again({head.letter_id or 0 for head in heads if gate.is_sent_for_spared_attempts(head)})
        return [replace(head, attempts=counted.get(head.letter_id or 0, head.attempts)) for head in heads]

    def _open(self, opening: dict[int, str]) -> None:
        for breaker, why in opening.items():
            self._looks_at = 0.0
            circuit_breakers.open_after({(breaker, self._wire.send_limits[breaker].epoch)}, why=why)

    def _load_send_limits(self) -> None:
        targets = {head.target_id for head in self._lane_states.values() if head.target_id}
        now = time.monotonic()
        if now < self._looks_at and self._has_seen(targets) and self._wire.failed == self._failed_before:
            return
        self._wire.load_targets(targets)
        self._wire.send_limits = {limit.breaker_id: limit for limit in send_limits.read_limits(targets)}
        self._failed_before = self._wire.failed
        self._looks_at = now + _SEEN_FOR if all(map(self._is_quiet, self._wire.send_limits.values())) else 0.0

    def _has_seen(self, targets: set[int]) -> bool:
        """Return whether the send limits of these targets, and of the breakers of all lanes' first letters, are loaded.

        A rule may give a letter another target or rate class, whose breaker was not loaded yet.
        """
        limits = self._wire.send_limits
        breakers = {head.breaker_id for head in self._lane_states.values() if head.breaker_id}
        return breakers <= limits.keys() and targets <= {limit.target_id for limit in limits.values()}

    def _is_quiet(self, limit: SendLimit) -> bool:
        """Return whether only a failed attempt can change these limits, so that they need not be loaded again soon."""
        accepted = self._wire.targets[limit.target_id].proof == Proof.ACCEPTED
        return accepted and not limit.on_trial and limit.why_unhealthy is None and not limit.step_due

    def _room(self, limit: SendLimit) -> int:
        unsettled = limit.unsettled if self._wire.targets[limit.target_id].proof != Proof.ACCEPTED else -(2**31)
        here = self._wire.room(limit.target_id)
        most = self.conf.max_unsettled - unsettled
        return most if here is None else min(most, here)

    def _close(self, closings: dict[tuple[int, int], LetterClosing]) -> None:
        if not closings:
            return
        settled = settle.heads(closings, lease=self.conf.lease.total_seconds())
        self._forget({lane for lane, _ in closings})
        self._remember(settled.lane_states)
        self._wire.deletion.add(settled.deletable)
        self.report.duplicates += sum(closing.state is LetterState.DUPLICATE for closing in settled.closed)
        self.report.parked += sum(closing.state is LetterState.PARKED for closing in settled.closed)

    def _wait(self, waiting: Sequence[tuple[LaneState, Wait]]) -> None:
        if waiting:
            lanes.hand_back([
                HandedBack(head.lane_id, head.fence, verdict.after.total_seconds(), verdict.why, head.breaker_id)
                for head, verdict in waiting
            ])  # fmt: skip
            self._forget({head.lane_id for head, _ in waiting})

    def _keep(self, going: Sequence[LaneState]) -> None:
        """Renew the leases of lanes that wait for tokens. Forget lanes whose lease was lost."""
        mine = lanes.renew(
            [head.lane_id for head in going], [head.fence for head in going], lease=self.conf.lease.total_seconds()
        )
        self._forget({head.lane_id for head in going} - mine)

    def _forget(self, gone: set[int]) -> None:
        for lane_id in gone:
            self._lane_states.pop(lane_id, None)

    def _hand_back(self) -> None:
        left = list(self._lane_states.values())
        if not left:
            return
        self.report.left = [head.lane_id for head in left]
        self._lane_states.clear()
        try:
            lanes.hand_back([HandedBack(head.lane_id, head.fence, breaker_id=head.breaker_id) for head in left])
        except DatabaseError as error:
            logger.warning(
                "%d key queues were not handed back; they are due when their leases end: %s",
                len(left), error, extra={"key_queue_ids": self.report.left},
            )  # fmt: skip
