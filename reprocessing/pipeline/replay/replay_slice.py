"""Replay due lanes, head by head, until the slice is over: lease, gate, intent, wire, settlement, next."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from django.db import Error as DatabaseError

from reprocessing.conf import Conf
from reprocessing.domain.aws.metric_names import SLICE_ERRORS, SLICES
from reprocessing.domain.lifecycle import LanePhase, LetterState
from reprocessing.domain.replay.verdicts import Wait
from reprocessing.gateways.redis.send_rate import Rates
from reprocessing.models.target import Proof
from reprocessing.pipeline.aws import count_turn, native_redrive
from reprocessing.pipeline.replay import gate, lease_lanes, settle, take_tokens
from reprocessing.pipeline.replay.lease_keeper import SEND_MARGIN
from reprocessing.pipeline.replay.send import DELETES, Wire
from reprocessing.pipeline.replay.slow_targets import GROUP, RIPE_AFTER
from reprocessing.pipeline.replay.take_tokens import Metered
from reprocessing.pipeline.routing import route
from reprocessing.pipeline.routing.evaluate_rules import Book
from reprocessing.store.ordering import lanes
from reprocessing.store.ordering.lanes import HandedBack, Standing
from reprocessing.store.replay.intent import intend
from reprocessing.store.replay.settlement import Closing
from reprocessing.store.safety import circuit_breakers, send_limits
from reprocessing.store.safety.send_limits import Brake
from reprocessing.store.safety.used_up_attempts import last_failures

logger = logging.getLogger(__name__)
#: Seconds that any turn waits for a token. Where tokens come more slowly, turns would fill every slot by waiting, and
#: captures would find none: one waits, the others' lanes are due again `LATER`.
NAP = 0.25
LATER = timedelta(seconds=2)
#: Seconds after which a turn sees to it anew that AWS was asked about dlqs whose lanes it leases.
_ASKS_EVERY = 5.0
#: Seconds for which a turn trusts what it saw of breakers, health and rules while nothing fails. Each intent looks.
_SEEN_FOR = 0.5


@dataclass(slots=True)
class Report:
    """What a slice did. `left`: lanes that were still due when it ended."""

    taken: int = 0
    failed: int = 0
    parked: int = 0
    duplicates: int = 0
    left: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Slice:
    """One worker's turn at due lanes.

    Attributes:
        owner: names the worker and the turn; nobody else's lanes carry it.
        rates: the targets' rates.
        dice: a throw for each backoff.
        only: lanes to begin with; when they are done, any due lane is taken (None: any from the start).
        runs: lanes of these runs alone.
        strictly: `only` and nothing else: one task is one lane.
        stop: asked between rounds; True ends the slice early.
        book: the rules as they were last known.
    """

    owner: str
    conf: Conf
    rates: Rates
    dice: Callable[[], float]
    only: Sequence[int] | None = None
    runs: Sequence[int] | None = None
    strictly: bool = False
    stop: Callable[[], bool] = lambda: False
    book: Book | None = None
    report: Report = field(default_factory=Report)
    _standings: dict[int, Standing] = field(default_factory=dict)
    _full: set[int] = field(default_factory=set)  # breakers of targets that this turn found full: enough was asked
    _has_worked: bool = False
    _asks_at: float = 0.0
    _looks_at: float = 0.0  # when breakers are to be looked at anew, though nothing failed since
    _failed_before: int = 0  # attempts that had failed when they were last looked at
    _wire: Wire = field(init=False)

    def run(self, *, seconds: float) -> Report:
        """Work for `seconds` at most, then hand back what is left.

        Raises:
            django.db.Error: Postgres failed. What was on its way is recovered when the leases run out.
        """
        end = time.monotonic() + seconds
        self._wire = Wire(self.conf, self.dice)
        with count_turn.turn(SLICES, SLICE_ERRORS) as counted:
            counted.attempts = self._wire.attempts
            self._work(end)
            counted.idle = not self._has_worked
        return self.report

    def _work(self, end: float) -> None:
        try:
            while time.monotonic() < end and not self.stop() and (self._fill() or self._wire.open):
                self._rest(self._round(), end)
            self._remember(self._wire.await_the_quick())
        finally:
            self._hand_back()
            self._wire.leave()
        self._wire.clear()
        self.report.taken, self.report.failed = self._wire.taken, self._wire.failed

    def _fill(self) -> bool:
        """Top up with due lanes, with more of them where targets are slow; whether there is anything to work on."""
        few = self.conf.lanes_per_task
        most = self.conf.open_requests if self._wire.open and not self.strictly else few
        room = most - len(self._standings) - self._wire.open
        if room > 0 and len(self._standings) <= few // 2:
            self._ask_aws()
            taken = lease_lanes.due(
                self.owner, room=room, lease=self.conf.lease, only=self.only, runs=self.runs, but=self._full,
                strictly=self.strictly,
            )  # fmt: skip
            self.only = None
            self._has_worked |= bool(taken)
            self._remember(taken)
        return bool(self._standings)

    def _ask_aws(self) -> None:
        """See to it that AWS was asked, before lanes are leased, whether it moved their messages by itself."""
        if (now := time.monotonic()) >= self._asks_at:
            native_redrive.before_lanes_are_leased(self.runs)
            self._asks_at = now + _ASKS_EVERY

    def _rest(self, pause: float | None, end: float) -> None:
        """Between two rounds: hear what open requests have come to, or wait for tokens."""
        left = max(0.0, end - time.monotonic())
        if self._wire.open:
            usual = 0.0 if self._standings else RIPE_AFTER
            self._remember(self._wire.hear(min(left, usual if pause is None else pause)))
        elif pause is not None and self._standings:
            time.sleep(min(pause, left))

    def _remember(self, standings: Sequence[Standing]) -> None:
        for one in standings:
            if one.phase == LanePhase.LEASED:
                self._standings[one.lane_id] = one
            else:
                self._standings.pop(one.lane_id, None)

    def _round(self) -> float | None:
        """One trip: heads through rules and gate, those that may go to the wire. Seconds to pause, None for none."""
        going = self._through_the_gate(self._asked())
        if not going:
            return None
        metered = take_tokens.heads(going, targets=self._wire.targets, brakes=self._wire.brakes, rates=self.rates)
        if not metered.heads:
            return self._await_tokens(going, metered)
        chosen = metered.heads
        # From here on, whatever happens, only a settlement or the end of its lease frees such a lane: handed back with
        # a letter on its way it would look as if its owner had lived to record what became of it.
        self._forget({one.lane_id for one in chosen})
        began = time.monotonic()
        intended = intend(
            [one.lane_id for one in chosen], [one.fence for one in chosen], [one.letter_id or 0 for one in chosen],
            margin=max(SEND_MARGIN, self.conf.lease.total_seconds() / 2),  # it is renewed after a third of its length
            hold=self.conf.lease.total_seconds(), most=self.conf.max_unsettled,
            canary=self._wire.longest({one.target_id or 0 for one in chosen}),
            book=self.book.version if self.book else 0,
        )  # fmt: skip
        sent = {one.lane_id for one in intended}
        if missed := [one for one in chosen if one.lane_id not in sent]:
            self._looks_at = 0.0
            self._look_again(missed)
        if intended:
            self._remember(self._wire.letters(intended, metered.until, began=began))
        return None

    def _await_tokens(self, going: Sequence[Standing], metered: Metered) -> float | None:
        """A nap, while the lanes stay ours; where it is a long one, a single turn takes it, the others make room."""
        targets = {one.target_id or 0 for one in going} if metered.pause > NAP and not self.strictly else ()
        if all(self.rates.may_wait(one, self.owner, metered.pause) for one in targets):
            self._keep(going)
            return metered.pause
        self._full |= {one.breaker_id or 0 for one in going}
        why = "Redis does not tell its target's rate" if metered.unknown else "another turn waits for its target's rate"
        self._wait([(one, Wait(LATER, why)) for one in going])
        return None

    def _look_again(self, missed: Sequence[Standing]) -> None:
        """Heads that were not committed: perhaps a twin in the same moment got their key. The gate decides anew."""
        self._remember(lease_lanes.heads(missed, lease=self.conf.lease))

    def _asked(self) -> list[Standing]:
        """The heads about which the rules as they are now have decided; the next ones are asked in this round."""
        self._look_at_brakes()
        self.book = Book.load(self.book, next((one.rules for one in self._wire.brakes.values()), None))
        if asked := [one for one in self._standings.values() if self._is_new(one)][: self.conf.intent_size]:
            turned = route.heads(asked, self.book, lease=self.conf.lease.total_seconds())
            self._forget({one.lane_id for one in asked})
            self._remember(turned.standings)
            self._wire.clear(turned.deletable, least=self.conf.intent_size * DELETES)
            self._looks_at = 0.0
            self._look_at_brakes()  # other targets, perhaps
        most = max(self.conf.intent_size, GROUP) if self._wire.open else self.conf.intent_size
        return [one for one in self._standings.values() if not self._is_new(one)][:most]

    def _is_new(self, one: Standing) -> bool:
        """Whether the rules are to be asked about a head: they have changed since, and there are, or were, some."""
        if self.book is None or (one.route_version or 0) >= self.book.version:
            return False
        return bool(self.book.rules) or bool(one.route_version)

    def _through_the_gate(self, heads: Sequence[Standing]) -> list[Standing]:
        """The heads that may go; the others are closed, or their lanes handed back until they may."""
        room = Counter({one.target_id: self._room(one) for one in self._wire.brakes.values()})
        failures = last_failures({one.letter_id or 0 for one in heads if gate.is_spent(one)})
        judged = gate.heads(heads, brakes=self._wire.brakes, room=room, failures=failures)
        self._full |= judged.full
        self._open(judged.opening)
        self._wait(judged.waiting)
        self._close(judged.closings)
        return judged.going

    def _open(self, opening: dict[int, str]) -> None:
        """Open breakers behind which nothing goes well, as they were seen: what failed there does not count."""
        for breaker, why in opening.items():
            self._looks_at = 0.0
            circuit_breakers.open_after({(breaker, self._wire.brakes[breaker].epoch)}, why=why)

    def _look_at_brakes(self) -> None:
        """What the heads' targets let go now."""
        targets = {one.target_id for one in self._standings.values() if one.target_id}
        now = time.monotonic()
        if now < self._looks_at and self._has_seen(targets) and self._wire.failed == self._failed_before:
            return
        self._wire.learn(targets)
        self._wire.brakes = {one.breaker_id: one for one in send_limits.sight(targets)}
        self._failed_before = self._wire.failed
        self._looks_at = now + _SEEN_FOR if all(map(self._is_quiet, self._wire.brakes.values())) else 0.0

    def _has_seen(self, targets: set[int]) -> bool:
        """Whether nothing is new: no target, and no breaker, which others make when they route into a new class."""
        breakers = {one.breaker_id for one in self._standings.values() if one.breaker_id}
        return breakers <= self._wire.brakes.keys() and targets <= {one.target_id for one in self._wire.brakes.values()}

    def _is_quiet(self, one: Brake) -> bool:
        """Whether a breaker lets everything go, and nothing but a failure changes that soon."""
        accepted = self._wire.targets[one.target_id].proof == Proof.ACCEPTED
        return accepted and not one.on_trial and one.unwell is None and not one.step_due

    def _room(self, one: Brake) -> int:
        """Letters that a target may still have unsettled, and open here."""
        unsettled = one.unsettled if self._wire.targets[one.target_id].proof != Proof.ACCEPTED else -(2**31)
        here = self._wire.room(one.target_id)
        most = self.conf.max_unsettled - unsettled
        return most if here is None else min(most, here)

    def _close(self, closings: dict[tuple[int, int], Closing]) -> None:
        if not closings:
            return
        settled = settle.heads(closings, lease=self.conf.lease.total_seconds())
        self._forget({lane for lane, _ in closings})
        self._remember(settled.standings)
        self._wire.clear(settled.deletable, least=self.conf.intent_size * DELETES)
        self.report.duplicates += sum(one.state is LetterState.DUPLICATE for one in settled.closed)
        self.report.parked += sum(one.state is LetterState.PARKED for one in settled.closed)

    def _wait(self, waiting: Sequence[tuple[Standing, Wait]]) -> None:
        if waiting:
            lanes.hand_back([
                HandedBack(one.lane_id, one.fence, verdict.after.total_seconds(), verdict.why, one.breaker_id)
                for one, verdict in waiting
            ])  # fmt: skip
            self._forget({one.lane_id for one, _ in waiting})

    def _keep(self, going: Sequence[Standing]) -> None:
        """Renew the leases of lanes that wait for a token; those that are gone are forgotten."""
        mine = lanes.renew(
            [one.lane_id for one in going], [one.fence for one in going], lease=self.conf.lease.total_seconds()
        )
        self._forget({one.lane_id for one in going} - mine)

    def _forget(self, gone: set[int]) -> None:
        for lane_id in gone:
            self._standings.pop(lane_id, None)

    def _hand_back(self) -> None:
        left = list(self._standings.values())
        if not left:
            return
        self.report.left = [one.lane_id for one in left]
        self._standings.clear()
        try:
            lanes.hand_back([HandedBack(one.lane_id, one.fence, breaker_id=one.breaker_id) for one in left])
        except DatabaseError as error:
            logger.warning("%d lanes were not handed back; they are due when their leases end: %s", len(left), error)
