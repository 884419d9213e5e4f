"""Plan a run for a person or a program. A plan sends nothing."""

from __future__ import annotations

import secrets
from contextlib import suppress

from reprocessing.domain.errors import QueueUnreachable, RunIdInUse
from reprocessing.domain.message.arn import resource_name
from reprocessing.domain.runs.waiting_reason import NOTHING_TO_SEND
from reprocessing.models import DeadLetterQueue, Run
from reprocessing.models.dlq import Mode
from reprocessing.pipeline.aws import follow_redrives
from reprocessing.pipeline.runs import drain, plan, plan_obstacles
from reprocessing.store.aws import aws_redrives
from reprocessing.store.dlqs import schedule
from reprocessing.store.ordering import lanes
from reprocessing.store.rights.visible_dlqs import VisibleDlqs
from reprocessing.store.runs import plans
from reprocessing.store.runs.plans import RunRequest
from reprocessing.store.safety import stops


def suggested_name() -> str:
    """Return a name for a run, such as run-20260131-0930-a1b2, from the time and random digits."""
    return f"run-{lanes.database_now():%Y%m%d-%H%M}-{secrets.token_hex(2)}"


def why_not(dlq: DeadLetterQueue) -> str:
    """Return, for people, why no run can be planned for a DLQ, and what to do; empty: a run can be planned."""
    if dlq.mode == Mode.OBSERVE:
        return f"{dlq.name} is in mode observe: nothing is received from it. Change its mode to manual first."
    if dlq.mode == Mode.AUTOMATIC:
        return (
            f"{dlq.name} is in mode automatic: its automatic run redrives all messages. To select messages, change its "
            "mode to manual first."
        )
    held = stops.stop_of(None)
    return stops.describe_stop(dlq) if held and held.restored else ""


def moved_by_aws(dlq: DeadLetterQueue) -> str:
    """Return a sentence for people if AWS's own redrive moves the DLQ's messages; empty: no, or not known."""
    with suppress(QueueUnreachable):
        follow_redrives.read_redrives(dlq)
    found = aws_redrives.current(dlq.pk)
    return f"{dlq.name}: {aws_redrives.describe(found)}" if found else ""


def unknown_source(dlq: DeadLetterQueue, source: str) -> str:
    """If a DLQ has no source with this name or ARN, return a sentence for people that names its sources.

    Empty: the DLQ has this source.
    """
    known = list(dlq.sources.order_by("arn").values_list("arn", flat=True))
    if any(source in {arn, resource_name(arn)} for arn in known):
        return ""
    names = ", ".join(map(resource_name, known)) or "none"
    return f"{dlq.name} has no such source queue. Its source queues: {names}."


def plan_run(dlq: DeadLetterQueue, asked: RunRequest, *, captures: bool, seen: VisibleDlqs) -> Run:
    """Plan a run, and return it.

    `captures`: True: the run's messages are selected after the next capture of the DLQ; False: they are selected now.
    `seen`: the DLQs that the caller may see.

    Raises:
        RunIdInUse: a run with another selection has this name. The text tells nothing of DLQs that the caller may not
            see.
    """
    if Run.objects.filter(name=asked.name).exists() and not seen.rows(Run.objects.filter(name=asked.name)).exists():
        raise RunIdInUse(f"The run id {asked.name} is taken. Choose another id.")
    if not captures:
        plan.place_captured(dlq)
        return drain.plan_run(dlq, asked)
    if (known := drain.find_run(dlq, name=asked.name, selection=asked.selection)) is not None:
        return known
    run = plans.create_plan(dlq, asked)
    schedule.poll_now(dlq)
    return run


def planned_text(run: Run) -> str:
    """Return a sentence that says that a run is planned, and what comes next."""
    if run.selected == 0:
        left_out = plan_obstacles.undecryptable_messages(run.dlq)
        return " ".join(filter(None, [f"{run.name} is planned.", NOTHING_TO_SEND.text, left_out]))
    return f"{run.name} is planned. Nothing is sent until somebody starts it."
