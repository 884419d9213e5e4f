"""What holds after every step, by the rows, the queues and the log of calls; no function of the product's is asked."""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from redrive_service.sandbox.sqs.queues.message import Message
from tests.proof.machine.ground import SWALLOWS, Buried, Ground

#: In these a letter is not finished.
OPEN: Final = ("captured", "waiting", "sending", "awaiting")
#: What may be forgotten.
FORGOTTEN: Final = ("delivered", "duplicate", "discarded")
#: In these the target has it.
UNDER_WAY: Final = ("sending", "awaiting", "delivered")
_LETTERS: Final = """
SELECT id, message_id, public_id::text, state, reason, detail, route, attempts, duplicate_of_id, lane_id, presumed,
       EXISTS (SELECT FROM redrive_audit_entry r WHERE r.letter_id = l.id AND r.act = 'discarded' AND r.by <> ''),
       EXISTS (SELECT FROM redrive_attempt a WHERE a.letter_id = l.id AND a.taken_at IS NOT NULL)
  FROM redrive_letter l
"""
_AMISS: Final = """
SELECT 'Lane ' || lane_id || ' has ' || count(*) || ' attempts on their way at once.'
  FROM redrive_attempt a JOIN redrive_target t ON t.id = a.target_id
 WHERE closed_at IS NULL AND (taken_at IS NULL OR t.advance = 'settled') GROUP BY lane_id HAVING count(*) > 1
UNION ALL
SELECT 'Lane ' || lane_id || ' is held by ' || count(*) || ' attempts.'
  FROM redrive_attempt WHERE holds_lane GROUP BY lane_id HAVING count(*) > 1
UNION ALL
SELECT 'Letter ' || letter_id || ' has two attempts ' || no || '.'
  FROM redrive_attempt GROUP BY letter_id, no HAVING count(*) > 1
UNION ALL
SELECT 'Letter ' || id || ' is parked, and nobody says why.' FROM redrive_letter WHERE state = 'parked' AND reason = ''
UNION ALL
SELECT 'The breaker is ' || b.state || ', and in its epoch ' || count(*) || ' letters went.'
  FROM redrive_breaker b JOIN redrive_attempt a ON a.breaker_id = b.id AND a.breaker_epoch = b.epoch
 WHERE b.state <> 'closed' GROUP BY b.id HAVING count(*) > (b.state = 'half_open')::int
UNION ALL
SELECT 'Letter ' || l.id || ' is under way without an attempt.' FROM redrive_letter l
 WHERE l.state IN ('sending', 'awaiting') AND NOT EXISTS (
       SELECT FROM redrive_attempt a WHERE a.letter_id = l.id AND a.closed_at IS NULL)
UNION ALL
SELECT 'Letter ' || l.id || ' is ' || l.state || ', and attempt ' || a.no || ' of it is open.'
  FROM redrive_letter l JOIN redrive_attempt a ON a.letter_id = l.id AND a.closed_at IS NULL
 WHERE l.state IN ('parked', 'discarded', 'delivered') AND NOT (
       l.state <> 'delivered' AND a.holds_lane AND a.deadline IS NOT NULL AND a.taken_at IS NULL)  -- ADR 0021
UNION ALL
SELECT 'Lane ' || n.id || ' is idle, and letter ' || l.id || ' waits on it.'
  FROM redrive_lane n JOIN redrive_letter l ON l.lane_id = n.id
 WHERE n.phase = 'idle' AND l.state IN ('waiting', 'sending')
"""
_EPOCHS: Final = (
    "SELECT l.public_id || ':' || a.no, a.epoch FROM redrive_attempt a JOIN redrive_letter l ON l.id = a.letter_id"
)
_KNOWN: Final = "SELECT message_id FROM redrive_dlq_copy"


class Letter(NamedTuple):
    id: int
    message_id: str
    public_id: str
    state: str
    reason: str
    detail: str
    route: str
    attempts: int
    duplicate_of: int | None
    lane: int | None
    presumed: bool
    discarded: bool
    taken: bool


class Arrival(NamedTuple):
    message_id: str
    original: str
    public_id: str
    no: str
    at: float


@dataclass(slots=True)
class Watch:
    """What was seen of one example.

    Attributes:
        buried: by the id under which it died.
        released: how often a person released a letter, by that id.
        consumed: ids of messages that their consumer was well with.
        arrivals: all that the target took, swallowed repeats apart.
    """

    ground: Ground
    buried: dict[str, Buried] = field(default_factory=dict)
    released: Counter[str] = field(default_factory=Counter)
    consumed: set[str] = field(default_factory=set)
    arrivals: list[Arrival] = field(default_factory=list)
    letters: dict[str, Letter] = field(default_factory=dict)
    _read: int = 0
    _step: int = 0
    _back: set[str] = field(default_factory=set)
    _finished: dict[str, str] = field(default_factory=dict)
    _captured: dict[str, int] = field(default_factory=dict)
    _enlisted: dict[str, int] = field(default_factory=dict)
    _went: set[str] = field(default_factory=set)

    def broken(self) -> list[str]:
        self._step += 1
        self._look()
        new = self._hear()
        return [
            *(str(text) for (text,) in self.ground.wire.ask(_AMISS)), *self._lost(), *self._unknown(),
            *self._out_of_order(new),
            *self._changed(), *self._too_often(), *self._twice_in_an_epoch(),
        ]  # fmt: skip

    def unfinished(self) -> list[str]:
        left = [f"Letter {one.id} is {one.state}." for one in self.letters.values() if one.state in OPEN]
        left += [f"{one.event} was never captured." for one in self.buried.values() if not self._is_known(one)]
        for url in (self.ground.dlq_url, self.ground.source_url):
            left += [f"{one} lies in {url}." for one in self.ground.lies_in(url)]
        return left

    # -- what is seen

    def _look(self) -> None:
        self.letters = {row[1]: Letter(*row) for row in self.ground.wire.ask(_LETTERS)}
        for one in self.letters.values():
            self._captured.setdefault(one.message_id, self._step)
            if one.lane is not None:
                self._enlisted.setdefault(one.message_id, self._step)
            if one.state in FORGOTTEN:
                self._finished[one.message_id] = one.state

    def _hear(self) -> list[Arrival]:
        new = []
        for call in self.ground.near.log[self._read :]:
            self._back |= {one["message_id"] for one in call["dead_lettered"]}
            for one in call["sent"]:
                mark, _, no = one["attributes"].get("RedriveId", "").rpartition(":")
                if not mark or not one["accepted"] or one["duplicate"]:
                    continue
                if call["queue"] and call["queue"].startswith("dlq"):
                    self._back.add(one["message_id"])  # somebody's own tool brought it back
                else:
                    new.append(Arrival(one["message_id"], one["attributes"]["OriginalMessageId"], mark, no, call["at"]))
        self._read = len(self.ground.near.log)
        self.arrivals += new
        return new

    # -- what is promised

    def _lost(self) -> Iterator[str]:  # noqa: C901  where a letter can be
        in_dlq, in_source = self.ground.lies_in(self.ground.dlq_url), self.ground.lies_in(self.ground.source_url)
        alive = in_dlq.keys() | in_source.keys() | self.consumed
        by_id = {one.id: one for one in self.letters.values()}
        arrived: dict[str, set[str]] = {}
        for each in self.arrivals:
            arrived.setdefault(each.original, set()).add(each.message_id)
        for message_id, one in self.buried.items():
            letter = self.letters.get(message_id)
            if message_id in in_dlq or (letter and letter.state in OPEN):
                continue
            copies = arrived.get(message_id, set()) & alive
            if letter is None:
                if message_id not in self._finished:
                    yield f"{one.event} is neither in the dlq nor a letter."
            elif letter.state == "delivered" and not copies:
                yield f"{one.event} is called delivered, and no copy of it is anywhere."
            elif letter.presumed and not copies - _untouched(in_source):
                yield f"{one.event} is presumed delivered, and nobody ever received it."
            elif letter.state == "discarded" and not letter.discarded and letter.route != "discard":
                yield f"{one.event} is discarded, and nobody did it."
            elif letter.state == "duplicate":
                equal = by_id.get(letter.duplicate_of or 0)
                if equal is None or not equal.taken or self.buried[equal.message_id].event != one.event:
                    yield f"{one.event} is called a duplicate of what never arrived."

    def _unknown(self) -> Iterator[str]:
        in_dlq = self.ground.lies_in(self.ground.dlq_url)
        known = {str(row[0]) for row in self.ground.wire.ask(_KNOWN)}
        for back in self._back - in_dlq.keys() - known:
            original = next((each.original for each in self.arrivals if each.message_id == back), None)
            if original in self.letters:
                yield f"{back} came back, was deleted, and nobody knows of it."

    def _out_of_order(self, new: list[Arrival]) -> Iterator[str]:
        """A letter goes for the first time though an earlier one, enlisted or captured sooner, has yet to go."""
        policy = self.ground.policy
        for one in new:
            if one.original in self._went:
                continue
            self._went.add(one.original)
            mine = self.buried[one.original]
            yield from self._beside_its_equal(one, mine)
            if mine.key is None or not (policy.keyed or policy.fifo):
                continue
            yield from self._overtaken(one, mine)
            for other in self.buried.values():
                letter = self.letters.get(other.message_id)
                if (
                    other.key == mine.key and other.n < mine.n and other.message_id not in self._went
                    and letter is not None and letter.state in OPEN and not self.released[other.message_id]
                    and not self.released[one.original]
                    and self._captured[other.message_id] < self._enlisted.get(one.original, self._step)
                ):  # fmt: skip
                    yield f"{mine.event} ({mine.n}) went before {other.event} ({other.n}) of {mine.key}."

    def _overtaken(self, one: Arrival, mine: Buried) -> Iterator[str]:
        """It goes for the first time though a later one of its key went before: a person, or the policy, says so."""
        if self.ground.policy.deliver_stale or self.released[one.original]:
            return
        for other in self._went:
            later = self.buried[other]
            if later.key == mine.key and later.n > mine.n:
                yield f"{mine.event} ({mine.n}) went after {later.event} ({later.n}) of {mine.key}."

    def _beside_its_equal(self, one: Arrival, mine: Buried) -> Iterator[str]:
        """It goes for the first time though one of the same idempotency key is with the target, or was delivered."""
        if not self.ground.policy.by_event or self.released[one.original]:
            return
        for other in self.buried.values():
            equal = self.letters.get(other.message_id)
            before = any(each.original == other.message_id and each.at < one.at for each in self.arrivals)
            if other.event == mine.event and other != mine and before and equal and equal.state in UNDER_WAY:
                yield f"{mine.event} went though an equal message of it is {equal.state}."

    def _changed(self) -> Iterator[str]:
        for message in self.ground.lies_in(self.ground.source_url).values():
            said = message.content.attributes
            original = said.get("OriginalMessageId", {}).get("StringValue")
            one = self.buried[str(original)]
            if message.content.body != one.body:
                yield f"{one.event} has another body."
            for name, value in one.attributes.items():
                expected = {k: base64.b64encode(v).decode() if isinstance(v, bytes) else v for k, v in value.items()}
                if said.get(name) != expected:
                    yield f"{one.event} has another attribute {name}."

    def _too_often(self) -> Iterator[str]:
        most = self.ground.policy.max_attempts
        for one in self.letters.values():
            allowed = most * (1 + self.released[one.message_id])
            if one.attempts > allowed:
                yield f"Letter {one.id} has {one.attempts} attempts; {allowed} may be."
        by_letter, by_mark = (
            Counter(one.original for one in self.arrivals),
            Counter((one.public_id, one.no) for one in self.arrivals),
        )
        for original, often in by_letter.items():
            if often > most * (1 + self.released[original]):
                yield f"{self.buried[original].event} arrived {often} x."
        for (public, no), often in by_mark.items():
            if often > 1:
                yield f"Attempt {no} of {public} arrived {often} x."
        ids: dict[str, str] = {}
        for one_arrival in self.arrivals:
            letter = self.letters.get(one_arrival.original)
            if ids.setdefault(one_arrival.original, one_arrival.public_id) != one_arrival.public_id or (
                letter and letter.public_id != one_arrival.public_id
            ):
                yield f"{self.buried[one_arrival.original].event} has two redrive ids."

    def _twice_in_an_epoch(self) -> Iterator[str]:
        if not self.ground.policy.fifo:
            return
        epochs: dict[str, Any] = dict(self.ground.wire.ask(_EPOCHS))
        seen: dict[tuple[str, int], float] = {}
        for one in self.arrivals:
            epoch = epochs.get(f"{one.public_id}:{one.no}")
            if epoch is None:
                continue  # it is forgotten
            before = seen.get((one.public_id, epoch))
            if before is not None and one.at - before < SWALLOWS:
                yield f"{self.buried[one.original].event} arrived twice in epoch {epoch}."
            seen[one.public_id, epoch] = one.at

    def _is_known(self, one: Buried) -> bool:
        return one.message_id in self.letters or one.message_id in self._finished


def _untouched(some: Mapping[str, Message]) -> set[str]:
    return {one.message_id for one in some.values() if not one.receive_count}
