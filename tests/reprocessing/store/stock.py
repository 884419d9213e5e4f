"""Rows for statements: a DLQ with a source, a lane with one queued letter."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime

from reprocessing.models import Attempt, DeadLetterQueue, Lane, Letter, Payload, Run, Source, Target

NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Stock:
    """The rows; their queues do not exist."""

    def __init__(self) -> None:
        name = f"d-{uuid.uuid4().hex[:8]}"
        url, arn = f"http://127.0.0.1:9/0/{name}", f"arn:aws:sqs:us-east-1:0:{name}"
        self.target = Target.objects.create(arn=f"{arn}-source", url=f"{url}-source", region="us-east-1")
        self.dlq = DeadLetterQueue.objects.create(name=name, url=url, arn=arn, region="us-east-1")
        self.source = Source.objects.create(dlq=self.dlq, arn=f"{arn}-source", target=self.target)
        self.run = Run.objects.create(name=name, dlq=self.dlq, state="running", asked_by="a test", started_at=NOW)
        self.lane = Lane.objects.create(dlq=self.dlq, source=self.source, key_hash=b"k" * 32, run=self.run)
        self.letter = self.another_letter()

    def another_letter(self, **fields: object) -> Letter:
        """Create a queued letter on the lane, unless the fields say otherwise."""
        letter = self._letter(**fields)
        letter.save(force_insert=True)
        Payload.objects.create(letter=letter, body=b"body", attributes=b"{}", system={})
        return letter

    def hand_over(self, sent: str) -> None:
        """Have the target take the letter under this message id; its consumer is to report the outcome."""
        self.target.proof = "acknowledged"
        self.target.save()
        self.letter.state = "awaiting"
        self.letter.attempts = 1
        self.letter.save()
        self.attempt(taken_at=NOW, sent_message_id=sent, holds_lane=True)

    def attempt(self, letter: Letter | None = None, **fields: object) -> Attempt:
        """Create an open attempt of this letter, or of the first one."""
        values = {"lane": self.lane, "target": self.target, "no": 1, "epoch": 0, "fence": 1, "opened_at": NOW}
        return Attempt.objects.create(letter=letter or self.letter, **{**values, "holds_lane": False, **fields})

    def more_letters(self, many: int, **fields: object) -> list[Letter]:
        return Letter.objects.bulk_create([self._letter(**fields) for _ in range(many)])

    def _letter(self, **fields: object) -> Letter:
        values = {
            "dlq": self.dlq, "message_id": uuid.uuid4().hex, "source": self.source, "target": self.target,
            "lane": self.lane, "run": self.run, "state": "waiting", "planned": True, "sequence": "1",
            "body_hash": b"b" * 32, "size": 1, "first_sent_at": NOW,
        }  # fmt: skip
        return Letter(**{**values, **fields})
