"""Refuse the id of a new run if the id looks like the mistyped id of a plan.

The new run would send messages that no plan has shown to a person.
"""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from typing import Final

from django.core.management.base import CommandError

from reprocessing.management.command_line import command
from reprocessing.models import DeadLetterQueue, Run
from reprocessing.models.run import RunState
from reprocessing.store.runs.plans import UNNAMED_KEY

_SIMILAR: Final = 0.7  #: two ids with at least this similarity (difflib's ratio, 0 to 1) may be the same id, mistyped
_GENERATED: Final = re.compile(r"[0-9a-f]{8}")  #: how `drain_dlq` ends the id of a run that nobody named


def refuse_mistyped(dlq: DeadLetterQueue, name: str) -> None:
    """Refuse the id of a new run (`name`) if it may be a mistyped id of a plan of the DLQ.

    If a person chose the id of a plan, every new id is refused. If all ids of plans were generated, only ids that are
    similar to a plan's id are refused. So scripts that choose ids still work after somebody made a dry run.

    Raises:
        CommandError: the id is refused. The text says how to start the plan.
    """
    plans = list(Run.objects.filter(dlq=dlq, state=RunState.PLANNED).order_by("pk"))
    delete = command("abort_run", plans[0].name, "--reason", "WHY", "--confirm") if plans else ""
    if named := [plan.name for plan in plans if UNNAMED_KEY not in plan.selection]:
        raise CommandError(
            f"No run has the id {name}, and plans of {dlq.name} wait to be started: {', '.join(named)}. Give the id "
            f"of a plan, or delete the plan: {command('abort_run', named[0], '--reason', 'WHY', '--confirm')}"
        )
    if meant := next((plan.name for plan in plans if _may_mean(name, plan.name, begin=f"{dlq.name[:80]}-")), None):
        raise CommandError(
            f"No run has the id {name}; nothing was sent. A plan with a similar id waits: {meant}. To execute it: "
            f"{command('drain_dlq', dlq.name, '--run', meant, '--confirm')} To begin a new run, choose an id that is "
            f"less similar, or first delete the plan: {delete}"
        )


def _may_mean(typed: str, plan: str, *, begin: str) -> bool:
    """Return whether `typed` looks like the id `plan`, mistyped. `begin` is the beginning of all generated ids."""
    if not (typed.startswith(begin) and plan.startswith(begin)):
        return SequenceMatcher(None, typed, plan).ratio() >= _SIMILAR
    end, known = typed.removeprefix(begin), plan.removeprefix(begin)
    return bool(_GENERATED.fullmatch(end)) or SequenceMatcher(None, end, known).ratio() >= _SIMILAR
