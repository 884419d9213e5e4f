"""The bugs, by what they break: order, custody, returns, sending, outcomes, brakes, fault, doors, edits, costs."""

from __future__ import annotations

from typing import Final

from tests.proof.planted.bug import Bug
from tests.proof.planted.bugs import (
    brakes,
    costs,
    custody,
    doors,
    edits,
    emptiness,
    fault,
    healing,
    incidents,
    moves_by_aws,
    notifications,
    order,
    outcomes,
    ownership,
    restores,
    returns,
    sayings,
    schema,
    sending,
    unknown_copies,
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
    *unknown_copies.BUGS,
    *moves_by_aws.BUGS,
    *brakes.BUGS,
    *healing.BUGS,
    *fault.BUGS,
    *notifications.BUGS,
    *incidents.BUGS,
    *doors.BUGS,
    *sayings.BUGS,
    *edits.BUGS,
    *costs.BUGS,
    *schema.BUGS,
)
