"""Receive from a DLQ until it has run dry; store its messages as new letters, or as returns of sent letters."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from django.db import Error as DatabaseError

from reprocessing.conf import Conf
from reprocessing.domain.message.envelope import ReceivedMessage
from reprocessing.domain.message.identity import LetterFacts, body_hash
from reprocessing.domain.message.redrive_attributes import read_mark
from reprocessing.gateways.sqs import QueueAddress
from reprocessing.models import DeadLetterQueue
from reprocessing.models.dlq import DeleteWhen
from reprocessing.pipeline.capture import delete_copies
from reprocessing.pipeline.capture.new_letters import NewLetters, check_keys
from reprocessing.pipeline.capture.receivers import Poll, ReceiverPool
from reprocessing.pipeline.capture.returned_bodies import returned_bodies
from reprocessing.pipeline.replay import after_settlement
from reprocessing.pipeline.replay.lease_keeper import suspend_aware_clock
from reprocessing.store import rows
from reprocessing.store.capture import (
    capture_lease,
    moved_by_aws,
    received_copies,
    restored_bodies,
    returned_messages,
    returns_without_attempt,
)
from reprocessing.store.capture.capture_lease import CaptureLease, RenewedLease
from reprocessing.store.capture.received_copies import MarkedCopy, NewLetter, ReturnedCopy
from reprocessing.store.capture.returned_messages import ReturnedMessage
from reprocessing.store.ordering import lane_state, lanes
from reprocessing.store.payloads import content
from reprocessing.store.replay.settlement import Deletable
from reprocessing.store.safety.outage_attempts import spare_late

logger = logging.getLogger(__name__)
#: Length in seconds of a capture's lease on its DLQ. The lease is renewed with every chunk, and while nothing arrives.
#: If the worker dies, no other capture of the DLQ can start for this long.
LEASE = 20.0
#: Copies are written in chunks: most copies of a chunk, and most seconds from its first copy until it is written. A
#: chunk is also written when its bodies have so many bytes, which bounds the memory of a worker.
CHUNK, CHUNK_WAIT, CHUNK_BYTES = 250, 0.25, 8_000_000


@dataclass(slots=True)
class Captured:
    """How many messages one capture received and stored, and how the capture ended."""

    received: int = 0  # received copies; a copy that was received twice counts twice
    letters: int = 0
    returns: int = 0  # copies of letters that were sent, and returned to the DLQ
    known: int = 0  # copies that had been received before
    drained: bool = False  # all messages that were visible at the beginning are stored and committed
    newest_letter: int = field(default=0, compare=False)  # id of the newest letter at the end
    busy: bool = False  # another capture holds the lease; nothing was done
    error: str = ""  # why receiving ended early; empty: it did not


def letters(  # noqa: PLR0913  # arguments are passed by name
    dlq: DeadLetterQueue, *, conf: Conf, dice: Callable[[], float], seconds: float, receivers: int,
    alone: Callable[[], bool] = lambda: True, stop: Callable[[], bool] = lambda: False,
    on_progress: Callable[[Captured], None] = lambda _: None,
) -> Captured:  # fmt: skip
    """Capture a DLQ until it has run dry, or for `seconds`; return the counts. The DLQ must not be in mode observe.

    A message is deleted from the DLQ only after its letter is committed. `alone`: returns whether no other reader hides
    messages of the DLQ; called at the beginning, and when the DLQ has run dry. Only if both calls return True, a sent
    message that was not received counts as absent. `stop`: returns whether to end early. `on_progress`: called after
    each poll, with the counts so far. `receivers`: number of threads. `dice`: returns random numbers for backoffs.

    Raises:
        PayloadKeyUnavailable: new messages cannot be encrypted. Nothing was received.
        django.db.Error: PostgreSQL failed. Messages that were not stored become visible again.
    """
    check_keys(dlq, lanes.database_now().date())
    dirty = float(conf.receive_visibility + conf.long_poll)
    capturing = capture_lease.lease(dlq.pk, lease=LEASE, dirty=dirty)
    if capturing is None:
        return Captured(busy=True)
    capture = _Capture(dlq, capturing, conf, dice, dirty)
    try:
        return capture.run(seconds=seconds, receivers=receivers, alone=alone, stop=stop, on_progress=on_progress)
    except DatabaseError as error:
        capture.give_back(capture_lease.unexpected_error(error))
        raise


class _Capture:
    def __init__(
        self, dlq: DeadLetterQueue, capturing: CaptureLease, conf: Conf, dice: Callable[[], float], dirty: float
    ) -> None:
        self._dlq, self._capturing, self._conf, self._dice, self._dirty = dlq, capturing, conf, dice, dirty
        self._done = Captured()
        self._held, self._moved = capture_lease.count_held(dlq.pk), False
        self._at_capture = dlq.delete_when == DeleteWhen.CAPTURED
        self._letters = NewLetters(dlq)
        self._waiting: list[ReceivedMessage] = []
        self._since = self._asked = 0.0
        self._at = self._until = capturing.began_at  # until `_until`, no other reader can receive this chunk's copies
        self._renewed, self._clock = time.monotonic(), suspend_aware_clock()
        self._hides = False  # whether a copy was not stored, or an undeleted FIFO copy hides copies of its group

    def run(
        self, *, seconds: float, receivers: int, alone: Callable[[], bool], stop: Callable[[], bool],
        on_progress: Callable[[Captured], None],
    ) -> Captured:  # fmt: skip
        address = QueueAddress(url=self._dlq.url, region=self._dlq.region, role=self._dlq.role_arn)
        was_alone = alone()
        with ReceiverPool(
            address, receivers=receivers, wait=self._conf.long_poll, visibility=self._conf.receive_visibility,
            seconds=seconds, stop=stop, clock=self._clock,
        ) as listening:  # fmt: skip
            for poll in listening:
                if not (self._take(poll) and self._is_ours()):
                    return self._done  # the lease is lost: the messages become visible again
                if not self._waiting:
                    listening.note_written()
                on_progress(self._done)
            if self._waiting and not self._write():
                return self._done
        self._done.error = error = listening.error
        clean = not error and not self._hides
        drained = listening.has_run_dry and clean
        proves = drained and was_alone and alone()  # a reader that began meanwhile may hide a returned message
        newest = capture_lease.end(self._capturing, clean=clean, drained=proves, last_error=error)
        self._done.drained = newest is not None and drained and self._capturing.clean
        self._done.newest_letter = newest or 0
        return self._done

    def give_back(self, why: str) -> None:
        """End the lease after PostgreSQL failed; `why` is the DLQ's error text.

        The received messages stay hidden for a while. Until then, no capture proves that a message is absent.
        """
        try:
            capture_lease.end(self._capturing, clean=False, drained=False, last_error=why)
        except DatabaseError as error:
            logger.warning(
                "The lease on %s could not be ended; it expires soon: %s",
                self._dlq.name, error, extra={"dlq": self._dlq.name},
            )  # fmt: skip

    def _is_ours(self) -> bool:
        return time.monotonic() - self._renewed < LEASE / 3 or self._renew() is not None

    def _renew(self) -> RenewedLease | None:
        self._renewed = time.monotonic()
        return capture_lease.renew(self._capturing, lease=LEASE, dirty=self._dirty)

    def _take(self, poll: Poll) -> bool:
        if poll.arrived and not self._waiting:
            self._since, self._asked = time.monotonic(), poll.began
        if poll.arrived:
            self._asked = min(self._asked, poll.began)
        self._waiting.extend(poll.arrived)
        is_full = len(self._waiting) >= CHUNK or sum(len(copy.body) for copy in self._waiting) >= CHUNK_BYTES
        ripe = is_full or time.monotonic() - self._since > CHUNK_WAIT
        return self._write() if self._waiting and ripe else True

    def _write(self) -> bool:
        """Store the received messages; delete from the DLQ what may be deleted. Return False if the lease is lost."""
        if (renewed := self._renew()) is None:
            return False
        # Computed after PostgreSQL's answer: if the worker froze before, less of the visibility timeout is left.
        self._at = renewed.at
        self._until = self._at + timedelta(seconds=self._conf.receive_visibility - (self._clock() - self._asked))
        self._moved = renewed.may_have_moved and moved_by_aws.has_moved_letters(self._dlq.pk)
        copies = {arrival.message_id: arrival for arrival in self._waiting}
        self._done.received += len(self._waiting)
        self._waiting.clear()
        deletable: list[Deletable] = []
        for step in (self._refresh, self._take_back, self._take_back_forgotten, self._admit):
            deletable += step(copies) if copies else []
        if lanes.database_now() >= self._until:  # copies may be visible again, and then were not stored
            self._hides = True
            return True
        here = [copy for copy in deletable if copy.dlq_id == self._dlq.pk]  # sweeps delete the copies in other DLQs
        if here and delete_copies.delete_from_dlq(self._dlq, here) < len(here):
            self._hides |= self._dlq.fifo
        return True

    def _refresh(self, copies: dict[str, ReceivedMessage]) -> list[Deletable]:
        """Store new receipt handles of known messages, and remove these from `copies`; return those to delete."""
        if self._moved:
            moved_by_aws.unmark_not_moved(self._dlq.pk, list(copies), until=self._until)
        known = received_copies.refresh_known(
            self._dlq.pk, list(copies), [copy.handle for copy in copies.values()], until=self._until,
            at_capture=self._at_capture,
        )  # fmt: skip
        self._done.known += len(known)
        deletable = self._remove(copies, [copy.message_id for copy in known])
        return [copy for copy, old in zip(deletable, known, strict=True) if old.state == "delete"]

    def _remove(self, copies: dict[str, ReceivedMessage], message_ids: Iterable[str]) -> list[Deletable]:
        return [Deletable(self._dlq.pk, message_id, copies.pop(message_id).handle) for message_id in message_ids]

    def _take_back(self, copies: dict[str, ReceivedMessage]) -> list[Deletable]:
        """Record that sent letters came back; remove their messages from `copies`. Return the messages to delete."""
        returned = received_copies.find_returns(self._dlq.pk, self._marked(copies))
        if not returned:
            return []
        back = [self._judged(copy, copies[copy.message_id].handle) for copy in returned]
        ids = sorted({letter.lane_id for letter in back})
        bodies = returned_bodies(returned, copies, day=self._at.date())

        def record() -> list[Deletable]:
            lanes.lock(ids, [None] * len(ids))
            restored_bodies.restore_bodies(bodies, until=self._until)
            held = returned_messages.record(self._dlq.pk, back, until=self._until)
            spare_late([letter.attempt_id for letter in back])
            lane_state.advance(ids, [None] * len(ids))
            return held

        held = rows.in_transaction(record)
        after_settlement.update_after_attempts(returned)
        self._done.returns += len(back)
        return held + self._remove(copies, [letter.message_id for letter in back])

    def _take_back_forgotten(self, copies: dict[str, ReceivedMessage]) -> list[Deletable]:
        """Record letters that came back from attempts that are missing in PostgreSQL: it was restored from a backup.

        Remove their messages from `copies`, and return these messages, which may be deleted from the DLQ.
        """
        found = returns_without_attempt.find_unknown_returns(self._dlq.pk, self._marked(copies))
        if not found:
            return []
        ids = sorted({letter.lane_id for letter in found if letter.lane_id is not None})
        handles = [copies[letter.message_id].handle for letter in found]
        bodies = returned_bodies(found, copies, day=self._at.date())

        def record() -> None:
            lanes.lock(ids, [None] * len(ids))
            restored_bodies.restore_bodies(bodies, until=self._until)
            returns_without_attempt.record(self._dlq.pk, found, handles, until=self._until)
            lane_state.advance(ids, [None] * len(ids))

        rows.in_transaction(record)
        logger.warning(
            "%s: %d messages came back from attempts that PostgreSQL does not know. Was it restored from a backup? Run "
            "manage.py after_restore report.", self._dlq.name, len(found),
            extra={"dlq": self._dlq.name},
        )  # fmt: skip
        self._done.returns += len(found)
        return self._remove(copies, [letter.message_id for letter in found])

    def _marked(self, copies: Mapping[str, ReceivedMessage]) -> list[MarkedCopy]:
        found: list[MarkedCopy] = []
        digests = content.digests(copy.body for copy in copies.values())
        for copy, digest in zip(copies.values(), digests, strict=True):
            mark = read_mark(copy.attributes, self._conf.marks)
            letter, attempt = (mark.public_id, mark.attempt_no) if mark else (None, None)
            source = copy.system.get("DeadLetterQueueSourceArn")
            found.append(MarkedCopy(copy.message_id, digest, body_hash(copy.body), letter, attempt, source))
        return found

    def _judged(self, copy: ReturnedCopy, handle: str) -> ReturnedMessage:
        due = self._dlq.backoff_delay(copy.attempts, self._dice(), copy).total_seconds()
        return ReturnedMessage(copy.message_id, handle, copy.attempt_id, copy.letter_id, copy.lane_id, due=due)

    def _admit(self, copies: dict[str, ReceivedMessage]) -> list[Deletable]:
        """Store new letters; return the messages that may be deleted from the DLQ.

        All may be, if messages do not stay in this DLQ after a capture, or more than `held_copies_limit` would stay.
        """
        at_capture = self._at_capture or self._held + len(copies) > self._dlq.held_copies_limit
        digests = content.digests(copy.body for copy in copies.values())
        doubtful: set[bytes] = set()
        if self._conf.marks.redrive is None:
            plain = [body_hash(copy.body) for copy in copies.values()]
            doubtful = received_copies.doubtful_hashes([*digests, *plain])
        facts = [LetterFacts(one.message_id, one.body, one.attributes, one.system) for one in copies.values()]
        new = [
            self._letters.new(copy, fact, digest, doubtful, now=self._at)
            for copy, fact, digest in zip(copies.values(), facts, digests, strict=True)
        ]
        if self._moved:
            new = self._without_moved(new, at_capture=at_capture)
        written = self._letters.store(new, facts, until=self._until, at_capture=at_capture, day=self._at.date())
        self._done.letters += len(written)
        late = {letter.message_id: copies.pop(letter.message_id) for letter in new if letter.message_id not in written}
        known = self._refresh(late) if late else []  # another capture wrote them
        self._hides |= bool(late)  # the others were not stored
        if not at_capture:
            self._held += len(written)
            return known
        return known + self._remove(copies, list(copies))

    def _without_moved(self, new: Sequence[NewLetter], *, at_capture: bool) -> list[NewLetter]:
        """Return the new letters, except those captured before: AWS moved their messages, which came back now."""
        back = moved_by_aws.continue_moved(self._dlq.pk, new, until=self._until, at_capture=at_capture)
        self._done.known += len(back)
        self._held += 0 if at_capture else len(back)
        return [letter for letter in new if letter.message_id not in back]
