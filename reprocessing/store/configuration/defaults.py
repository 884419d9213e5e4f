"""Define the default settings of DLQs. They apply if neither a person nor a policy (named settings) sets a value."""

from __future__ import annotations

from enum import Enum
from typing import Any

from reprocessing.domain.configuration.keys import POLICY_FIELDS, Settings
from reprocessing.domain.ordering.placement import KeyPolicy
from reprocessing.models import DeadLetterQueue
from reprocessing.models.dlq import DeleteWhen


def dlq_defaults(*, fifo: bool) -> Settings:
    """Return the default settings of a DLQ by field name; some depend on whether the DLQ is FIFO."""
    new, keys = DeadLetterQueue(), KeyPolicy.of(fifo=fifo)
    return {
        **{name: _plain(getattr(new, name)) for name in POLICY_FIELDS},
        "ordering_key": str(keys.ordering),
        "sequence": str(keys.sequence),
        "idempotency_key": str(keys.idempotency),
        "delete_when": (DeleteWhen.CAPTURED if fifo else DeleteWhen.TERMINAL).value,
    }


def _plain(value: Any) -> Any:  # noqa: ANN401  of the field's own type
    return value.value if isinstance(value, Enum) else value
