"""Show for after_restore what is known about messages, after PostgreSQL was restored from a backup."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from reprocessing.domain.maintenance.restore_doubt import Finding
from reprocessing.management.console import format_time
from reprocessing.store.maintenance.restore_doubts import DoubtedLetter, FindingCount
from reprocessing.store.maintenance.restore_hold import RestoreHold

_KINDS = ("finished", "unfinished", "unknown")


def hold_text(found: RestoreHold) -> str:
    """Return a sentence that all sends are held: since when, by whom and why, and the time of the backup."""
    return (
        f'Everything is held since {format_time(found.since)} by {found.by} ("{found.reason}"); PostgreSQL was '
        f"restored to {format_time(found.restored_to)}."
    )


def already_held(found: RestoreHold, asked: datetime) -> str:
    """Return an error text: sends are held already, with a time of the backup that differs from `asked`."""
    return (
        f"Nothing was changed: {hold_text(found)} --since {format_time(asked)} was ignored. The time is only "
        "shown: every message that is unfinished in the database is held. If it was mistyped, say so in the "
        "--reason of after_restore release. If PostgreSQL was restored again, add --again: everything must be decided "
        "again."
    )


def report_lines(found: RestoreHold, counts: Sequence[FindingCount], undrained: Sequence[str]) -> Iterable[str]:
    """Yield the lines of after_restore report: since when sends are held, the undecided messages, and what to do.

    Messages that were invisible in SQS at the restore become visible again after some time. `undrained` has the names
    of the DLQs that no capture has emptied since then.
    """
    yield hold_text(found)
    for dlq in sorted({one.dlq for one in counts}):
        yield f"{dlq}:"
        for kind in _KINDS:
            of_kind = [one for one in counts if one.dlq == dlq and Finding(one.finding).kind == kind]
            if of_kind:
                yield f"  {kind:<12}{sum(one.n for one in of_kind):,}"
                yield from (f"      {one.n:,}: {Finding(one.finding).sentence}" for one in of_kind)
    if undrained:
        yield (
            f"Messages may still be invisible in {', '.join(undrained)}, until a capture that begins after "
            f"{format_time(found.in_sight_at)} empties it. Until then, a message that was captured after the backup "
            "and sent may become visible, and would be captured as new."
        )
    if counts:
        yield (
            "Any of these messages may have been sent since the backup. The decision replay may send a message twice, "
            "with the same idempotency key. To decide, for all DLQs or for one: manage.py after_restore resolve "
            "--finished parked --unfinished replay --unknown parked --reason WHY --confirm (finished: delivered, "
            "parked or replay; unfinished and unknown: replay or parked)"
        )
    else:
        yield f"Everything is decided. {release_hint(found, undrained)}"


def release_hint(found: RestoreHold, undrained: Sequence[str]) -> str:
    """Return a sentence with the command that lets workers send again, and when to run it.

    `undrained` has the names of the DLQs that a capture must empty first.
    """
    if not undrained:
        return "To resume sending: manage.py after_restore release --reason WHY --confirm"
    return (
        f"To resume sending, once a capture of {', '.join(undrained)} that begins after "
        f"{format_time(found.in_sight_at)} has emptied it: manage.py after_restore release --reason WHY --confirm; "
        "with --early, at once, and messages that become visible later may be sent twice."
    )


def in_json(found: RestoreHold | None, counts: Sequence[FindingCount], undrained: Sequence[str]) -> dict[str, Any]:
    """Return as JSON since when sends are held, and the number of undecided messages for each DLQ and evidence.

    `held` is null if sends are not held.
    """
    said = found and {
        "since": found.since,
        "by": found.by,
        "reason": found.reason,
        "restored_to": found.restored_to,
        "in_sight_at": found.in_sight_at,
    }
    groups = [
        {"dlq": count.dlq, "class": Finding(count.finding).kind, "finding": count.finding, "messages": count.n}
        for count in counts
    ]
    return {"held": said, "undecided": sum(one.n for one in counts), "counts": groups, "not_in_sight": list(undrained)}


def letter_in_json(one: DoubtedLetter) -> dict[str, Any]:
    """Return an undecided message as JSON: its ids, its state, and what is known about it after the restore."""
    ids = {"dlq": one.dlq, "message_id": one.message_id, "redrive_id": one.public_id}
    return {**ids, "class": Finding(one.finding).kind, "finding": one.finding, "state": one.state}
