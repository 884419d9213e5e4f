"""Define the figures of a round, compare them with the limits, and print them for people."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from benchmarks.drains.drain_plan import Plan

MOST_CALLS: Final = 0.40  #: SQS calls per letter, in a plain drain
MOST_STATEMENTS: Final = 0.20  #: SQL statements per letter, in a plain drain
THREADS: Final = (1, 16)


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """The figures of one round.

    Attributes:
        service: letters per second of the service, without the time (`silence`) in which it found that its DLQ is
            empty.
        movers: letters per second of the loops, by number of threads.
        first_tenth, last_tenth: letters per second of the first and the last tenth of the attempts.
        sent: letters per second of all first attempts.
        others, hot: letters per second up to the last letter of the other keys, and of the hot key.
        calls, statements, wal: SQS calls, SQL statements, and bytes of WAL per letter.
        processor: milliseconds of processor time per letter, by part of the stack and stage.
        memory: bytes of the worker at the end.
        connections: the most connections of the worker to PostgreSQL.
        seconds: duration of the whole drain, of capture, of replay, and of `silence`.
        longest: the SQL statements that took longest, as texts.
        baseline: the figures of another drain, done just before, to compare with; None: there was none.
    """

    service: float
    movers: dict[str, float]
    first_tenth: float | None
    sent: float | None
    last_tenth: float | None
    others: float | None
    hot: float | None
    calls: float
    statements: float
    wal: float
    processor: dict[str, dict[str, float]]
    memory: dict[str, int]
    connections: int
    seconds: dict[str, float]
    longest: list[str]
    baseline: dict[str, Any] | None


def exceeds(rounds: Sequence[Round]) -> bool:
    """Return whether a letter costs more than the limits."""
    return _median(rounds, "calls") > MOST_CALLS or _median(rounds, "statements") > MOST_STATEMENTS


def show(rounds: Sequence[Round], plan: Plan) -> None:
    """Print the figures for people."""
    service = statistics.median(result.service for result in rounds)
    print(f"{plan.letters:,} letters, {plan.keys:,} keys, {plan.latency} ms a call, {plan.rounds} round(s)")
    print(f"{'letters/s':<24} {'median':>8}  range")
    _show_rates("this service", [result.service for result in rounds])
    for threads in THREADS:
        rates = [result.movers[str(threads)] for result in rounds]
        _show_rates(f"boto3 loop, {threads} thread(s)", rates, f"ratio {service / statistics.median(rates):.2f}")
    baseline = [result.baseline["service"] for result in rounds if result.baseline]
    if baseline:
        _show_rates("the baseline", baseline, f"ratio {service / statistics.median(baseline):.2f}")
    for name in ("first_tenth", "sent", "last_tenth", "others", "hot"):
        known = [rate for result in rounds if (rate := getattr(result, name)) is not None]
        if known:
            _show_rates(name.replace("_", " "), known)
    for name, limit in (("calls", MOST_CALLS), ("statements", MOST_STATEMENTS)):
        print(f"{name + ' a letter':<24} {_median(rounds, name):>8.3f}  at most {limit} in a plain drain")
    print(f"{'WAL a letter, KB':<24} {_median(rounds, 'wal') / 1000:>8.1f}")
    last = rounds[-1]
    for part, stages in last.processor.items():
        print(f"{part + ', processor ms':<24}", ", ".join(f"{stage} {spent:.2f}" for stage, spent in stages.items()))
    print("worker memory, MB       ", {name: size // 1_000_000 for name, size in last.memory.items()})
    print("connections             ", last.connections)
    print("seconds of the last round", {name: round(spent, 2) for name, spent in last.seconds.items()})


def _median(rounds: Sequence[Round], name: str) -> float:
    return statistics.median(getattr(result, name) for result in rounds)


def _show_rates(name: str, rates: Sequence[float], more: str = "") -> None:
    print(f"{name:<24} {statistics.median(rates):>8,.0f}  {min(rates):,.0f} to {max(rates):,.0f}  {more}")
