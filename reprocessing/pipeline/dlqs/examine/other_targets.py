"""Check targets that are not the source queue of their messages."""

from __future__ import annotations

from collections.abc import Iterator

from reprocessing.domain.message.arn import ResourceKind, read, resource_name
from reprocessing.domain.targets.target_kind import TargetKind
from reprocessing.models import Letter, Rule, Source
from reprocessing.models.dlq import Mode
from reprocessing.models.target import Proof
from reprocessing.pipeline.dlqs.examine.findings import Case, Finding, note, refuse, warn

_UNDER_WAY = ("waiting", "sending", "awaiting")
_PUBLISHED = (TargetKind.TOPIC, TargetKind.BUS)


def unreachable_sources(case: Case) -> Iterator[Finding]:
    """Messages of every source have a target.

    The admin shows this sentence if the check passes. Else, the check yields a refusal for each source without
    a target.
    """
    for dead_end in case.observed.without_target:
        yield refuse(dead_end.why, dead_end.cure)


def targets_are_not_watched(case: Case) -> Iterator[Finding]:
    """No target is a watched DLQ.

    The admin shows this sentence if the check passes. Else, the check yields a refusal for each rule or source that
    sends messages to a watched DLQ: the messages would be captured as failed.
    """
    for rule in Rule.objects.filter(target__arn=case.arn, enabled=True).order_by("name"):
        yield refuse(
            f"The rule {rule.name} sends messages to this queue: if it is watched, they are captured as failed, "
            "and sent again without end.",
            f"Give the rule another queue (manage.py add_rule {rule.name} --to QUEUE --reason WHY --confirm), "
            "or disable it.",
        )
    led = Source.objects.filter(target__arn=case.arn).exclude(arn=case.arn).select_related("dlq")
    for source in led.exclude(dlq__name=case.name).order_by("dlq__name", "arn"):
        yield refuse(
            f"Messages of {source.dlq.name} that failed in {source} go to this queue: if it is watched, they are "
            "captured as failed.",
            f"Set another target: manage.py add_dlq {source.dlq.name} --to TARGET --confirm",
        )
    for arn in sorted({to for source, to in case.observed.targets_by_source.items() if to != source}):
        if arn == case.arn or arn in case.observed.dlqs:
            yield refuse(
                f"{resource_name(arn)} is a watched DLQ: what is sent there would be captured as failed.",
                "Name a target that is not watched: --to TARGET.",
            )


def evidence(case: Case) -> Iterator[Finding]:
    """Only queues use the outcome absence.

    The admin shows this sentence if the check passes. Absence means that a sent message did not come back to its DLQ.
    The check yields a refusal for each function or endpoint with this outcome, unless its failed messages go to a
    watched DLQ.
    """
    for arn, target in case.observed.other_targets.items():
        watched = case.of_target(arn, "watched_by")
        if case.of_target(arn, "proof") == Proof.ABSENCE and watched is None:
            yield refuse(
                f"The outcome absence cannot be proved: no watched DLQ gets failed messages of {target}.",
                "Set --outcome accepted, or set --outcome acknowledged.",
            )


def unnamed_failures(case: Case) -> Iterator[Finding]:
    """Messages that do not name what failed have one possible source.

    The admin shows this sentence if the check passes. Else, the check yields a warning. Messages of Lambda functions
    and of some subscriptions do not name their source. If the DLQ has several sources, and its default source is not a
    function or subscription, such messages are parked.
    """
    mute = [
        source
        for source in case.observed.targets_by_source
        if (arn := read(source)) and arn.named in {ResourceKind.FUNCTION, ResourceKind.SUBSCRIPTION}
    ]
    row = case.observed.row
    default = case.proposal.default_source or (row and row.default_source and row.default_source.arn)
    if mute and len(case.observed.targets_by_source) > 1 and default not in mute:
        yield warn(
            "Messages from the DLQ setting of a function, and of subscriptions with raw delivery, do not "
            "name what failed: with several sources, their source is unknown, and they are parked.",
            f"Name their source: manage.py add_dlq {case.name} --source {mute[0]} --confirm",
        )


def published(case: Case) -> Iterator[Finding]:
    """No message is published again.

    The admin shows this sentence if the check passes. Else, the check yields a warning (in mode automatic, a
    refusal) for each topic or bus that is a target, because all its subscribers get each message again.
    """
    for arn, target in case.observed.other_targets.items():
        if target.kind in _PUBLISHED:
            what = "subscribers of the topic" if target.kind == TargetKind.TOPIC else "targets of the bus's rules"
            yield warn(
                f"Each message is published again: it goes again to {target.confirmed_fanout or 0:,} {what} "
                f"{resource_name(arn)} that had it already.",
                "To reach only the receiver that failed: --to off, and --source with its ARN.",
            )
            if case.mode == Mode.AUTOMATIC:
                yield refuse(
                    f"A message that fails again after it went to {resource_name(arn)} comes back as a new message, "
                    "without a count of attempts: in mode automatic it would be published again without end.",
                    "Set --mode manual, or set --to TARGET for another target.",
                )


def changed_targets(case: Case) -> Iterator[Finding]:
    """No source has a new target.

    The admin shows this sentence if the check passes. Else, the check yields a note for each source whose
    messages will go to another target than before.
    """
    row = case.observed.row
    before = {source.arn: source for source in row.sources.select_related("target")} if row else {}
    for arn, to in case.observed.targets_by_source.items():
        source = before.get(arn)
        if source is None or source.target.arn == to:
            continue
        kept = Letter.objects.filter(dlq=row, source=source, target=source.target)  # an index begins with the DLQ
        under_way = kept.filter(state__in=_UNDER_WAY, finished_at=None).count()  # an index has unfinished letters only
        parked = kept.filter(state="parked").count()
        yield note(
            f"Messages of {source} go to {resource_name(to)} from now on, also those that are already captured. "
            f"Messages in progress ({under_way:,}) and parked messages ({parked:,}) keep {source.target}."
        )
