"""What is asked of the long form: refused, in a sentence, before servers are started for it.

`python -m tests.proof.asked [LAYER]` ends with the sentence, or with nothing where all can be done.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Final

from tests.proof.ledger import Ledger, LedgerIsShut
from tests.proof.names import A_NUMBER, LAYERS, begun, is_number, names, without_servers

HERE: Final = Path(__file__).parent
_NUMBERS: Final = ("PROVE_REPETITION", "PROVE_SEED", "PROVE_SEEDS", "PROVE_BOOTHS")


#: By variable: the layer whose cases it names, which of them those are, and how names are meant.
_NAMES: Final[dict[str, tuple[str, Callable[[str, list[str]], list[str]], str]]] = {
    "PROVE_CELL": ("failpoints", lambda asked, some: [name for name in some if asked in name], "a part of a name"),
    "PROVE_CASE": ("dependencies", lambda asked, some: [name for name in some if asked == name], "a whole name"),
    "POISON": ("poison", begun, "a whole name, or how several begin"),
}


def refused(environment: Mapping[str, str], layer: str = "", ledger: Ledger | None = None) -> str:
    """Why what is asked for cannot be done, with how to ask for what can; empty: it can.

    What is quick to find out comes first; models are needed, and made importable, only where a case is named.
    """
    return next(_quick(environment, layer, ledger or Ledger()), "")


def misnamed(environment: Mapping[str, str]) -> str:
    """Of the cases that are asked for, which there is not, and what is like it; empty: there are all."""
    for variable, (layer, meant, how) in _NAMES.items():
        asked = environment.get(variable, "")
        if variable not in environment or (not asked and variable != "PROVE_CASE"):
            continue
        found = names(layer)
        if not meant(asked, found):
            near = get_close_matches(asked, found, n=3) or [one for one in found if asked.lower() in one.lower()][:3]
            like = f" Like it: {', '.join(map(repr, near))}." if near and asked else ""
            return (
                f"{variable} is {asked!r}, and names no case; it is {how}.{like} "
                f"All names: .venv/bin/python -m tests.proof.names {layer}"
            )
    return ""


def _quick(environment: Mapping[str, str], layer: str, ledger: Ledger) -> Iterator[str]:
    if wrong := {"layer", "minutes"} & environment.keys():  # which `make` hands on, and knows nothing of
        yield f"LAYER and MINUTES are written in capitals; nobody reads {' and '.join(sorted(wrong))}."
    if layer and not _is_one(layer):
        yield f"LAYER is {layer!r}; there are: {', '.join(LAYERS)}. It is one of them; several need several commands."
    minutes = environment.get("PROVE_MINUTES", "10")
    if _is_endless(minutes):
        yield f"MINUTES is {minutes!r}: how many minutes each test may take, such as 10 or 0.5."
    for name in _NUMBERS:
        if name in environment and not is_number(environment[name]):
            yield f"{name} is {environment[name]!r}: it is {A_NUMBER}, such as 3."
    if environment.get("PROVE_BOOTHS", "1").strip("0") == "":
        yield "PROVE_BOOTHS is 0: how many trials there are at a time, such as 3."
    try:
        ledger.open_up()
    except LedgerIsShut as shut:
        yield str(shut)


def _is_one(layer: str) -> bool:
    first, *more = layer.split("/")
    return first in LAYERS and ".." not in more and (HERE / layer).exists()


def _is_endless(minutes: str) -> bool:
    try:
        return not 0 < float(minutes) < float("inf")
    except ValueError:
        return True


def main() -> None:
    why = refused(os.environ, sys.argv[1] if len(sys.argv) > 1 else "")
    if not why and any(name in os.environ for name in _NAMES):
        environment = dict(os.environ)
        without_servers()
        why = misnamed(environment)
    sys.exit(why or 0)


if __name__ == "__main__":
    main()
