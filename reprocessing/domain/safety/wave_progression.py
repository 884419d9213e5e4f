"""Decide whether a wave of a run succeeded. The waves of a run have 1, 10 and 100 letters, then all others."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Final

#: How many letters each wave sends; None: all remaining letters.
SIZES: Final[tuple[int | None, ...]] = (1, 10, 100, None)
#: If this many waves of one letter fail in a row, the run pauses. A single failure may be the message's fault.
MOST_FAILED_TRIES: Final = 3
#: The last wave is judged by its newest `LAST` letters with a known outcome, if there are at least `AT_LEAST`.
LAST: Final = 100
AT_LEAST: Final = 20


def waves_before_last(letters: int) -> int:
    """Return how many waves (parts of a run) must succeed before the last of `letters` letters is sent."""
    sent = accumulate(size for size in SIZES if size is not None)
    return sum(1 for n in sent if n < letters)


def sizes_after(size: int | None) -> tuple[int | None, ...]:
    """Return the sizes of the waves after a wave of this size, if each succeeds. Size None: all remaining letters."""
    return () if size is None else tuple(each for each in SIZES if each is None or each > size)


@dataclass(frozen=True, slots=True)
class WaveCounts:
    """How many letters of one wave were sent, failed, and so on.

    Attributes:
        size: letters that the wave may send; None: all others, of which only the newest 100 (`LAST`) are counted.
        sent: letters that were sent in this wave.
        open: sent letters whose outcome is not known yet.
        failed: sent letters whose first attempt failed.
        silent: sent letters whose outcome says nothing about the target.
        tries: how many waves of one letter failed in a row before this wave.
        poison: failed letters that the target refused because of their content.
    """

    size: int | None
    sent: int
    open: int
    failed: int
    silent: int
    tries: int = 0
    poison: int = 0


@dataclass(frozen=True, slots=True)
class WaitForOutcomes:
    """Too few outcomes are known for a decision about the wave: wait."""


@dataclass(frozen=True, slots=True)
class NextWave:
    """The wave succeeded. The next wave has `size` letters; None: all remaining letters."""

    size: int | None


@dataclass(frozen=True, slots=True)
class RepeatWave:
    """Send another wave of the same size.

    The outcomes say nothing about the target, or the only letter of the wave failed, maybe because of its content.
    """


@dataclass(frozen=True, slots=True)
class PauseRun:
    """Pause the run until a person resumes it."""

    why: str


@dataclass(frozen=True, slots=True)
class OpenBreakers:
    """Open the circuit breakers of the letters that failed in the wave. Begin again with a wave of one letter."""

    why: str


@dataclass(frozen=True, slots=True)
class RestartWaves:
    """Begin again with a wave of one letter. The target did not fail; it refused the content of letters (poison)."""


WaveVerdict = WaitForOutcomes | NextWave | RepeatWave | PauseRun | OpenBreakers | RestartWaves


def judge_wave(count: WaveCounts, *, success: float, is_automatic: bool = False) -> WaveVerdict:
    """Return what a run does, given the known outcomes of its current wave.

    Args:
        count: the counts of the wave's letters.
        success: the share of letters, 0 to 1, that must succeed.
        is_automatic: whether the run is automatic. If a wave fails, an automatic run opens circuit breakers, and does
            not pause. If a wave fails only because the target refused the content of letters, breakers open only
            after three failed waves of one letter in a row.
    """
    verdict = _judge_size(count, success)
    if not is_automatic:
        return verdict
    if isinstance(verdict, PauseRun | RepeatWave) and count.poison and not _fails_without_poison(count, success):
        return OpenBreakers(verdict.why) if count.size == 1 and isinstance(verdict, PauseRun) else RestartWaves()
    match verdict:
        case PauseRun(why):
            return OpenBreakers(why)
        case RepeatWave() if count.failed:
            return OpenBreakers("its wave of one message failed")
        case _:
            return verdict


def _fails_without_poison(count: WaveCounts, success: float) -> bool:
    """Return whether the wave would also fail without the letters whose content the target refused (`poison`)."""
    rest = replace(count, failed=count.failed - count.poison, silent=count.silent + count.poison)
    return rest.failed > 0 and isinstance(_judge_size(rest, success), PauseRun | RepeatWave)


def _judge_size(count: WaveCounts, success: float) -> WaveVerdict:
    if count.size is None:
        return _judge_last_wave(count, success)
    possible = count.size - count.silent
    if count.failed and (possible - count.failed) / possible < success:
        return _failed(count, success)
    if count.sent < count.size or count.open:
        return WaitForOutcomes()
    larger = next((size for size in SIZES if size is None or size > count.size), None)
    return NextWave(larger) if possible else RepeatWave()


def _failed(count: WaveCounts, success: float) -> WaveVerdict:
    if count.size != 1:
        return PauseRun(
            f"{count.failed} of the {count.sent} messages sent in its wave of {count.size} failed; "
            f"{_share(success)} of a wave must succeed"
        )
    # A run that paused and was resumed pauses again after `MOST_FAILED_TRIES` further failed waves.
    if (count.tries + 1) % MOST_FAILED_TRIES:
        return RepeatWave()
    return PauseRun(f"{MOST_FAILED_TRIES} waves of one message failed in a row")


def _judge_last_wave(count: WaveCounts, success: float) -> WaveVerdict:
    judged = count.sent - count.silent
    if judged < AT_LEAST or (judged - count.failed) / judged >= success:
        return WaitForOutcomes()
    return PauseRun(f"{count.failed} of its last {judged} messages failed; {_share(success)} of them must succeed")


def _share(success: float) -> str:
    return f"{success * 100:g} %"
