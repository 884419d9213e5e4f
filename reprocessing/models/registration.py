"""How a dlq is added and changed: its row, its origins, their targets, and the review, in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction
from django_celery_beat.models import CrontabSchedule, IntervalSchedule
from psycopg.errors import UniqueViolation

from reprocessing.domain.errors import DlqIsTaken
from reprocessing.models import enlistment, parking, rules
from reprocessing.models.dead_letter_queue import DeadLetterQueue, Origin
from reprocessing.models.review import Act, Review
from reprocessing.models.target import Target

Fields = Mapping[str, Any]
_CRONTAB = ("minute", "hour", "day_of_month", "month_of_year", "day_of_week")


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """What is to be remembered of a dlq, its origins and their targets.

    Attributes:
        dlq: values by the names of its row's fields; those of an existing row that are not here stay. `interval` is
            in seconds, `crontab` five fields in one text.
        targets: the same for each origin, by its ARN; `watched_by` is the ARN of the dlq behind it, and the names of
            `BRAKES` are fields of its breakers.
        default_origin: the ARN of the one for letters that do not say where they died.
    """

    name: str
    dlq: Fields
    targets: Mapping[str, Fields] = field(default_factory=dict)
    default_origin: str | None = None


@dataclass(frozen=True, slots=True)
class Difference:
    """One value that is not yet what is proposed; `of` is the dlq's or the target's name."""

    of: str
    field: str
    before: Any
    after: Any


@dataclass(frozen=True, slots=True)
class Registered:
    """What was done. `new`: there was no dlq of this name; no differences: nothing was to be done."""

    new: bool
    differences: list[Difference]


def differences(proposal: Proposal) -> list[Difference]:
    """What a proposal would change; of a dlq that is not there, everything that it says."""
    dlq = DeadLetterQueue.objects.filter(name=proposal.name).select_related("interval", "crontab").first()
    known = {one.arn: one for one in Target.objects.filter(arn__in=proposal.targets).select_related("watched_by")}
    origins = set(dlq.origins.values_list("arn", flat=True)) if dlq else set()
    found = _differing(proposal.name, _values_of_dlq(dlq, proposal.dlq) if dlq else {}, proposal.dlq)
    for arn, values in proposal.targets.items():
        target = known.get(arn)
        if arn not in origins:
            found.append(Difference(proposal.name, "origin", None, arn))
        found += _differing(_name(arn), _values_of_target(target, values) if target else {}, values)
    default = dlq.default_origin.arn if dlq and dlq.default_origin else None
    if proposal.default_origin not in {None, default}:
        found.append(Difference(proposal.name, "default_origin", default, proposal.default_origin))
    return found


#: What may be said of a target's breakers, all of them, as of fields of the target; and what a breaker calls it.
BRAKES: Mapping[str, str] = {
    "breaker_threshold": "threshold",
    "breaker_ratio": "ratio",
    "breaker_cooldown": "cooldown",
    "breaker_closes_after": "closes_after",
    "ramp_from": "ramp_from",
    "ramp_every": "ramp_every",
}

#: What a letter's place is read by: captured letters are placed again when one of these changes.
KEYS = ("ordering_key", "sequence", "idempotency_key", "missing_key")
#: What rules ask letters for: they decide otherwise when one of these changes.
ASKED = ("message_type", "tenant")


def register(proposal: Proposal, *, by: str, reason: str) -> Registered:
    """Add the dlq, or change what the proposal says otherwise; and write down who did it.

    Raises:
        DlqIsTaken: somebody else added it, or another name for its queue, at the same moment.
    """
    try:
        registered = _register(proposal, by, reason)
    except IntegrityError as error:
        if not isinstance(error.__cause__, UniqueViolation):
            raise
        raise DlqIsTaken(
            f"{proposal.name} was not written: somebody has just added it, or its queue under another name. "
            "See redrive_status, and run this again."
        ) from error
    if any(one.field == "parked_head" for one in registered.differences):
        parking.let_go(DeadLetterQueue.objects.get(name=proposal.name).pk)
    return registered


def _register(proposal: Proposal, by: str, reason: str) -> Registered:
    with transaction.atomic():
        if asked := any(name in ASKED for name in proposal.dlq):
            rules.lock()
        dlq = DeadLetterQueue.objects.select_for_update().filter(name=proposal.name).first()
        changes = differences(proposal)
        if not changes:
            return Registered(new=False, differences=[])
        new = dlq is None
        keys_changed = any(one.field in KEYS for one in changes)
        dlq = _write_dlq(dlq or DeadLetterQueue(name=proposal.name), proposal.dlq)
        _write_origins(dlq, proposal)
        if keys_changed and not new:
            enlistment.replan(dlq.pk)
        if asked and not new and any(one.field in ASKED for one in changes):
            rules.bump()
        Review.objects.create(
            act=Act.ADDED if new else Act.CHANGED,
            dlq=dlq,
            by=by,
            reason=reason,
            before={} if new else {f"{one.of}.{one.field}": one.before for one in changes},
            after={f"{one.of}.{one.field}": one.after for one in changes},
        )
        return Registered(new=new, differences=changes)


def _write_dlq(dlq: DeadLetterQueue, values: Fields) -> DeadLetterQueue:
    for name, value in values.items():
        setattr(dlq, name, value if name not in _SCHEDULES else _SCHEDULES[name](value))
    if any(name in values for name in _SCHEDULES):
        dlq.next_poll_at = None  # the old schedule's next time is none of the new one's
    dlq.save()
    return dlq


def _write_origins(dlq: DeadLetterQueue, proposal: Proposal) -> None:
    watching = {one.arn: one for one in DeadLetterQueue.objects.filter(arn__in=_watching(proposal))}
    for arn, values in proposal.targets.items():
        row = {**values, "watched_by": watching.get(values["watched_by"])} if "watched_by" in values else values
        defaults = {name: value for name, value in row.items() if name not in BRAKES}
        target, _ = Target.objects.update_or_create(arn=arn, defaults=defaults)
        _write_brakes(target, values)
        Origin.objects.get_or_create(dlq=dlq, arn=arn, defaults={"target": target})
    if proposal.default_origin:
        DeadLetterQueue.objects.filter(pk=dlq.pk).update(
            default_origin=Origin.objects.get(dlq=dlq, arn=proposal.default_origin)
        )


def _write_brakes(target: Target, values: Fields) -> None:
    """A ramp that has not climbed starts where it is told to; one that has is not put back."""
    said = {its: values[name] for name, its in BRAKES.items() if name in values}
    if not said:
        return
    for breaker in target.breakers.select_for_update().order_by("pk"):
        climbed = breaker.ramp > breaker.ramp_from
        for its, value in said.items():
            setattr(breaker, its, value)
        breaker.ramp = max(breaker.ramp, breaker.ramp_from) if climbed else breaker.ramp_from
        breaker.cooldown_cap = max(breaker.cooldown_cap, breaker.cooldown)
        breaker.save(update_fields=[*said, "ramp", "cooldown_cap"])


def _watching(proposal: Proposal) -> list[str]:
    return [values["watched_by"] for values in proposal.targets.values() if values.get("watched_by")]


def crontab(text: str) -> CrontabSchedule:
    """The unsaved row of a crontab's five fields.

    Raises:
        ValueError: they are not five.
    """
    return CrontabSchedule(**dict(zip(_CRONTAB, text.split(), strict=True)), timezone=settings.TIME_ZONE)


def seconds(interval: IntervalSchedule) -> float:
    """How long an interval is, also one that is longer than any calendar."""
    one = timedelta(**{interval.period: 1})
    return float(interval.every) * one.total_seconds()


def _interval(seconds: int | None) -> IntervalSchedule | None:
    if seconds is None:
        return None
    row, _ = IntervalSchedule.objects.get_or_create(every=seconds, period=IntervalSchedule.SECONDS)
    return row


def _crontab(text: str | None) -> CrontabSchedule | None:
    if text is None:
        return None
    wanted = {part: getattr(crontab(text), part) for part in (*_CRONTAB, "timezone")}
    row, _ = CrontabSchedule.objects.get_or_create(**wanted)
    return row


_SCHEDULES: Mapping[str, Callable[[Any], Any]] = {"interval": _interval, "crontab": _crontab}


def _differing(of: str, now: Fields, wanted: Fields) -> list[Difference]:
    return [
        Difference(of, name, now.get(name), value)
        for name, value in wanted.items()
        if name not in now or now[name] != value
    ]


def _values_of_dlq(dlq: DeadLetterQueue, wanted: Fields) -> dict[str, Any]:
    values = {name: getattr(dlq, name) for name in wanted}
    if "interval" in values:
        values["interval"] = dlq.interval and seconds(dlq.interval)
    if "crontab" in values:
        values["crontab"] = dlq.crontab and " ".join(str(getattr(dlq.crontab, part)) for part in _CRONTAB)
    return values


def _values_of_target(target: Target, wanted: Fields) -> dict[str, Any]:
    values = {name: getattr(target, name) for name in wanted if name not in BRAKES}
    if any(name in BRAKES for name in wanted):
        breaker = target.breakers.get(rate_class=None)
        values |= {name: getattr(breaker, its) for name, its in BRAKES.items() if name in wanted}
    if "watched_by" in values:
        values["watched_by"] = target.watched_by and target.watched_by.arn
    return values


def _name(arn: str) -> str:
    return arn.rpartition(":")[2]
