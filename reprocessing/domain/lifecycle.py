"""Define the states of letters, lanes and attempts, and the reasons for which letters are parked.

A letter is a captured message. A lane holds the letters of one ordering key, which are sent in order, one at a time.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class LetterState(StrEnum):
    """The state of one letter."""

    CAPTURED = "captured"  #: stored; no run has added the letter to its lane
    WAITING = "waiting"  #: in its lane; sent when it is the lane's first letter, and its backoff or delay is over
    SENDING = "sending"  #: an attempt has started, and the attempt's outcome is not stored yet
    AWAITING = "awaiting"  #: the target accepted the letter; the outcome is not known yet
    DELIVERED = "delivered"  #: delivery succeeded, or is presumed to have succeeded
    PARKED = "parked"  #: the letter waits for a person
    DUPLICATE = "duplicate"  #: an equal letter with the same idempotency key was delivered
    DISCARDED = "discarded"  #: discarded by a person, or by a rule that a person enabled


#: States of a letter that is in a run and not finished.
OPEN_STATES = (LetterState.WAITING, LetterState.SENDING, LetterState.AWAITING)
#: States of a letter that is not sent any more, unless its message comes back to a DLQ or a person releases the letter.
FINISHED_STATES = (LetterState.DELIVERED, LetterState.PARKED, LetterState.DUPLICATE, LetterState.DISCARDED)
#: Names that users see, for states that have another name in the code.
STATE_NAMES: Final = {"waiting": "queued", "awaiting": "awaiting outcome", "presumed": "presumed delivered"}


class LanePhase(StrEnum):
    """The state of one lane."""

    IDLE = "idle"  #: the lane has nothing to redrive
    READY = "ready"  #: the lane's first letter may be sent at `due_at` or later
    LEASED = "leased"  #: a worker has the lease until `due_at`
    AWAITING = "awaiting"  #: the first letter was sent; the next letter waits for the outcome
    HELD = "held"  #: stopped by a parked first letter, a rule, or a person


class AttemptOutcome(StrEnum):
    """How one attempt ended."""

    ACCEPTED = "accepted"  #: the target accepted the message, and no further evidence is required
    ABSENT = "absent"  #: presumed delivered: the message was not found in the DLQ again
    RETURNED = "returned"  #: the message came back to a DLQ
    REFUSED = "refused"  #: the target refused the message
    NOT_SENT = "not_sent"  #: nothing was sent; the attempt does not count
    UNKNOWN = "unknown"  #: the message may have been sent: the target did not reply, or the worker died
    ACKNOWLEDGED = "acknowledged"  #: the consumer reported success
    FAILED = "failed"  #: the consumer reported a final failure
    SILENT = "silent"  #: the consumer did not report in time


class ParkedReason(StrEnum):
    """Why a letter waits for a person."""

    ATTEMPTS_SPENT = "attempts_spent"
    REFUSED = "refused"
    TOO_LARGE = "too_large"
    UNSENDABLE = "unsendable"
    NO_ORDERING_KEY = "no_ordering_key"
    NO_SEQUENCE = "no_sequence"
    NO_IDEMPOTENCY_KEY = "no_idempotency_key"
    UNREADABLE_BODY = "unreadable_body"
    UNKNOWN_SOURCE = "unknown_source"
    STALE = "stale"
    KEY_CONFLICT = "key_conflict"
    EQUAL_DISCARDED = "equal_discarded"
    POSSIBLE_RETURN = "possible_return"
    RECEIVED_TOO_OFTEN = "received_too_often"
    QUARANTINED = "quarantined"
    NO_ANSWER = "no_answer"
    EXPIRED = "expired"
    PART_OF_GROUP = "part_of_group"
    UNREADABLE_TASK = "unreadable_task"
    PAYLOAD_LOST = "payload_lost"
    UNSUPPORTED_TARGET = "unsupported_target"
    MOVED_BY_AWS = "moved_by_aws"
    IN_DOUBT = "in_doubt"

    @property
    def sentence(self) -> str:
        """Return the reason in words."""
        return _SENTENCES[self]

    @property
    def label(self) -> str:
        """Return the reason as a short phrase without a verb, for lists and counts of messages."""
        return _LABELS[self]

    @property
    def is_message_fault(self) -> bool:
        """Return whether the message itself is invalid, which also explains why its consumer could not process it."""
        return self in {ParkedReason.UNSENDABLE, ParkedReason.UNREADABLE_TASK}


#: Reasons for which a released letter fails again, unless somebody edits the letter or mends its consumer.
FAILS_AGAIN: Final = (ParkedReason.ATTEMPTS_SPENT, ParkedReason.QUARANTINED)

_SENTENCES = {
    ParkedReason.ATTEMPTS_SPENT: "All attempts that the DLQ allows have failed.",
    ParkedReason.REFUSED: "The target refused it, and would refuse it again.",
    ParkedReason.TOO_LARGE: "It is larger than the target accepts.",
    ParkedReason.UNSENDABLE: "The target does not allow its body or its attributes.",
    ParkedReason.NO_ORDERING_KEY: "It has no ordering key, which the DLQ's settings require.",
    ParkedReason.NO_SEQUENCE: "It has no sequence, which the DLQ's settings require.",
    ParkedReason.NO_IDEMPOTENCY_KEY: "It has no idempotency key, which the DLQ's settings require.",
    ParkedReason.UNREADABLE_BODY: "A key is read from its body, which is not readable JSON.",
    ParkedReason.UNKNOWN_SOURCE: "Its source queue is not known, and the DLQ names no other target.",
    ParkedReason.STALE: "A later message of its ordering key was delivered before this one arrived.",
    ParkedReason.KEY_CONFLICT: "Another body was delivered under the same idempotency key.",
    ParkedReason.EQUAL_DISCARDED: "A person discarded another message with the same idempotency key.",
    ParkedReason.POSSIBLE_RETURN: "It may be a redriven message that came back without its redrive id.",
    ParkedReason.QUARANTINED: "A rule quarantined or discarded it.",
    ParkedReason.RECEIVED_TOO_OFTEN: "It was received more often than the DLQ's limit allows.",
    ParkedReason.NO_ANSWER: "Its consumer did not report the outcome in time.",
    ParkedReason.EXPIRED: "It is a task message that has expired: a worker would discard it.",
    ParkedReason.PART_OF_GROUP: "Its task is part of a group or chord, which may have ended already.",
    ParkedReason.UNREADABLE_TASK: "It goes to Celery workers, and is not a readable task message.",
    ParkedReason.PAYLOAD_LOST: "Its payload cannot be decrypted. Restore it from a backup, or discard it.",
    ParkedReason.IN_DOUBT: "It may have been sent after the backup from which PostgreSQL was restored.",
    ParkedReason.MOVED_BY_AWS: "AWS's native redrive took it out of the DLQ, and it has not come back.",
    ParkedReason.UNSUPPORTED_TARGET: "Its source is of a kind that this service cannot send to.",
}
_LABELS = {
    ParkedReason.ATTEMPTS_SPENT: "All attempts failed",
    ParkedReason.REFUSED: "Refused by the target",
    ParkedReason.TOO_LARGE: "Larger than the target accepts",
    ParkedReason.UNSENDABLE: "Body or attributes not allowed by the target",
    ParkedReason.NO_ORDERING_KEY: "No ordering key (this DLQ requires one)",
    ParkedReason.NO_SEQUENCE: "No sequence (this DLQ requires one)",
    ParkedReason.NO_IDEMPOTENCY_KEY: "No idempotency key (this DLQ requires one)",
    ParkedReason.UNREADABLE_BODY: "Body not readable as JSON (a key is read from it)",
    ParkedReason.UNKNOWN_SOURCE: "Source queue not known, and no other target",
    ParkedReason.STALE: "Later message of the ordering key already delivered",
    ParkedReason.KEY_CONFLICT: "Another body delivered under the same idempotency key",
    ParkedReason.EQUAL_DISCARDED: "Message with the same idempotency key discarded",
    ParkedReason.POSSIBLE_RETURN: "Possibly a redriven message without its redrive id",
    ParkedReason.QUARANTINED: "Quarantined by a rule",
    ParkedReason.RECEIVED_TOO_OFTEN: "Received more often than the DLQ allows",
    ParkedReason.NO_ANSWER: "No consumer report in time",
    ParkedReason.EXPIRED: "Expired task message",
    ParkedReason.PART_OF_GROUP: "Task of a group or chord, which may have ended",
    ParkedReason.UNREADABLE_TASK: "Not a readable task message, which Celery workers need",
    ParkedReason.PAYLOAD_LOST: "Payload that cannot be decrypted",
    ParkedReason.IN_DOUBT: "Possibly sent after the backup from which PostgreSQL was restored",
    ParkedReason.MOVED_BY_AWS: "Taken out of the DLQ by AWS's native redrive",
    ParkedReason.UNSUPPORTED_TARGET: "Source of an unsupported kind",
}
