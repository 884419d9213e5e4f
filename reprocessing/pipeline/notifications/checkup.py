"""Run the checks of redrive_doctor (every 10 minutes by default), and notify people of the errors that they find."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Final

from reprocessing.domain.maintenance.findings import FindingSeverity
from reprocessing.domain.notifications.event import Event, EventKind
from reprocessing.domain.notifications.subjects import of_finding
from reprocessing.models import DeadLetterQueue
from reprocessing.pipeline.maintenance import doctor
from reprocessing.pipeline.maintenance.doctor import CheckContext, CheckResult
from reprocessing.store import rows
from reprocessing.store.notifications import doctor_turns
from reprocessing.store.notifications.open_incidents import open_findings
from reprocessing.store.notifications.outbox import announce, conclude

#: Most DLQs that one call of `checkup` examines, to limit its calls to AWS. The next call examines the next DLQs.
DLQS: Final = 5


def checkup(of: CheckContext) -> None:
    """Check the service and the next five DLQs. Open an incident for each check that finds an error.

    People are notified of incidents. An incident ends when its check finds no error, or when its subject no longer
    exists, such as the former name of a DLQ. If a check could not be made, its incident stays as it is. This function
    commits by itself.
    """
    found: list[Event] = []
    over: list[tuple[EventKind, str]] = []
    looks = list(_looks(of))
    looked, checked = {of_finding(look.title) for look, _ in looks}, {dlq for _, dlq in looks}
    for subject, of_dlq in open_findings().items():
        if of_dlq in checked and subject not in looked:
            over.append((EventKind.DOCTOR_WORSE, subject))
    for look, dlq in looks:
        severities = [finding.severity for finding in look.findings]
        if FindingSeverity.ERROR in severities:
            found.append(_event(look, dlq))
        elif FindingSeverity.UNKNOWN not in severities:
            over.append((EventKind.DOCTOR_WORSE, of_finding(look.title)))
    rows.in_transaction(partial(_write, found, over))


def _write(found: list[Event], over: list[tuple[EventKind, str]]) -> None:
    announce(found)
    conclude(over)


def _looks(of: CheckContext) -> Iterator[tuple[CheckResult, int | None]]:
    for look in doctor.run_service_checks(of):
        yield look, None
    turns = doctor_turns.next_dlqs(DLQS)
    names = dict(DeadLetterQueue.objects.filter(pk__in=turns).values_list("pk", "name"))
    for dlq in turns:
        for look in doctor.run_dlq_checks(replace(of, names=(names[dlq],))):
            yield look, dlq


def _event(look: CheckResult, dlq: int | None) -> Event:
    """Return the event for a check with an error: the title of the check, and how many errors and warnings it found.

    The texts of the findings are left out, because they may quote AWS.
    """
    facts: dict[str, str | int | float] = {
        "errors": sum(finding.severity is FindingSeverity.ERROR for finding in look.findings),
        "warnings": sum(finding.severity is FindingSeverity.WARN for finding in look.findings),
        "finding": f"There is an error at {look.title}.",
    }
    return Event(EventKind.DOCTOR_WORSE, of_finding(look.title), facts, dlq_id=dlq)
