"""Describe findings of redrive_doctor: what is wrong, why it matters, and what to do."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Final

#: A clock difference above `_WARNING_ABOVE` (5 s) is a warning, above `_ERROR_ABOVE` (30 s) an error.
_WARNING_ABOVE: Final = timedelta(seconds=5)
_ERROR_ABOVE: Final = timedelta(seconds=30)


class FindingSeverity(StrEnum):
    """The severity of a finding. Only `ERROR` makes redrive_doctor fail."""

    ERROR = "error"  #: something does not work, or messages are in danger, until a person acts
    WARN = "warn"  #: something may become a problem, or is not as recommended
    UNKNOWN = "unknown"  #: the check could not be made
    NOTE = "note"  #: information about a state that is no problem
    WELL = "well"  #: the check found no problem


@dataclass(frozen=True, slots=True)
class DoctorFinding:
    """The result of one check of redrive_doctor.

    Attributes:
        where: the name of the server, queue, DLQ or target that was checked.
        what: what was found, in a sentence.
        why: why it matters; may be empty.
        cure: what to do, with the command; may be empty.
    """

    severity: FindingSeverity
    where: str
    what: str
    why: str = ""
    cure: str = ""


def error_finding(where: str, what: str, why: str, cure: str) -> DoctorFinding:
    """Return a finding of severity `ERROR`."""
    return DoctorFinding(FindingSeverity.ERROR, where, what, why, cure)


def warning_finding(where: str, what: str, why: str = "", cure: str = "") -> DoctorFinding:
    """Return a finding of severity `WARN`."""
    return DoctorFinding(FindingSeverity.WARN, where, what, why, cure)


def unknown_finding(where: str, what: str, why: str = "", cure: str = "") -> DoctorFinding:
    """Return a finding of severity `UNKNOWN`: the check could not be made."""
    return DoctorFinding(FindingSeverity.UNKNOWN, where, what, why, cure)


def note_finding(where: str, what: str, cure: str = "") -> DoctorFinding:
    """Return a finding of severity `NOTE`: information, no problem."""
    return DoctorFinding(FindingSeverity.NOTE, where, what, "", cure)


def ok_finding(where: str, what: str) -> DoctorFinding:
    """Return a finding of severity `WELL`: the check found no problem."""
    return DoctorFinding(FindingSeverity.WELL, where, what)


def clock_finding(where: str, ahead: timedelta, within: timedelta) -> DoctorFinding:
    """Return a finding about two clocks: an error above 30 s of difference, a warning above 5 s, else no problem.

    `where` names both clocks, such as "PostgreSQL's clock against this machine's". `ahead`: how far the first clock is
    ahead of the second. `within`: the uncertainty of `ahead`, such as half the duration of the request for the time.
    """
    off = max(abs(ahead) - within, timedelta(0))
    what = f"{abs(ahead).total_seconds():,.1f} s {'ahead' if ahead >= timedelta(0) else 'behind'}."
    why = "Leases, due times, the expiry of messages in SQS, and signatures depend on the clocks."
    cure = "Synchronise both machines' clocks (see chronyc tracking or timedatectl). Then run: manage.py redrive_doctor"
    if off > _ERROR_ABOVE:
        return error_finding(where, what, why, cure)
    return warning_finding(where, what, why, cure) if off > _WARNING_ABOVE else ok_finding(where, "the clocks agree.")
