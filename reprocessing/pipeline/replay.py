"""Replay due lanes, head by head, until the slice is over: lease, gate, intent, wire, settlement, next."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from django.db import Error as DatabaseError
from django.db import transaction

from reprocessing.conf import Conf
from reprocessing.domain.errors import RateIsUnknown
from reprocessing.domain.lifecycle import LanePhase, LetterState
from reprocessing.domain.verdict import Go, Outcome, Park, Skip, Taken, Wait
from reprocessing.models import DeadLetterQueue, Target, evidence, lanes
from reprocessing.models.intent import Intended, intend
from reprocessing.models.lanes import Standing
from reprocessing.models.settlement import Closing, Deletable
from reprocessing.pipeline import clear, deliver, gate, settle
from reprocessing.pipeline.keep import SEND_MARGIN, Ownership
from reprocessing.rate import Granted, Rates

logger = logging.getLogger(__name__)

#: Seconds after which a lane asks again while Redis does not tell the rate.
RATE_IS_UNKNOWN_FOR = 1.0


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
    """

    owner: str
    conf: Conf
    rates: Rates
    dice: Callable[[], float]
    only: Sequence[int] | None = None
    runs: Sequence[int] | None = None
    strictly: bool = False
    stop: Callable[[], bool] = lambda: False
    report: Report = field(default_factory=Report)
    _standings: dict[int, Standing] = field(default_factory=dict)
    _deletable: list[Deletable] = field(default_factory=list)
    _targets: dict[int, Target] = field(default_factory=dict)
    _dlqs: dict[int, DeadLetterQueue] = field(default_factory=dict)

    def run(self, *, seconds: float) -> Report:
        """Work for `seconds` at most, then hand back what is left.

        Raises:
            django.db.Error: Postgres failed. What was on its way is recovered when the leases run out.
        """
        end = time.monotonic() + seconds
        try:
            while time.monotonic() < end and not self.stop() and self._fill():
                pause = self._round()
                if pause is not None and self._standings:
                    time.sleep(min(pause, max(0.0, end - time.monotonic())))
        finally:
            self._hand_back()
        self._delete()
        return self.report

    def _fill(self) -> bool:
        """Top up with due lanes; whether there is anything to work on."""
        room = self.conf.lanes_per_task - len(self._standings)
        if room > 0 and (len(self._standings) <= self.conf.lanes_per_task // 2):
            leased = self._lease(room)
            self._remember(lanes.advance(
                [one.lane_id for one in leased], [one.fence for one in leased],
                keep=True, lease=self.conf.lease.total_seconds(),
            ) if leased else [])  # fmt: skip
        return bool(self._standings)

    def _lease(self, room: int) -> list[lanes.Leased]:
        seconds = self.conf.lease.total_seconds()
        leased: list[lanes.Leased] = []
        if self.only:
            leased = lanes.lease(self.owner, limit=room, lease=seconds, only=self.only, runs=self.runs)
            self.only = None
        if not leased and not self.strictly:
            leased = lanes.lease(self.owner, limit=room, lease=seconds, runs=self.runs)
        inherited = [one for one in leased if one.inherited]
        if inherited:
            with transaction.atomic():
                lanes.lock([one.lane_id for one in inherited], [one.fence for one in inherited])
                lanes.close_what_dead_owners_left(self.owner, [one.lane_id for one in inherited])
        return leased

    def _remember(self, standings: Sequence[Standing]) -> None:
        for one in standings:
            if one.phase == LanePhase.LEASED:
                self._standings[one.lane_id] = one
            else:
                self._standings.pop(one.lane_id, None)

    def _round(self) -> float | None:
        """One trip: heads through the gate, those that may go to the wire. Seconds to pause, None for none."""
        going = self._through_the_gate()
        if not going:
            return None
        granted, pause = self._granted(going)
        if not granted:
            self._keep(going)
            return pause
        chosen = [one for some, _ in granted.values() for one in some]
        # From here on, whatever happens, only a settlement or the end of its lease frees such a lane: handed back with
        # a letter on its way it would look as if its owner had lived to record what became of it.
        self._forget({one.lane_id for one in chosen})
        intended = intend(
            [one.lane_id for one in chosen], [one.fence for one in chosen], [one.letter_id or 0 for one in chosen],
            margin=SEND_MARGIN, hold=self.conf.lease.total_seconds(),
        )  # fmt: skip
        sent = {one.lane_id for one in intended}
        if missed := [one for one in chosen if one.lane_id not in sent]:
            self._look_again(missed)
        if intended:
            self._send(intended, {target: token for target, (_, token) in granted.items()})
        return None

    def _look_again(self, missed: Sequence[Standing]) -> None:
        """Heads that were not committed: perhaps a twin in the same moment got their key. The gate decides anew."""
        self._remember(lanes.advance(
            [one.lane_id for one in missed], [one.fence for one in missed],
            keep=True, lease=self.conf.lease.total_seconds(),
        ))  # fmt: skip

    def _through_the_gate(self) -> list[Standing]:
        """The heads that may go; the others are closed, or their lanes handed back until they may."""
        room = self._room({one.target_id for one in self._standings.values() if one.target_id})
        going: list[Standing] = []
        closings: dict[tuple[int, int], Closing] = {}
        waiting: list[tuple[Standing, Wait]] = []
        for one in list(self._standings.values())[: self.conf.intent_size]:
            verdict = gate.head(one, room=room[one.target_id or 0])
            match verdict:
                case Go():
                    room[one.target_id or 0] -= 1
                    going.append(one)
                case Wait():
                    waiting.append((one, verdict))
                case Skip(original):
                    closings[one.lane_id, one.fence] = Closing(
                        one.letter_id or 0, LetterState.DUPLICATE, original=original
                    )
                case Park(reason, detail):
                    closings[one.lane_id, one.fence] = Closing(
                        one.letter_id or 0, LetterState.PARKED, reason=reason, detail=detail
                    )
        self._wait(waiting)
        self._close(closings)
        return going

    def _room(self, targets: set[int]) -> Counter[int]:
        self._learn(targets)
        room: Counter[int] = Counter(dict.fromkeys(targets, 2**31))
        watched = [target for target in targets if self._targets[target].proof != "accepted"]
        if watched:
            open_now = evidence.unsettled(watched)
            room.update({target: self.conf.max_unsettled - open_now.get(target, 0) - 2**31 for target in watched})
        return room

    def _granted(self, going: Sequence[Standing]) -> tuple[dict[int, tuple[list[Standing], Granted | None]], float]:
        """By target the heads that have a token, and the token; and how long to wait when there is none."""
        by_target: dict[int, list[Standing]] = {}
        for one in going:
            by_target.setdefault(one.target_id or 0, []).append(one)
        granted: dict[int, tuple[list[Standing], Granted | None]] = {}
        pauses: list[float] = []
        for target_id, some in by_target.items():
            target = self._targets[target_id]
            if target.rate is None:
                granted[target_id] = (some, None)
                continue
            try:
                token = self.rates.take(target_id, len(some), target.rate, target.burst)
            except RateIsUnknown as error:
                logger.warning("%s", error)
                pauses.append(RATE_IS_UNKNOWN_FOR)
                continue
            if token.count:
                granted[target_id] = (some[: token.count], token)
            else:
                pauses.append(token.retry_after)
        return granted, min(pauses, default=0.0)

    def _send(self, intended: Sequence[Intended], tokens: dict[int, Granted | None]) -> None:
        owned = Ownership(intended, self.conf.lease.total_seconds())

        def may_start(target_id: int) -> bool:
            token = tokens.get(target_id)
            return time.monotonic() < (owned.until if token is None else min(owned.until, token.until))

        self._learn_dlqs({one.dlq_id for one in intended})
        names = {pk: dlq.name for pk, dlq in self._dlqs.items()}
        outcomes = owned.while_it_lasts(
            lambda: deliver.letters(intended, self._targets, conf=self.conf, dlqs=names, may_start=may_start)
        )
        self._count(outcomes)
        settled = settle.attempts(
            intended, outcomes, targets=self._targets, dlqs=self._dlqs, dice=self.dice,
            lease=self.conf.lease.total_seconds(),
        )  # fmt: skip
        self._remember(settled.standings)
        self._deletable.extend(settled.deletable)
        if len(self._deletable) >= self.conf.intent_size * 2:
            self._delete()

    def _count(self, outcomes: dict[int, Outcome]) -> None:
        self.report.taken += sum(isinstance(one, Taken) for one in outcomes.values())
        self.report.failed += sum(not isinstance(one, Taken) for one in outcomes.values())

    def _close(self, closings: dict[tuple[int, int], Closing]) -> None:
        if not closings:
            return
        settled = settle.heads(closings, lease=self.conf.lease.total_seconds())
        self._forget({lane for lane, _ in closings})
        self._remember(settled.standings)
        self._deletable.extend(settled.deletable)
        self.report.duplicates += sum(one.state is LetterState.DUPLICATE for one in closings.values())
        self.report.parked += sum(one.state is LetterState.PARKED for one in closings.values())

    def _wait(self, waiting: Sequence[tuple[Standing, Wait]]) -> None:
        if waiting:
            lanes.hand_back(
                [one.lane_id for one, _ in waiting], [one.fence for one, _ in waiting],
                after=[verdict.after.total_seconds() for _, verdict in waiting],
                whys=[verdict.why for _, verdict in waiting],
            )  # fmt: skip
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

    def _learn(self, targets: set[int]) -> None:
        if missing := targets - self._targets.keys():
            self._targets |= Target.objects.in_bulk(missing)

    def _learn_dlqs(self, dlqs: set[int]) -> None:
        if missing := dlqs - self._dlqs.keys():
            self._dlqs |= DeadLetterQueue.objects.in_bulk(missing)

    def _hand_back(self) -> None:
        left = list(self._standings.values())
        if not left:
            return
        self.report.left = [one.lane_id for one in left]
        self._standings.clear()
        try:
            lanes.hand_back(
                [one.lane_id for one in left], [one.fence for one in left],
                after=[0.0] * len(left), whys=[""] * len(left),
            )  # fmt: skip
        except DatabaseError as error:
            logger.warning("%d lanes were not handed back; they are due when their leases end: %s", len(left), error)

    def _delete(self) -> None:
        """Delete finished letters' copies from their dlqs; one that stays is swept up by the next capture."""
        by_dlq: dict[int, list[Deletable]] = {}
        for copy in self._deletable:
            by_dlq.setdefault(copy.dlq_id, []).append(copy)
        self._deletable.clear()
        self._learn_dlqs(set(by_dlq))
        for dlq_id, copies in by_dlq.items():
            clear.copies(self._dlqs[dlq_id], copies)
