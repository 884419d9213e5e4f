"""Describe the values to store for a DLQ, its source queues and targets (a proposal), and what they would change.

A DLQ's poll schedule is stored in rows of django_celery_beat. The functions at the end convert it from and to text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, Final

from django.conf import settings
from django_celery_beat.models import CrontabSchedule, IntervalSchedule

from reprocessing.domain.message.arn import resource_name
from reprocessing.models.dlq import DeadLetterQueue
from reprocessing.store.proposed_changes import Difference, Fields, changed_fields
from reprocessing.store.targets import targets

#: The kinds of changed rows; shown with the name, because a DLQ and its source queue often have the same name.
DLQ, SOURCE_QUEUE, TARGET = "DLQ", "source queue", "target"
#: Names of changed fields; the name of a source queue follows TO.
SOURCE, DEFAULT, TO, TEAMS = "source", "default_source", "target of", "teams"
#: If one of these DLQ fields changes, the lanes of captured letters are determined again.
PLACE_KEYS = ("ordering_key", "sequence", "idempotency_key", "missing_key")
#: If one of these target fields changes, the lanes of captured letters are determined again.
TARGET_KEYS = ("kind", "strips_expires")
#: Fields that rules read: after a change, rules are evaluated again.
RULE_KEYS = ("message_type", "tenant")
#: Names of the five fields of a crontab text, in their order.
CRONTAB: Final = ("minute", "hour", "day_of_month", "month_of_year", "day_of_week")


@dataclass(frozen=True, slots=True, kw_only=True)
class DlqProposal:
    """The values to store for a DLQ, its source queues and their targets.

    Attributes:
        dlq: the values of the DLQ's row, by field name; `interval` in seconds, `crontab` as a text of five fields.
        ways: for each source queue's ARN, the ARN of its target.
        targets: for each target's ARN, the values of the target's row, by field name; `watched_by` is the ARN of the
            target's DLQ.
        default_source: ARN of the source queue of messages for which SQS names no source queue; None: no change.
        teams: names of the groups whose members see the DLQ; None: no change.
    """

    name: str
    dlq: Fields
    ways: Mapping[str, str] = field(default_factory=dict)
    targets: Mapping[str, Fields] = field(default_factory=dict)
    default_source: str | None = None
    teams: Sequence[str] | None = None


def differences(proposal: DlqProposal) -> list[Difference]:
    """Return the fields that a proposal would change; for a new DLQ, all fields."""
    dlq = DeadLetterQueue.objects.filter(name=proposal.name).select_related("interval", "crontab", "policy").first()
    known = targets.find_targets(proposal.targets)
    goes_to = dict(dlq.sources.values_list("arn", "target__arn")) if dlq else {}
    found = changed_fields(proposal.name, _values_of_dlq(dlq, proposal.dlq) if dlq else {}, proposal.dlq)
    if proposal.teams is not None:
        now = {TEAMS: sorted(dlq.teams.values_list("name", flat=True)) if dlq else []}
        found += changed_fields(proposal.name, now, {TEAMS: sorted(proposal.teams)})
    of_targets: list[Difference] = []
    for arn, target in proposal.ways.items():
        if arn not in goes_to:
            found.append(Difference(proposal.name, SOURCE, None, arn))
        if goes_to.get(arn, arn) != target:
            found.append(Difference(proposal.name, f"{TO} {resource_name(arn)}", goes_to.get(arn), target))
    for arn, values in proposal.targets.items():
        kind = SOURCE_QUEUE if arn in proposal.ways else TARGET
        of_targets += [replace(change, kind=kind) for change in targets.differences(arn, values, known.get(arn))]
    default = dlq.default_source.arn if dlq and dlq.default_source else None
    if proposal.default_source not in {None, default}:
        found.append(Difference(proposal.name, DEFAULT, default, proposal.default_source))
    return [*(replace(change, kind=DLQ) for change in found), *of_targets]


def _values_of_dlq(dlq: DeadLetterQueue, wanted: Fields) -> dict[str, Any]:
    values = {name: getattr(dlq, name) for name in wanted}
    if "interval" in values:
        values["interval"] = dlq.interval and interval_seconds(dlq.interval)
    if "policy" in values:
        values["policy"] = dlq.policy and dlq.policy.name
    if "crontab" in values:
        values["crontab"] = crontab_text(dlq.crontab)
    return values


def crontab_schedule(text: str) -> CrontabSchedule:
    """Return an unsaved crontab schedule for a text of five fields, such as `0 3 * * *`.

    Raises:
        ValueError: the text does not have five fields.
    """
    return CrontabSchedule(**dict(zip(CRONTAB, text.split(), strict=True)), timezone=settings.TIME_ZONE)


def crontab_text(crontab: CrontabSchedule | None) -> str | None:
    """Return the five fields of a crontab schedule as a text such as `0 3 * * *`; None: there is no schedule."""
    return crontab and " ".join(str(getattr(crontab, part)) for part in CRONTAB)


def interval_seconds(interval: IntervalSchedule) -> float:
    """Return the length of an interval in seconds. It may be too long for Python's `timedelta`."""
    unit = timedelta(**{interval.period: 1})
    return float(interval.every) * unit.total_seconds()
