"""What is told of AWS's own redrive, and of what keeps a dlq from it."""

from __future__ import annotations

from collections.abc import Iterator

from reprocessing.domain.message.arn import name_of
from reprocessing.gateways.sqs import Depth, Move
from reprocessing.management.command_line import command
from reprocessing.management.console import when
from reprocessing.management.output.drain_output import counted
from reprocessing.models.dlq import DeadLetterQueue, Mode
from reprocessing.store.aws.native_redrive_lock import Standing

#: What is lost by it, each with what drain_dlq does instead.
LOST = (
    "order: messages are moved in no order; drain_dlq keeps it per ordering key",
    "history: no letter, no attempt, no outcome; nobody can say later what became of a message",
    "ids and marks: each message gets a new id, which some consumers know it by, and no idempotency key",
    "care: no breaker, no health check, no wave, no rule; what fails comes back to the dlq and may be moved again",
    "choice: all that is visible goes; what is in flight stays",
)


def obstacles(dlq: DeadLetterQueue, found: Standing) -> Iterator[str]:
    """What keeps AWS out of a dlq, each with its cure."""
    name = dlq.name
    if found.moving:
        yield f"AWS moves its messages already: {command('native_redrive', 'list', name)}"
    if found.mode == Mode.AUTOMATIC:
        yield f"Beat drains it (mode automatic): {command('add_dlq', name, '--mode', 'manual', '--confirm')}"
    if found.stopped:
        yield f"It is stopped, or everything is: {command('redrive_status', name)} says by whom, and why."
    if found.under_way:
        status = command("redrive_status", name)
        yield f"Letters of it are under way, or wait for a run to go on: let them come to an end ({status})."
    if found.awaited:
        yield "Letters that were sent wait for the evidence that they did not come back to it. Let them be settled."
    if found.plans:
        giving_up = command("abort_run", found.plans[0], "--reason", "WHY", "--confirm")
        yield f"Plans have letters of it: {', '.join(found.plans)}. Start them, or give them up: {giving_up}"
    yield from _of_messages(name, found)


def _of_messages(name: str, found: Standing) -> Iterator[str]:
    """Where messages are that AWS would not move, or would send again."""
    if found.captured_until:
        yield f"It is being captured; that is over at the latest at {when(found.captured_until)}."
    if found.unclean_until:
        yield f"What an earlier capture received may be out of sight until {when(found.unclean_until)}. Wait for that."
    if found.hidden:
        yield (
            f"Copies of {counted(found.hidden, 'letter')} captured here are out of sight in it until "
            f"{when(found.hidden_until)}: AWS does not move those. Wait for that, or drain them."
        )
    if found.to_delete:
        yield (
            f"{counted(found.to_delete, 'message')} of letters that are done, or kept here, are to be deleted from "
            f"it: AWS would send them again. Workers delete them in seconds; without any, {command('drain_dlq', name)}."
        )


def plan(  # noqa: PLR0913  # each by its name
    dlq: DeadLetterQueue, found: Standing, depth: Depth, *, to: str, per_second: int | None, cost: str
) -> Iterator[str]:
    """What AWS would be asked, and what is lost by it."""
    where = name_of(to) if to else "the queue that each of them died in"
    rate = "at a rate that AWS finds" if per_second is None else f"at most {per_second} a second"
    yield f"{dlq.name}: AWS would move about {counted(depth.visible, 'message')} to {where}, {rate}."
    if per_second:
        yield f"  that takes      {depth.visible / per_second:,.0f} s at least"
    if depth.in_flight:
        yield f"  stay            {counted(depth.in_flight, 'message')} in flight, hidden by a reader"
    if found.captured:
        yield (
            f"  captured        {counted(found.captured, 'letter')} of it were captured here and lie in it still: AWS "
            "may move them, and they are kept; they go on when they come back"
        )
    yield f"  costs           {cost}, on top of what its consumer asks for"
    yield "  lost by it"
    for one in LOST:
        yield f"    - {one}"


def task(one: Move) -> str:
    """One of AWS's tasks."""
    to = name_of(one.destination_arn) if one.destination_arn else "where each died"
    of = f" of {one.to_move:,}" if one.to_move is not None else ""
    why = f" ({one.failure})" if one.failure else ""
    return f"  {when(one.started_at)}  {one.status}{why}: {one.moved:,}{of} moved to {to}"


def in_json(one: Move) -> dict[str, object]:
    """The same for programs."""
    return {
        "status": one.status,
        "to": one.destination_arn,
        "moved": one.moved,
        "to_move": one.to_move,
        "started_at": one.started_at,
        "failure": one.failure or None,
    }
