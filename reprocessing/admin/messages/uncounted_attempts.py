"""Say which attempts of a message do not count for the DLQ's max attempts, why, and how they end."""

from __future__ import annotations

from typing import Final

from reprocessing.domain.lifecycle import LetterState
from reprocessing.domain.safety.give_up import duration
from reprocessing.models import Letter

_OPEN: Final = (LetterState.WAITING, LetterState.SENDING, LetterState.AWAITING)


def counted_attempts(letter: Letter) -> str:
    """Return how many attempts a message had, such as "3 attempts", and which of them do not count."""
    total = f"{letter.attempts} attempt{'' if letter.attempts == 1 else 's'}"
    earlier, spared = letter.attempts_before_release, letter.spared
    counted = letter.attempts - earlier - spared
    parts = [f"{counted} count{'s' if counted == 1 else ''}"]
    if spared:
        parts.append(f"{spared} {_do(spared)} not, because the circuit breaker opened and no other message succeeded")
    if earlier:
        parts.append(f"{earlier} {'was' if earlier == 1 else 'were'} made before the last release")
    return total if len(parts) == 1 else f"{total} ({'; '.join(parts)})"


def how_attempts_end(letter: Letter) -> str:
    """Return, for people, why an unfinished message may get more than the max attempts, and what ends its attempts.

    Empty: all its attempts count.
    """
    if not letter.spared or letter.state not in _OPEN:
        return ""
    dlq = letter.dlq
    if dlq.give_up_after is None:
        ends = "The DLQ's setting give-up-after is off, so no time ends these attempts."
    else:
        ends = (
            f"After {duration(dlq.give_up_after)} without a success at the target, the message is parked if no other "
            "message waits for the target; else the run pauses. Neither happens while the run has messages for another "
            "target."
        )
    return (
        f"{letter.spared} of its attempts {_do(letter.spared)} not count: the circuit breaker opened and no other "
        "message succeeded, so the target may be down. Failures count as soon as other messages succeed, or a person "
        f"resumes the paused run: then the message is parked after {dlq.max_attempts} counted attempts. {ends} To stop "
        "the attempts now, stop the key queue. To shorten the time: "
        f"manage.py add_dlq {dlq.name} --give-up-after SECONDS --confirm."
    )


def _do(n: int) -> str:
    return "does" if n == 1 else "do"
