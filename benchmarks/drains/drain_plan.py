"""Define `Plan`: the options of `drain.py`, which say what is drained."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

BATCH: Final = 10  #: max messages of one SQS request
REQUEST: Final = 1_000_000  #: bytes of one SQS request, a little less than SQS allows
LEAST_BODY: Final = 100  #: bytes; a body contains its key and number
KINDS: Final = ("keyed", "keyless", "fifo")
OUTCOMES: Final = ("accepted", "absence")
LOOP_LETTERS: Final = 20_000  #: max letters that a loop moves: its rate does not depend on the backlog
SLOW_LOOP_LETTERS: Final = 400  #: max letters that one thread of a loop moves to an HTTP endpoint


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The options of a drain.

    Attributes:
        letters: number of letters in the DLQ, in each round.
        keys: number of ordering keys.
        rounds: number of rounds, in each of which the loops and the service drain equal queues.
        latency: milliseconds that each SQS call takes.
        long_poll: seconds that an empty receive takes; three empty receives in a row end a capture.
        processes: number of processes of the worker.
        body: bytes of a letter's body.
        hot: share of the letters that have the same key.
        history: number of finished letters in the tables before the first round.
        kind: the kind of the queues: standard with ordering keys, standard without, or FIFO.
        outcome: the target's setting of this name.
        failures: share of the letters that the consumer fails once.
        http: milliseconds until an HTTP endpoint answers; None: the target is the source queue.
        encrypt: whether payloads are encrypted.
        profile: file to which a worker with a single process writes its profile.
        baseline: options of another drain, which is done before each round, with its own stack; empty: none.
    """

    letters: int
    keys: int
    rounds: int
    latency: int
    long_poll: int
    processes: int
    body: int
    hot: float
    history: int
    kind: str
    outcome: str
    failures: float
    http: int | None
    encrypt: bool
    profile: Path | None
    baseline: str

    @property
    def batch(self) -> int:
        """Return how many letters fit into one SQS request."""
        return max(1, min(BATCH, REQUEST // (self.body + 1_000)))

    @property
    def step(self) -> int:
        """Return n if the consumer fails every nth letter; 0: it fails none."""
        return round(1 / self.failures) if self.failures else 0

    @property
    def is_ordered(self) -> bool:
        """Return whether letters of a key must arrive in order; a failed letter is sent again after later letters."""
        return self.kind != "keyless" and not self.failures

    @property
    def is_plain(self) -> bool:
        """Return whether the limits of a letter's cost apply, because no option makes letters costlier."""
        special = self.hot or self.history or self.failures or self.http is not None or self.kind != "keyed"
        return not special and self.outcome == "accepted"

    def sends(self, first: int) -> int:
        """Return how many sends deliver the letters from number `first` on."""
        failing = range(-(-first // self.step) * self.step, first + self.letters, self.step) if self.step else ()
        return self.letters + len(failing)

    def loop_letters(self, threads: int) -> int:
        """Return how many letters a loop with so many threads moves."""
        most = LOOP_LETTERS if self.http is None else SLOW_LOOP_LETTERS * threads
        return min(self.letters, most)

    def key(self, number: int) -> str:
        """Return the ordering key of a letter."""
        return "hot" if number % 100 < self.hot * 100 else str(number % self.keys)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of a plan."""
    many: list[tuple[str, type, Any, str]] = [
        ("letters", int, 10_000, "number of letters in each DLQ"),
        ("rounds", int, 1, "number of rounds, each with all competitors"),
        ("latency", int, 0, "milliseconds that each SQS call takes"),
        ("processes", int, 2, "number of processes of the worker"),
        ("long-poll", int, 1, "seconds that an empty receive takes"),
        ("body", int, 510, "bytes of a letter's body"),
        ("hot", float, 0.0, "share of the letters that have one key"),
        ("history", int, 0, "number of finished letters in the tables before the first round"),
        ("failures", float, 0.0, "share of the letters that the consumer fails once; needs --outcome absence"),
    ]
    for name, kind, default, text in many:
        parser.add_argument(f"--{name}", type=kind, default=default, help=f"{text} (default: %(default)s)")
    parser.add_argument("--keys", type=int, help="number of ordering keys (default: a tenth of the letters)")
    parser.add_argument("--kind", choices=KINDS, default="keyed", help="kind of the queues (default: %(default)s)")
    parser.add_argument(
        "--outcome", choices=OUTCOMES, default="accepted", help="target's outcome (default: %(default)s)"
    )
    parser.add_argument("--http", type=int, metavar="MS", help="send to an HTTP endpoint that answers after MS ms")
    parser.add_argument("--encrypt", action="store_true", help="encrypt payloads with a local key")
    parser.add_argument("--profile", type=Path, help="let a solo worker write a cProfile to this file")
    parser.add_argument(
        "--baseline", default="", metavar="OPTIONS",
        help='before each round, do another drain, to compare with: --baseline="--letters 10000"',
    )  # fmt: skip


def plan_of(parser: argparse.ArgumentParser, given: argparse.Namespace) -> Plan:
    """Return the plan of the given options; end the program if they contradict each other."""
    names = [name for name in Plan.__dataclass_fields__ if name != "keys"]
    plan = Plan(keys=given.keys or max(1, given.letters // 10), **{name: getattr(given, name) for name in names})
    numbers: Sequence[int] = (plan.letters, plan.rounds, plan.processes, plan.body)
    if min(numbers) < 1 or plan.body < LEAST_BODY:
        parser.error(f"--letters, --rounds and --processes must be at least 1, --body at least {LEAST_BODY}.")
    if not 0 <= plan.hot <= 1 or not 0 <= plan.failures < 1:
        parser.error("--hot and --failures are shares: 0.1 is a tenth.")
    if plan.failures and plan.outcome != "absence":
        parser.error("--failures needs --outcome absence: no other outcome waits for the consumer.")
    if plan.http is not None and (plan.kind == "fifo" or plan.outcome != "accepted"):
        parser.error("--http goes with neither --kind fifo nor --outcome absence: an endpoint's answer is the outcome.")
    return plan
