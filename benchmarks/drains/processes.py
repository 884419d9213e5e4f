"""Read processor time and memory of this program's child processes, by the part of the stack to which they belong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final

import psutil

from redrive_service.sandbox.servers.process import GUARD

#: A part's name, and a word in the command of one of its processes. Their children belong to the part, too.
PARTS: Final = {
    "worker": "celery", "PostgreSQL": "postgres", "local SQS": "sandbox.sqs", "Valkey": "valkey",
    "consumer": "consumer.py", "endpoint": "endpoint.py",
}  # fmt: skip


def seconds_by_part() -> Counter[str]:
    """Return the seconds of processor time that each part has used, with its ended child processes."""
    return _read(_seconds)


def worker_memory() -> dict[str, int]:
    """Return the memory of the worker's processes in bytes: RSS and, if the system has it, PSS (shared memory once)."""
    return {name: size for name, size in _read(_memory).items() if size}


def _read(figures: Callable[[], Counter[str]]) -> Counter[str]:
    while True:
        try:
            return figures()
        except psutil.NoSuchProcess:  # it ended meanwhile: its parent has its time now
            continue


def _seconds() -> Counter[str]:
    used: Counter[str] = Counter()
    for part, family in _families():
        used[part] += sum(sum(process.cpu_times()[:4]) for process in family)
    return used


def _memory() -> Counter[str]:
    sizes: Counter[str] = Counter()
    for part, family in _families():
        for process in family:
            if part == "worker" and str(GUARD) not in process.cmdline():
                told = process.memory_full_info()
                sizes["rss"] += told.rss
                sizes["pss"] += getattr(told, "pss", 0)
    return sizes


def _families() -> list[tuple[str, list[psutil.Process]]]:
    found = []
    for child in psutil.Process().children():
        family = [child, *child.children(recursive=True)]
        commands = " ".join(word for process in family for word in process.cmdline())
        found.append((next((name for name, word in PARTS.items() if word in commands), "other"), family))
    return found
