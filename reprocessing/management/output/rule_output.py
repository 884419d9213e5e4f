"""Rules told: what would change, what they would do, and what those that hold have come to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from reprocessing.management.console import when
from reprocessing.management.output.drain_output import counted
from reprocessing.pipeline.routing.preview import Preview, Share
from reprocessing.store.differences import Difference
from reprocessing.store.routing.rules import Standing

OFF = "off"


def changes(found: list[Difference]) -> Iterable[str]:
    """Differences for people."""
    for one in found:
        if one.before is None and one.after is None:
            continue
        before = "" if one.before in (None, [], False) else f"{_value(one.before)} -> "
        yield f"  {one.field}: {before}{_value(one.after)}"


def _value(value: object) -> str:
    if isinstance(value, list):
        return " and ".join(str(one) for one in value) or "every letter"
    return OFF if value is None else str(value)


def shares(found: Preview, *, days: int) -> Iterable[str]:
    """A preview for people."""
    yield f"Of {counted(found.letters, 'letter')} captured in the last {counted(days, 'day')}:"
    for one in found.shares:
        yield from _share(one)
    if len(found.shares) != 1:
        yield f"  {counted(found.unmatched, 'letter')}: no rule matches"
    if found.older:
        yield f"  not asked about, though not finished: {counted(found.older, 'letter')} captured before; see --days"


def _share(one: Share) -> Iterable[str]:
    states = f" ({_states(one.would_act_on)})" if one.acts else ""
    yield f"  {one.name} ({one.action}) would act on {counted(one.acts, 'letter')}{states}"
    if one.matched_before:
        yield f"    finished before: {counted(one.matched_before.total(), 'letter')} ({_states(one.matched_before)})"
    if one.under_way:
        yield f"    with their target, and asked about when they come back: {counted(one.under_way, 'letter')}"
    if one.objected:
        yield f"    parked for another reason before it is asked: {counted(one.objected, 'letter')}"
    if one.released:
        yield f"    released from it, and let through: {counted(one.released, 'letter')}"
    if one.taken_first:
        taken = ", ".join(f"{n:,} by {name}" for name, n in one.taken_first.most_common())
        yield f"    matching, but taken first: {counted(one.taken_first.total(), 'letter')} ({taken})"
    if one.errs:
        yield f"    cannot be asked about, and holds while they wait: {counted(one.errs, 'letter')} ({one.trouble})"
    if one.shown:
        yield f"    such as {', '.join(one.shown)}"


def _states(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{n:,} {state}" for state, n in sorted(counts.items()))


def in_json(found: Preview, *, days: int) -> dict[str, Any]:
    """A preview for programs."""
    return {
        "days": days,
        "letters": found.letters,
        "unmatched": found.unmatched,
        "older": found.older,
        "rules": [
            {
                "rule": one.name,
                "action": one.action,
                "would_act_on": one.acts,
                "by_state": dict(one.would_act_on),
                "objected": one.objected,
                "released": one.released,
                "under_way": one.under_way,
                "finished": dict(one.matched_before),
                "message_ids": one.shown,
                "errs": one.errs,
                "trouble": one.trouble or None,
                "taken_first": dict(one.taken_first),
            }
            for one in found.shares
        ],
    }


def of_rule(one: Standing) -> dict[str, Any]:
    """A rule that holds, for programs."""
    return {
        "name": one.name,
        "action": one.action,
        "dlq": one.dlq,
        "hits": one.hits,
        "last_hit_at": one.last_hit_at,
        "stopped": one.stopped,
        "errs": one.errs,
        "asked": one.asked,
        "errs_too_often": one.errs_too_often,
        "trouble": one.trouble or None,
    }


def standing(rule: Mapping[str, Any]) -> Iterable[str]:
    """The same for people."""
    where = f" of {rule['dlq']}" if rule["dlq"] else ""
    last = f", the last at {when(rule['last_hit_at'])}" if rule["last_hit_at"] else ""
    stops = f"; {counted(rule['stopped'], 'letter')} stopped by it" if rule["stopped"] else ""
    yield f"rule {rule['name']}{where} ({rule['action']}): {counted(rule['hits'], 'letter')} decided{last}{stops}"
    if rule["errs"]:
        word = "ERRS" if rule["errs_too_often"] else "errs"
        of = f"{rule['errs']:,} of {counted(rule['asked'] or 0, 'letter')}, which it holds"
        yield f"  {word}: it could not be asked about {of}: {rule['trouble']}"
        name = rule["name"]
        yield f"  correct it: manage.py add_rule {name} --reason WHY shows it; or"
        yield f"  disable it: manage.py disable_rule {name} --reason WHY --confirm"
