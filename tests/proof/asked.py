"""Check what is asked of the long form, before servers are started for it: python -m tests.proof.asked [LAYER]."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest

from tests.proof.ledger import Ledger
from tests.proof.names import LAYERS

HERE: Final = Path(__file__).parent
_NUMBERS: Final = ("PROVE_REPETITION", "PROVE_SEED", "PROVE_SEEDS", "PROVE_BOOTHS")


def refused(environment: Mapping[str, str], layer: str = "", ledger: Ledger | None = None) -> str:
    """Return why what is asked for cannot be done, in a sentence, or an empty text."""
    return next(_wrong(environment, layer, ledger or Ledger()), "")


def _wrong(environment: Mapping[str, str], layer: str, ledger: Ledger) -> Iterator[str]:
    if layer and not _is_one(layer):
        yield f"LAYER is {layer!r}; there are: {', '.join(LAYERS)}. It is one of them."
    minutes = environment.get("PROVE_MINUTES", "10")
    if not _is_bounded(minutes):
        yield f"MINUTES is {minutes!r}: how many minutes each test may take, such as 10 or 0.5."
    for name in _NUMBERS:
        if not environment.get(name, "1").isdecimal():
            yield f"{name} is {environment[name]!r}: it is a whole number, such as 3."
    if environment.get("PROVE_BOOTHS", "1").strip("0") == "":
        yield "PROVE_BOOTHS is 0: how many trials there are at a time, such as 3."
    try:
        ledger.open_up()
    except OSError as error:
        yield f"The ledger of what is proved cannot be used: {error}."


def _is_one(layer: str) -> bool:
    """Whether it is a layer, or is inside of one."""
    first, *more = layer.split("/")
    return first in LAYERS and ".." not in more and (HERE / layer).exists()


def _is_bounded(minutes: str) -> bool:
    try:
        return 0 < float(minutes) < float("inf")
    except ValueError:
        return False


def play_again(layer: str, test: str) -> int:
    """Run a test of a layer whose cases are numbers, for the number that the command line names."""
    parser = ArgumentParser(prog=f".venv/bin/python -m tests.proof.{layer}")
    parser.add_argument("number", type=int, help="which case of the layer to play again: 0, 1, 2 ...")
    os.environ["PROVE_SEED"] = str(parser.parse_args().number)
    if why := refused(os.environ):
        sys.exit(why)
    return pytest.main([str(HERE / layer), "-m", "prove", "-k", test, "-s", "-q", "--timeout", "0"])


if __name__ == "__main__":
    sys.exit(refused(os.environ, sys.argv[1] if len(sys.argv) > 1 else "") or 0)
