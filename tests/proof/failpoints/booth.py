"""A process in which cells are tried, one after another, on a database of its own.

Run as a program: for each line of JSON that it reads (a cell's name, a repetition, whether to hurry) it writes one,
what the trial came to. SIGINT ends it at once, with the workers of its trial.
"""

from __future__ import annotations

import json
import signal
import sys
import traceback

import django

django.setup()

from django.conf import settings  # noqa: E402  the apps must be ready

from reprocessing import tasks  # noqa: E402
from reprocessing.domain.configuration import setting_problems  # noqa: E402
from reprocessing.domain.safety import failure_cause  # noqa: E402
from reprocessing.pipeline.capture import capture  # noqa: E402
from tests.proof.failpoints.cells import named  # noqa: E402
from tests.proof.failpoints.trial import LEASE, SETTINGS, Outcome, Trial  # noqa: E402


def shorten() -> None:
    """Leases, chunks and pauses of a few seconds, and of a few letters: a cell is small."""
    setting_problems.LIMITS["receive_visibility"] = (1, 43_200)
    settings.REDRIVE = {**settings.REDRIVE, **SETTINGS}
    capture.LEASE, capture.CHUNK = float(LEASE), 10
    tasks.RECOVER_EVERY = 0.5
    failure_cause.OUTCOMES_AWAITED = 2.0  # type: ignore[misc]  # for this process, and those that it forks


def main() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # also where whoever started it has it ignored
    shorten()
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            outcome = Trial(named(asked["cell"]), asked["repetition"], hurry=asked["hurry"]).run()
        except Exception:  # noqa: BLE001  whoever asked is to be answered
            outcome = Outcome(why=[traceback.format_exc(limit=-6)])
        print(json.dumps(outcome.told()), flush=True)  # noqa: T201  it is asked


if __name__ == "__main__":
    main()
