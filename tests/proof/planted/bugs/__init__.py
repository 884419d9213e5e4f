"""The bugs, by what they break: order, custody, returns, sending, outcomes, brakes, incidents, doors, edits."""

from __future__ import annotations

from typing import Final

from tests.proof.planted.bug import Bug
from tests.proof.planted.bugs import (
    brakes,
    custody,
    doors,
    edits,
    emptiness,
    healing,
    incidents,
    order,
    outcomes,
    ownership,
    restores,
    returns,
    schema,
    sending,
)

BUGS: Final[tuple[Bug, ...]] = (
    *ownership.BUGS,
    *order.BUGS,
    *custody.BUGS,
    *returns.BUGS,
    *restores.BUGS,
    *sending.BUGS,
    *outcomes.BUGS,
    *emptiness.BUGS,
    *brakes.BUGS,
    *healing.BUGS,
    *incidents.BUGS,
    *doors.BUGS,
    *edits.BUGS,
    *schema.BUGS,
)
