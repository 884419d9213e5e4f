"""Check the DLQ, its source queues and target queues.

Each check yields findings about a DLQ. If a check yields nothing, the admin shows the first line of its docstring.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Final

from reprocessing.domain.runs.forecast import duration_in_words
from reprocessing.gateways.sqs import QueueAddress
from reprocessing.models.dlq import DeleteWhen, Mode
from reprocessing.models.target import MAX_SECONDS
from reprocessing.pipeline.dlqs.examine.findings import Case, Finding, note, refuse, warn
from reprocessing.pipeline.dlqs.examine.proposal import must_delete_at_capture
from reprocessing.pipeline.dlqs.examine.queue_attributes import DescribedQueue

#: First words of the finding about AWS's own redrive, by which redrive_doctor recognises it.
AWS_MOVES: Final = "AWS's own redrive is moving messages out of the DLQ"


def identity(case: Case) -> Iterator[Finding]:
    """The URL is that of the expected queue, and no other DLQ has it.

    The admin shows this sentence if the check passes. Else, the check yields a refusal: the name or the queue
    belongs to another DLQ, or the DLQ is its own source.
    """
    row, known = case.observed.row, case.observed.dlqs.get(case.arn)
    if row and row.arn != case.arn:
        yield refuse(
            f"{case.name} is the name of {row.arn} already, which is another queue.",
            "Add this queue under another name.",
        )
    elif known and known.name != case.name:
        yield refuse(
            f"This queue is watched already, as {known.name}.",
            f"Change that DLQ, with options for the new values: manage.py add_dlq {known.name} --confirm",
        )
    if case.arn in case.observed.sources:
        yield refuse("The DLQ is named as its own source: messages would go in circles.", "Name another --source.")


def of_the_service(case: Case, own: Sequence[str]) -> Iterator[Finding]:
    """The DLQ is not one of the service's own queues, nor the DLQ of such a queue.

    The admin shows this sentence if the check passes. Else, the check yields a refusal. `own`: the URLs of the
    service's own queues.
    """
    arns = {QueueAddress.of(url).arn for url in own}
    if not arns.isdisjoint({case.arn, case.arn.removesuffix("-dlq"), *case.observed.sources}):
        yield refuse(
            "It is one of the service's own queues, or the DLQ of one: workers would run its messages as tasks.",
            "Do not add it: PostgreSQL has all work, and beat enqueues lost tasks again (docs/runbook.md).",
        )


def sources(case: Case) -> Iterator[Finding]:
    """Messages have a source to go back to, and source queues have the DLQ's type.

    The admin shows this sentence if the check passes. Else, the check yields a refusal: the DLQ has no source, or a
    source queue is FIFO and the DLQ is not (or the reverse).
    """
    silence = case.observed.unknown.get("sources")
    if silence:
        yield warn(f"Its source queues are unknown: {silence}", "Name them with --source URL.")
    if not case.observed.targets_by_source and not case.observed.without_target:
        found = "" if silence else "No queue's redrive policy names this DLQ. "
        yield refuse(
            f"{found}The DLQ needs a source: without a source, messages have no target, and all would be parked.",
            "Name the queue that messages go back to: --source URL; or what else failed: --source ARN.",
        )
    for seen in case.observed.sources.values():
        if seen.facts.fifo != case.observed.dlq.facts.fifo:
            yield refuse(
                f"{seen.address.name} is {_type(seen)}, the DLQ is {_type(case.observed.dlq)}: SQS moves no messages "
                "between these types.",
                "Name the queue in which messages failed.",
            )


def failures_come_back(case: Case) -> Iterator[Finding]:
    """Target queues move messages that fail again to a watched DLQ.

    The admin shows this sentence if the check passes. Else, the check yields a warning for each target queue whose
    redrive policy does not move such messages to a watched DLQ, or whose settings may lose or repeat messages.
    """
    for seen in case.observed.queues.values():
        name, redrive = seen.address.name, seen.facts.redrive
        if redrive is None:
            yield warn(
                f"{name} has no redrive policy: a message that fails again stays in it until SQS deletes it.",
                f"Give {name} a redrive policy that names this DLQ.",
            )
        elif redrive.target_arn not in {case.arn, *case.observed.dlqs}:
            yield warn(
                f"Messages that fail again in {name} come to {redrive.target_arn}, which is not watched.",
                "Add that DLQ too.",
            )
        elif redrive.target_arn == case.arn and not case.observed.dlq.facts.redrive_allow.allows(seen.facts.arn):
            yield warn(
                f"The DLQ's redrive allow policy does not let {name} use it: messages that fail again stay in {name}.",
                f"Allow {seen.facts.arn} in the DLQ's RedriveAllowPolicy.",
            )
        if not seen.facts.visibility:
            yield warn(
                f"{name} has a visibility timeout of 0: its consumers get messages twice, and order is not kept.",
                "Set a visibility timeout that suits the consumer.",
            )
        if seen.facts.largest < case.observed.dlq.facts.largest:
            yield note(f"{name} takes {seen.facts.largest:,} bytes at most, the DLQ more: larger messages are parked.")


def retention(case: Case) -> Iterator[Finding]:
    """The DLQ keeps messages longer than its source queues.

    The admin shows this sentence if the check passes. Else, the check yields a warning for each source queue that keeps
    messages as long or longer: SQS counts a message's age from its first send, so a message may reach the DLQ shortly
    before SQS deletes it.
    """
    facts = case.observed.dlq.facts
    if facts.fifo:
        return  # SQS restarts the retention period when it moves a FIFO message
    for seen in case.observed.sources.values():
        if seen.facts.retention >= facts.retention:
            yield warn(
                f"The DLQ keeps messages {_long(facts.retention)}, {seen.address.name} {_long(seen.facts.retention)}: "
                "SQS counts from the first send, so a message that failed late is deleted before it is captured.",
                _longer(facts.retention, seen.address.name),
            )


def deletion_of_copies(case: Case) -> Iterator[Finding]:
    """Copies can be deleted from the DLQ at the time that --delete-when sets.

    The admin shows this sentence if the check passes. A copy is the message of a captured letter in the DLQ. The check
    yields a refusal if copies should stay in the DLQ but cannot, or notes about when copies are deleted.
    """
    facts = case.observed.dlq.facts
    if must_delete_at_capture(case.observed):
        why = "it is a FIFO queue, where a copy in flight blocks its group"
        if facts.redrive:
            moved = f"after {facts.redrive.max_receives} receives SQS moves them to {facts.redrive.target_arn}"
            why = f"it has a redrive policy of its own: {moved}"
        if case.value("delete_when") == DeleteWhen.TERMINAL:
            cure = "Leave out --delete-when, or set --delete-when captured."
            yield refuse(f"Copies cannot stay in the DLQ: {why}.", cure)
        else:
            yield note(f"Copies are deleted from the DLQ as soon as their messages are captured: {why}.")
    elif case.value("delete_when") == DeleteWhen.CAPTURED:
        yield note("Copies are deleted from the DLQ at capture: from then on only PostgreSQL has the messages.")
    if case.mode != Mode.OBSERVE and case.observed.row is None:
        yield note(
            "Capturing hides messages: an alarm on the DLQ's visible messages no longer fires.",
            "Alarm on the sum of ApproximateNumberOfMessagesVisible and …NotVisible, and on redrive_status --json.",
        )


def native_moves(case: Case) -> Iterator[Finding]:
    """AWS's own redrive does not move messages of the DLQ.

    The admin shows this sentence if the check passes. Else, AWS's redrive is in progress, and the check yields a
    warning (in mode automatic, a refusal).
    """
    if case.observed.moves is None:
        yield warn(f"Whether AWS's own redrive is running is unknown: {case.observed.unknown['moves']}")
    for move in case.observed.moves or ():
        what = f"{AWS_MOVES} ({move.moved:,} so far): without order or record."
        cure = f"Let it end, or cancel it: manage.py native_redrive cancel {case.name} --reason WHY --confirm"
        if case.observed.row is None:
            cure = (
                f"Let it end, or cancel it: aws sqs list-message-move-tasks --source-arn {case.arn} shows the "
                "TaskHandle for aws sqs cancel-message-move-task --task-handle."
            )
        yield refuse(what, cure) if case.mode == Mode.AUTOMATIC else warn(what, cure)


def encryption(case: Case) -> Iterator[Finding]:
    """No queue is encrypted with a KMS key.

    The admin shows this sentence if the check passes. Else, the check yields a note for each encrypted queue,
    because the workers need permissions on its key.
    """
    for seen in (case.observed.dlq, *case.observed.queues.values()):
        if seen.facts.kms_key:
            right = "kms:Decrypt" if seen is case.observed.dlq else "kms:GenerateDataKey and kms:Decrypt"
            yield note(
                f"{seen.address.name} is encrypted with {seen.facts.kms_key}.", f"Allow {right} on it to the workers."
            )


def parking(case: Case) -> Iterator[Finding]:
    """The parking queue is used for nothing else.

    The admin shows this sentence if the check passes. Else, the check yields a refusal: the parking queue is also a
    source, a target or a watched DLQ.
    """
    seen = case.observed.parking
    if seen and seen.facts.arn in {
        case.arn,
        *case.observed.sources,
        *case.observed.targets_by_source.values(),
        *case.observed.dlqs,
    }:
        yield refuse(
            f"{seen.address.name} cannot be the parking queue: parked messages would be redriven or consumed.",
            "Name a queue of its own with --parking-url.",
        )


def _longer(retention: timedelta, source: str) -> str:
    if retention < timedelta(seconds=MAX_SECONDS):
        return "Give the DLQ the longest retention, 14 days."
    return (
        f"SQS keeps nothing for longer: shorten the retention of {source}, to 4 days for example; older messages "
        "there are deleted at once."
    )


def _type(seen: DescribedQueue) -> str:
    return "a FIFO queue" if seen.facts.fifo else "a standard queue"


def _long(length: timedelta) -> str:
    return duration_in_words(length.total_seconds()).removeprefix("about ")
