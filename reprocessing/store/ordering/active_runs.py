"""SQL for the runs whose lanes may be leased or hinted at."""

from __future__ import annotations

from typing import Final, LiteralString

from reprocessing.store.aws.aws_redrive_checks import MOVES_UNKNOWN, WAITS_FOR_AWS

# The run is running, its DLQ is neither stopped, observed nor redriven by AWS, and there is no global stop.
ACTIVE_RUNS: Final[LiteralString] = """
SELECT r.id FROM redrive_run r JOIN redrive_dlq d ON d.id = r.dlq_id AND d.aws_redrive_since IS NULL
 WHERE r.state = 'running' AND d.stopped_at IS NULL AND d.mode <> 'observe'
   AND NOT EXISTS (SELECT FROM redrive_global_stop)
"""

# Active runs that do not wait for an answer of AWS; workers could do nothing with hints at other runs.
ANSWERED_RUNS: Final[LiteralString] = f"{ACTIVE_RUNS} AND NOT {WAITS_FOR_AWS}"

# Active runs of DLQs of which AWS has said whether it moved messages.
KNOWN_RUNS: Final[LiteralString] = f"{ACTIVE_RUNS} AND NOT {MOVES_UNKNOWN}"
