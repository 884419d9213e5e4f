"""Build the JSON body of a signed webhook: the text, and the incidents as JSON values."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from reprocessing.domain.notifications.text import IncidentFacts, Text, TextSection

VERSION: Final = 1


def webhook_body(text: Text, sections: Sequence[TextSection], *, place: str, destination: str) -> bytes:
    """Return the JSON body as bytes. `events` has, for each section, the number of incidents and some examples."""
    content = {
        "version": VERSION,
        "place": place,
        "destination": destination,
        "title": text.title,
        "text": text.body,
        "tone": text.tone.value,
        "link": text.link,
        "events": [
            {
                "kind": section.kind.value,
                "stage": section.stage.value,
                "count": section.many,
                "incidents": [_incident(incident) for incident in section.examples],
            }
            for section in sections
        ],
    }
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()


def _incident(incident: IncidentFacts) -> dict[str, object]:
    return {
        "subject": incident.subject, "facts": dict(incident.facts), "times": incident.times,
        "opened_at": _moment(incident.opened_at),
        "ended_at": None if incident.ended_at is None else _moment(incident.ended_at),
    }  # fmt: skip


def _moment(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
