"""Send letters whose intent is committed, and record what became of them: at once, or when slow targets answer."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from django.db import Error as DatabaseError

from reprocessing.conf import Conf
from reprocessing.domain.replay.verdicts import Outcome, Taken
from reprocessing.gateways.sqs import Deleted, QueueAddress, delete
from reprocessing.models import DeadLetterQueue, Target
from reprocessing.pipeline.capture import delete_copies
from reprocessing.pipeline.replay import after_settlement, late_answers, send_batches, settle, slow_targets
from reprocessing.pipeline.replay.lease_keeper import Ownership, meanwhile, unslept
from reprocessing.pipeline.replay.slow_targets import Stream
from reprocessing.store.ordering.lanes import Standing
from reprocessing.store.replay.intent import Intended
from reprocessing.store.replay.settlement import Deletable
from reprocessing.store.safety.send_limits import Brake

#: Seconds for which the end of a turn waits for the answers of slow targets.
GRACE = 1.0
#: Groups of letters whose copies are deleted together, at the latest at the end of the turn. A later capture deletes
#: those that a killed worker leaves.
DELETES = 5


@dataclass(slots=True)
class Wire:
    """One turn's way to the targets.

    Attributes:
        dice: a throw for each backoff.
        taken: letters that targets took, so far.
        failed: attempts that ended otherwise.
        attempts: letters that were sent, or tried to, by target.
        brakes: as they were last seen.
        targets: those that the turn has met.
    """

    conf: Conf
    dice: Callable[[], float]
    taken: int = 0
    failed: int = 0
    attempts: Counter[int] = field(default_factory=Counter)
    brakes: dict[int, Brake] = field(default_factory=dict)
    targets: dict[int, Target] = field(default_factory=dict)
    _dlqs: dict[int, DeadLetterQueue] = field(default_factory=dict)
    _deletable: list[Deletable] = field(default_factory=list)
    _stream: Stream = field(init=False)
    _is_over: bool = False
    _clock: Callable[[], float] = field(default_factory=unslept)  # of before the next group's tokens

    def __post_init__(self) -> None:
        self._stream = slow_targets.borrow(self.conf.outbound_hosts, self.conf.open_requests)

    @property
    def open(self) -> int:
        """Letters at slow targets, not settled yet."""
        return self._stream.open

    @property
    def lease(self) -> float:
        """Seconds."""
        return self.conf.lease.total_seconds()

    def room(self, target_id: int) -> int | None:
        """Letters that a slow target may still have open here, with those of earlier turns; None: any number."""
        return (
            self._stream.room(target_id) - late_answers.open_at(target_id) if self.targets[target_id].is_slow else None
        )

    def learn(self, targets: Collection[int]) -> None:
        """Have these targets in `targets`."""
        if missing := set(targets) - self.targets.keys():
            self.targets |= Target.objects.in_bulk(missing)

    def longest(self, targets: Collection[int]) -> float:
        """Seconds after which nothing will be heard any more of a letter that goes to one of these now."""
        slow = [one.timeout for pk in targets if (one := self.targets[pk]).is_slow]
        return max([4 * self.lease, *(each + self.lease for each in slow)])

    def letters(self, intended: Sequence[Intended], until: Mapping[int, float], *, began: float) -> list[Standing]:
        """Send letters; the lanes of those whose outcome is known, with their next heads. `hear` tells of the others.

        Args:
            intended: their lanes are the turn's.
            until: for each target until when its tokens hold, on the monotonic clock.
            began: that clock before the intent.
        """
        owned = Ownership(intended, self.lease, began=began, beside=self._renew)
        self.attempts.update(one.target_id for one in intended)
        clock = self._clock

        def may_start(target_id: int) -> bool:
            return clock() < min(owned.until, until.get(target_id, math.inf))

        names = self._names({one.dlq_id for one in intended})
        slow = [one for one in intended if self.targets[one.target_id].is_slow]
        calls, outcomes = send_batches.calls(slow, self.targets, conf=self.conf, dlqs=names)
        if calls:
            owned.keep_up()
        self._stream.start(calls, may_start=may_start)
        if quick := [one for one in intended if not self.targets[one.target_id].is_slow]:
            outcomes |= owned.while_it_lasts(
                lambda: send_batches.letters(quick, self.targets, conf=self.conf, dlqs=names, may_start=may_start)
            )
        self._clock = unslept()
        started = {one.attempt_id for one, _ in calls}
        return self._settle([one for one in intended if one.attempt_id not in started], outcomes)

    def hear(self, within: float) -> list[Standing]:
        """The lanes of letters that slow targets answered, waited for up to `within` seconds, with their next heads."""
        ended = self._stream.ended(within=min(within, self.lease / 3))  # the leases cannot wait for longer
        try:
            standings = self._settle([one for one, _ in ended], {one.attempt_id: outcome for one, outcome in ended})
        except DatabaseError:
            self._stream.take_back(ended)  # the turn is over, and what it leaves is recorded over another connection
            raise
        self._renew()
        return standings

    def await_the_quick(self) -> list[Standing]:
        """What ends soon: most of what is open does, and on the connections that the next turn uses."""
        until, standings = time.monotonic() + GRACE, list[Standing]()
        while self.open and (left := until - time.monotonic()) > 0:
            standings += self.hear(left)
        return standings

    def leave(self) -> None:
        """The turn is over. What is still open is followed to its end by another thread, which has the stream."""
        self._is_over = True
        if self.open:
            late_answers.follow(self._stream, self._finish, lease=self.lease)
        else:
            slow_targets.give_back(self._stream)

    def clear(self, some: Sequence[Deletable] = (), *, least: int = 0) -> None:
        """Delete copies from their dlqs: these, and those of settled letters, as soon as there are `least`."""
        self._deletable.extend(some)
        if self._deletable and len(self._deletable) >= least:
            delete_copies.everywhere(self._deletable, by=delete if self._is_over else self._delete, known=self._dlqs)
            self._deletable.clear()

    def _settle(self, intended: Sequence[Intended], outcomes: Mapping[int, Outcome]) -> list[Standing]:
        if not intended:
            return []
        taken = sum(isinstance(outcomes.get(one.attempt_id), Taken) for one in intended)
        self.taken += taken
        self.failed += len(intended) - taken
        settled = settle.attempts(
            intended, outcomes, targets=self.targets, dlqs=self._dlqs, dice=self.dice, lease=self.lease
        )
        self._tell(intended, outcomes)
        self.clear(settled.deletable, least=self.conf.intent_size * DELETES)
        return settled.standings

    def _finish(self, ended: Sequence[tuple[Intended, Outcome]]) -> None:
        """Record what ended after the turn; whoever is next takes the lanes."""
        intended = [one for one, _ in ended]
        settled = settle.attempts(
            intended, {one.attempt_id: outcome for one, outcome in ended}, targets=self.targets, dlqs=self._dlqs,
            dice=self.dice, lease=0.0, keep=False,
        )  # fmt: skip
        after_settlement.outcomes(
            of_breakers=[one.breaker_id for one in intended], of_runs=[one.run_id for one in intended]
        )
        delete_copies.everywhere(settled.deletable, by=self._delete, known=self._dlqs)

    def _delete(self, address: QueueAddress, handles: Mapping[str, str]) -> Deleted:
        """SQS may take long, and leases are shorter."""
        if not self.open:
            return delete(address, handles)
        return meanwhile(lambda: delete(address, handles), self._renew, every=self.lease / 3)

    def _tell(self, intended: Sequence[Intended], outcomes: Mapping[int, Outcome]) -> None:
        """Breakers hear of failures and of canaries, ramps when a step is due, waves of first tries and later ones.

        The last wave, which only failures can end, hears of those.
        """
        ill = [one for one in intended if not isinstance(outcomes.get(one.attempt_id), Taken)]
        failed = {one.breaker_id for one in ill}
        on_trial = {one.breaker_id for one in self.brakes.values() if one.on_trial}
        sent = {one.breaker_id for one in intended}
        telling = intended if any(one.wave_size for one in intended) else ill
        of_waves = [one.run_id for one in telling if one.wave_id or one.no > 1]
        after_settlement.outcomes(of_breakers=failed | (on_trial & sent), of_runs=of_waves)
        after_settlement.ramps(
            [one.breaker_id for one in self.brakes.values() if one.step_due and one.breaker_id in sent]
        )

    def _renew(self) -> None:
        self._stream.renew(lease=self.lease)

    def _names(self, dlqs: set[int]) -> dict[int, str]:
        if missing := dlqs - self._dlqs.keys():
            self._dlqs |= DeadLetterQueue.objects.in_bulk(missing)
        return {pk: one.name for pk, one in self._dlqs.items()}
