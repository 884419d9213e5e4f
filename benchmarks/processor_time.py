"""Read the processor time of this program's child processes, by the part of the stack that they belong to."""

from __future__ import annotations

from collections import Counter
from typing import Final

import psutil

#: A part's name, and a word in the command of one of its processes. Their children belong to the part, too.
PARTS: Final = {"worker": "celery", "PostgreSQL": "postgres", "local SQS": "sandbox.sqs", "Valkey": "valkey"}


def seconds_by_part() -> Counter[str]:
    """Return the seconds of processor time that each part has used, with its ended child processes."""
    used: Counter[str] = Counter()
    for child in psutil.Process().children():
        family = [child, *child.children(recursive=True)]
        commands = " ".join(word for process in family for word in process.cmdline())
        part = next((name for name, word in PARTS.items() if word in commands), "other")
        used[part] += sum(sum(process.cpu_times()[:4]) for process in family)
    return used
