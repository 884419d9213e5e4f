"""The choices of the select fields in the form of a DLQ's settings: stored values and labels."""

from __future__ import annotations

from typing import Final

from reprocessing.models.dlq import DeleteWhen, MissingKey, Mode, ParkedHead, StalePolicy

TASKS: Final = {
    "strips_eta": "Remove eta", "strips_expires": "Remove expires", "resets_retries": "Reset retries",
    "renews_id": "New task id",
}  # fmt: skip
YES_NO: Final = (("yes", "yes"), ("no", "no"))
MODES: Final = (
    (Mode.OBSERVE.value, "observe: only read the queue's attributes"),
    (Mode.MANUAL.value, "manual: capture and redrive when a person starts a run"),
    (Mode.AUTOMATIC.value, "automatic: capture and redrive all the time"),
)
MISSING_KEY: Final = (
    (MissingKey.PARK.value, "park the message"), (MissingKey.LANE.value, "redrive the message without ordering"),
)  # fmt: skip
LATE: Final = ((StalePolicy.PARK.value, "park the message"), (StalePolicy.DELIVER.value, "deliver the message late"))
PARKED_HEAD: Final = (
    (ParkedHead.ASIDE.value, "continue with the key's next message"),
    (ParkedHead.HOLD.value, "hold the key until a person decides"),
)
DELETE_WHEN: Final = (
    (DeleteWhen.TERMINAL.value, "when the message is finished"),
    (DeleteWhen.CAPTURED.value, "when the message is captured"),
)  # fmt: skip
