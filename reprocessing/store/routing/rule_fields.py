"""Turn the columns of a rule into JSON and back, so that a change of a rule can be stored until it is approved."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from django.db.models import Model

from reprocessing.models.dlq import DeadLetterQueue
from reprocessing.models.safety import RateClass
from reprocessing.models.target import Target

_REFERENCES: Final[Mapping[str, type[Model]]] = {
    "dlq": DeadLetterQueue, "target": Target, "rate_class": RateClass,
}  # fmt: skip
_TIMES: Final = ("valid_from", "valid_until")
_NEW: Final = "new target"


def as_json(value: object) -> Any:  # noqa: ANN401 - a value of any column, for the audit log
    """Return a column's value as a JSON value."""
    match value:
        case datetime():
            return value.isoformat()
        case Target():
            return value.arn
        case Model():
            return str(value)
        case list():
            return list(value)
        case _:
            return value


def write(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return a rule's columns as JSON: a DLQ, target or rate class as its id, a target without a row as its fields."""
    return {name: _written(value) if name in _REFERENCES else as_json(value) for name, value in fields.items()}


def read(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns of a rule, from the JSON values that `write` returned.

    Raises:
        ObjectDoesNotExist: a DLQ, target or rate class was deleted since.
    """
    return {name: _read(name, value) for name, value in stored.items()}


def _written(row: Model | None) -> Any:  # noqa: ANN401  JSON
    if isinstance(row, Target) and row._state.adding:  # noqa: SLF001  # Django's own word for it
        values = {column.attname: getattr(row, column.attname) for column in row._meta.concrete_fields}  # noqa: SLF001  # Django's public name
        return {_NEW: {name: value for name, value in values.items() if _is_plain(value)}}
    return None if row is None else row.pk


def _is_plain(value: object) -> bool:
    return isinstance(value, str | int | float | bool)


def _read(name: str, value: Any) -> Any:  # noqa: ANN401  JSON, or a column's value
    if value is None:
        return None
    if name in _TIMES:
        return datetime.fromisoformat(value)
    if name not in _REFERENCES:
        return value
    if isinstance(value, dict):
        known = Target.objects.filter(arn=value[_NEW]["arn"]).first()
        return known or Target(**value[_NEW])
    return _REFERENCES[name]._default_manager.get(pk=value)  # noqa: SLF001  # Django's public name for it
