"""The scenarios of docs/performance.md: what each measures, as options of `drain.py`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

ROUNDS: Final = 5  #: rounds of a scenario, if --rounds is not given


@dataclass(frozen=True, slots=True)
class Scenario:
    """A scenario: a row of docs/performance.md.

    Attributes:
        name: the name, which `--only` takes.
        about: what is measured, as text for the page.
        options: options of `drain.py`, without `--rounds`.
        baseline: options of a drain that is done before each round, to compare with; empty: none.
        is_short: whether `make bench` runs it.
    """

    name: str
    about: str
    options: str
    baseline: str = ""
    is_short: bool = False

    def arguments(self, rounds: int) -> list[str]:
        """Return the command-line arguments of `drain.py` for this number of rounds."""
        return [*self.options.split(), "--rounds", str(rounds), *self._compared()]

    def _compared(self) -> list[str]:
        return [f"--baseline={self.baseline}"] if self.baseline else []


PLAIN: Final = "--letters 10000"  #: the options of scenario `plain`
#: Scenario `plain` as a baseline. The second round counts: in the first round, database and worker are new.
BASELINE: Final = f"{PLAIN} --rounds 2"


SCENARIOS: Final = (
    Scenario("plain", "SQS answers at once", PLAIN, is_short=True),
    Scenario("latency-10ms", "each SQS call takes 10 ms longer", "--letters 10000 --latency 10", is_short=True),
    Scenario(
        "latency-10ms-4", "each SQS call takes 10 ms longer; a worker with 4 processes",
        "--letters 40000 --latency 10 --processes 4",
    ),
    Scenario("hot-key", "one key has half of the messages", "--letters 20000 --hot 0.5", BASELINE, is_short=True),
    Scenario("http-50ms", "to an HTTP endpoint that answers after 50 ms", "--letters 10000 --http 50", is_short=True),
    Scenario(
        "http-50ms-1", "as `http-50ms`; a worker with one process", "--letters 10000 --http 50 --processes 1",
    ),
    Scenario("backlog-100k", "100,000 messages in the DLQ", "--letters 100000", BASELINE),
    Scenario("backlog-1m", "1,000,000 messages in the DLQ", "--letters 1000000", BASELINE),
    Scenario("history-1m", "1,000,000 finished messages in the tables", "--letters 10000 --history 1000000", BASELINE),
    Scenario(
        "history-10m", "10,000,000 finished messages in the tables", "--letters 10000 --history 10000000", BASELINE,
    ),
    Scenario("body-10k", "bodies of 10 KB", "--letters 10000 --body 10000"),
    Scenario("body-200k", "bodies of 200 KB", "--letters 2000 --body 200000"),
    Scenario("keyless", "no ordering key", "--letters 10000 --kind keyless"),
    Scenario("fifo", "FIFO queues", "--letters 10000 --kind fifo"),
    Scenario("absence", "outcome `absence`, with a consumer", "--letters 10000 --outcome absence"),
    Scenario(
        "failures", "as `absence`; the consumer fails every 10th message once",
        "--letters 10000 --outcome absence --failures 0.1",
    ),
    Scenario("processes-4", "a worker with 4 processes", "--letters 10000 --processes 4", BASELINE),
    Scenario("processes-8", "a worker with 8 processes", "--letters 10000 --processes 8", BASELINE),
)  # fmt: skip
#: The names of the scenarios of `make bench`.
SHORT: Final = ", ".join(scenario.name for scenario in SCENARIOS if scenario.is_short)
