"""Find what a rule would do to recent messages, for its preview and for the form that a person fills in."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final

from reprocessing.domain.errors import InvalidRule
from reprocessing.domain.routing.first_match import Action
from reprocessing.models import Rule, Target
from reprocessing.pipeline.routing import preview
from reprocessing.pipeline.routing.preview import RulePreview
from reprocessing.store.ordering import lanes
from reprocessing.store.routing import routable_letters, rules

#: Max messages that a preview evaluates. The command test_rules has no such limit.
MOST: Final = 20_000
#: Max messages that are evaluated while a person fills in the form.
FEW: Final = 200
#: Max messages that are counted, for the text "of the newest 200 of 1,500 messages".
COUNTED: Final = 2_000
#: Seconds after which an evaluation stops: of a preview, and while a person fills in the form.
_MAX_SECONDS: Final = 1.0
_MAX_SECONDS_QUICK: Final = 0.5
DAYS: Final = 7


def effect(row: Rule, *, sees: bool, quick: bool = False) -> dict[str, Any]:
    """Return, as template values, what the rule would do to messages of the last 7 days.

    `sees`: whether the person may see all values in these messages. If not, conditions whose results would reveal
    values are not evaluated, and the result has only these conditions, as `closed`.

    `quick`: evaluate only the newest messages. If some messages of the 7 days were not evaluated, `sampled` in the
    result is the number of all messages of the 7 days, counted up to `COUNTED` + 1; else 0.
    """
    mine = rules.bind(row)
    closed = [] if sees else [str(condition) for condition in mine.rule.conditions if condition.reveals_values]
    if closed:
        return {"closed": closed}
    others = [other for other in rules.in_force().rules if other.rule.id != mine.rule.id]
    since = lanes.database_now() - timedelta(days=DAYS)
    newest = routable_letters.newest_ids(row.dlq_id, COUNTED + 1) if quick else []
    found = preview.letters(
        [*others, mine], since=since, dlq=row.dlq_id, focus=mine.rule.id, most=MOST,
        stop=_stops_after(_MAX_SECONDS_QUICK if quick else _MAX_SECONDS),
        among=newest[:FEW] if quick else None,
    )  # fmt: skip
    known = routable_letters.count_captured(newest, since=since) if quick else 0
    return {
        "found": found, "shares": list(map(_share, found.shares)), "days": DAYS, "enabled": row.enabled or quick,
        "sampled": known if len(newest) > FEW or found.cut else 0, "counted": COUNTED, "most": MOST,
    }  # fmt: skip


def draft_effect(row: Rule | None, given: dict[str, Any], *, sees: Callable[[int | None], bool]) -> dict[str, Any]:
    """Return, as template values, what an incomplete rule would do to recent messages. Nothing is sent to AWS.

    `row`: the rule that is changed; None: a new rule. `given`: the values of the form's fields that are valid so far.
    `sees`: a function that takes the id of a DLQ, or None for all DLQs. It returns whether the person may see all
    values in the messages of this DLQ.
    """
    action = Action(given.get("action") or Action.QUARANTINE)
    position = given.get("position", row.position if row else 100)
    draft = Rule(
        pk=row.pk if row else None, name=row.name if row else "this rule", position=position,
        enabled=True, dlq=given.get("dlq"), conditions=given["conditions"], action=action,
        delay=(given.get("delay") or 1.0) if action is Action.DELAY else None,
        target=Target() if action is Action.DIVERT else None,
    )  # fmt: skip
    try:
        rules.parse_row(draft)
    except InvalidRule as error:
        return {"problem": str(error)}
    return effect(draft, sees=sees(draft.dlq_id), quick=True)


def _stops_after(seconds: float) -> Callable[[], bool]:
    until = time.monotonic() + seconds
    return lambda: time.monotonic() >= until


def _share(share: RulePreview) -> dict[str, Any]:
    """Return the preview of one rule as template values.

    Each Counter becomes a sorted list, because in a template `.items` of a Counter is the count of the key "items".
    """
    counts = {"acting": share.would_act_on, "before": share.matched_before, "taken": share.taken_first}
    return {"is": share, **{name: sorted(counted.items()) for name, counted in counts.items()}}
