"""Define the selection of letters that a run was started with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class Selection:
    """Which letters of a DLQ a run redrives: all that fulfil every condition. None or empty means no condition.

    Attributes:
        limit: the most letters to select, from the oldest lanes first.
        source: the name or ARN of the source queue.
        sent_after, sent_before: the message was first sent at `sent_after` or later, and before `sent_before`.
        key: the ordering key.
        message_ids: the ids that the messages had in the DLQ.
    """

    limit: int | None = None
    source: str | None = None
    sent_after: datetime | None = None
    sent_before: datetime | None = None
    key: str | None = None
    message_ids: tuple[str, ...] = ()

    def stored(self, dlq: str) -> dict[str, Any]:
        """Return the selection as a JSON object for the row of a run. `dlq` is the DLQ's name."""
        more = {
            "source": self.source,
            "sent_after": self.sent_after and self.sent_after.isoformat(),
            "sent_before": self.sent_before and self.sent_before.isoformat(),
            "key": self.key,
            "message_ids": list(self.message_ids) or None,
        }
        return {"dlq": dlq, "limit": self.limit} | {name: value for name, value in more.items() if value is not None}

    @classmethod
    def read(cls, stored: Mapping[str, Any]) -> Selection:
        """Return the selection of a JSON object that `stored` returned."""
        after, before = stored.get("sent_after"), stored.get("sent_before")
        return cls(
            limit=stored.get("limit"),
            source=stored.get("source"),
            sent_after=datetime.fromisoformat(after) if after else None,
            sent_before=datetime.fromisoformat(before) if before else None,
            key=stored.get("key"),
            message_ids=tuple(stored.get("message_ids") or ()),
        )

    @property
    def conditions(self) -> str:
        """Return the conditions in words, such as "with the ordering key a", without the limit; empty: none."""
        said = [
            f"that failed in {self.source}" if self.source else "",
            f"first sent at {self.sent_after.isoformat()} or later" if self.sent_after else "",
            f"first sent before {self.sent_before.isoformat()}" if self.sent_before else "",
            f"with the ordering key {self.key}" if self.key is not None else "",
            f"named by message id ({len(self.message_ids)})" if self.message_ids else "",
        ]
        return " and ".join(filter(None, said))

    def __str__(self) -> str:
        letters = "all messages" if self.limit is None else f"{self.limit} message{'' if self.limit == 1 else 's'}"
        return f"{letters} {self.conditions}".strip()


#: The selection of all letters of a DLQ.
ALL_LETTERS = Selection()
