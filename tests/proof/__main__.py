"""Tell what was proved so far: each layer's cases, how often each passed, and those that did not pass last time."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from tests.proof.ledger import Entry, Ledger

_FAILURES_SHOWN = 20


def told(entries: Iterable[Entry]) -> list[str]:
    by_layer: dict[str, list[Entry]] = defaultdict(list)
    for entry in entries:
        by_layer[entry.layer].append(entry)
    lines = [line for layer, its in sorted(by_layer.items()) for line in _layer(layer, its)]
    return lines or ["Nothing was proved yet: make prove"]


def _layer(layer: str, its: list[Entry]) -> list[str]:
    passed = Counter(entry.name for entry in its if entry.passed)
    latest = {entry.name: entry for entry in its}
    failed = [entry for entry in latest.values() if not entry.passed]
    figures: Counter[str] = Counter()
    for entry in its:
        figures.update(entry.figures)
    least = min(passed.values(), default=0)
    sums = ", ".join(f"{amount:,.0f} {name}" for name, amount in sorted(figures.items()))
    return [
        f"{layer}: {len(its):,} tries, {len(passed):,} cases passed, the rarest {least} x; {len(failed):,} failed last",
        *([f"  {sums}"] if sums else []),
        *(f"  {entry.at} {entry.name}: {entry.why}" for entry in failed[-_FAILURES_SHOWN:]),
    ]


if __name__ == "__main__":
    print("\n".join(told(Ledger().entries())))  # noqa: T201  it is asked
