"""The one sentence about what a run waits for."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from reprocessing.domain.runs.waiting_reason import (
    LaneGroup,
    NotClosedBreaker,
    RunFacts,
    Waiting,
    WaitsFor,
    waiting_reason,
)
from reprocessing.domain.safety.failure_cause import WAITS_FOR_CAUSE

NOW = datetime(2026, 3, 1, 8, tzinfo=UTC)
SOON = NOW + timedelta(seconds=30)
STOP = 'Everything is stopped by ann ("it burns"): nothing is sent until somebody resumes it.'
BARRED = LaneGroup(5, "the circuit breaker is open", is_barred=True)
AHEAD = LaneGroup(2, "the run A is aborted", is_barred=True, ahead="A", ahead_state="aborted")
BEHIND_A = (
    "Waits for the run A, whose messages come first in 2 key queues: the run A is aborted. "
    "The automatic run, or the next run of the DLQ, takes its messages over."
)
RUNNING = RunFacts(state="running", open=9)
PLANNED = RunFacts(state="planned")


@pytest.mark.parametrize(
    ("facts", "kind", "text"),
    [
        (PLANNED, WaitsFor.PERSON, "Waits for a person to start it."),
        (replace(PLANNED, is_empty=True, stop=STOP), WaitsFor.NOTHING,
         "It has no message to send. A plan that nobody starts is aborted after a day."),
        (replace(PLANNED, is_selected=False), WaitsFor.CAPTURE,
         "Waits for a capture of the DLQ. Then its messages are selected."),
        (replace(PLANNED, is_selected=False, missing=("No beat was seen.",)), WaitsFor.PROCESS, "No beat was seen."),
        (replace(PLANNED, missing=("No beat was seen.",)), WaitsFor.PERSON, "Waits for a person to start it."),
        (replace(PLANNED, approval=7), WaitsFor.APPROVAL, "Waits for a second person: approval 7 is requested."),
        (replace(PLANNED, approval=7, stop=STOP), WaitsFor.STOP, f"{STOP} Until then the run cannot be started."),
        (RunFacts(state="paused", state_text="It was paused by ann."), WaitsFor.PERSON,
         "It was paused by ann. It sends nothing until it is resumed."),
        (RunFacts(state="aborted", state_text="It was aborted by ann."), WaitsFor.NOTHING, "It was aborted by ann."),
        (RunFacts(state="finished"), WaitsFor.NOTHING, ""),
        (replace(RUNNING, stop=STOP, aws="AWS moves.", lanes=(BARRED,)), WaitsFor.STOP, f"Waits: e{STOP[1:]}"),
        (replace(RUNNING, aws="AWS moves.", lanes=(BARRED,)), WaitsFor.AWS, "AWS moves."),
        (replace(RUNNING, open=0, missing=("No worker was seen.",)), WaitsFor.NOTHING,
         "All its messages are finished."),
        (replace(RUNNING, missing=("No beat was seen.", "No worker was seen."), lanes=(BARRED,)), WaitsFor.PROCESS,
         "No worker was seen."),
        (replace(RUNNING, lanes=(LaneGroup(1, "due", moves=True),)), WaitsFor.PROCESS,
         "Waits for a worker to take 1 key queue."),
        (replace(RUNNING, lanes=(LaneGroup(2, "due", moves=True),), measured=1.0, allowed=10.0), WaitsFor.SENDS,
         "Sends messages."),
        (replace(RUNNING, lanes=(LaneGroup(2, "due", moves=True), BARRED), measured=9.0, allowed=10.0), WaitsFor.RATE,
         "Sends as fast as the rate limit permits, 10 messages/s now."),
        (replace(RUNNING, captured=9), WaitsFor.PROCESS, "Waits for a worker to queue 9 messages."),
        (replace(RUNNING, lanes=(BARRED,), breakers=(NotClosedBreaker("shop", is_open=True, until=SOON),)),
         WaitsFor.BREAKER,
         "Waits: the circuit breaker of shop is open until 08:00:30 UTC."),
        (replace(RUNNING, lanes=(BARRED,), breakers=(NotClosedBreaker("shop", is_open=True, until=NOW),)),
         WaitsFor.BREAKER,
         "Waits: the circuit breaker of shop is open. One message is sent next, as a test."),
        (replace(RUNNING, lanes=(BARRED,), breakers=(NotClosedBreaker("shop", is_open=False, until=None),)),
         WaitsFor.BREAKER,
         "Waits: the circuit breaker of shop is half open. The outcome of its canary is not known yet."),
        (replace(RUNNING, lanes=(LaneGroup(3, "the target is not known to be healthy", is_barred=True),),
                 failing_checks=("shop: 503",)), WaitsFor.HEALTH, "Waits for a health check: shop: 503."),
        (replace(RUNNING, wave=10, lanes=(LaneGroup(3, "the outcome of the run's wave is not known yet",
                                                    is_barred=True),)), WaitsFor.WAVE,
         "Waits for its wave of 10: the outcome of the run's wave is not known yet."),
        (replace(RUNNING, lanes=(LaneGroup(1, "stopped by ann: it burns", is_barred=True),)), WaitsFor.OTHER,
         "Waits: stopped by ann: it burns."),
        (replace(RUNNING, awaiting=4, awaited="sent to shop and waiting for a capture"), WaitsFor.OUTCOME,
         "Waits for outcomes: sent to shop and waiting for a capture."),
        (replace(RUNNING, lanes=(LaneGroup(3, "backoff", due_at=SOON),)), WaitsFor.BACKOFF,
         "Waits for the next attempt, at 08:00:30 UTC."),
        (replace(RUNNING, lanes=(LaneGroup(1, WAITS_FOR_CAUSE, due_at=SOON),)), WaitsFor.OUTCOME,
         f"Waits: {WAITS_FOR_CAUSE}."),
        (replace(RUNNING, held=2, lanes=(LaneGroup(1, "held", is_held=True),)), WaitsFor.KEY,
         "Waits for a person to decide: a parked message or a rule holds 2 messages."),
        (replace(RUNNING, lanes=(LaneGroup(4, "held", is_held=True),)), WaitsFor.KEY,
         "Waits for a person to decide: a parked message or a rule holds 4 key queues."),
        (replace(RUNNING, open=0, is_automatic=True), WaitsFor.NOTHING, "Waits for new messages in the DLQ."),
        (replace(RUNNING, lanes=(AHEAD, replace(AHEAD, n=1, ahead="C"))), WaitsFor.KEY,
         BEHIND_A),
        (replace(RUNNING, lanes=(replace(AHEAD, ahead_state="finished", why="the run A is finished"),)), WaitsFor.KEY,
         "Waits for the run A, whose messages come first in 2 key queues: the run A is finished. Continue that run."),
        (replace(RUNNING, lanes=(replace(AHEAD, n=9, ahead="C", ahead_state="running"), AHEAD)), WaitsFor.KEY,
         BEHIND_A),
        (replace(RUNNING, measured=1.0, lanes=(LaneGroup(1, "leased by a worker", moves=True, is_leased=True,
                                                         ahead="C", ahead_state="running"),)), WaitsFor.KEY,
         "Waits for the run C, whose messages come first in 1 key queue: leased by a worker."),
        (replace(RUNNING, lanes=(AHEAD, LaneGroup(3, "backoff", due_at=SOON))), WaitsFor.BACKOFF,
         "Waits for the next attempt, at 08:00:30 UTC."),
        (RUNNING, WaitsFor.OTHER, "Waits for a worker."),
    ],
    ids=lambda value: value.name.lower() if isinstance(value, WaitsFor) else "",
)  # fmt: skip
def test_the_most_general_reason_is_told(facts: RunFacts, kind: WaitsFor, text: str) -> None:
    assert waiting_reason(facts, NOW) == Waiting(kind, text)


def test_an_approval_is_told_while_a_run_is_paused() -> None:
    asked: dict[str, Any] = {"state": "paused", "state_text": "It was paused by ann.", "approval": 3}
    assert waiting_reason(RunFacts(**asked), NOW).text == "Waits for a second person: approval 3 is requested."
