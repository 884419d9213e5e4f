"""Show how many messages of a run are in each state, during the run and at its end, as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

from reprocessing.management.output.drain_output import FINAL_STATES, counted
from reprocessing.models.dlq import DeadLetterQueue
from reprocessing.store.runs.progress import RunCounts

#: The counts that every run has; `failed_attempts` may be missing.
_COUNTS = [one.name for one in fields(RunCounts) if one.name not in {"failed_attempts", "capped"}]


def result_in_json(run: str, dlq: DeadLetterQueue, tally: RunCounts, along: Mapping[str, RunCounts]) -> dict[str, Any]:
    """Return the result of a run as JSON. `counts_in_json` says what its numbers mean.

    Args:
        run: the run's id.
        dlq: the DLQ of the run.
        tally: the number of the run's messages in each state.
        along: the same numbers, by run id, of the DLQ's other runs whose messages this command also sent. In the JSON,
            `capped` names those that may be higher, as in a large automatic run.
    """
    return {
        "run": run,
        **counts_in_json(tally),
        "failed_attempts": tally.failed_attempts,
        "dry_run": False,
        "dlq": dlq.name,
        "along": {name: {**counts_in_json(other), "capped": sorted(other.capped)} for name, other in along.items()},
    }


def counts_in_json(tally: RunCounts) -> dict[str, int]:
    """Return the numbers of a run's messages as JSON.

    `captured` is the number of all messages: the sum of all final states and of `waiting`, the unfinished messages.
    Two parts of `waiting` cannot be sent now. `held` counts messages that a rule, or a parked message of the same key,
    keeps from being sent. `blocked` counts messages that wait for an earlier message of the same key, which is in a run
    that has ended or is paused.
    """
    ends = {name: getattr(tally, name) for name in FINAL_STATES}
    return {"captured": tally.letters, **ends, "waiting": tally.open, "held": tally.held,
            "blocked": tally.blocked}  # fmt: skip


def progress_text(tally: RunCounts) -> str:
    """Return the number of a run's messages in each state in one line, such as "3 messages: 3 delivered".

    "20,000+" means that there may be more messages, which were not counted.
    """
    found = [(name, words, getattr(tally, name)) for name, words in FINAL_STATES.items()]
    ends = [f"{n:,}{'+' if name in tally.capped else ''} {words}" for name, words, n in found if n]
    if tally.waiting:
        ends.append(f"{tally.waiting:,} queued")
    if tally.awaiting:
        ends.append(f"{tally.awaiting:,} awaiting outcome")
    if tally.failed_attempts is None:
        ends.append("failed attempts not counted")
    elif tally.failed_attempts:
        ends.append(counted(tally.failed_attempts, "failed attempt"))
    letters = f"{tally.letters:,}+ messages" if tally.capped else counted(tally.letters, "message")
    return f"{letters}: {', '.join(ends)}" if tally.letters else "no messages"


def result_lines(run: str, dlq: str, own: RunCounts, along: Mapping[str, RunCounts]) -> Iterable[str]:
    """Yield lines with the result of the run and of other runs, then hints about held and parked messages.

    `own` are the counts of the run. `along` has the counts of the DLQ's other runs whose messages were also sent.
    """
    yield f"{run}: {progress_text(own)}."
    for name, other in along.items():
        yield f"Sent with it: {name}: {progress_text(other)}."
    tally = sum_tallies([own, *along.values()])
    if tally.held:
        shown = f"manage.py redrive_status {dlq} shows which."
        yield f"{counted(tally.held, 'message')} held by a parked message of the same key, or by a rule: {shown}"
    if tally.parked:
        shown = f"manage.py release_parked {dlq} --reason WHY shows them; or use the admin."
        yield f"Parked messages need review: {shown}"


def sum_tallies(tallies: Iterable[RunCounts]) -> RunCounts:
    """Return the sum of the counts of several runs."""
    every = list(tallies)
    counts = {name: sum(getattr(tally, name) for tally in every) for name in _COUNTS}
    failed = [tally.failed_attempts for tally in every if tally.failed_attempts is not None]
    return RunCounts(
        **counts,
        failed_attempts=sum(failed) if len(failed) == len(every) else None,
        capped=frozenset[str]().union(*(tally.capped for tally in every)),
    )


def unfinished_text(tally: RunCounts) -> str:
    """Return the number of unfinished messages, by state, as text."""
    parts = [(tally.waiting, "queued"), (tally.awaiting, "awaiting outcome")]
    states = ", ".join(f"{count:,} {what}" for count, what in parts if count)
    return f"{counted(tally.open, 'message')} unfinished ({states})"
