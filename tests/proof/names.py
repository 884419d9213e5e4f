"""The names of cases: python -m tests.proof.names LAYER lists them. Nothing is started for it."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterable
from typing import Final, NoReturn

import django

LAYERS: Final = ("simulation", "machine", "failpoints", "dependencies", "planted", "poison")
SCREENS: Final = "screens/"  #: how the names of those cases of `poison` begin that are looked at on screens
NUMBERED: Final = frozenset({"simulation", "machine"})  #: layers whose cases are numbers
_FIGURES: Final = 18
A_NUMBER: Final = f"a whole number of at most {_FIGURES} figures"
PLACES: Final = ("first", "middle", "last")
IN_TURN: Final = "all in turn for ten minutes"
KILLED: Final = "kill to leased again"
RESTARTED: Final = "rate after a restart"
MEASURED: Final = (KILLED, RESTARTED)
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
    """Have the models importable in this process, which connects to nothing from then on."""
    os.environ.pop("REDRIVE_MODE", None)
    os.environ.update(_NOWHERE)
    django.setup()


def begun(asked: str, some: Iterable[str]) -> list[str]:
    """Of these names of `poison` the one that is asked for, or else those that begin so.

    Screens are meant by who says so.
    """
    found = [name for name in some if name.startswith(asked) and asked.startswith(SCREENS) == name.startswith(SCREENS)]
    return [asked] if asked in found else found


def is_number(name: str) -> bool:
    return name.isdecimal() and len(name) <= _FIGURES


def misused(sentence: str) -> NoReturn:
    """End as a program does that was asked for what it does not do: a sentence, and 2."""
    print(sentence, file=sys.stderr)  # noqa: T201  it was asked
    sys.exit(2)


def names(layer: str) -> list[str]:
    """The cases of a layer; none of those whose cases are numbers. The models are importable."""
    # What a layer imports takes seconds: only of that which is asked for.
    if layer == "failpoints":
        from tests.proof.failpoints.cells import CELLS  # noqa: PLC0415

        return [one.name for one in CELLS]
    if layer == "dependencies":
        from tests.proof.dependencies.outages import OUTAGES  # noqa: PLC0415
        from tests.proof.dependencies.refusals import REFUSALS  # noqa: PLC0415

        return [*OUTAGES, *REFUSALS, IN_TURN, *MEASURED]
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
    asked = sys.argv[1:]
    if len(asked) != 1 or asked[0] not in LAYERS:
        misused(f"Usage: .venv/bin/python -m tests.proof.names LAYER; there are: {', '.join(LAYERS)}.")
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # who reads only the first of them has read enough
    without_servers()
    print("\n".join(names(asked[0]) or [f"The cases of {asked[0]} are whole numbers: 0, 1, 2 ..."]))  # noqa: T201


if __name__ == "__main__":
    main()
