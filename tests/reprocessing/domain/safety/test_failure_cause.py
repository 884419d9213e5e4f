"""Whether the message or its target is at fault when a message has no attempts left."""

from __future__ import annotations

import pytest

from reprocessing.domain.safety.failure_cause import (
    OUTCOMES_AWAITED,
    FailureCause,
    LastFailures,
    MessageFails,
    NotKnownYet,
    TargetFails,
    failure_cause,
)  # fmt: skip


@pytest.mark.parametrize(
    ("failures", "cause"),
    [
        (None, MessageFails()),
        (LastFailures(0, success_since_first=True, success_since_last=True), MessageFails()),
        (LastFailures(OUTCOMES_AWAITED - 1, success_since_first=True, success_since_last=False), NotKnownYet()),
        (LastFailures(OUTCOMES_AWAITED - 1, success_since_first=False, success_since_last=False), NotKnownYet()),
        (LastFailures(OUTCOMES_AWAITED, success_since_first=True, success_since_last=False), MessageFails()),
        (LastFailures(OUTCOMES_AWAITED, success_since_first=False, success_since_last=False), TargetFails()),
    ],
)
def test_a_message_is_at_fault_when_others_went_well_beside_it(
    failures: LastFailures | None, cause: FailureCause
) -> None:
    assert failure_cause(failures) == cause
