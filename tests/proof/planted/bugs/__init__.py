"""The bugs, by what they break: whose a lane is, its order, custody, returns, sending, outcomes, brakes, and doors."""

from __future__ import annotations

from typing import Final

from tests.proof.planted.bug import Bug
from tests.proof.planted.bugs import brakes, custody, doors, order, outcomes, ownership, returns, schema, sending

BUGS: Final[tuple[Bug, ...]] = (
    *ownership.BUGS,
    *order.BUGS,
    *custody.BUGS,
    *returns.BUGS,
    *sending.BUGS,
    *outcomes.BUGS,
    *brakes.BUGS,
    *doors.BUGS,
    *schema.BUGS,
)
