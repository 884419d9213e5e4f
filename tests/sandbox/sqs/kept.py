"""A world with a data folder."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import orjson

from redrive_service.sandbox.sqs.core import LocalSqs
from redrive_service.sandbox.sqs.storage.journal import Journal
from tests.sandbox.sqs.world import START, World

OPEN: list[Journal] = []  # closed after each test


class KeptWorld(World):
    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.journal = Journal(folder)
        OPEN.append(self.journal)
        self.sqs = self.journal.recover(lambda: LocalSqs(Random(1)))
        self.now = max(START, self.sqs.now)

    def call(self, action: str, **parameters: object) -> dict[str, Any]:
        try:
            return super().call(action, **parameters)
        finally:
            if self.sqs.record.changed:
                self.journal.keep(self.now, action, orjson.dumps(parameters))
