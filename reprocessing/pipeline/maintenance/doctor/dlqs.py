"""Check one stored DLQ: its queues, permissions, schedule, and the time before SQS deletes messages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from reprocessing.conf import Conf
from reprocessing.domain.errors import QueueUnreachable
from reprocessing.domain.maintenance.findings import (
    DoctorFinding,
    FindingSeverity,
    error_finding,
    ok_finding,
    unknown_finding,
    warning_finding,
)
from reprocessing.domain.targets.target_kind import QUEUE_KINDS
from reprocessing.gateways.sqs import QueueAddress, describe
from reprocessing.gateways.sqs.permission_probe import SENDING, TAKING
from reprocessing.models import DeadLetterQueue
from reprocessing.models.dlq import Mode
from reprocessing.pipeline.dlqs import examine
from reprocessing.pipeline.dlqs.examine import Examination, Finding, Severity, Wanted
from reprocessing.pipeline.dlqs.examine.queues import AWS_MOVES
from reprocessing.pipeline.maintenance.doctor import configuration, poll_history
from reprocessing.pipeline.maintenance.doctor.sqs_permissions import missing_rights
from reprocessing.store.dlqs import dlq_proposal
from reprocessing.store.proposed_changes import Difference
from reprocessing.store.routing import rules
from reprocessing.store.targets import targets

_GRADES: Final = {
    Severity.REFUSE: FindingSeverity.ERROR,
    Severity.WARN: FindingSeverity.WARN,
    Severity.NOTE: FindingSeverity.NOTE,
}
#: What follows if the stored value of a field is outdated. Other outdated fields are harmless.
_WHY: Final = {
    "window": "A message that fails again may come back later, when it is already presumed delivered.",
    "watched_by": "Messages that fail again come back elsewhere, so their absence from the old DLQ proves nothing.",
    "fifo": "Messages are sent with the wrong ordering and deduplication.",
    "arn": "It is a different queue now.",
    "retention": "The time at which SQS deletes copies is computed from the old value.",
    "visibility": "Waits of key queues are computed from the old value.",
}
#: The words for a field in a finding, if they differ from the name of the field.
_NAMES: Final = {
    "window": "window (in seconds) of",
    "watched_by": "watched DLQ behind",
    "size_limit": "largest message of",
}
#: Fields whose outdated value is an error. For other fields, it is a warning.
_ILL: Final = frozenset({"window", "watched_by", "fifo", "arn"})
#: Fields whose differences this check does not report.
_NOT_ASKED: Final = frozenset({dlq_proposal.DEFAULT, "region"})


def findings(row: DeadLetterQueue, conf: Conf) -> Iterator[DoctorFinding]:
    """Yield the findings of all checks of a DLQ. If none is worse than a note, also yield that the DLQ is correct."""
    found = [
        *poll_history.findings(row, conf),
        *configuration.findings(row, conf),
        *_regions(row),
        *_rights(row),
        *_other_queues(row),
        *_examined(row, conf),
    ]
    yield from found
    if all(finding.severity is FindingSeverity.NOTE for finding in found):
        yield ok_finding(row.name, "its queues, permissions, policies and schedule are correct.")


def _queues(row: DeadLetterQueue) -> dict[str, QueueAddress]:
    """Return the targets of a DLQ that are queues, by ARN."""
    found = row.sources.filter(target__kind__in=QUEUE_KINDS).select_related("target").order_by("arn")
    rows = [source.target for source in found]
    return {target.arn: QueueAddress(target.url, target.region, target.role_arn) for target in rows}


def _address(row: DeadLetterQueue) -> QueueAddress:
    return QueueAddress(row.url, row.region, row.role_arn)


def _regions(row: DeadLetterQueue) -> Iterator[DoctorFinding]:
    """Yield a finding for each queue with a wrong stored region: requests would be signed for the wrong region."""
    for address in (_address(row), *_queues(row).values()):
        try:
            region = describe(address).arn.split(":")[3]
        except QueueUnreachable:
            continue  # another check reports that the queue cannot be reached
        if region != address.region:
            why = "Calls are signed for the wrong region: AWS refuses them, or they reach another queue."
            again = f"manage.py add_dlq {row.name} --confirm"
            cure = f"Set AWS_DEFAULT_REGION to {region} where its URL names none, then {again}"
            yield error_finding(address.name, f"It is in {region}, but stored as in {address.region}.", why, cure)


def _rights(row: DeadLetterQueue) -> Iterator[DoctorFinding]:
    """Yield a finding for each permission that the service lacks on the DLQ or on a target queue."""
    if row.mode == Mode.OBSERVE:
        return
    for address, rights in ((_address(row), TAKING), *((_queue, SENDING) for _queue in _queues(row).values())):
        try:
            yield from missing_rights(address, rights)
        except QueueUnreachable as error:
            yield error_finding(address.name, str(error), "No messages are received from it or sent to it.", "")


@dataclass(frozen=True, slots=True)
class _OtherQueue:
    """The parking queue, or the queue that is the target of a rule.

    `why`: what follows if it does not accept messages. `cure`: what a person can do then.
    """

    address: QueueAddress
    why: str
    cure: str


def _other_queues(row: DeadLetterQueue) -> Iterator[DoctorFinding]:
    """Yield a finding if the parking queue or the target queue of a rule does not exist or refuses messages."""
    if row.mode == Mode.OBSERVE:
        return
    for queue in (*_parking(row), *_ruled(row)):
        try:
            yield from _sent_to(queue)
        except QueueUnreachable as error:
            yield error_finding(queue.address.name, str(error), queue.why, queue.cure)


def _sent_to(queue: _OtherQueue) -> Iterator[DoctorFinding]:
    yield from missing_rights(queue.address, SENDING)
    try:
        describe(queue.address)
    except QueueUnreachable as error:
        if "AccessDenied" not in str(error):
            raise
        yield unknown_finding(queue.address.name, str(error), "Whether it exists is unknown.")


def _parking(row: DeadLetterQueue) -> Iterator[_OtherQueue]:
    if row.parking_url:
        why = "Notices about parked messages are not sent there; they wait. The parking lot itself is complete."
        cure = f'Name another queue, or "off": manage.py add_dlq {row.name} --parking-url URL --confirm'
        yield _OtherQueue(QueueAddress.of(row.parking_url), why, cure)


def _ruled(row: DeadLetterQueue) -> Iterator[_OtherQueue]:
    """Yield each queue that is the target of one of the DLQ's rules, but is not a target of the DLQ itself."""
    told = set(_queues(row))
    for rule in rules.rules_with_targets(row.pk):
        if (to := rule.target) is not None and to.kind in QUEUE_KINDS and to.arn not in told:
            told.add(to.arn)
            why = f"The rule {rule.name} sends messages there, and they cannot be sent."
            another = f"manage.py add_rule {rule.name} --to QUEUE --reason WHY --confirm"
            cure = f"Give the rule another queue ({another}), or disable it."
            yield _OtherQueue(QueueAddress(to.url, to.region, to.role_arn), why, cure)


def _examined(row: DeadLetterQueue, conf: Conf) -> Iterator[DoctorFinding]:
    """Yield the findings that add_dlq would show about the DLQ now, and an error for each unreachable source queue."""
    named = []
    for source in row.sources.select_related("target").order_by("arn"):
        if source.target.kind in QUEUE_KINDS and source.target.arn == source.arn:
            address = QueueAddress(source.target.url, source.target.region, source.target.role_arn)
            try:
                describe(address)
            except QueueUnreachable as error:
                why = "Messages that failed in it cannot be sent back to it."
                cure = f"Set another target: manage.py add_dlq {row.name} --to URL --confirm"
                yield error_finding(address.name, str(error), why, cure)
            else:
                named.append(address.url)
    try:
        found = examine.dlq(Wanted(name=row.name, sources=tuple(named)), conf)
    except QueueUnreachable as error:
        why = "It cannot be checked or captured."
        yield error_finding(row.name, str(error), why, "Then run manage.py redrive_doctor again.")
        return
    told = AWS_MOVES if row.aws_redrive_since else None  # poll_history reports a redrive that is recorded
    yield from (
        _found(row.name, finding) for finding in found.findings if told is None or not finding.what.startswith(told)
    )
    yield from _outdated(row, found)


def _found(name: str, finding: Finding) -> DoctorFinding:
    cure = finding.cure
    if finding.severity is not Severity.NOTE and "--" in cure and "manage.py" not in cure:
        cure += f" (options of manage.py add_dlq {name} --confirm)"
    return DoctorFinding(_GRADES[finding.severity], name, finding.what, "", cure)


def _outdated(row: DeadLetterQueue, found: Examination) -> Iterator[DoctorFinding]:
    strangers = [(arn, fields) for arn, fields in found.proposal.targets.items() if arn not in found.observed.targets]
    of_strangers = [difference for arn, fields in strangers for difference in targets.differences(arn, fields, None)]
    for difference in dlq_proposal.differences(found.proposal):
        if difference.field in _NOT_ASKED or replace(difference, kind="") in of_strangers:  # not stored yet
            continue
        yield _differs(row.name, difference)


def _differs(name: str, difference: Difference) -> DoctorFinding:
    cure = f"manage.py add_dlq {name} shows the new values; --confirm stores them."
    if difference.field == dlq_proposal.SOURCE:
        what = f"Messages of {difference.after} fail into it, but that source is not stored."
        return warning_finding(name, what, "Where its messages go is decided only when they are captured.", cure)
    which = f"{_NAMES.get(difference.field, f'{difference.field} of')} {difference.name}"
    what = f"The {which} is stored as {_said(difference.before)}, but is {_said(difference.after)} now."
    why = _WHY.get(difference.field, "The stored value is outdated.")
    return error_finding(name, what, why, cure) if difference.field in _ILL else warning_finding(name, what, why, cure)


def _said(value: object) -> str:
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
