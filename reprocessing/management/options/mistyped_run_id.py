"""Refuse to make a new run whose id may be a mistyped id of a plan: the new run would send what nobody has seen."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

from django.core.management.base import CommandError

from reprocessing.management.command_line import command
from reprocessing.models import DeadLetterQueue, Run
from reprocessing.models.run import RunKind, RunState
from reprocessing.store.runs.plans import UNNAMED_KEY

_COMPARED: Final = 200  #: number of the DLQ's newest runs whose ids are compared
_SIMILAR: Final = 0.6  #: least ratio of difflib at which one id may be the other one, mistyped


def refuse_mistyped(dlq: DeadLetterQueue, name: str) -> None:
    """Refuse the id of a new run that is to be started at once, while a plan of the DLQ waits that may be meant.

    If a person named the plan, every new id is refused. Else only an id that looks like the id of the plan, or of
    another run of the DLQ, so that a script with an id of its own works although somebody made a dry run.

    Raises:
        CommandError: a plan waits. The text says how to start the plan.
    """
    runs = list(Run.objects.filter(dlq=dlq, kind=RunKind.DRAIN).order_by("-pk")[:_COMPARED])
    plans = list(Run.objects.filter(dlq=dlq, state=RunState.PLANNED).order_by("pk"))
    if named := [plan.name for plan in plans if UNNAMED_KEY not in plan.selection]:
        raise CommandError(
            f"No run has the id {name}, and plans of {dlq.name} wait to be started: {', '.join(named)}. Give the id "
            f"of a plan, or delete the plan: {command('abort_run', named[0], '--reason', 'WHY', '--confirm')}"
        )
    if not plans or _is_next_of_series(name, (run.name for run in runs if UNNAMED_KEY not in run.selection)):
        return
    similar = get_close_matches(name, [run.name for run in [*plans, *runs]], n=1, cutoff=_SIMILAR)
    if similar or name.startswith(f"{dlq.name}-"):
        meant = similar[0] if similar else plans[-1].name
        raise CommandError(
            f"No run has the id {name}; nothing was sent. A similar id is {meant}. To execute or continue it: "
            f"{command('drain_dlq', dlq.name, '--run', meant, '--confirm')} To begin a new run, choose an id that is "
            f"less similar, or first delete the plan that waits: "
            f"{command('abort_run', plans[-1].name, '--reason', 'WHY', '--confirm')}"
        )


def _is_next_of_series(name: str, known: Iterable[str]) -> bool:
    """Return whether the id differs from a known one only in its numbers, such as `nightly-2026-03-02`."""
    return bool(re.search(r"\d", name)) and _without_numbers(name) in map(_without_numbers, known)


def _without_numbers(name: str) -> str:
    return re.sub(r"\d+", "0", name)
