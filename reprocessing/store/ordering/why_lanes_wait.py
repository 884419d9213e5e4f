"""SQL that returns, as text for people, why no message of a due lane (key queue) is sent now.

For lanes that are not due, `lane_counts.describe_lanes` says why they wait.
"""

from __future__ import annotations

from typing import Final, LiteralString

from reprocessing.store.aws.aws_redrive_checks import WAITS_FOR_AWS
from reprocessing.store.safety.send_limits import (
    EXEMPT_FROM_WAVE,
    FULL_WAVE_RUNS,
    UNHEALTHY_TARGETS,
)

# Open waves with a letter that is to be sent again, because its target did not accept it (429, or no connection).
_NOT_TAKEN: Final[LiteralString] = """
SELECT w.run_id FROM redrive_wave w
  JOIN redrive_attempt a ON a.wave_id = w.id JOIN redrive_letter l ON l.id = a.letter_id
 WHERE w.settled_at IS NULL AND w.size IS NOT NULL AND l.state = 'waiting' AND a.outcome = 'not_sent'
"""

#: The joins that `OBSTACLE` needs, for lanes n. While a head's breaker is not known, the breaker of its source queue's
#: target is used.
OBSTACLE_JOINS: Final[LiteralString] = """
  JOIN redrive_dlq d ON d.id = n.dlq_id
  JOIN redrive_source o ON o.id = n.source_id
  LEFT JOIN redrive_run r ON r.id = n.run_id
  LEFT JOIN redrive_breaker own ON own.target_id = o.target_id AND own.rate_class_id IS NULL
  LEFT JOIN redrive_breaker b ON b.id = coalesce(n.breaker_id, own.id)
"""

#: Why no worker may lease a lane, as text for people; empty: a worker leases the lane when it is due. The text comes
#: from the present rows, since the lane's own `why` may be old.
OBSTACLE: Final[LiteralString] = f"""
CASE WHEN n.stopped_at IS NOT NULL THEN 'stopped by ' || n.stopped_by || ': ' || n.stop_reason
     WHEN n.phase <> 'ready' THEN ''
     WHEN EXISTS (SELECT FROM redrive_global_stop)
     THEN (SELECT 'everything is stopped by ' || by || ': ' || reason FROM redrive_global_stop LIMIT 1)
     WHEN d.stopped_at IS NOT NULL THEN 'the DLQ is stopped by ' || d.stopped_by || ': ' || d.stop_reason
     WHEN d.aws_redrive_since IS NOT NULL
            THEN 'AWS moves the messages of the DLQ (native redrive by ' || d.aws_redrive_by || ')'
     WHEN d.mode = 'observe' THEN 'the DLQ is in mode observe'
     WHEN r.state <> 'running' THEN 'the run ' || r.name || ' is ' || r.state
     WHEN {WAITS_FOR_AWS}
     THEN 'AWS does not say whether it moved messages of the DLQ: ' || d.aws_redrive_error
     WHEN r.id IN ({FULL_WAVE_RUNS}) AND n.id NOT IN ({EXEMPT_FROM_WAVE}) AND r.id IN ({_NOT_TAKEN})
     THEN 'the target did not accept a message of the run''s wave, which will be sent again'
     WHEN r.id IN ({FULL_WAVE_RUNS}) AND n.id NOT IN ({EXEMPT_FROM_WAVE})
     THEN 'the outcome of the run''s wave is not known yet'
     WHEN b.target_id IN ({UNHEALTHY_TARGETS}) THEN 'the target is not known to be healthy'
     WHEN b.state = 'open' THEN 'the circuit breaker is open'
     WHEN b.state = 'half_open' AND b.canary_until > redrive_now()
     THEN 'the circuit breaker is half open, and its canary has no outcome yet'
     ELSE '' END
"""  # noqa: S608  # the inserted texts are constants

#: For a lane n without an `OBSTACLE`: why the lane waited when a worker last checked its head, as text for people.
#: Empty: no reason is recorded, or the reason was a circuit breaker or health check that permits sends now.
LAST_REASON: Final[LiteralString] = """
CASE WHEN n.phase = 'ready' AND (n.why LIKE 'the circuit breaker is %%' OR n.why LIKE 'its target is not healthy%%')
     THEN '' ELSE n.why END
"""
