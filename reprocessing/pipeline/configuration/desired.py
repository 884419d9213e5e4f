"""Compute the settings of all objects after an apply, from the configuration file and the stored settings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from reprocessing.domain.configuration.document import Problem
from reprocessing.domain.configuration.keys import KEPT, POLICY_FIELDS, Kind, Settings, State, effective
from reprocessing.domain.message.arn import ResourceKind, read
from reprocessing.domain.targets.target_kind import QUEUE_KINDS, TargetKind
from reprocessing.pipeline.configuration.defaults import default_settings
from reprocessing.store.configuration.defaults import dlq_defaults

#: A value in `sources`: messages go back to the source itself, the queue or function in which they failed.
ITSELF = "itself"
_NAMED = {Kind.RULE: {"dlq": Kind.DLQ, "rate_class": Kind.RATE_CLASS}, Kind.DLQ: {"policy": Kind.POLICY}}


@dataclass(frozen=True, slots=True)
class Desired:
    """The settings of all objects after an apply.

    Attributes:
        missing: stored objects that are not in the file, although the file has a section for their kind. With
            `--prune`, they are removed.
        problems: names in the file of objects that do not exist.
    """

    state: State
    missing: tuple[tuple[Kind, str], ...]
    problems: tuple[Problem, ...]


def desired_state(given: State, now: State, *, prune: bool) -> Desired:
    """Return the settings of all objects that the file asks for.

    `given`: the settings in the file, by field name. `now`: the stored settings. `prune`: remove objects that are not
    in the file.
    """
    state: State = {kind: dict(now[kind]) for kind in Kind}
    for kind in Kind:
        for name, settings in given.get(kind, {}).items():
            state[kind][name] = _completed(kind, settings, now[kind].get(name), state)
    _inherit(state, now, given)
    missing = tuple(_missing(given, now, state))
    if prune:
        for kind, name in missing:
            del state[kind][name]
    return Desired(state, missing, tuple(_reference_problems(state, now, given)))


def _completed(kind: Kind, given: Settings, now: Settings | None, state: State) -> Settings:
    if kind is Kind.DLQ:
        return _dlq(given, now, state)
    if kind is Kind.TARGET and now is None:
        return given  # the examination of the target adds its other settings
    if now is None:
        return {**default_settings(kind, {}), **given}
    kept = {name: value for name, value in now.items() if name in KEPT.get(kind, ())}
    if kind is Kind.TARGET and given.get("kind") == TargetKind.SQS and now["kind"] not in QUEUE_KINDS:
        given = {**given, "kind": now["kind"]}  # `celery: false` does not make an endpoint a queue
    return {**kept, **default_settings(kind, now), **given}


def _dlq(given: Settings, now: Settings | None, state: State) -> Settings:
    own = {name: value for name, value in given.items() if name in POLICY_FIELDS}
    policy = given.get("policy")
    inherited = state[Kind.POLICY].get(policy, {}) if policy else {}
    fifo = now["fifo"] if now else str(given["url"]).endswith(".fifo")
    kept = {name: value for name, value in (now or {}).items() if name in KEPT[Kind.DLQ]}
    found = effective(own, inherited, {**_defaults(fifo), **kept})
    if "sources" in given:
        before = now["sources"] if now else {}
        found["sources"] = {arn: _target_of(arn, to, before.get(arn)) for arn, to in sorted(given["sources"].items())}
    if given.get("default_source"):
        found["default_source"] = given["default_source"]
    return {
        **found, "url": given["url"], "policy": policy, "own_settings": sorted(own) if policy else [], "fifo": fifo,
    }  # fmt: skip


def _defaults(fifo: bool) -> Settings:  # noqa: FBT001  # private; the name tells
    return {name: value for name, value in dlq_defaults(fifo=fifo).items() if name not in KEPT[Kind.DLQ]}


def _target_of(source: str, to: str, before: str | None) -> str:
    """Return the ARN of the target of a source. `to`: the target in the file; `before`: the stored target; None: none.

    `ITSELF` means that messages go back to their source. It is returned if only AWS knows the ARN, such as the endpoint
    of a new subscription.
    """
    if to != ITSELF:
        return to
    arn = read(source)
    is_found_later = arn is not None and arn.named not in {ResourceKind.QUEUE, ResourceKind.FUNCTION}
    return before or to if is_found_later else source


def _inherit(state: State, now: State, given: State) -> None:
    """Update stored DLQs that are not in the file, but have a policy that the file changes."""
    for name, dlq in now[Kind.DLQ].items():
        policy = dlq["policy"]
        if name in given.get(Kind.DLQ, {}) or policy not in given.get(Kind.POLICY, {}):
            continue
        before, after = now[Kind.POLICY].get(policy, {}), state[Kind.POLICY][policy]
        own = {field: dlq[field] for field in dlq["own_settings"]}
        base = {**dlq, **{field: dlq_defaults(fifo=dlq["fifo"])[field] for field in before}}
        state[Kind.DLQ][name] = effective(own, after, base)


def _missing(given: State, now: State, state: State) -> Iterator[tuple[Kind, str]]:
    for kind in given:
        for name in now[kind]:
            if name not in given[kind] and not (kind is Kind.TARGET and _is_used(name, state, given)):
                yield kind, name


def _is_used(target: str, state: State, given: State) -> bool:
    """Return whether a DLQ or rule sends to this target. DLQs and rules that the apply removes do not count."""
    dlqs = given.get(Kind.DLQ, state[Kind.DLQ])
    rules = given.get(Kind.RULE, state[Kind.RULE])
    return any(target in state[Kind.DLQ][name].get("sources", {}).values() for name in dlqs) or any(
        state[Kind.RULE][name]["target"] == target for name in rules
    )


def _reference_problems(state: State, now: State, given: State) -> Iterator[Problem]:
    for kind, fields in _NAMED.items():
        for name, settings in state[kind].items():
            for field, of in fields.items():
                yield from _reference((kind, name, field), settings.get(field), of, state, now)
    for name, route in state[Kind.NOTIFICATION].items():
        for dlq in route["dlqs"]:
            yield from _reference((Kind.NOTIFICATION, name, "dlqs"), dlq, Kind.DLQ, state, now)
    for name in given.get(Kind.DLQ, {}):
        yield from _source_problems(name, state[Kind.DLQ][name])


def _reference(path: tuple[Kind, str, str], named: Any, of: Kind, state: State, now: State) -> Iterator[Problem]:  # noqa: ANN401  a name or None
    if named is None or named in state[of]:
        return
    if named in now[of]:
        what = f"--prune would remove the {of.singular} {named}, which {path[0].singular} {path[1]} uses."
        yield Problem(path, f"{what} Keep it in the file, or remove the reference.")
        return
    there_are = ", ".join(sorted(state[of])) or "none"
    yield Problem(path, f'No {of.singular} is named "{named}". There are: {there_are}.')


def _source_problems(name: str, dlq: Settings) -> Iterator[Problem]:
    default, sources = dlq.get("default_source"), dlq.get("sources", {})
    if default and default not in sources:
        yield Problem((Kind.DLQ, name, "default_source"), f"{default} is not a source of the DLQ. Add it to sources.")
    for arn in sources:
        if read(arn) is None:
            yield Problem((Kind.DLQ, name, "sources", arn), f"{arn} is not an ARN. Name sources by their ARNs.")
