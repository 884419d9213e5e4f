"""Count the unfinished letters of a run for each target, and estimate the shortest time until they are finished."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from reprocessing import conf
from reprocessing.domain.runs.forecast import Forecast, RateClimb
from reprocessing.store import rows
from reprocessing.store.outcomes.evidence import LEAST_WAIT

# By target: unsent letters, and the longest lane. An outcome by absence is known at the earliest when the target can
# have been seen empty.
_LEFT = f"""
SELECT t.id AS target_id, t.arn AS name, sum(lane.unsent)::bigint AS letters, max(lane.n) AS longest,
       max(lane.unsent) AS unsent, 0::float8 AS known_in, least(t.rate, r.rate) AS rate, coalesce(b.ramp, 1) AS ramp,
       coalesce(b.ramp_every, 1) AS ramp_every,
       coalesce(b.state, 'closed') AS breaker, wait.seconds AS tail,
       CASE WHEN t.advance = 'settled' AND r.waits_for_outcomes THEN wait.seconds ELSE 0 END AS round_trip,
       %(room)b::int AS room
  FROM (SELECT target_id, count(*) AS n, count(*) FILTER (WHERE state IN ('captured', 'waiting')) AS unsent
          FROM redrive_letter
         WHERE run_id = %(run)b AND state IN ('captured', 'waiting', 'sending', 'awaiting') AND blocked_reason = ''
         GROUP BY target_id, source_id, coalesce(key_hash, int8send(id))) lane
  JOIN redrive_target t ON t.id = lane.target_id JOIN redrive_run r ON r.id = %(run)b
  LEFT JOIN redrive_breaker b ON b.target_id = t.id AND b.rate_class_id IS NULL
 CROSS JOIN LATERAL (
        SELECT CASE WHEN t.proof = 'absence' THEN {LEAST_WAIT} ELSE 0 END AS seconds) wait
 GROUP BY t.id, b.id, r.id, wait.seconds ORDER BY t.id
"""  # noqa: S608  # the inserted text is a constant


@dataclass(frozen=True, slots=True)
class TargetRemainder:
    """The unfinished letters of a run for one target. Times are in seconds.

    Attributes:
        letters: number of unsent letters.
        longest: highest number of unfinished letters in one lane. `unsent`: highest number of unsent letters in one.
        known_in: shortest time until the outcomes of all sent letters are known; None: the time is not known.
        rate: most letters per second that target and run allow; None: no limit.
        room: the most letters that may wait for their outcome, if this takes a time (`tail`).
        ramp: share of the rate that is allowed now. It is raised every `ramp_every` seconds.
        tail: shortest time from a send to its outcome. `round_trip`: shortest time between two sends of one lane.
    """

    target_id: int
    name: str
    letters: int
    longest: int
    unsent: int
    known_in: float | None
    rate: float | None
    ramp: float
    ramp_every: float
    breaker: str
    tail: float
    round_trip: float
    room: int

    @property
    def seconds(self) -> float:
        """Return the shortest time (s) until all these letters are finished, if nothing fails."""
        climb = RateClimb(share=self.ramp, every=self.ramp_every, first=self.ramp_every)
        found = Forecast.of(
            letters=self.letters, rate=self.rate, longest_lane=self.unsent, round_trip=self.round_trip, climb=climb,
            room=self.room, outcome_in=self.tail,
        )  # fmt: skip
        sent = self.known_in or 0.0
        last_sent = max(found.by_rate, found.by_outcomes)
        return max(sent, found.by_lane, last_sent + self.tail) if self.letters else sent


def remaining_by_target(run: int, *, count_lag: float, known_in: Mapping[int, float | None]) -> list[TargetRemainder]:
    """Return the unfinished letters of a run for each target.

    `known_in`: by target id, the shortest time (s) until the outcomes of sent letters are known; None: not known.
    `count_lag`: seconds by which SQS's message counts may be late.
    """
    found = rows.fetch(
        TargetRemainder, _LEFT, {"run": run, "count_lag": count_lag, "room": conf.current().max_unsettled}
    )
    return [replace(target, known_in=known_in.get(target.target_id, 0.0)) for target in found]
