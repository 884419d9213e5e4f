"""Show the values that would be stored for a DLQ and its targets in the form of a configuration file."""

from __future__ import annotations

from typing import Any, Final

from reprocessing.domain.configuration.keys import KEPT, KEYS, Kind, Settings, State
from reprocessing.domain.targets.target_kind import TargetKind
from reprocessing.models import Target
from reprocessing.pipeline.configuration.defaults import default_settings
from reprocessing.pipeline.dlqs.examine import Examination
from reprocessing.store.configuration import state

_OF_DLQ: Final = frozenset({*KEYS[Kind.DLQ].values(), "own_settings"})


def proposed_state(found: Examination) -> State:
    """Return the settings that a DLQ and its targets will have when the proposals of its examination are stored."""
    stored = state.stored_targets(found.proposal.targets)
    return {
        Kind.TARGET: {arn: _target(stored.get(arn), values) for arn, values in sorted(found.proposal.targets.items())},
        Kind.DLQ: {found.proposal.name: _dlq(found)},
    }


def _dlq(found: Examination) -> Settings:
    proposal, fifo = found.proposal, found.observed.dlq.facts.fifo
    new: Settings = {"sources": {}, "default_source": None, **default_settings(Kind.DLQ, {"fifo": fifo})}
    before = state.stored_dlq(proposal.name) or new
    return {
        **before,
        **{name: value for name, value in proposal.dlq.items() if name in _OF_DLQ},
        "sources": dict(sorted({**before["sources"], **proposal.ways}.items())),
        "default_source": proposal.default_source or before["default_source"],
        "fifo": fifo,
    }


def _target(stored: Settings | None, values: Any) -> Settings:  # noqa: ANN401  values by field, of any type
    before = stored or _new_target(str(values.get("kind", TargetKind.SQS)))
    return {**before, **{name: value for name, value in values.items() if name in before}}


def _new_target(kind: str) -> Settings:
    new = Target()
    kept = {name: getattr(new, name) for name in KEPT[Kind.TARGET] - {"health_checks"}}
    return {**default_settings(Kind.TARGET, {"kind": kind}), **kept, "health_checks": []}
