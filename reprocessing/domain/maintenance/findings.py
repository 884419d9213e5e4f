"""What the doctor says: a remark is a value, with what follows from it and its cure. Unknown is never well."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Final

#: A clock that is off by more warns; by more than the second, times that decide here are wrong.
_NOTICED: Final = timedelta(seconds=5)
_ILL: Final = timedelta(seconds=30)


class Grade(StrEnum):
    """How a part is. Only `ILL` fails a diagnosis."""

    ILL = "ill"  #: something does not work, or letters are in danger, until somebody acts
    WARN = "warn"  #: something does not go as hoped
    UNKNOWN = "unknown"  #: it could not be looked at
    NOTE = "note"  #: worth knowing
    WELL = "well"


@dataclass(frozen=True, slots=True)
class Remark:
    """One thing that was found.

    Attributes:
        where: a server's, a queue's, a dlq's or a target's name.
        what: what is so, in a sentence.
        why: what follows from it; empty where `what` says so.
        cure: what to do, with the command; empty where there is nothing to be done.
    """

    grade: Grade
    where: str
    what: str
    why: str = ""
    cure: str = ""


def ill(where: str, what: str, why: str, cure: str) -> Remark:
    """It has to be cured."""
    return Remark(Grade.ILL, where, what, why, cure)


def warn(where: str, what: str, why: str = "", cure: str = "") -> Remark:
    """It does not go as hoped."""
    return Remark(Grade.WARN, where, what, why, cure)


def unknown(where: str, what: str, why: str = "", cure: str = "") -> Remark:
    """It could not be looked at."""
    return Remark(Grade.UNKNOWN, where, what, why, cure)


def note(where: str, what: str, cure: str = "") -> Remark:
    """Worth knowing."""
    return Remark(Grade.NOTE, where, what, "", cure)


def well(where: str, what: str) -> Remark:
    """It was looked at, and is well."""
    return Remark(Grade.WELL, where, what)


def clock(where: str, ahead: timedelta, within: timedelta) -> Remark:
    """Whether two clocks agree.

    Args:
        where: whose clock it is, against whose.
        ahead: by how much the first is ahead of the second.
        within: how far off that figure itself may be, such as half of the time that the question took.
    """
    off = max(abs(ahead) - within, timedelta(0))
    what = f"{abs(ahead).total_seconds():,.1f} s {'ahead' if ahead >= timedelta(0) else 'behind'}."
    why = "Leases, the times letters are due, how long they have until SQS drops them, and signatures go by it."
    cure = "Have both machines keep time (chronyc tracking, timedatectl), then run manage.py redrive_doctor again."
    if off > _ILL:
        return ill(where, what, why, cure)
    return warn(where, what, why, cure) if off > _NOTICED else well(where, "they agree.")
