"""Texts about attempts that do not count for the DLQ's max attempts: how many, why, and what ends them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from reprocessing.domain.lifecycle import LetterState
from reprocessing.domain.safety.give_up import duration
from reprocessing.models import DeadLetterQueue, Letter
from reprocessing.store.routing.routing_decisions import BY_HAND

_OPEN: Final = (LetterState.WAITING, LetterState.SENDING, LetterState.AWAITING)


def attempts_in_lists(attempts: int, *, earlier: int, spared: int, allowed: int) -> str:
    """Return the attempts of a message for a list, such as "3 of 3", or "3 of 3 (11 in all)" if some do not count.

    `attempts`: all attempts. `earlier`: those before the last release. `spared`: those that do not count, because the
    circuit breaker opened. `allowed`: the DLQ's max attempts. It is left out if more attempts count, because the
    setting was lowered.
    """
    counted = attempts - earlier - spared
    shown = f"{counted} of {allowed}" if attempts and counted <= allowed else str(counted)
    return f"{shown} ({attempts} in all)" if counted != attempts else shown


def attempts_of(letter: Letter) -> str:
    """Return the text about a message's attempts for a list, such as "3 of 3 (4 in all)"."""
    return attempts_in_lists(
        letter.attempts, earlier=letter.attempts_before_release, spared=letter.spared, allowed=letter.dlq.max_attempts
    )


def attempts_on_page(letter: Letter) -> str:
    """Return the text about a message's attempts for its page, which also says why some of them do not count.

    For instance: "11 attempts: 3 before the last release; since then 8, of which 5 do not count (limit 3)".
    """
    earlier, spared = letter.attempts_before_release, letter.spared
    if not (earlier or spared):
        return attempts_of(letter)
    since = f": {earlier} before the last release; since then {letter.attempts - earlier}" if earlier else ""
    which = f", of which {spared} {_do(spared)} not count" if spared else ""
    return f"{_attempts(letter.attempts)}{since}{which} (limit {letter.dlq.max_attempts})"


def failed_attempts(letter: Letter) -> str:
    """Return how many attempts of a message failed: "Failed 3 of 3 attempts", and which attempts do not count."""
    counted, allowed = letter.attempts - letter.attempts_before_release - letter.spared, letter.dlq.max_attempts
    failed = f"{counted} of {allowed} attempts" if counted == allowed else _attempts(counted)
    return f"Failed {failed}{''.join(f'; {part}' for part in _others(letter, more='more '))}"


def counted_attempts(letter: Letter) -> str:
    """Return how many attempts a message had, such as "3 attempts", and which of them do not count."""
    others = "; ".join(_others(letter))
    return f"{_attempts(letter.attempts)} ({others})" if others else _attempts(letter.attempts)


def _others(letter: Letter, more: str = "") -> Iterator[str]:
    """Yield texts about the attempts that do not count.

    These are failed attempts after which the circuit breaker opened (`spared`), and attempts before the last release.
    """
    earlier, spared = letter.attempts_before_release, letter.spared
    if spared:
        yield f"{spared} {more}{_were(spared)} not counted: circuit breaker open"
    if earlier:
        yield f"{earlier} {_were(earlier)} made before the last release"


def _attempts(n: int) -> str:
    return f"{n} attempt{'' if n == 1 else 's'}"


def _were(n: int) -> str:
    return "was" if n == 1 else "were"


@dataclass(frozen=True, slots=True)
class UncountedAttempts:
    """Texts about attempts that do not count. `advice`: what a person can do. `ends`: when the attempts end anyway."""

    advice: str
    ends: str


def uncounted_attempts(letter: Letter) -> UncountedAttempts | None:
    """Return why an unfinished message may get more attempts than max attempts, and what a person can do about it.

    None: all attempts of the message count, or the message is finished.
    """
    if not letter.spared or letter.state not in _OPEN:
        return None
    return UncountedAttempts(_advice(letter), f"{_counted_later(letter)} {_given_up(letter.dlq)}")


def _advice(letter: Letter) -> str:
    """Return what a person can do about attempts that do not count.

    A new rule helps only if rules decide about the message. They do not if a person released it to a target.
    """
    rule = "Or add a rule that quarantines it: the rule parks it, and you can edit or discard it. "
    return (
        f"{_attempts(letter.spared)} failed and {_do(letter.spared)} not count, because the circuit breaker opened and "
        "no other message succeeded. If this message is invalid, stop its key queue: then it is not sent any more. "
        f"{'' if letter.rulebook_version == BY_HAND else rule}If the target is down, repair it."
    )


def _counted_later(letter: Letter) -> str:
    return (
        "Failures count as soon as other messages succeed, or a person resumes the paused run: then the message is "
        f"parked after {letter.dlq.max_attempts} counted attempts."
    )


def _given_up(dlq: DeadLetterQueue) -> str:
    command = f"manage.py add_dlq {dlq.name} --give-up-after SECONDS --confirm."
    if dlq.give_up_after is None:
        return f"The DLQ's setting give-up-after is off, so no time ends these attempts. To set a time: {command}"
    return (
        f"After {duration(dlq.give_up_after)} without a success at the target, the run pauses. If no other message "
        "waits for the target, this message is parked instead. Both happen only if all open messages of the run have "
        f"this target. To shorten the time: {command}"
    )


def _do(n: int) -> str:
    return "does" if n == 1 else "do"
