"""Send letters whose attempts are counted and committed, and record the outcomes.

The outcomes of slow targets (HTTP, Lambda) are recorded later, when they answer.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from django.db import Error as DatabaseError

from reprocessing.conf import Conf
from reprocessing.domain.replay.verdicts import NotSent, Outcome, Refused, Taken
from reprocessing.gateways.sqs import Deleted, QueueAddress, delete
from reprocessing.models import DeadLetterQueue, Target
from reprocessing.pipeline.capture import delete_copies
from reprocessing.pipeline.replay import (
    after_settlement,
    attempt_spans,
    late_answers,
    send_batches,
    settle,
    slow_targets,
)
from reprocessing.pipeline.replay.attempt_spans import AttemptSpans
from reprocessing.pipeline.replay.copy_deletion import CopyDeletion
from reprocessing.pipeline.replay.lease_keeper import LeaseKeeper, run_while_renewing, suspend_aware_clock
from reprocessing.pipeline.replay.slow_targets import Stream
from reprocessing.store.ordering.lane_state import LaneState
from reprocessing.store.replay.intent import IntendedSend
from reprocessing.store.runs import run_minutes
from reprocessing.store.safety.send_limits import SendLimit

_DELETED: Final = Refused("PayloadDeleted", "Its payload was deleted, so nothing can be sent.", poison=True)
END_WAIT = 1.0  # seconds that a slice waits at its end for answers of slow targets (HTTP, Lambda)
#: A deletion of copies begins when `DELETE_AFTER_GROUPS` * `Conf.intent_size` copies wait.
DELETE_AFTER_GROUPS = 5


@dataclass(slots=True)
class Sender:
    """Sends the letters of one slice (`replay_slice.Slice`: 5 s of sending), and records the outcomes."""

    conf: Conf
    dice: Callable[[], float]  # random numbers for backoffs
    taken: int = 0  # number of attempts that targets accepted
    failed: int = 0  # number of attempts that targets did not accept
    attempts: Counter[int] = field(default_factory=Counter)  # number of attempts, by target id
    sent: Counter[tuple[int, datetime]] = field(default_factory=Counter)  # number of attempts, by run id and minute
    send_limits: dict[int, SendLimit] = field(default_factory=dict)  # send limits as last loaded, by breaker id
    targets: dict[int, Target] = field(default_factory=dict)  # all targets of this slice, by id
    _dlqs: dict[int, DeadLetterQueue] = field(default_factory=dict)
    deletion: CopyDeletion = field(init=False)  # deletes copies of finished letters from DLQs
    _stream: Stream = field(init=False)
    _spans: AttemptSpans | None = field(init=False)  # None: attempts are not traced
    _clock: Callable[[], float] = field(
        default_factory=suspend_aware_clock
    )  # started before the tokens of the next letters are taken

    def __post_init__(self) -> None:
        self._stream = slow_targets.borrow_stream(self.conf.outbound_hosts, self.conf.open_requests)
        self._spans = attempt_spans.spans_for(self.conf, self.targets)
        self.deletion = CopyDeletion(
            self.conf.intent_size * DELETE_AFTER_GROUPS, self._dlqs, renew=self._renew, every=self.lease / 3
        )
        self._stream.note_end = self._spans.note_end if self._spans else None

    @property
    def open(self) -> int:
        """The number of letters that were sent to slow targets and whose outcomes are not recorded yet."""
        return self._stream.open

    @property
    def lease(self) -> float:
        """The length of a lease in seconds."""
        return self.conf.lease.total_seconds()

    def room(self, target_id: int) -> int | None:
        """Return how many more requests to a slow target this process may open; None: no limit, the target is fast."""
        is_slow = self.targets[target_id].is_synchronous
        return self._stream.room_for(target_id) - late_answers.open_requests(target_id) if is_slow else None

    def load_targets(self, targets: Collection[int]) -> None:
        """Load the targets with these ids into the attribute `targets`, if they are missing there."""
        if missing := set(targets) - self.targets.keys():
            self.targets |= Target.objects.in_bulk(missing)

    def longest_wait(self, targets: Collection[int]) -> float:
        """Return the seconds after which no answer of these targets can arrive any more."""
        slow = [target.timeout for pk in targets if (target := self.targets[pk]).is_synchronous]
        return max([4 * self.lease, *(timeout + self.lease for timeout in slow)])

    def letters(self, intended: Sequence[IntendedSend], until: Mapping[int, float], *, began: float) -> list[LaneState]:
        """Send letters. Return the lanes whose letters have an outcome, each with its next head.

        A lane's head is its first unfinished letter. Lanes of slow targets are returned later, by `record_answers`.
        `until`: by target id, the monotonic time at which the target's tokens of the rate limit expire. `began`: the
        monotonic time before the attempts were committed as open.
        """
        owned = LeaseKeeper(intended, self.lease, began=began, beside=self._renew)
        self.attempts.update(attempt.target_id for attempt in intended)
        self.sent.update((run, run_minutes.minute_of(each.opened_at)) for each in intended if (run := each.run_id))
        clock = self._clock

        def may_start(target_id: int) -> bool:
            return clock() < min(owned.until, until.get(target_id, math.inf))

        names = self._names({attempt.dlq_id for attempt in intended})
        fields = self._spans.begin(intended, names, began=began) if self._spans else {}
        readable = [attempt for attempt in intended if not (attempt.unreadable or attempt.bare)]
        slow = [attempt for attempt in readable if self.targets[attempt.target_id].is_synchronous]
        calls, outcomes = send_batches.slow_requests(slow, self.targets, conf=self.conf, dlqs=names, fields=fields)
        outcomes |= {attempt.attempt_id: NotSent(why) for attempt in intended if (why := attempt.unreadable)}
        outcomes |= {attempt.attempt_id: _DELETED for attempt in intended if attempt.bare}
        if calls:
            owned.renew_if_due()
        self._stream.start(calls, may_start=may_start)
        if quick := [attempt for attempt in readable if not self.targets[attempt.target_id].is_synchronous]:
            outcomes |= owned.send(
                lambda: send_batches.letters(
                    quick, self.targets, conf=self.conf, dlqs=names, may_start=may_start, fields=fields
                )
            )
            if self._spans:
                self._spans.note_end(attempt.attempt_id for attempt in quick)
        self._clock = suspend_aware_clock()
        started = {attempt.attempt_id for attempt, _ in calls}
        return self._settle([attempt for attempt in intended if attempt.attempt_id not in started], outcomes)

    def record_answers(self, within: float) -> list[LaneState]:
        """Wait up to `within` s for answers of slow targets; record them. Return their lanes with the next letters."""
        ended = self._stream.take_ended(within=min(within, self.lease / 3))  # leases are renewed after the wait
        try:
            lane_states = self._settle([attempt for attempt, _ in ended], _by_attempt(ended))
        except DatabaseError:
            self._stream.take_back(ended)  # another thread records the outcomes over a new connection
            raise
        self._renew()
        return lane_states

    def await_fast_answers(self) -> list[LaneState]:
        """Wait up to 1 s for open requests of endpoints and functions, and record the answers that arrive.

        Return the lanes of the answered requests, each with its next letter. The next slice reuses the free
        connections.
        """
        until, lane_states = time.monotonic() + END_WAIT, list[LaneState]()
        while self.open and (left := until - time.monotonic()) > 0:
            lane_states += self.record_answers(left)
        return lane_states

    def end(self) -> None:
        """End the sends of a slice. If requests are open, start a thread that waits for their answers."""
        if self.open:
            late_answers.follow_stream(self._stream, self._finish, lease=self.lease)
        else:
            slow_targets.give_back_stream(self._stream)

    def _settle(self, intended: Sequence[IntendedSend], outcomes: Mapping[int, Outcome]) -> list[LaneState]:
        if not intended:
            return []
        taken = sum(isinstance(outcomes.get(attempt.attempt_id), Taken) for attempt in intended)
        self.taken += taken
        self.failed += len(intended) - taken
        try:
            settled = settle.attempts(
                intended, outcomes, targets=self.targets, dlqs=self._dlqs, dice=self.dice, lease=self.lease
            )
        finally:
            self._trace(intended, outcomes)
        self._update_safety(intended, outcomes)
        self.deletion.add(settled.deletable)
        return settled.lane_states

    def _finish(self, ended: Sequence[tuple[IntendedSend, Outcome]]) -> None:
        intended = [attempt for attempt, _ in ended]
        settled = settle.attempts(
            intended, _by_attempt(ended), targets=self.targets, dlqs=self._dlqs, dice=self.dice, lease=0.0, keep=False
        )
        self._trace(intended, _by_attempt(ended))
        after_settlement.update_after_attempts(intended)
        delete_copies.delete_from_dlqs(settled.deletable, by=self._delete, known=self._dlqs)

    def _trace(self, intended: Sequence[IntendedSend], outcomes: Mapping[int, Outcome]) -> None:
        if self._spans:
            self._spans.record(intended, outcomes, {pk: dlq.name for pk, dlq in self._dlqs.items()})

    def _delete(self, address: QueueAddress, handles: Mapping[str, str]) -> Deleted:
        if not self.open:
            return delete(address, handles)
        return run_while_renewing(lambda: delete(address, handles), self._renew, every=self.lease / 3)

    def _update_safety(self, intended: Sequence[IntendedSend], outcomes: Mapping[int, Outcome]) -> None:
        """Update circuit breakers, waves and ramp-ups after these outcomes.

        Breakers are updated if an attempt failed or was a canary. Successes in a run's last wave change nothing,
        because no wave follows; only failures can end the last wave.
        """
        unaccepted = [attempt for attempt in intended if not isinstance(outcomes.get(attempt.attempt_id), Taken)]
        failed, sent = {attempt.breaker_id for attempt in unaccepted}, {attempt.breaker_id for attempt in intended}
        on_trial = {limit.breaker_id for limit in self.send_limits.values() if limit.on_trial}
        telling = intended if any(attempt.wave_size for attempt in intended) else unaccepted
        of_waves = [attempt.run_id for attempt in telling if attempt.wave_id or attempt.no > 1]
        after_settlement.update_breakers_and_waves(of_breakers=failed | (on_trial & sent), of_runs=of_waves)
        due = {limit.breaker_id for limit in self.send_limits.values() if limit.step_due}
        after_settlement.raise_ramp_rates(due & sent)

    def _renew(self) -> None:
        self._stream.renew(lease=self.lease)

    def _names(self, dlqs: set[int]) -> dict[int, str]:
        if missing := dlqs - self._dlqs.keys():
            self._dlqs |= DeadLetterQueue.objects.in_bulk(missing)
        return {pk: dlq.name for pk, dlq in self._dlqs.items()}


def _by_attempt(ended: Sequence[tuple[IntendedSend, Outcome]]) -> dict[int, Outcome]:
    return {attempt.attempt_id: outcome for attempt, outcome in ended}
