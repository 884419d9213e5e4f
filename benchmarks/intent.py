"""Compare the cost of an attempt's commit before sending (the intent) in a large run and in a small run.

Fills two databases of one PostgreSQL with a half-finished run each: a small run and a large run. Then it leases lanes,
commits the intents of their first letters, and settles the letters, alternating between the databases, so that other
load on the machine affects both. Prints each median in milliseconds, and exits with 1 if a letter of the large run
costs more than `MOST` times a letter of the small run.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

import psycopg

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.stand import set_up_django  # found through the line above
from redrive_service.sandbox.stack import Stack

#: Letters of one intent; measurements in each database.
GROUP: Final = 50
ROUNDS: Final = 20
#: The limit: cost of a letter of the large run, divided by the cost of a letter of the small run.
MOST: Final = 1.2


def fill(letters: int) -> None:
    """Write a run of this many letters: half of them delivered, half waiting for another attempt."""
    from tests.reprocessing.pipeline.bench import BRISK, Workbench  # noqa: PLC0415  # Django is set up by now
    from tests.reprocessing.store.seeded_letters import automatic_run, seed, with_statistics  # noqa: PLC0415

    keys = {"ordering_key": "attribute:key", "sequence": "attribute:n", "idempotency_key": "attribute:n"}
    bench = Workbench(conf=BRISK, fields={"mode": "automatic", "waves": True, **keys})
    seed(bench, automatic_run(bench), 1, letters)
    with_statistics()


def measure() -> float:
    """Commit an intent, and return its milliseconds; then settle its letters, so that their lanes continue."""
    from reprocessing.domain.replay.verdicts import Taken  # noqa: PLC0415  # as above
    from reprocessing.models import DeadLetterQueue, Target  # noqa: PLC0415
    from reprocessing.pipeline.replay import settle  # noqa: PLC0415
    from reprocessing.store.ordering import lane_state, lanes  # noqa: PLC0415
    from reprocessing.store.replay.intent import intend  # noqa: PLC0415

    leased = lanes.lease("benchmark", limit=GROUP, lease=60)
    ids, fences = [lane.lane_id for lane in leased], [lane.fence for lane in leased]
    heads = lane_state.advance(ids, fences, keep=True, lease=60)
    began = time.perf_counter()
    intended = intend(
        [head.lane_id for head in heads], [head.fence for head in heads], [head.letter_id or 0 for head in heads],
        margin=1, hold=60,
    )  # fmt: skip
    spent = time.perf_counter() - began
    if len(intended) != GROUP:
        sys.exit(f"{len(intended)} of {GROUP} letters were sent: this measures nothing.")
    settle.attempts(
        intended, {letter.attempt_id: Taken(f"sent-{letter.attempt_id}") for letter in intended},
        targets=Target.objects.in_bulk(), dlqs=DeadLetterQueue.objects.in_bulk(), dice=lambda: 0.0, lease=60,
        keep=False,
    )  # fmt: skip
    return spent * 1_000


def use(database: str) -> None:
    """Let Django use this database from now on."""
    from django.db import connection  # noqa: PLC0415  # as above

    connection.close()
    connection.settings_dict["NAME"] = database


def run(small: int, large: int) -> tuple[float, float]:
    """Return the median milliseconds of an intent in the small run and in the large run."""
    with tempfile.TemporaryDirectory(prefix="redrive-intent-") as folder, Stack(Path(folder)) as stack:
        set_up_django(stack, {})
        from django.db import connection  # noqa: PLC0415  # as above

        names = [str(connection.settings_dict["NAME"]), "large"]
        use("postgres")
        with psycopg.connect(stack.postgres.url.replace(f"/{names[0]}", "/postgres"), autocommit=True) as database:
            database.execute(f'CREATE DATABASE large TEMPLATE "{names[0]}"')
        for name, letters in zip(names, (small, large), strict=True):
            use(name)
            fill(letters)
        spent: list[list[float]] = [[], []]
        for number in range(ROUNDS + 2):
            for place, name in enumerate(names):
                use(name)
                measure()  # a new session prepares its plans and reads its catalogs
                if number > 1:  # from the second round on, the pages are in memory
                    spent[place].append(measure())
        use(names[0])
        connection.close()
    return statistics.median(spent[0]), statistics.median(spent[1])


def main() -> int:
    """Print the figures; return 1 when the large run's letters cost too much."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", type=int, default=5_000, help="letters of the small run (default: %(default)s)")
    parser.add_argument("--large", type=int, default=100_000, help="letters of the large run (default: %(default)s)")
    given = parser.parse_args()
    small, large = run(given.small, given.large)
    print(f"run of {given.small:>7,} letters   {small:>7.2f} ms for {GROUP} letters")
    print(f"run of {given.large:>7,} letters   {large:>7.2f} ms   ratio {large / small:.2f}, at most {MOST}")
    return 0 if large / small <= MOST else 1


if __name__ == "__main__":
    sys.exit(main())
