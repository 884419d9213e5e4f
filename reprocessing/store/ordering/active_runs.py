"""SQL that selects the runs whose letters may be sent now.

Workers lease only lanes of these runs. Task hints, which are Celery tasks that name due lanes, name only such lanes.
"""

from __future__ import annotations

from typing import Final, LiteralString

from reprocessing.store.aws.aws_redrive_checks import MOVES_UNKNOWN, WAITS_FOR_AWS

# Active runs: they are running, and their DLQ is not stopped, not in mode observe, and not redriven by AWS. No run is
# active if all sends are stopped.
ACTIVE_RUNS: Final[LiteralString] = """
SELECT r.id FROM redrive_run r JOIN redrive_dlq d ON d.id = r.dlq_id AND d.aws_redrive_since IS NULL
 WHERE r.state = 'running' AND d.stopped_at IS NULL AND d.mode <> 'observe'
   AND NOT EXISTS (SELECT FROM redrive_global_stop)
"""

# Active runs, without runs that send nothing until AWS answers whether it moved messages.
ANSWERED_RUNS: Final[LiteralString] = f"{ACTIVE_RUNS} AND NOT {WAITS_FOR_AWS}"

# Active runs of DLQs for which AWS has answered whether it moved messages.
KNOWN_RUNS: Final[LiteralString] = f"{ACTIVE_RUNS} AND NOT {MOVES_UNKNOWN}"
