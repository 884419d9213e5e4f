"""Check the settings of a DLQ and its targets: outcomes, order, keys, rates and time limits."""

from __future__ import annotations

from collections.abc import Iterator

from reprocessing.domain.message.arn import resource_name
from reprocessing.domain.message.identity import SelectorSource
from reprocessing.domain.runs.forecast import duration_in_words
from reprocessing.models import Attempt, Target
from reprocessing.models.attempt import AWAITS_OUTCOME
from reprocessing.models.dlq import Mode
from reprocessing.models.target import Advance, Proof
from reprocessing.pipeline.dlqs.examine.findings import Case, Finding, note, refuse, reporters, warn
from reprocessing.pipeline.dlqs.examine.proposal import watcher
from reprocessing.store.dlqs.dlq_proposal import PLACE_KEYS


def outcome(case: Case) -> Iterator[Finding]:
    """The outcome absence can be proved.

    The admin shows this sentence if the check passes. Absence means that a sent message did not come back to its DLQ.
    The check yields a refusal for each target queue that has this outcome, but whose failed messages do not come to a
    watched DLQ that is captured.
    """
    for seen in case.observed.queues.values():
        if case.of_target(seen, "proof") != Proof.ABSENCE:
            continue
        behind = watcher(case.observed, seen)
        if behind is None:
            yield refuse(
                f"The outcome absence cannot be proved: no watched DLQ gets failed messages of {seen.address.name}.",
                "Add the DLQ that its redrive policy names, or set --outcome accepted.",
            )
        elif (case.mode if behind == case.arn else case.observed.dlqs[behind].mode) == Mode.OBSERVE:
            yield refuse(
                f"The outcome absence cannot be proved: from the DLQ behind {seen.address.name}, in mode observe, "
                "nothing is received.",
                "Set --mode manual, or set --outcome accepted.",
            )


def outcome_after_observing(case: Case) -> Iterator[Finding]:
    """The outcome of each target was chosen for a DLQ that is captured.

    The admin shows this sentence if the check passes. The check is about a DLQ that leaves mode observe. In this mode,
    a target queue got the outcome accepted, because no other outcome could be proved. From now on, absence can be
    proved. So the check yields a warning for each target queue whose outcome is still accepted.
    """
    row = case.observed.row
    if row is None or row.mode != Mode.OBSERVE or case.mode == Mode.OBSERVE:
        return
    for seen in case.observed.queues.values():
        is_chosen = seen.facts.arn not in case.observed.targets or "proof" in case.proposal.targets[seen.facts.arn]
        if (
            watcher(case.observed, seen) == case.arn
            and case.of_target(seen, "proof") == Proof.ACCEPTED
            and not is_chosen
        ):
            yield warn(
                f"A message counts as delivered as soon as {seen.address.name} has accepted it, whatever its consumer "
                "does with it: in mode observe, only the outcome accepted was possible.",
                "To learn whether consumers processed the messages, set --outcome absence.",
            )


def acknowledged(case: Case) -> Iterator[Finding]:
    """Consumers may report outcomes, and have time to.

    The admin shows this sentence if the check passes. The check is about targets with the outcome acknowledged, for
    which consumers report their success. It yields a refusal if no time limit for reports is set, and else a note about
    the time limit.
    """
    names = {arn: str(target) for arn, target in case.observed.other_targets.items()}
    for arn, name in {**{arn: seen.address.name for arn, seen in case.observed.queues.items()}, **names}.items():
        if case.of_target(arn, "proof") != Proof.ACKNOWLEDGED:
            continue
        window = case.of_target(arn, "window")
        if not window:
            yield refuse(
                f"The consumer of {name} must report the outcome of each message, but no time limit for it is set.",
                "Set --window SECONDS.",
            )
            continue
        behind = watcher(case.observed, case.observed.queues[arn]) if arn in case.observed.queues else None
        silent = "is presumed delivered once its absence is proved" if behind else "is parked, without other evidence"
        yield note(f"A message that the consumer of {name} does not report for {duration_in_words(window)} {silent}.")
        yield from reporters(arn, name)


def awaited(case: Case) -> Iterator[Finding]:
    """No sent message waits for a DLQ that its queue no longer names.

    The admin shows this sentence if the check passes. Else, the check yields a refusal for each target queue whose
    redrive policy names another DLQ than before, although sent messages still wait for captures of the former DLQ,
    which would show whether they came back.
    """
    for seen in case.observed.queues.values():
        row = case.observed.targets.get(seen.facts.arn)
        if row is None or row.watched_by is None or row.watched_by.arn == case.of_target(seen, "watched_by"):
            continue
        waiting = Attempt.objects.filter(AWAITS_OUTCOME, target=row).count()
        if waiting:
            yield refuse(
                f"{waiting:,} messages sent to {row} wait for captures of {row.watched_by} as evidence, but the "
                f"redrive policy of {row} no longer names that DLQ.",
                "Restore that redrive policy, or wait for the messages (redrive_status), and run this again.",
            )


def dependent_targets(case: Case) -> Iterator[Finding]:
    """No target of another DLQ needs captures of this DLQ.

    The admin shows this sentence if the check passes. Else, this DLQ gets mode observe, so it is not captured any more,
    although others need its captures. The check yields a refusal for each such target of another DLQ with outcome
    absence, and one if sent messages wait for a capture.
    """
    if case.mode != Mode.OBSERVE or case.observed.row is None:
        return
    others = Target.objects.filter(watched_by=case.observed.row, proof=Proof.ABSENCE)
    for target in others.exclude(arn__in=case.observed.queues):
        yield refuse(
            f"In mode observe {case.name} cannot prove absence for {target}, a target of another DLQ.",
            f"Set --mode manual, or change the outcome of {target} first.",
        )
    if case.observed.unsettled:
        yield refuse(
            f"{case.observed.unsettled:,} sent messages wait for captures of {case.name} as evidence.",
            "Wait for them (redrive_status), then set --mode observe.",
        )


def order(case: Case) -> Iterator[Finding]:
    """The order of each key is kept up to the consumer.

    The admin shows this sentence if the check passes. Else, the check yields a warning for each setting or target
    queue with which messages of a key may be processed in another order.
    """
    keyed = case.policy.ordering.source is not SelectorSource.NONE
    if case.observed.dlq.facts.fifo and not keyed:
        yield warn(
            "It is a FIFO DLQ: without an ordering key, messages of a group are sent in any order.",
            "Leave out --ordering-key: MessageGroupId is the default.",
        )
    for seen in case.observed.queues.values() if keyed and case.mode != Mode.OBSERVE else ():
        at_once = case.of_target(seen, "advance") == Advance.ACCEPTED
        if seen.facts.fifo and at_once and str(case.policy.ordering) != "system:MessageGroupId":
            yield warn(
                f"{seen.address.name} keeps the order of message groups, but the ordering key is not the group: "
                "messages of a key queue are sent without waiting for each other's outcome.",
                "Set --advance settled.",
            )
        elif not seen.facts.fifo and (at_once or case.of_target(seen, "proof") == Proof.ACCEPTED):
            yield warn(
                f"{seen.address.name} is a standard queue: it may deliver the messages of a key in another order "
                "than they were sent, and later messages overtake a message that fails.",
                "Set --outcome absence, and set --advance settled: each message waits for the one before.",
            )


def keys(case: Case) -> Iterator[Finding]:
    """Keys are unambiguous, and do not change while messages are in progress.

    The admin shows this sentence if the check passes. Else, the check yields a warning for content-hash as
    idempotency key, and a refusal for each setting of keys that would change while messages are in progress.
    """
    if case.policy.idempotency.source is SelectorSource.CONTENT_HASH:
        yield warn(
            "With content-hash as idempotency key, a message equal to one that was delivered is closed as its "
            "duplicate, even if both were intended.",
            "Name an id that the producer gives, or leave it out: the message id is the default.",
        )
    row = case.observed.row
    if row is None or not case.observed.on_lanes:
        return
    for name in PLACE_KEYS:
        if case.value(name) != getattr(row, name):
            yield refuse(
                f"{name} cannot change while {case.observed.on_lanes:,} messages are in progress: their places come "
                "from the old value.",
                "Wait for their run to end (redrive_status), then change it.",
            )


def backoff_problem(base: float, cap: float) -> Finding | None:
    """Return a finding if the initial backoff `base` is longer than the longest backoff `cap`; else None.

    Both backoffs are in seconds.
    """
    if base > cap:
        return refuse("--backoff-cap is below --backoff-base.", "Raise --backoff-cap or lower --backoff-base.")
    return None


def pace(case: Case) -> Iterator[Finding]:
    """Backoff, rate and schedule are sound.

    The admin shows this sentence if the check passes. Else, the check yields a refusal for an initial backoff that is
    longer than the longest backoff, a warning for a target without a rate limit, or a note for an unused schedule.
    """
    if found := backoff_problem(case.value("backoff_base", 0), case.value("backoff_cap", float("inf"))):
        yield found
    for arn in case.proposal.targets:
        if case.of_target(arn, "rate") is None:
            yield warn(f"Nothing limits the rate at which {resource_name(arn)} gets messages.", "Set --rate R.")
    if case.mode != Mode.AUTOMATIC and (case.proposal.dlq.get("interval") or case.proposal.dlq.get("crontab")):
        yield note("The schedule is stored, but used only in mode automatic.", "Set --mode automatic.")


def time(case: Case) -> Iterator[Finding]:
    """The longest key queue is done before the DLQ deletes its messages.

    The admin shows this if the check passes. The check yields a note for each target queue whose key queues wait for
    outcomes, and a warning (in mode automatic, a refusal) for each target whose longest key queue takes too long.
    """
    facts, ahead = case.observed.dlq.facts, case.observed.prospect
    waiting = {
        seen.facts.arn: case.of_target(seen, "window")
        for seen in case.observed.queues.values()
        if case.of_target(seen, "advance") == Advance.SETTLED and case.of_target(seen, "proof") == Proof.ABSENCE
    }
    for arn, window in waiting.items():
        name = resource_name(arn)
        longest = int(facts.retention.total_seconds() // window)
        yield note(
            f"In a key queue to {name}, each message waits for the outcome of the one before: up to {window:g} s, less "
            f"if the queue is empty before. More than {longest:,} messages in one key queue may take longer than the "
            "DLQ keeps them. PostgreSQL keeps them."
        )
    if ahead is None or ahead.expires_at is None or case.observed.row is None:
        return
    left = (ahead.expires_at - case.observed.now).total_seconds()
    for share in case.observed.shares:
        needed = share.longest * waiting.get(share.name, 0.0)
        if needed > left:
            what = (
                f"The longest key queue of {resource_name(share.name)}, {share.longest:,} messages, takes up to "
                f"{duration_in_words(needed)}; SQS deletes the DLQ's first message in {duration_in_words(left)}."
            )
            cure = "Set --advance accepted, or shorten the visibility timeout of its queue."
            yield refuse(what, cure) if case.mode == Mode.AUTOMATIC else warn(what, cure)
