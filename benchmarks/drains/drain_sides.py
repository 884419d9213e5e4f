"""The processes beside a drain: the HTTP endpoint that is the target, or the consumer of the source queue."""

from __future__ import annotations

import itertools
import json
import os
import sys
import urllib.request
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.drains.drain_plan import Plan
from redrive_service.sandbox.servers.process import RunningServer, Server


@contextmanager
def running(name: str, folder: Path, *arguments: str) -> Iterator[None]:
    """Run a program of this folder, or of the folder above it, while the block runs."""
    here = Path(__file__).with_name(f"{name}.py")
    command = [sys.executable, str(here if here.exists() else here.parent.parent / here.name), *arguments]
    program = RunningServer(
        Server(name=name, command=command, log=folder / f"{name}.log", environment=dict(os.environ))
    )
    try:
        yield
    finally:
        program.stop()


def check_endpoint(plan: Plan, url: str, label: str, first: int) -> None:
    """End the program unless the endpoint got every letter once, and the letters of a key in order, one at a time.

    `label`: how the keys begin. `first`: number of the first letter.
    """
    keys: dict[str, list[tuple[int, float, float]]] = defaultdict(list)
    with urllib.request.urlopen(url, timeout=60) as answer:
        for key, number, begun, ended in json.load(answer):
            if key.startswith(f"{label}-") and number >= first:
                keys[key].append((number, begun, ended))
    numbers = sorted(number for letters in keys.values() for number, *_ in letters)
    if numbers != list(range(first, first + plan.letters)):
        raise SystemExit(f"The endpoint got {len(numbers):,} letters, {len(set(numbers)):,} different ones.")
    if plan.is_ordered:
        for key, letters in keys.items():
            for before, after in itertools.pairwise(letters):
                if after[0] < before[0] or after[1] < before[2]:
                    raise SystemExit(f"The endpoint got letter {after[0]} of {key} while {before[0]} was open.")
