"""Whether a run's wave went well: one letter goes first, then ten, then a hundred, then all that is left."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Final

#: Letters of each wave; None: all.
SIZES: Final[tuple[int | None, ...]] = (1, 10, 100, None)
#: Waves of one letter that may fail in a row: one letter may well be poison, three in a row say more.
TRIES: Final = 3
#: The last wave is judged by so many letters up to the newest whose outcome is known, and by no fewer than `AT_LEAST`.
LAST: Final = 100
AT_LEAST: Final = 20


def before_last(letters: int) -> int:
    """How many waves must be known to have gone well before the last of so many letters goes."""
    gone = accumulate(size for size in SIZES if size is not None)
    return sum(1 for n in gone if n < letters)


@dataclass(frozen=True, slots=True)
class Count:
    """What is known of a wave's letters.

    Attributes:
        size: how many the wave may touch; None: all, and the other figures are of the last `LAST` letters alone.
        touched: letters sent in it.
        open: of those, the ones of which nothing is known yet.
        failed: those whose first try failed.
        silent: those that ended without a word about how sending went.
        tries: waves of one letter that failed just before this one, in a row.
        poison: those of the failed ones that their target refused for their content, which says nothing against it.
    """

    size: int | None
    touched: int
    open: int
    failed: int
    silent: int
    tries: int = 0
    poison: int = 0


@dataclass(frozen=True, slots=True)
class Wait:
    """Not enough is known yet."""


@dataclass(frozen=True, slots=True)
class Next:
    """It went well; the next wave has so many letters, None: all."""

    size: int | None


@dataclass(frozen=True, slots=True)
class Again:
    """It said nothing that could be relied on: another wave of its size."""


@dataclass(frozen=True, slots=True)
class Stop:
    """The run stops itself; `why` has the numbers."""

    why: str


@dataclass(frozen=True, slots=True)
class Rest:
    """Open the breakers of the failed letters, and begin the waves again with one letter; `why` as above."""

    why: str


@dataclass(frozen=True, slots=True)
class BeginAnew:
    """Begin the waves again with one letter, at once: poison letters failed, and nothing follows for their target."""


Verdict = Wait | Next | Again | Stop | Rest | BeginAnew


def judge(count: Count, *, success: float, heals: bool = False) -> Verdict:
    """What follows for a run from what is known of its open wave.

    Args:
        count: of its letters.
        success: the share of them, 0 to 1, that has to go well.
        heals: the run is automatic. Where it would pause, or send another wave of one letter at once, it rests, unless
            the wave failed by poison letters alone. `TRIES` poison letters in a row, with none between that went well,
            are no accident: then it rests, too.
    """
    verdict = _judge(count, success)
    if not heals:
        return verdict
    if isinstance(verdict, Stop | Again) and count.poison and not _fails_without_poison(count, success):
        return Rest(verdict.why) if count.size == 1 and isinstance(verdict, Stop) else BeginAnew()
    match verdict:
        case Stop(why):
            return Rest(why)
        case Again() if count.failed:
            return Rest("the first letter of its waves failed")
        case _:
            return verdict


def _fails_without_poison(count: Count, success: float) -> bool:
    """Whether the wave fails where its poison letters say nothing, as they do of a circuit breaker."""
    rest = replace(count, failed=count.failed - count.poison, silent=count.silent + count.poison, poison=0)
    return rest.failed > 0 and isinstance(_judge(rest, success), Stop | Again)


def _judge(count: Count, success: float) -> Verdict:
    if count.size is None:
        return _judge_the_last(count, success)
    possible = count.size - count.silent
    if count.failed and (possible - count.failed) / possible < success:
        return _failed(count, success)
    if count.touched < count.size or count.open:
        return Wait()
    return Next(_after(count.size)) if possible else Again()


def _failed(count: Count, success: float) -> Verdict:
    if count.size != 1:
        return Stop(
            f"{count.failed} of the {count.touched} letters touched in its wave of {count.size} failed; "
            f"{_share(success)} of a wave has to go well"
        )
    # A run that goes on after a stop begins to count anew.
    if (count.tries + 1) % TRIES:
        return Again()
    return Stop(f"{TRIES} waves of one letter failed in a row")


def _judge_the_last(count: Count, success: float) -> Verdict:
    seen = count.touched - count.silent
    if seen < AT_LEAST or (seen - count.failed) / seen >= success:
        return Wait()
    return Stop(f"{count.failed} of its last {seen} letters failed; {_share(success)} of them have to go well")


def _after(size: int) -> int | None:
    return next((one for one in SIZES if one is None or one > size), None)


def _share(success: float) -> str:
    return f"{success * 100:g} %"
