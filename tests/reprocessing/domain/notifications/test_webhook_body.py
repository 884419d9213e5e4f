"""The JSON of a signed webhook."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone

from reprocessing.domain.notifications.event import EventKind
from reprocessing.domain.notifications.text import IncidentFacts, Stage, Text, TextSection, Tone
from reprocessing.domain.notifications.webhook_body import webhook_body

NOON = datetime(2026, 1, 2, 12, 0, 0, 500, tzinfo=timezone(timedelta(hours=1)))


def test_a_webhook_has_its_text_and_its_incidents() -> None:
    incidents = [
        IncidentFacts("orders", {"target": "orders", "messages": 7}, 2, NOON, None),
        IncidentFacts("café", {}, 1, NOON, datetime(2026, 1, 2, 12, tzinfo=UTC)),
    ]
    section = TextSection(EventKind.BREAKER_OPEN, Stage.OPENED, 5, incidents)
    text = Text("Title", "Body", Tone.FAILURE, "https://redrive.example.com/")
    found = webhook_body(text, [section], place="production", destination="ops")
    assert json.loads(found) == {
        "version": 1, "place": "production", "destination": "ops", "title": "Title", "text": "Body", "tone": "failure",
        "link": "https://redrive.example.com/",
        "events": [
            {
                "kind": "breaker_open", "stage": "opened", "count": 5,
                "incidents": [
                    {
                        "subject": "orders", "facts": {"target": "orders", "messages": 7}, "times": 2,
                        "opened_at": "2026-01-02T11:00:00Z", "ended_at": None,
                    },
                    {
                        "subject": "café", "facts": {}, "times": 1, "opened_at": "2026-01-02T11:00:00Z",
                        "ended_at": "2026-01-02T12:00:00Z",
                    },
                ],
            }
        ],
    }  # fmt: skip
    assert found.startswith(b'{"version":1,')
    assert "café".encode() in found
