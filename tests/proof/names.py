"""The names of cases: python -m tests.proof.names LAYER lists them. Nothing is started for it."""

from __future__ import annotations

import os
import signal
from argparse import ArgumentParser
from collections.abc import Iterable
from typing import Final

import django

LAYERS: Final = ("simulation", "machine", "failpoints", "dependencies", "planted", "poison")
SCREENS: Final = "screens/"  #: how the names of those cases of `poison` begin that are looked at on screens
PLACES: Final = ("first", "middle", "last")
IN_TURN: Final = "all in turn for ten minutes"
RESTARTED: Final = "rate after a restart"
#: As far as settings want any; nothing of this is ever connected to.
_NOWHERE: Final = {
    "DJANGO_SETTINGS_MODULE": "redrive_service.settings",
    "SECRET_KEY": "for-names-only-it-protects-nothing-and-nobody-1234567890",
    "ALLOWED_HOSTS": "redrive.example.com",
    "AWS_DEFAULT_REGION": "eu-west-1",
    "DATABASE_URL": "postgres://names@127.0.0.1:1/names",
    "REDIS_URL": "redis://127.0.0.1:1/0",
} | {
    f"REDRIVE_{name}_QUEUE_URL": f"https://sqs.eu-west-1.amazonaws.com/000000000000/redrive-{name.lower()}"
    for name in ("CONTROL", "CAPTURE", "REPLAY")
}


def without_servers() -> None:
    """Set Django up in a process that connects to nothing."""
    os.environ.pop("REDRIVE_MODE", None)
    os.environ.update(_NOWHERE)
    django.setup()


def begun(asked: str, some: Iterable[str]) -> list[str]:
    """Of these names of `poison` the one that is asked for, or else those that begin so.

    Screens are meant by who says so.
    """
    found = [name for name in some if name.startswith(asked) and asked.startswith(SCREENS) == name.startswith(SCREENS)]
    return [asked] if asked in found else found


def names(layer: str) -> list[str]:
    """The cases of a layer; none of those whose cases are numbers. The models are importable."""
    # What a layer imports takes seconds: only of that which is asked for.
    if layer == "failpoints":
        from tests.proof.failpoints.cells import CELLS  # noqa: PLC0415

        return [one.name for one in CELLS]
    if layer == "dependencies":
        from tests.proof.dependencies.outages import OUTAGES  # noqa: PLC0415
        from tests.proof.dependencies.refusals import REFUSALS  # noqa: PLC0415

        return [*OUTAGES, *REFUSALS, IN_TURN, RESTARTED]
    if layer == "planted":
        from tests.proof.planted.bugs import BUGS  # noqa: PLC0415

        return [one.name for one in BUGS]
    if layer == "poison":
        from tests.proof.poison.corpus import CORPUS  # noqa: PLC0415
        from tests.proof.poison.station import STATIONS  # noqa: PLC0415

        batches = [f"{station}/{place}/{payload}" for station in STATIONS for place in PLACES for payload in CORPUS]
        return [*batches, *(f"{SCREENS}{payload}" for payload in CORPUS)]
    return []


def main() -> None:
    """Print the names of a layer's cases, one a line."""
    parser = ArgumentParser(prog=".venv/bin/python -m tests.proof.names", description=__doc__)
    parser.add_argument("layer", choices=LAYERS)
    layer = parser.parse_args().layer
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `head` reads only the first names
    without_servers()
    print("\n".join(names(layer) or [f"The cases of {layer} are whole numbers: 0, 1, 2 ..."]))  # noqa: T201  it is asked


if __name__ == "__main__":
    main()
