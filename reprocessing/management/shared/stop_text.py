"""Write sentences about stopped sends: who stopped them, when and why, and how to resume."""

from __future__ import annotations

from reprocessing.management.command_line import command
from reprocessing.management.console import format_time
from reprocessing.models import DeadLetterQueue
from reprocessing.store.safety import stops


def stop_text(dlq: DeadLetterQueue) -> str:
    """Return who stopped sends of all DLQs, and who stopped sends of this DLQ, with the commands that resume them.

    Each is one line. If sends are not stopped, the text is empty.
    """
    found = ((stops.stop_of(None), "Everything", "--all"), (stops.stop_of(dlq.pk), dlq.name, dlq.name))
    return "\n".join(_in_words(stop, what, which) for stop, what, which in found if stop)


def _in_words(stop: stops.Stop, what: str, which: str) -> str:
    since = since_text(stop)
    if stop.restored:
        return (
            f"{what} is held {since}: PostgreSQL was restored from a backup. Nothing is sent until after_restore "
            f"resolve and release. To see what is known: {command('after_restore', 'report')}"
        )
    resume = command("resume_redrive", which, "--reason", "WHY", "--confirm")
    return f"{what} is stopped {since}: nothing is sent. To resume: {resume}"


def since_text(stop: stops.Stop) -> str:
    """Return when, by whom and why sends were stopped, such as `since 2026-03-01 08:00:00 UTC by ann ("INC-7")`."""
    return f'since {format_time(stop.since)} by {stop.by} ("{stop.reason}")'
