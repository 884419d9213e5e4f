"""Show a native redrive as text and as JSON: AWS itself moves the messages of a DLQ (StartMessageMoveTask)."""

from __future__ import annotations

from collections.abc import Iterator

from reprocessing.domain.message.arn import resource_name
from reprocessing.gateways.sqs import Depth, Move
from reprocessing.management.command_line import command
from reprocessing.management.console import format_time
from reprocessing.management.output.drain_output import counted
from reprocessing.models.dlq import DeadLetterQueue, Mode
from reprocessing.store.aws.aws_redrive_handover import HandoverBlockers

#: Features of drain_dlq that a native redrive lacks.
LOST = (
    "order: messages are moved in any order; drain_dlq keeps the order per key",
    "history: no message, attempt or outcome is recorded",
    "ids: each message gets a new message id, and no idempotency key",
    "safety: no circuit breaker, health check, wave or rule; failed messages return and may be moved again",
    "selection: all visible messages are moved; messages in flight stay",
)


def obstacles(dlq: DeadLetterQueue, found: HandoverBlockers) -> Iterator[str]:
    """Yield a sentence for each thing that prevents AWS's own redrive of the DLQ, and what to do about it."""
    name = dlq.name
    if found.moving:
        yield f"A native redrive is running already: {command('native_redrive', 'list', name)}"
    if found.mode == Mode.AUTOMATIC:
        manual = command("add_dlq", name, "--mode", "manual", "--confirm")
        yield f"Beat redrives it (mode automatic). To change that: {manual}"
    if found.stopped:
        yield f"It is stopped, or all sends are stopped. To see by whom and why: {command('redrive_status', name)}"
    if found.under_way:
        status = command("redrive_status", name)
        yield f"Some of its messages are queued or in progress. Wait until they are finished ({status})."
    if found.awaited:
        yield "Messages that were sent are awaiting their outcome. Wait until it is known."
    if found.plans:
        giving_up = command("abort_run", found.plans[0], "--reason", "WHY", "--confirm")
        names = ", ".join(found.plans)
        yield f"Plans select some of its messages: {names}. Start the plans, or delete them: {giving_up}"
    yield from _of_messages(name, found)


def _of_messages(name: str, found: HandoverBlockers) -> Iterator[str]:
    """Yield a sentence about messages that AWS would not move, and about messages that AWS would send twice.

    Each sentence says what to do.
    """
    if found.captured_until:
        yield f"A capture is running, until {format_time(found.captured_until)} at the latest."
    if found.orphans_hidden_until:
        until = format_time(found.orphans_hidden_until)
        yield f"Messages of an interrupted capture may be invisible until {until}. Wait until then."
    if found.hidden:
        until = format_time(found.hidden_until)
        yield (
            f"{counted(found.hidden, 'captured message')} are invisible in SQS until {until}, and AWS does not move "
            "invisible messages. Wait until then, or drain them."
        )
    if found.to_delete:
        yield (
            f"{counted(found.to_delete, 'finished message')} must still be deleted from SQS, or AWS would send them "
            f"again. Workers delete them in seconds. Without workers, run {command('drain_dlq', name)}."
        )


def plan(  # noqa: PLR0913  # each by its name
    dlq: DeadLetterQueue, found: HandoverBlockers, depth: Depth, *, to: str, per_second: int | None, cost: str
) -> Iterator[str]:
    """Yield lines about what AWS's own redrive would do, its cost, and what drain_dlq does that AWS does not.

    `to` is the ARN of the queue to which AWS would move the messages. If it is empty, AWS moves them to their source
    queues. `per_second` is the max messages/s. If it is None, AWS chooses the rate.
    """
    where = resource_name(to) if to else "their source queues"
    rate = "at a rate that AWS chooses" if per_second is None else f"at most {per_second}/s"
    yield f"{dlq.name}: AWS would move about {counted(depth.visible, 'message')} to {where}, {rate}."
    if per_second:
        yield f"  takes           {depth.visible / per_second:,.0f} s at least"
    if depth.in_flight:
        yield f"  stay            {counted(depth.in_flight, 'message')} in flight"
    if found.captured:
        yield (
            f"  captured        {counted(found.captured, 'message')} captured here are still in SQS: AWS may move "
            "them; they continue here if they return to the DLQ"
        )
    yield f"  costs           {cost}, without the requests of the consumer"
    yield "  lost"
    for one in LOST:
        yield f"    - {one}"


def task(one: Move) -> str:
    """Return a line about one of AWS's own redrives (ListMessageMoveTasks)."""
    to = resource_name(one.destination_arn) if one.destination_arn else "the source queues"
    of = f" of {one.to_move:,}" if one.to_move is not None else ""
    why = f" ({one.failure})" if one.failure else ""
    return f"  {format_time(one.started_at)}  {one.status}{why}: {one.moved:,}{of} moved to {to}"


def in_json(one: Move) -> dict[str, object]:
    """Return as JSON one of AWS's own redrives (ListMessageMoveTasks)."""
    return {
        "status": one.status,
        "to": one.destination_arn,
        "moved": one.moved,
        "to_move": one.to_move,
        "started_at": one.started_at,
        "failure": one.failure or None,
    }
