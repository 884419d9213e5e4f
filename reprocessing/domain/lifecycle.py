"""The states of a letter and of a lane, and why a letter was parked. What moves between them is in the models."""

from __future__ import annotations

from enum import StrEnum
from typing import assert_never


class LetterState(StrEnum):
    """Where one letter stands."""

    CAPTURED = "captured"  #: snapshotted; nobody has asked for its replay
    WAITING = "waiting"  #: on its lane, to be sent when it is the head and due
    SENDING = "sending"  #: an attempt was committed; its outcome is not
    AWAITING = "awaiting"  #: the target took it; whether it worked is not known yet
    DELIVERED = "delivered"  #: it worked, or is presumed to have worked
    PARKED = "parked"  #: quarantined for a person
    DUPLICATE = "duplicate"  #: closed: an equal letter was delivered under the same idempotency key
    DISCARDED = "discarded"  #: a named person, or a rule that one enabled, gave it up


#: A lane's next letter is looked for among these.
OPEN = (LetterState.WAITING, LetterState.SENDING, LetterState.AWAITING)
#: Nothing of ours will touch these again, unless they come back or a person releases them.
FINISHED = (LetterState.DELIVERED, LetterState.PARKED, LetterState.DUPLICATE, LetterState.DISCARDED)


class LanePhase(StrEnum):
    """Where one lane stands."""

    IDLE = "idle"  #: nothing to replay
    READY = "ready"  #: its head may go at `due_at`
    LEASED = "leased"  #: a slice works on it until `due_at`
    AWAITING = "awaiting"  #: its head was sent, and the next letter waits for its outcome
    HELD = "held"  #: a parked head, a rule, or a person, stops it


class AttemptOutcome(StrEnum):
    """How one attempt ended."""

    ACCEPTED = "accepted"  #: the target took it, which is all that its outcome asks for
    ABSENT = "absent"  #: presumed delivered: it did not come back, with evidence
    RETURNED = "returned"  #: it came back to a dlq: failed
    REFUSED = "refused"  #: the target said no
    NOT_SENT = "not_sent"  #: nothing went out; does not count
    UNKNOWN = "unknown"  #: perhaps it went out: the reply, or the worker, was lost
    ACKNOWLEDGED = "acknowledged"  #: its consumer says that it worked
    FAILED = "failed"  #: its consumer says that it failed, and that it will not try again
    SILENT = "silent"  #: its consumer was to say what became of it, and did not


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
    UNKNOWN_ORIGIN = "unknown_origin"
    STALE = "stale"
    KEY_CONFLICT = "key_conflict"
    TWIN_DISCARDED = "twin_discarded"
    POSSIBLE_RETURN = "possible_return"
    RECEIVED_TOO_OFTEN = "received_too_often"
    QUARANTINED = "quarantined"
    NO_ANSWER = "no_answer"
    EXPIRED = "expired"
    WAITS_FOR_A_WORD = "waits_for_a_word"
    UNREADABLE_TASK = "unreadable_task"
    UNSUPPORTED_TARGET = "unsupported_target"
    MOVED_BY_AWS = "moved_by_aws"
    IN_DOUBT = "in_doubt"

    @property
    def sentence(self) -> str:
        """The reason in words, for the person who has to decide."""
        return _SENTENCES[self]

    @property
    def kills(self) -> bool:
        """Whether a letter that is parked for this died of it; else it is why we do not send it."""
        match self:
            case (
                ParkedReason.UNSENDABLE  # a fault of its own, which its target finds, too
                | ParkedReason.UNREADABLE_TASK  # so did the workers that it died at
            ):
                return True
            case (
                ParkedReason.ATTEMPTS_SPENT  # what was answered to the attempts says why
                | ParkedReason.REFUSED  # likewise
                | ParkedReason.NO_ANSWER  # nobody said why
                | ParkedReason.NO_ORDERING_KEY  # the dlq's settings ask for it, its consumer did not
                | ParkedReason.NO_SEQUENCE  # likewise
                | ParkedReason.NO_IDEMPOTENCY_KEY  # likewise
                | ParkedReason.UNREADABLE_BODY  # likewise: a key was to be read from it
                | ParkedReason.UNKNOWN_ORIGIN  # we do not know where it died, let alone of what
                | ParkedReason.UNSUPPORTED_TARGET  # we cannot reach who failed to take it
                | ParkedReason.TOO_LARGE  # for where it would go from here; it was not where it died
                | ParkedReason.STALE  # another letter was quicker
                | ParkedReason.KEY_CONFLICT  # another letter has its key
                | ParkedReason.TWIN_DISCARDED  # another letter was given up
                | ParkedReason.POSSIBLE_RETURN  # we do not know whether it is ours
                | ParkedReason.RECEIVED_TOO_OFTEN  # how often it was tried, not why that failed
                | ParkedReason.QUARANTINED  # a person's rule says so, whatever it died of
                | ParkedReason.EXPIRED  # while it lay dead
                | ParkedReason.IN_DOUBT  # we forgot what became of it
                | ParkedReason.MOVED_BY_AWS  # where its message is now, not why it died
                | ParkedReason.WAITS_FOR_A_WORD  # other tasks may have ended what it is a part of
            ):
                return False
            case _ as never:
                assert_never(never)


_SENTENCES = {
    ParkedReason.ATTEMPTS_SPENT: "Every attempt the dlq allows has failed.",
    ParkedReason.REFUSED: "The target refused it in a way that another attempt would not change.",
    ParkedReason.TOO_LARGE: "It is larger than the target takes.",
    ParkedReason.UNSENDABLE: "The target's rules forbid its body or its attributes.",
    ParkedReason.NO_ORDERING_KEY: "It lacks the ordering key that the dlq names, so its place is not known.",
    ParkedReason.NO_SEQUENCE: "It lacks the sequence that the dlq names, so its place in its lane is not known.",
    ParkedReason.NO_IDEMPOTENCY_KEY: "It lacks the idempotency key that the dlq names.",
    ParkedReason.UNREADABLE_BODY: "A key is to be read from its body, and its body is not JSON that can be read.",
    ParkedReason.UNKNOWN_ORIGIN: "The queue it died in is not known, and the dlq names no other.",
    ParkedReason.STALE: "A later letter of its lane was delivered before this one turned up.",
    ParkedReason.KEY_CONFLICT: "Another body was delivered under the same idempotency key.",
    ParkedReason.TWIN_DISCARDED: "A person discarded another letter with the same idempotency key.",
    ParkedReason.POSSIBLE_RETURN: "It may be a letter of ours that came back without its marks.",
    ParkedReason.QUARANTINED: "A rule quarantined it.",
    ParkedReason.RECEIVED_TOO_OFTEN: "It was received more often than the dlq's ceiling allows.",
    ParkedReason.NO_ANSWER: "Its consumer was to say what became of it, and has not.",
    ParkedReason.EXPIRED: "It is a task message that has expired: a worker would throw it away.",
    ParkedReason.WAITS_FOR_A_WORD: "It is part of a group or a chord of tasks, which another part may have ended.",
    ParkedReason.UNREADABLE_TASK: "It goes to Celery workers, and is no task message that can be read.",
    ParkedReason.IN_DOUBT: "PostgreSQL was restored from a backup, and whether it was sent since is not known.",
    ParkedReason.MOVED_BY_AWS: "AWS was told to move its message out of the dlq, and it has not come back since.",
    ParkedReason.UNSUPPORTED_TARGET: "What failed to take it is of a kind that cannot be reached from here.",
}
