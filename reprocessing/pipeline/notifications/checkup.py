"""Run the checks of redrive_doctor (every 10 minutes by default), and notify people of the errors that they find."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
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
#: Seconds after which a call of `checkup` begins with no other DLQ. Checks take longer while AWS does not answer.
CHECK_SECONDS: Final = 60.0


def checkup(of: CheckContext, clock: Callable[[], float] = time.monotonic) -> None:
    """Check the service and the next DLQs: one to five, as many as begin within 60 s, measured by `clock`.

    Open an incident for each check that finds an error. People are notified of incidents. An incident ends when its
    check finds no error, or when its subject no longer exists, such as the former name of a DLQ. If a check could not
    be made, its incident stays as it is. This function commits by itself after each check, so that checks that are
    killed later lose no incident.
    """
    until = clock() + CHECK_SECONDS
    _record(doctor.run_service_checks(of), None)
    for _ in range(min(DLQS, DeadLetterQueue.objects.count())):
        for dlq in DeadLetterQueue.objects.filter(pk__in=doctor_turns.next_dlqs(1)):
            _record(doctor.run_dlq_checks(replace(of, names=(dlq.name,))), dlq.pk)
        if clock() >= until:
            return


def _record(looks: Iterable[CheckResult], dlq: int | None) -> None:
    """Open and end the incidents of the service itself (`dlq` None) or of one DLQ."""
    looked = set[str]()
    for look in looks:
        subject = of_finding(look.title)
        looked.add(subject)
        severities = [finding.severity for finding in look.findings]
        if FindingSeverity.ERROR in severities:
            rows.in_transaction(partial(announce, [_event(look, dlq)]))
        elif FindingSeverity.UNKNOWN not in severities:
            rows.in_transaction(partial(conclude, [(EventKind.DOCTOR_WORSE, subject)]))
    gone = [subject for subject, of_dlq in open_findings().items() if of_dlq == dlq and subject not in looked]
    if looked and gone:
        rows.in_transaction(partial(conclude, [(EventKind.DOCTOR_WORSE, subject) for subject in gone]))


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
