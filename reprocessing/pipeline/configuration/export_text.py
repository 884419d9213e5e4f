"""Write the stored settings as a configuration file in YAML. The same settings always give the same text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import yaml

from reprocessing.domain.configuration.keys import KEPT, KEYS, OFF, Kind, Settings, State
from reprocessing.domain.targets.target_kind import TargetKind
from reprocessing.pipeline.configuration.defaults import default_settings
from reprocessing.pipeline.configuration.desired import ITSELF
from reprocessing.store.configuration.defaults import dlq_defaults

SCHEMA: Final = "redrive.schema.json"
_HEAD: Final = f"""# yaml-language-server: $schema={SCHEMA}
# Settings that are left out have their defaults. Secrets stay in the environment. See docs/configuration.md.
"""
#: Fields that are written even if they have their defaults.
_ALWAYS: Final = {Kind.RULE: ("conditions", "action"), Kind.TARGET: ("proof", "advance")}


def export_text(state: State) -> str:
    """Return the text of the configuration file for these settings."""
    return "\n".join([_HEAD, *(_section(kind, state[kind]) for kind in Kind)])


def export_part(state: State) -> str:
    """Return only the sections of a configuration file that have these settings, without the file's header."""
    return "\n".join(_section(kind, state[kind]) for kind in Kind if state.get(kind))


def _section(kind: Kind, objects: dict[str, Settings]) -> str:
    return yaml.safe_dump(
        {kind.value: {name: dict(_settings(kind, settings)) for name, settings in objects.items()}},
        sort_keys=False, allow_unicode=True, default_flow_style=False, width=1_000_000,
    )  # fmt: skip


def _settings(kind: Kind, settings: Settings) -> Iterator[tuple[str, Any]]:
    fields = set(_fields(kind, settings))
    for key, field in KEYS[kind].items():
        if field in fields:
            yield key, _value(key, settings[field])


def _fields(kind: Kind, settings: Settings) -> Iterator[str]:
    """Yield the names of the fields to write: those that differ from the default, and those in `_ALWAYS`."""
    match kind:
        case Kind.POLICY:
            yield from settings
        case Kind.DLQ:
            yield from _of_dlq(settings)
        case _:
            defaults = default_settings(kind, settings)
            for field in KEYS[kind].values():
                default = defaults.get(field)
                if field in _ALWAYS.get(kind, ()) or (
                    settings[field] not in (default, [], "", 0)
                    if field in KEPT.get(kind, ())
                    else settings[field] != default
                ):
                    yield from _unless_computed(kind, field, settings)


def _unless_computed(kind: Kind, field: str, settings: Settings) -> Iterator[str]:
    """Yield the field's name, unless it is the region of a target with an ARN: the ARN has the region already."""
    if not (kind is Kind.TARGET and field == "region" and settings["kind"] != TargetKind.HTTP):
        yield field


def _of_dlq(settings: Settings) -> Iterator[str]:
    yield "url"
    yield from (field for field in ("policy", "sources", "default_source") if settings[field])
    defaults = dlq_defaults(fifo=settings["fifo"])
    if settings["policy"]:
        yield from settings["own_settings"]
    else:
        yield from (field for field, value in defaults.items() if settings[field] != value)


def _value(key: str, value: Any) -> Any:  # noqa: ANN401  a JSON value
    match value:
        case dict() if key == "sources":
            return {arn: ITSELF if to == arn else to for arn, to in value.items()}
        case dict():
            return {name: _value(name, one) for name, one in value.items()}
        case list():
            return [_value("", one) for one in value]
        case _:
            return _scalar(key, value)


def _scalar(key: str, value: Any) -> Any:  # noqa: ANN401  a JSON value
    if key == "celery":
        return value == TargetKind.CELERY
    if value in (None, ""):
        return OFF
    return int(value) if isinstance(value, float) and value.is_integer() else value


def shown(key: str, value: Any) -> str:  # noqa: ANN401  a JSON value
    """Return the value of a setting as it is written in the file and in the plan of apply_config, on one line."""
    written = _value(key, value)
    if isinstance(written, str):
        return written
    text: str = yaml.safe_dump(written, default_flow_style=True, allow_unicode=True, width=1_000_000)
    return text.removesuffix("\n").removesuffix("\n...")
