"""Receive from a dlq until it has run dry: write what arrived, know returns and copies from new letters."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from django.db import Error as DatabaseError

from reprocessing.conf import Conf
from reprocessing.domain.message.envelope import Arrival, pack
from reprocessing.domain.message.identity import body_hash
from reprocessing.domain.message.redrive_attributes import earlier_attempts, read_mark, size
from reprocessing.gateways.sqs import QueueAddress
from reprocessing.models import DeadLetterQueue
from reprocessing.models.dlq import DeleteWhen
from reprocessing.pipeline.capture import delete_copies, find_source
from reprocessing.pipeline.capture.receivers import Listening, Poll
from reprocessing.pipeline.replay import after_settlement
from reprocessing.pipeline.replay.lease_keeper import unslept
from reprocessing.store import rows
from reprocessing.store.capture import (
    capture_lease,
    moved_by_aws,
    received_copies,
    returned_messages,
    returns_without_attempt,
)
from reprocessing.store.capture.capture_lease import Capturing, Renewed
from reprocessing.store.capture.received_copies import Marked, NewLetter, ReturnedCopy
from reprocessing.store.ordering import lanes
from reprocessing.store.replay.settlement import Deletable
from reprocessing.store.safety.spared_attempts import spare_late

logger = logging.getLogger(__name__)
#: Seconds for which a dlq is one capture's; renewed with every chunk that is written, and in silence. Whoever dies, or
#: loses Postgres, keeps others from the dlq for so long.
LEASE = 20.0
#: Copies that are written together, and seconds that the first of them waits for the others.
CHUNK, PATIENCE = 250, 0.25


@dataclass(slots=True)
class Captured:
    """What a capture did.

    Attributes:
        received: copies, however often.
        letters: new ones.
        returns: copies that were letters of ours, come back.
        known: copies that had been received before.
        drained: all that was visible in the dlq when this began is committed (see `listen`).
        through: its newest letter by then: later ones another capture may have begun to write.
        busy: another capture had the dlq; nothing was done.
        trouble: why receiving ended early.
    """

    received: int = 0
    letters: int = 0
    returns: int = 0
    known: int = 0
    drained: bool = False
    through: int = field(default=0, compare=False)
    busy: bool = False
    trouble: str = ""


def letters(  # noqa: PLR0913  # each by its name
    dlq: DeadLetterQueue,
    *,
    conf: Conf,
    dice: Callable[[], float],
    seconds: float,
    receivers: int,
    alone: Callable[[], bool] = lambda: True,
    stop: Callable[[], bool] = lambda: False,
    heard: Callable[[Captured], None] = lambda _: None,
) -> Captured:
    """Capture a dlq for `seconds` at most. Nothing is deleted from it before it is committed here.

    Args:
        dlq: not one in `observe`.
        conf: visibility, long poll.
        dice: for the backoff of returns.
        seconds: after which no new receive begins.
        receivers: threads that receive.
        alone: whether nobody else hides messages of the dlq. It is asked under the lease, before the first receive and
            when the dlq has run dry; unless it says so twice, that is no evidence.
        stop: asked all the time; True ends the capture early, cleanly.
        heard: told of the progress after each chunk.

    Raises:
        django.db.Error: Postgres failed. What was received and not written comes to sight again.
    """
    dirty = float(conf.receive_visibility + conf.long_poll)
    capturing = capture_lease.lease(dlq.pk, lease=LEASE, dirty=dirty)
    if capturing is None:
        return Captured(busy=True)
    one = _Capture(dlq, capturing, conf, dice, dirty)
    try:
        return one.run(seconds=seconds, receivers=receivers, alone=alone, stop=stop, heard=heard)
    except DatabaseError:
        one.give_back()
        raise


class _Capture:
    """One capture of one dlq, which is ours meanwhile."""

    def __init__(
        self, dlq: DeadLetterQueue, capturing: Capturing, conf: Conf, dice: Callable[[], float], dirty: float
    ) -> None:
        self._dlq, self._capturing, self._conf, self._dice, self._dirty = dlq, capturing, conf, dice, dirty
        self._done = Captured()
        self._held, self._moved = capture_lease.held(dlq.pk), False
        self._at_capture = dlq.delete_when == DeleteWhen.CAPTURED
        self._origins = find_source.Origins(dlq)
        self._waiting: list[Arrival] = []
        self._since = self._asked = 0.0
        self._until = capturing.began_at  # everything of this chunk is out of sight: nobody else can have received it
        self._renewed, self._clock = time.monotonic(), unslept()
        self._hides = False  # a copy not deleted hides what is behind it in a FIFO dlq; one not written proves nothing

    def run(
        self, *, seconds: float, receivers: int, alone: Callable[[], bool], stop: Callable[[], bool],
        heard: Callable[[Captured], None],
    ) -> Captured:  # fmt: skip
        address = QueueAddress(url=self._dlq.url, region=self._dlq.region, role=self._dlq.role_arn)
        was_alone = alone()
        with Listening(
            address, receivers=receivers, wait=self._conf.long_poll, visibility=self._conf.receive_visibility,
            seconds=seconds, stop=stop, clock=self._clock,
        ) as listening:  # fmt: skip
            for poll in listening:
                if not (self._take(poll) and self._is_ours()):
                    return self._done  # the dlq is another's by now: what we hold comes to sight again
                if not self._waiting:
                    listening.settled()
                heard(self._done)
            if self._waiting and not self._write():
                return self._done
        self._done.trouble = trouble = listening.trouble
        clean = not trouble and not self._hides
        drained = listening.silent and clean
        proves = drained and was_alone and alone()  # who came meanwhile may hide what came back before
        newest = capture_lease.end(self._capturing, clean=clean, drained=proves, trouble=trouble)
        self._done.drained = newest is not None and drained and self._capturing.clean
        self._done.through = newest or 0
        return self._done

    def give_back(self) -> None:
        """After Postgres failed: let others capture the dlq, though nothing counts as drained for a while."""
        try:
            capture_lease.end(self._capturing, clean=False, drained=False)
        except DatabaseError as error:
            logger.warning("%s is not given back; it may be captured when its lease ends: %s", self._dlq.name, error)

    def _is_ours(self) -> bool:
        """Renew the lease while there is nothing to write; False when the dlq is another's by now."""
        return time.monotonic() - self._renewed < LEASE / 3 or self._renew() is not None

    def _renew(self) -> Renewed | None:
        self._renewed = time.monotonic()
        return capture_lease.renew(self._capturing, lease=LEASE, dirty=self._dirty)

    def _take(self, poll: Poll) -> bool:
        if poll.arrived and not self._waiting:
            self._since, self._asked = time.monotonic(), poll.asked
        if poll.arrived:
            self._asked = min(self._asked, poll.asked)
        self._waiting.extend(poll.arrived)
        ripe = len(self._waiting) >= CHUNK or time.monotonic() - self._since > PATIENCE
        return self._write() if self._waiting and ripe else True

    def _write(self) -> bool:
        """Write a chunk and delete what may be deleted; False when the dlq is no longer ours."""
        if (renewed := self._renew()) is None:
            return False
        # Reckoned after Postgres told its time: a worker that freezes here or later trusts no handle for too long.
        self._until = renewed.at + timedelta(seconds=self._conf.receive_visibility - (self._clock() - self._asked))
        # Whoever looks meanwhile may have let some go, and has noted it in the row that was renewed.
        self._moved = renewed.has_let_go and moved_by_aws.are_expected(self._dlq.pk)
        copies = {one.message_id: one for one in self._waiting}
        self._done.received += len(self._waiting)
        self._waiting.clear()
        deletable = self._refresh(copies)
        deletable += self._take_back(copies)
        deletable += self._take_back_forgotten(copies)
        deletable += self._admit(copies)
        if lanes.clock() >= self._until:  # not all of it may be written, and what is not comes to sight again
            self._hides = True
            return True
        here = [one for one in deletable if one.dlq_id == self._dlq.pk]  # the next sweep of other dlqs sees to theirs
        if here and delete_copies.copies(self._dlq, here) < len(here):
            self._hides |= self._dlq.fifo
        return True

    def _refresh(self, copies: dict[str, Arrival]) -> list[Deletable]:
        """Copies received before: their new handles; they are taken out of `copies`."""
        if not copies:
            return []
        if self._moved:
            moved_by_aws.stayed(self._dlq.pk, list(copies), until=self._until)
        known = received_copies.refresh(
            self._dlq.pk, list(copies), [one.handle for one in copies.values()], until=self._until,
            at_capture=self._at_capture,
        )  # fmt: skip
        self._done.known += len(known)
        gone = [(one, copies.pop(one.message_id)) for one in known]
        return [Deletable(self._dlq.pk, one.message_id, copy.handle) for one, copy in gone if one.state == "delete"]

    def _take_back(self, copies: dict[str, Arrival]) -> list[Deletable]:
        """Letters of ours, come back; they are taken out of `copies`."""
        if not copies:
            return []
        returned = received_copies.returns(self._dlq.pk, [_marked(one, self._conf) for one in copies.values()])
        if not returned:
            return []
        back = [self._judged(one, copies[one.message_id]) for one in returned]
        ids = sorted({one.lane_id for one in back})

        def record() -> list[Deletable]:
            lanes.lock(ids, [None] * len(ids))
            held = returned_messages.record(self._dlq.pk, back, until=self._until)
            spare_late([one.attempt_id for one in back])
            lanes.advance(ids, [None] * len(ids))
            return held

        held = rows.whole(record)
        after_settlement.outcomes(
            of_breakers=[one.breaker_id for one in returned], of_runs=[one.run_id for one in returned]
        )
        self._done.returns += len(back)
        return held + [Deletable(self._dlq.pk, one.message_id, copies.pop(one.message_id).handle) for one in back]

    def _take_back_forgotten(self, copies: dict[str, Arrival]) -> list[Deletable]:
        """Letters of ours, come back from attempts that a restored backup does not know; taken out of `copies`."""
        found = returns_without_attempt.returns(self._dlq.pk, [_marked(one, self._conf) for one in copies.values()])
        if not found:
            return []
        ids = sorted({one.lane_id for one in found if one.lane_id is not None})
        handles = [copies[one.message_id].handle for one in found]

        def record() -> None:
            lanes.lock(ids, [None] * len(ids))
            returns_without_attempt.record(self._dlq.pk, found, handles, until=self._until)
            lanes.advance(ids, [None] * len(ids))

        rows.whole(record)
        logger.warning(
            "%s: %d letters came back from attempts that PostgreSQL does not know: was it restored from a backup? See "
            "manage.py after_restore report.", self._dlq.name, len(found),
        )  # fmt: skip
        self._done.returns += len(found)
        return [Deletable(self._dlq.pk, one.message_id, copies.pop(one.message_id).handle) for one in found]

    def _judged(self, one: ReturnedCopy, copy: Arrival) -> returned_messages.Return:
        due = self._dlq.rest(one.attempts, self._dice(), one).total_seconds()
        return returned_messages.Return(
            copy.message_id, copy.handle, one.attempt_id, one.letter_id, one.lane_id, due=due
        )

    def _admit(self, copies: dict[str, Arrival]) -> list[Deletable]:
        """New letters. Above the dlq's limit they are not held in it, but deleted once they are committed."""
        if not copies:
            return []
        at_capture = self._at_capture or self._held + len(copies) > self._dlq.custody_limit
        doubtful: set[bytes] = set()
        if self._conf.marks.redrive is None:
            doubtful = received_copies.in_doubt([body_hash(one.body) for one in copies.values()])
        new = [self._new(one, doubtful) for one in copies.values()]
        if self._moved:
            new = self._know_again(new, at_capture=at_capture)
        written = received_copies.admit(self._dlq.pk, new, until=self._until, at_capture=at_capture)
        self._done.letters += len(written)
        late = [one.message_id for one in new if one.message_id not in written]  # another capture wrote them meanwhile
        known = self._refresh({one: copies.pop(one) for one in late})
        if not at_capture:
            self._held += len(written)
            return known
        return known + [Deletable(self._dlq.pk, one.message_id, one.handle) for one in copies.values()]

    def _know_again(self, new: Sequence[NewLetter], *, at_capture: bool) -> list[NewLetter]:
        """Without those whose letters were captured before AWS moved their messages: these go on."""
        back = moved_by_aws.came_back(self._dlq.pk, new, until=self._until, at_capture=at_capture)
        self._done.known += len(back)
        self._held += 0 if at_capture else len(back)
        return [one for one in new if one.message_id not in back]

    def _new(self, one: Arrival, doubtful: set[bytes]) -> NewLetter:
        origin = self._origins.of(one.body, one.attributes, one.system)
        digest = body_hash(one.body)
        return NewLetter(
            message_id=one.message_id,
            handle=one.handle,
            body=one.body,
            attributes=pack(one.attributes),
            size=len(one.body) + size(one.attributes),
            system=dict(one.system),
            origin=origin.pk if origin else None,
            target=origin.target_id if origin else None,
            attempts=earlier_attempts(one.attributes),
            body_hash=digest,
            died_at=one.sent_at,
            expires_at=one.sent_at + timedelta(seconds=self._dlq.retention),
            possible_return=digest in doubtful,
        )


def _marked(one: Arrival, conf: Conf) -> Marked:
    mark = read_mark(one.attributes, conf.marks)
    letter, attempt = (mark.public_id, mark.attempt_no) if mark else (None, None)
    return Marked(one.message_id, body_hash(one.body), letter, attempt, one.system.get("DeadLetterQueueSourceArn"))
