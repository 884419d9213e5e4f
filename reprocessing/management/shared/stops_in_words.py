"""What keeps a dlq from sending, as commands say it."""

from __future__ import annotations

from reprocessing.management.command_line import command
from reprocessing.management.console import when
from reprocessing.models import DeadLetterQueue
from reprocessing.store.safety import stops


def stop_of(dlq: DeadLetterQueue) -> str:
    """Each stop that keeps the dlq from sending, in words: which, since when, by whom, why, how it ends; or nothing."""
    found = ((stops.stopped(None), "Everything", "--all"), (stops.stopped(dlq.pk), dlq.name, dlq.name))
    return "\n".join(_in_words(stop, what, which) for stop, what, which in found if stop)


def _in_words(stop: stops.Stop, what: str, which: str) -> str:
    since = f'since {when(stop.since)} by {stop.by} ("{stop.reason}")'
    if stop.restored:
        return (
            f"{what} is held {since}: PostgreSQL was restored from a backup, and nothing is sent until somebody has "
            f"decided (after_restore resolve) and ended it (release): {command('after_restore', 'report')}"
        )
    resume = command("resume_redrive", which, "--reason", "WHY", "--confirm")
    return f"{what} is stopped {since}: nothing is sent until {resume}"
