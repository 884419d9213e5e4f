"""The state of a lane and its head (first unfinished letter), as `lanes.advance` returns it.

The lane's fence is a number that rises with every lease.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LaneState:
    """A lane and its head after `lanes.advance`, with the values by which the gate decides whether the head is sent."""

    lane_id: int
    fence: int
    phase: str
    letter_id: int | None  #: the head; None: the lane has no unfinished letter
    dlq_id: int | None
    target_id: int | None
    attempts: int | None
    max_attempts: int | None
    never_sent: bool | None
    stale: bool | None
    stale_policy: str | None
    released: bool | None
    receives: int | None
    receive_limit: int | None
    claim_state: str | None  #: None: no letter has claimed the head's idempotency key
    claim_letter: int | None
    claim_same_body: bool | None
    #: seconds for which the target may still have a message of the letter that claimed the key; None: it has no message
    claim_rests: float | None = None
    #: True: a capture after AWS's own redrive did not find the head; False: no capture yet; None: AWS did not move it
    gone: bool | None = None
    breaker_id: int | None = None  #: the breaker that counts the head's outcomes
    rate_class_id: int | None = None
    rule_id: int | None = None  #: the rule that decided about the head; None: no rule
    rulebook_version: int | None = None  #: the version of the rules that decided about the head
    run_id: int | None = None
    run_rate: float | None = None  #: highest rate of the run to each target (letters/s); None: the run has no limit
    tries: int | None = None  #: all attempts since a person released the head, even if they do not count
