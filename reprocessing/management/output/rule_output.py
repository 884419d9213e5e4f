"""Show a rule as text and as JSON: its changes, what it would do to messages of the last days, and its status."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from reprocessing.domain.lifecycle import STATE_NAMES
from reprocessing.management.arguments import OFF
from reprocessing.management.console import format_time
from reprocessing.management.output.drain_output import counted
from reprocessing.pipeline.routing.preview import Preview, RulePreview
from reprocessing.store.proposed_changes import Difference
from reprocessing.store.routing.rules import RuleStatus


def changes(found: list[Difference]) -> Iterable[str]:
    """Yield a line for each changed field of a rule or rate class, with its value before and after."""
    for one in found:
        if one.before is None and one.after is None:
            continue
        before = "" if one.before in (None, [], False) else f"{_value(one.before)} -> "
        yield f"  {one.field}: {before}{_value(one.after)}"


def _value(value: object) -> str:
    if isinstance(value, list):
        return " and ".join(str(one) for one in value) or "every message"
    return OFF if value is None else str(value)


def preview_lines(found: Preview, *, days: int) -> Iterable[str]:
    """Yield lines about what each rule would do to messages captured in the last `days` days."""
    yield f"Of {counted(found.letters, 'message')} captured in the last {counted(days, 'day')}:"
    for one in found.shares:
        yield from _share(one)
    if len(found.shares) != 1:
        yield f"  {counted(found.unmatched, 'message')}: no rule matches"
    if found.older:
        yield f"  not evaluated: {counted(found.older, 'unfinished message')} captured before; see --days"


def _share(one: RulePreview) -> Iterable[str]:
    states = f" ({_states(one.would_act_on)})" if one.acts else ""
    yield f"  {one.name} ({one.action}) would act on {counted(one.acts, 'message')}{states}"
    if one.matched_before:
        messages = counted(one.matched_before.total(), "message")
        yield f"    matching, but already finished: {messages} ({_states(one.matched_before)})"
    if one.under_way:
        yield f"    sent to their target, evaluated if they return: {counted(one.under_way, 'message')}"
    if one.objected:
        yield f"    parked for another reason first: {counted(one.objected, 'message')}"
    if one.released:
        yield f"    released by a person, so not parked again: {counted(one.released, 'message')}"
    if one.taken_first:
        taken = ", ".join(f"{n:,} by {name}" for name, n in one.taken_first.most_common())
        yield f"    matching, but an earlier rule decides: {counted(one.taken_first.total(), 'message')} ({taken})"
    if one.error_count:
        yield f"    cannot be evaluated, and are held: {counted(one.error_count, 'message')} ({one.last_error})"
    if one.shown:
        yield f"    such as {', '.join(one.shown)}"


def _states(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{n:,} {STATE_NAMES.get(state, state)}" for state, n in sorted(counts.items()))


def in_json(found: Preview, *, days: int) -> dict[str, Any]:
    """Return as JSON what each rule would do to messages captured in the last `days` days."""
    return {
        "days": days,
        "messages": found.letters,
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
                "error_count": one.error_count,
                "last_error": one.last_error or None,
                "taken_first": dict(one.taken_first),
            }
            for one in found.shares
        ],
    }


def rule_in_json(one: RuleStatus) -> dict[str, Any]:
    """Return the status of an enabled rule as JSON."""
    return {
        "name": one.name,
        "action": one.action,
        "dlq": one.dlq,
        "match_count": one.match_count,
        "last_hit_at": one.last_hit_at,
        "stopped": one.stopped,
        "error_count": one.error_count,
        "asked": one.asked,
        "asked_is_estimate": one.asked_is_estimate,
        "errs_too_often": one.errs_too_often,
        "last_error": one.last_error or None,
    }


def rule_lines(rule: Mapping[str, Any]) -> Iterable[str]:
    """Yield the lines that redrive_status prints about an enabled rule. `rule` is the result of `rule_in_json`."""
    where = f" of {rule['dlq']}" if rule["dlq"] else ""
    last = f", last at {format_time(rule['last_hit_at'])}" if rule["last_hit_at"] else ""
    stops = f"; {counted(rule['stopped'], 'message')} held by it" if rule["stopped"] else ""
    decided = counted(rule["match_count"], "message")
    yield f"rule {rule['name']}{where} ({rule['action']}): {decided} decided{last}{stops}"
    if rule["error_count"]:
        word, name = "ERROR" if rule["errs_too_often"] else "error", rule["name"]
        about = "about " if rule["asked_is_estimate"] else ""
        of = f"{rule['error_count']:,} of {about}{counted(rule['asked'] or 0, 'message')}, which it holds"
        yield f"  {word}: it could not evaluate {of}: {rule['last_error']}"
        yield f"  to correct it: manage.py add_rule {name} --reason WHY shows it; or"
        yield f"  to disable it: manage.py disable_rule {name} --reason WHY --confirm"
