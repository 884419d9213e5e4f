"""Checks of targets other than the source queue."""

from __future__ import annotations

from collections.abc import Iterator

from reprocessing.domain.message.arn import Named, name_of, read
from reprocessing.models import DeadLetter, Origin, Rule
from reprocessing.models.dlq import Mode
from reprocessing.models.target import Proof, TargetKind
from reprocessing.pipeline.dlqs.examine.findings import Case, Finding, note, refuse, warn

_UNDER_WAY = ("waiting", "sending", "awaiting")
_PUBLISHED = (TargetKind.TOPIC, TargetKind.BUS)


def reached(case: Case) -> Iterator[Finding]:
    """Messages of every source have a target."""
    for dead_end in case.sight.nowhere:
        yield refuse(dead_end.why, dead_end.cure)


def circles(case: Case) -> Iterator[Finding]:
    """No target is a watched DLQ."""
    for rule in Rule.objects.filter(target__arn=case.arn, enabled=True).order_by("name"):
        yield refuse(
            f"The rule {rule.name} sends messages to this queue: watched, it would have them captured as failed, and "
            "sent again without end.",
            f"Give the rule another queue (manage.py add_rule {rule.name} --to QUEUE --reason WHY --confirm), "
            "or disable it.",
        )
    led = Origin.objects.filter(target__arn=case.arn).exclude(arn=case.arn).select_related("dlq")
    for origin in led.exclude(dlq__name=case.name).order_by("dlq__name", "arn"):
        yield refuse(
            f"Messages of {origin.dlq.name} that died in {origin} go to this queue: watched, it would have them "
            "captured as failed.",
            f"Say where they go instead: manage.py add_dlq {origin.dlq.name} --to TARGET --confirm",
        )
    for arn in sorted({to for origin, to in case.sight.ways.items() if to != origin}):
        if arn == case.arn or arn in case.sight.dlqs:
            yield refuse(
                f"{name_of(arn)} is a watched DLQ: what is sent there would be captured as failed.",
                "Name a target that is not watched: --to TARGET.",
            )


def evidence(case: Case) -> Iterator[Finding]:
    """Only queues use the outcome absence."""
    for arn, target in case.sight.others.items():
        watched = case.of_target(arn, "watched_by")
        if case.of_target(arn, "proof") == Proof.ABSENCE and watched is None:
            yield refuse(
                f"The outcome absence cannot be seen: no watched DLQ lies behind {target}.",
                "Say --outcome accepted, or acknowledged.",
            )


def silent(case: Case) -> Iterator[Finding]:
    """Messages that do not name what failed have one possible source."""
    mute = [
        source
        for source in case.sight.ways
        if (arn := read(source)) and arn.named in {Named.FUNCTION, Named.SUBSCRIPTION}
    ]
    row = case.sight.row
    default = case.proposal.default_origin or (row and row.default_origin and row.default_origin.arn)
    if mute and len(case.sight.ways) > 1 and default not in mute:
        yield warn(
            "Messages from a function's own dead-message queue setting, and of subscriptions with raw delivery, do not "
            "name what failed: of several origins none is theirs, so they are parked.",
            f"Name the one that is: manage.py add_dlq {case.name} --origin {mute[0]} --confirm",
        )


def published(case: Case) -> Iterator[Finding]:
    """No message is published again."""
    for arn, target in case.sight.others.items():
        if target.kind in _PUBLISHED:
            what = "subscribers of the topic" if target.kind == TargetKind.TOPIC else "targets of the bus's rules"
            yield warn(
                f"Each message is published again: it goes to {target.refires or 0:,} {what} {name_of(arn)} again that "
                "had it already.",
                "To reach the one that failed alone: --to off, and --origin with its ARN.",
            )
            if case.mode == Mode.AUTOMATIC:
                yield refuse(
                    f"What fails again after it went to {name_of(arn)} comes back as a new message, whose attempts "
                    "nobody counts: in mode automatic it would be published again without end.",
                    "Say --mode manual, or --to another target.",
                )


def moved(case: Case) -> Iterator[Finding]:
    """No source has a new target."""
    row = case.sight.row
    before = {source.arn: source for source in row.origins.select_related("target")} if row else {}
    for arn, to in case.sight.ways.items():
        origin = before.get(arn)
        if origin is None or origin.target.arn == to:
            continue
        kept = DeadLetter.objects.filter(origin=origin, target=origin.target)
        under_way, parked = kept.filter(state__in=_UNDER_WAY).count(), kept.filter(state="parked").count()
        yield note(
            f"Messages of {origin} go to {name_of(to)} from now on, those that are captured already included. "
            f"{under_way:,} under way and {parked:,} parked ones keep {origin.target}.",
        )
