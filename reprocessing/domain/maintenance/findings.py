"""Findings of redrive_doctor: what is wrong, why it matters, and what to do."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Final

#: A clock that is off by more than `_NOTICED` is a warning; by more than `_ILL`, an error.
_NOTICED: Final = timedelta(seconds=5)
_ILL: Final = timedelta(seconds=30)


class Grade(StrEnum):
    """How severe a finding is. Only `ILL` makes redrive_doctor fail."""

    ERROR = "error"  #: something does not work, or messages are in danger, until a person acts
    WARN = "warn"  #: a warning
    UNKNOWN = "unknown"  #: it could not be checked
    NOTE = "note"  #: information
    WELL = "well"  #: no problem


@dataclass(frozen=True, slots=True)
class Remark:
    """One finding.

    Attributes:
        where: the name of a server, a queue, a DLQ or a target.
        what: what was found, in a sentence.
        why: why it matters; may be empty.
        cure: what to do, with the command; may be empty.
    """

    grade: Grade
    where: str
    what: str
    why: str = ""
    cure: str = ""


def ill(where: str, what: str, why: str, cure: str) -> Remark:
    """Return an error."""
    return Remark(Grade.ERROR, where, what, why, cure)


def warn(where: str, what: str, why: str = "", cure: str = "") -> Remark:
    """Return a warning."""
    return Remark(Grade.WARN, where, what, why, cure)


def unknown(where: str, what: str, why: str = "", cure: str = "") -> Remark:
    """Return a finding about something that could not be checked."""
    return Remark(Grade.UNKNOWN, where, what, why, cure)


def note(where: str, what: str, cure: str = "") -> Remark:
    """Return information."""
    return Remark(Grade.NOTE, where, what, "", cure)


def well(where: str, what: str) -> Remark:
    """Return that a check found no problem."""
    return Remark(Grade.WELL, where, what)


def clock(where: str, ahead: timedelta, within: timedelta) -> Remark:
    """Return whether two clocks agree.

    Args:
        where: the two clocks, in words.
        ahead: by how much the first is ahead of the second.
        within: the uncertainty of `ahead`, such as half the time of the request.
    """
    off = max(abs(ahead) - within, timedelta(0))
    what = f"{abs(ahead).total_seconds():,.1f} s {'ahead' if ahead >= timedelta(0) else 'behind'}."
    why = "Leases, the times letters are due, how long they have until SQS drops them, and signatures go by it."
    cure = "Have both machines keep time (chronyc tracking, timedatectl), then run manage.py redrive_doctor again."
    if off > _ILL:
        return ill(where, what, why, cure)
    return warn(where, what, why, cure) if off > _NOTICED else well(where, "they agree.")
