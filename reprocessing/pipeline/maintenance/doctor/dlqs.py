"""Check one DLQ as it was added: queues, rights, schedule, time left. `examine` judges the queues."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from reprocessing.conf import Conf
from reprocessing.domain.errors import QueueIsOutOfReach
from reprocessing.domain.maintenance.findings import Grade, Remark, ill, unknown, warn, well
from reprocessing.gateways.sqs import QueueAddress, describe
from reprocessing.gateways.sqs.permission_probe import SENDING, TAKING
from reprocessing.models import DeadLetterQueue
from reprocessing.models.dlq import Mode
from reprocessing.models.target import QUEUES
from reprocessing.pipeline.dlqs import examine
from reprocessing.pipeline.dlqs.examine import Examination, Finding, Severity, Wanted
from reprocessing.pipeline.dlqs.examine.queues import AWS_MOVES
from reprocessing.pipeline.maintenance.doctor import configuration, poll_history
from reprocessing.pipeline.maintenance.doctor.sqs_permissions import lacking
from reprocessing.store.differences import Difference
from reprocessing.store.dlqs import registration
from reprocessing.store.routing import rules
from reprocessing.store.targets import targets

_GRADES: Final = {Severity.REFUSE: Grade.ERROR, Severity.WARN: Grade.WARN, Severity.NOTE: Grade.NOTE}
#: Consequences of an outdated field; others are harmless.
_WHY: Final = {
    "window": "A message that fails again may come back later than that: by then it is presumed delivered, wrongly.",
    "watched_by": "Messages that fail again come back elsewhere, so their absence from the old DLQ proves nothing.",
    "fifo": "Order and deduplication are other than what messages are sent with.",
    "arn": "It is another queue by now.",
    "retention": "When SQS drops a copy is reckoned with the old one.",
    "visibility": "How long a fresh lane rests is reckoned with the old one.",
}
_NAMES: Final = {
    "window": "window (in seconds) of",
    "watched_by": "watched DLQ behind",
    "size_limit": "largest message of",
}
_ILL: Final = frozenset({"window", "watched_by", "fifo", "arn"})
_NOT_ASKED: Final = frozenset({registration.DEFAULT, "region"})


def remarks(row: DeadLetterQueue, conf: Conf) -> Iterator[Remark]:
    """Run all checks of a DLQ."""
    found = [
        *poll_history.remarks(row, conf),
        *configuration.remarks(row, conf),
        *_regions(row),
        *_rights(row),
        *_besides(row),
        *_examined(row, conf),
    ]
    yield from found
    if all(remark.grade is Grade.NOTE for remark in found):
        yield well(row.name, "its queues, rights, policies and schedule are as they have to be.")


def _queues(row: DeadLetterQueue) -> dict[str, QueueAddress]:
    """Return the queues among its targets, by ARN."""
    found = row.origins.filter(target__kind__in=QUEUES).select_related("target").order_by("arn")
    rows = [origin.target for origin in found]
    return {target.arn: QueueAddress(target.url, target.region, target.role_arn) for target in rows}


def _address(row: DeadLetterQueue) -> QueueAddress:
    return QueueAddress(row.url, row.region, row.role_arn)


def _regions(row: DeadLetterQueue) -> Iterator[Remark]:
    """Check that calls are signed for the region that each queue is in."""
    for address in (_address(row), *_queues(row).values()):
        try:
            region = describe(address).arn.split(":")[3]
        except QueueIsOutOfReach:
            continue  # another check reports it
        if region != address.region:
            why = "Calls are signed for the wrong region: AWS refuses them, or they reach another queue."
            again = f"manage.py add_dlq {row.name} --confirm"
            cure = f"Set AWS_DEFAULT_REGION to {region} where its URL names none, then {again}"
            yield ill(address.name, f"It is in {region}, and is remembered in {address.region}.", why, cure)


def _rights(row: DeadLetterQueue) -> Iterator[Remark]:
    """Check the rights on the DLQ and on its target queues."""
    if row.mode == Mode.OBSERVE:
        return
    for address, rights in ((_address(row), TAKING), *((_queue, SENDING) for _queue in _queues(row).values())):
        try:
            yield from lacking(address, rights)
        except QueueIsOutOfReach as error:
            yield ill(address.name, str(error), "What cannot be reached is neither emptied nor filled.", "")


@dataclass(frozen=True, slots=True)
class _Beside:
    """A queue beside the DLQ's own targets: the consequence if it takes nothing, and the cure."""

    address: QueueAddress
    why: str
    cure: str


def _besides(row: DeadLetterQueue) -> Iterator[Remark]:
    """Check that the parking queue and the target queues of rules exist, and may be sent to."""
    if row.mode == Mode.OBSERVE:
        return
    for beside in (*_parking(row), *_ruled(row)):
        try:
            yield from _sent_to(beside)
        except QueueIsOutOfReach as error:
            yield ill(beside.address.name, str(error), beside.why, beside.cure)


def _sent_to(queue: _Beside) -> Iterator[Remark]:
    yield from lacking(queue.address, SENDING)
    try:
        describe(queue.address)
    except QueueIsOutOfReach as error:
        if "AccessDenied" not in str(error):
            raise
        yield unknown(queue.address.name, str(error), "Whether it is there is not known.")


def _parking(row: DeadLetterQueue) -> Iterator[_Beside]:
    if row.parking_url:
        why = "What is parked, and what has left the parking lot, is not told there: it waits. The lot itself is whole."
        cure = f'Name another one, or "off": manage.py add_dlq {row.name} --parking-url URL --confirm'
        yield _Beside(QueueAddress.of(row.parking_url), why, cure)


def _ruled(row: DeadLetterQueue) -> Iterator[_Beside]:
    """Yield each target queue of a rule once, without the DLQ's own targets."""
    told = set(_queues(row))
    for rule in rules.leading(row.pk):
        if (to := rule.target) is not None and to.kind in QUEUES and to.arn not in told:
            told.add(to.arn)
            why = f"The rule {rule.name} sends messages there, and they cannot go."
            another = f"manage.py add_rule {rule.name} --to QUEUE --reason WHY --confirm"
            cure = f"Give the rule another queue ({another}), or disable it."
            yield _Beside(QueueAddress(to.url, to.region, to.role_arn), why, cure)


def _examined(row: DeadLetterQueue, conf: Conf) -> Iterator[Remark]:
    """Yield what add_dlq would say of the DLQ now, without sources that are gone."""
    named = []
    for origin in row.origins.select_related("target").order_by("arn"):
        if origin.target.kind in QUEUES and origin.target.arn == origin.arn:
            address = QueueAddress(origin.target.url, origin.target.region, origin.target.role_arn)
            try:
                describe(address)
            except QueueIsOutOfReach as error:
                why = "Messages that died in it go back to it, and cannot."
                cure = f"Say where they go instead: manage.py add_dlq {row.name} --to URL --confirm"
                yield ill(address.name, str(error), why, cure)
            else:
                named.append(address.url)
    try:
        found = examine.dlq(Wanted(name=row.name, origins=tuple(named)), conf)
    except QueueIsOutOfReach as error:
        why = "Nothing of it can be looked at or captured."
        yield ill(row.name, str(error), why, "Then run manage.py redrive_doctor again.")
        return
    told = AWS_MOVES if row.native_at else None  # poll_history reports it
    yield from (
        _found(row.name, finding) for finding in found.findings if told is None or not finding.what.startswith(told)
    )
    yield from _outdated(row, found)


def _found(name: str, finding: Finding) -> Remark:
    cure = finding.cure
    if finding.severity is not Severity.NOTE and "--" in cure and "manage.py" not in cure:
        cure += f" (options of manage.py add_dlq {name} --confirm)"
    return Remark(_GRADES[finding.severity], name, finding.what, "", cure)


def _outdated(row: DeadLetterQueue, found: Examination) -> Iterator[Remark]:
    strangers = [(arn, fields) for arn, fields in found.proposal.targets.items() if arn not in found.sight.targets]
    of_strangers = [difference for arn, fields in strangers for difference in targets.differences(arn, fields, None)]
    for difference in registration.differences(found.proposal):
        if difference.field in _NOT_ASKED or replace(difference, kind="") in of_strangers:  # not remembered yet
            continue
        yield _differs(row.name, difference)


def _differs(name: str, difference: Difference) -> Remark:
    cure = f"manage.py add_dlq {name} shows what it would remember now; with --confirm it does."
    if difference.field == registration.ORIGIN:
        what = f"Messages of {difference.after} die into it, and it is no origin that is known."
        return warn(name, what, "Where its messages go is decided only when they are captured.", cure)
    which = f"{_NAMES.get(difference.field, f'{difference.field} of')} {difference.of}"
    what = f"The {which} is remembered as {_said(difference.before)}, and is {_said(difference.after)} by now."
    why = _WHY.get(difference.field, "What is remembered of it is old.")
    return ill(name, what, why, cure) if difference.field in _ILL else warn(name, what, why, cure)


def _said(value: object) -> str:
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
