"""What after_restore says, for people and for programs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from reprocessing.domain.maintenance.restore_doubt import Finding
from reprocessing.management.console import when
from reprocessing.store.maintenance.restore_doubts import Count, Doubted
from reprocessing.store.maintenance.restore_hold import Hold

_KINDS = ("finished", "unfinished", "unknown")


def held(found: Hold) -> str:
    """Since when, by whom, why, and what the backup was."""
    return (
        f'Everything is held since {when(found.since)} by {found.by} ("{found.reason}"); PostgreSQL was restored to '
        f"{when(found.restored_to)}."
    )


def stands(found: Hold, asked: datetime) -> str:
    """A hold that stood before was asked for again, with another time."""
    return (
        f"Nothing was changed: {held(found)} --since {when(asked)} was not taken. The time is kept for people to read: "
        "whatever it says, every letter that the database knows as unfinished is held, and decided about. Was it "
        "mistyped, say so in the --reason of after_restore release. Was PostgreSQL restored once more, say "
        "--again: all is to be decided anew."
    )


def report(found: Hold, counts: Sequence[Count], undrained: Sequence[str]) -> Iterable[str]:
    """What can be known, and what is to be done next."""
    yield held(found)
    for dlq in sorted({one.dlq for one in counts}):
        yield f"{dlq}:"
        for kind in _KINDS:
            of_kind = [one for one in counts if one.dlq == dlq and Finding(one.finding).kind == kind]
            if of_kind:
                yield f"  {kind:<12}{sum(one.n for one in of_kind):,}"
                yield from (f"      {one.n:,}: {Finding(one.finding).sentence}" for one in of_kind)
    if undrained:
        yield (
            f"Not all is in sight yet in {', '.join(undrained)}: that takes a capture which begins after "
            f"{when(found.in_sight_at)} and runs dry. Until then a copy may come to sight of a letter that was "
            "captured after the backup, and sent: it is taken for new."
        )
    if counts:
        yield (
            "Any of these may have been sent since the backup: what is replayed may be sent twice, under the same "
            "idempotency key. To decide, of all dlqs or of one: manage.py after_restore resolve --finished parked "
            "--unfinished replay --unknown parked --reason WHY --confirm (delivered, parked or replay where finished; "
            "replay or parked where unfinished or unknown)"
        )
    else:
        yield f"Nothing is undecided. {release(found, undrained)}"


def release(found: Hold, undrained: Sequence[str]) -> str:
    """What ends the hold where nothing is undecided, and from when on."""
    if not undrained:
        return "To let everything go on: manage.py after_restore release --reason WHY --confirm"
    return (
        f"To let everything go on, when a capture of {', '.join(undrained)} that begins after "
        f"{when(found.in_sight_at)} has run dry: manage.py after_restore release --reason WHY --confirm; sooner with "
        "--early added, and what comes to sight later may be sent twice."
    )


def in_json(found: Hold | None, counts: Sequence[Count], undrained: Sequence[str]) -> dict[str, Any]:
    """The same for programs, without the letters."""
    said = found and {
        "since": found.since,
        "by": found.by,
        "reason": found.reason,
        "restored_to": found.restored_to,
        "in_sight_at": found.in_sight_at,
    }
    told = [
        {"dlq": one.dlq, "class": Finding(one.finding).kind, "finding": one.finding, "letters": one.n} for one in counts
    ]
    return {"held": said, "undecided": sum(one.n for one in counts), "counts": told, "not_in_sight": list(undrained)}


def letter_in_json(one: Doubted) -> dict[str, Any]:
    """One undecided letter, by its ids."""
    kind = Finding(one.finding).kind
    return {
        "dlq": one.dlq,
        "message_id": one.message_id,
        "redrive_id": one.public_id,
        "class": kind,
        "finding": one.finding,
        "state": one.state,
    }
