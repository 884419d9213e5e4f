"""Turns that are killed between the answer of the wire and its settlement, each in a process of its own.

Run as a program, on the tests' database: for each line it reads, a forked child takes a turn at due lanes, and kills
itself with SIGKILL when it is about to record what was sent. The answer is the child's exit status.
"""

from __future__ import annotations

import os
import signal
import sys
import uuid

import django

django.setup()

from django.conf import settings  # noqa: E402  the apps must be ready
from django.db import connections  # noqa: E402

from reprocessing import conf  # noqa: E402
from reprocessing.gateways.redis.send_rate import Rates  # noqa: E402
from reprocessing.pipeline.replay import replay_slice, settle  # noqa: E402


def die(*_: object, **__: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def turn() -> None:
    settle.attempts = die  # type: ignore[assignment]  # it never answers
    rates = Rates.at(settings.REDIS_URL)
    replay_slice.Turn(owner=uuid.uuid4().hex, conf=conf.current(), rates=rates, dice=lambda: 0.0).run(seconds=5)


def main() -> None:
    for _ in sys.stdin:
        connections.close_all()
        child = os.fork()
        if not child:
            turn()
            os._exit(0)  # nothing was sent
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)  # noqa: T201  it is asked


if __name__ == "__main__":
    main()
