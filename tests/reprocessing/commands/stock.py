"""Rows for the commands to tell of: letters, lanes and attempts in any state."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import count

from reprocessing.domain.lifecycle import FINISHED_STATES, LanePhase, LetterState
from reprocessing.models import Attempt, DeadLetterQueue, Lane, Letter, Payload, Run, Source, Target
from reprocessing.models.target import Proof
from reprocessing.store.ordering.lanes import database_now

_numbers = count(1)
HOUR = timedelta(hours=1)


def ago(**length: float) -> datetime:
    """That long before the database's now."""
    return database_now() - timedelta(**length)


def add_source(dlq: DeadLetterQueue, name: str = "shop", **target: object) -> Source:
    """A queue whose messages die into the dlq, presumed by absence."""
    arn = f"arn:aws:sqs:us-east-1:000000000000:{name}"
    values = {"url": f"http://127.0.0.1:9/0/{name}", "region": "us-east-1", "proof": Proof.ABSENCE, "watched_by": dlq}
    row = Target.objects.create(**{"arn": arn} | values | target)
    return Source.objects.create(dlq=dlq, arn=arn, target=row)


def add_lane(source: Source, phase: LanePhase = LanePhase.READY, **values: object) -> Lane:
    """A lane of a key of its own, due now."""
    due = database_now() if phase in {LanePhase.READY, LanePhase.LEASED} else None
    key = f"key-{next(_numbers)}"
    row = {"key": key, "key_hash": key.encode(), "phase": phase, "due_at": due}
    return Lane.objects.create(dlq=source.dlq, source=source, **row | values)


def add_letter(source: Source, state: LetterState, *, body: bytes = b"{}", **values: object) -> Letter:
    """A letter in some state, with all that this state asks for."""
    number = next(_numbers)
    row: dict[str, object] = {
        "message_id": f"m-{number:06}",
        "state": state,
        "body_hash": b"hash",
        "size": len(body),
        "first_sent_at": datetime(2026, 1, 1, tzinfo=UTC),
        "finished_at": database_now() if state in FINISHED_STATES else None,
        "reason": "attempts_spent" if state == LetterState.PARKED else "",
    }
    if state in {LetterState.WAITING, LetterState.SENDING, LetterState.AWAITING}:
        row |= {"planned": True, "sequence": f"{number:06}"}
        row["lane"] = values["lane"] if "lane" in values else add_lane(source)
    if state == LetterState.DUPLICATE:
        row["duplicate_of"] = add_letter(source, LetterState.DELIVERED)
    letter = Letter.objects.create(dlq=source.dlq, source=source, target=source.target, **row | values)
    Payload.objects.create(letter=letter, body=body, attributes=b"{}", system={})
    return letter


def add_sent(source: Source, *, taken_at: datetime, deadline: datetime, run: Run | None = None) -> Attempt:
    """A letter that its target took, and whose outcome is not known."""
    lane = add_lane(source, LanePhase.AWAITING, run=run)
    letter = add_letter(source, LetterState.AWAITING, lane=lane, run=run, attempts=1)
    return Attempt.objects.create(
        letter=letter,
        lane=lane,
        target=source.target,
        run=run,
        no=1,
        epoch=0,
        fence=1,
        opened_at=taken_at,
        taken_at=taken_at,
        deadline=deadline,
        sent_message_id=f"sent-{letter.pk}",
        holds_lane=True,
    )
