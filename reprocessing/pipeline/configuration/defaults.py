"""Define default settings: the values for keys that a configuration file leaves out."""

from __future__ import annotations

from typing import Any

from reprocessing.domain.configuration.keys import KEPT, KEYS, Kind, Settings
from reprocessing.domain.targets.target_kind import QUEUE_KINDS, TargetKind
from reprocessing.models import Breaker, Target
from reprocessing.pipeline.dlqs.examine.default_targets import RATE, default_timeout
from reprocessing.store.configuration.defaults import dlq_defaults
from reprocessing.store.targets.targets import BREAKER_FIELDS

_RULE: Settings = {
    "position": 100, "enabled": False, "dlq": None, "conditions": [], "action": None, "delay": None, "target": None,
    "rate_class": None, "backoff_base": None, "backoff_cap": None, "backoff_jitter": None, "valid_from": None,
    "valid_until": None,
}  # fmt: skip


def default_settings(kind: Kind, now: Settings) -> Settings:
    """Return the default settings of an object of this kind.

    `now`: the object's stored settings. The fields in `KEPT` have no default. If the file leaves out such a field, its
    stored value stays.
    """
    match kind:
        case Kind.POLICY | Kind.APPROVAL:
            return {}
        case Kind.RATE_CLASS:
            return dict.fromkeys(KEYS[kind].values())
        case Kind.TARGET:
            return _of_target(TargetKind(now["kind"]))
        case Kind.DLQ:
            return {"policy": None, "own_settings": [], **dlq_defaults(fifo=now["fifo"])}
        case Kind.RULE:
            return dict(_RULE)
        case Kind.NOTIFICATION:
            return {"kinds": [], "dlqs": []}


def _of_target(kind: TargetKind) -> Settings:
    names = [name for name in KEYS[Kind.TARGET].values() if name not in {*BREAKER_FIELDS, *KEPT[Kind.TARGET]}]
    return {
        **{name: _default(Target, name) for name in names},
        **{name: _breaker_default(its) for name, its in BREAKER_FIELDS.items()},
        "kind": (TargetKind.SQS if kind in QUEUE_KINDS else kind).value,
        "rate": RATE,
        "timeout": default_timeout(kind),
    }  # fmt: skip


def _breaker_default(name: str) -> Any:  # noqa: ANN401  of the field's own type
    field: Any = Breaker._meta.get_field(name)  # noqa: SLF001  # Django's name
    return field.db_default


def _default(model: type[Any], name: str) -> Any:  # noqa: ANN401  of the field's own type
    value = model._meta.get_field(name).get_default()  # noqa: SLF001  # Django's name
    return getattr(value, "value", value)
