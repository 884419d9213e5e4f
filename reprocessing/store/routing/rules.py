"""Read the rules in force (enabled and valid now), and the rulebook's version, which every change of a rule raises."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F, Q

from reprocessing.domain.errors import InvalidRule
from reprocessing.domain.replay.backoff import Backoff
from reprocessing.domain.routing.conditions import Condition
from reprocessing.domain.routing.first_match import Action, Rule
from reprocessing.models.dlq import Jitter
from reprocessing.models.rule import Rule as Row
from reprocessing.models.rule import Rulebook
from reprocessing.store import rows
from reprocessing.store.maintenance.counters import COUNTS
from reprocessing.store.ordering import lanes
from reprocessing.store.outcomes.recent_letters import MAX_OF_PART, RECENT_LETTERS

#: People are notified if a rule could not be evaluated on at least this share (1 %) of its messages.
ERROR_SHARE = 0.01
#: The id of a rule or target that is not saved yet: an unsaved rule comes after the saved rules of its position.
UNSAVED = 2**62


@dataclass(frozen=True, slots=True)
class BoundRule:
    """A rule, and the DLQ that it applies to (None: all DLQs)."""

    rule: Rule
    dlq_id: int | None
    #: why the rule cannot be evaluated; empty: it can. A rule that cannot be evaluated holds all letters, to be safe
    error: str = ""


@dataclass(frozen=True, slots=True)
class InForce:
    """The rules that are enabled and valid now, in the order in which they are tried, and the rulebook's version."""

    version: int
    rules: tuple[BoundRule, ...]


def version() -> int:
    """Return the rulebook's version, a number that each change of a rule raises; 0 if no rule was ever added."""
    found = rows.column(int, "SELECT version FROM redrive_rulebook WHERE id = 1", {})
    return found[0] if found else 0


def in_force() -> InForce:
    """Return the rules that are enabled and valid now, and their version (raised by each change of a rule).

    The version is read first: if rules change meanwhile, the returned version is outdated, and rules decide again.
    """
    known = version()
    now = lanes.database_now()
    held = Row.objects.filter(
        Q(valid_from=None) | Q(valid_from__lte=now), Q(valid_until=None) | Q(valid_until__gt=now), enabled=True
    )
    return InForce(known, tuple(bind(row) for row in held.order_by("position", "id")))


def rules_with_targets(dlq: int) -> list[Row]:
    """Return the enabled rules for this DLQ, or for all DLQs, that name a target and have not expired."""
    found = Row.objects.filter(
        Q(valid_until=None) | Q(valid_until__gt=lanes.database_now()),
        Q(dlq=None) | Q(dlq=dlq),
        enabled=True,
        target__isnull=False,
    )
    return list(found.select_related("target").order_by("position", "id"))


def bind(row: Row) -> BoundRule:
    """Return the rule of a database row, with its DLQ. If the row is invalid, the returned rule holds all letters."""
    try:
        return BoundRule(parse_row(row), row.dlq_id)
    except InvalidRule as error:
        return BoundRule(Rule(row.pk, row.name, row.position, Action.HOLD), row.dlq_id, error=str(error))


def parse_row(row: Row) -> Rule:
    """Return the rule of a database row; if the row is invalid, raise InvalidRule, which says what to write."""
    if not isinstance(row.conditions, list) or not all(isinstance(text, str) for text in row.conditions):
        raise InvalidRule(f'Rule "{row.name}" is unclear: its conditions are not a list of texts. Write them anew.')
    if row.action not in list(Action):
        raise InvalidRule(f'Rule "{row.name}" is unclear: it has no known action. Use one of {", ".join(Action)}.')
    return Rule(
        id=row.pk or UNSAVED,
        name=row.name,
        position=row.position,
        action=Action(row.action),
        conditions=tuple(Condition.parse(text) for text in row.conditions),
        delay=None if row.delay is None else timedelta(seconds=row.delay),
        target=row.target_id if row.target is None or row.target_id else UNSAVED,
        rate_class=row.rate_class_id,
        backoff=_backoff(row),
    )


def _backoff(row: Row) -> Backoff | None:
    if row.backoff_base is None or row.backoff_cap is None:
        return None
    base, cap = timedelta(seconds=row.backoff_base), timedelta(seconds=row.backoff_cap)
    return Backoff(base, cap, "none" if row.backoff_jitter == Jitter.NONE else "full")


def lock() -> Rulebook:
    """Lock the rules until the caller's transaction ends, so that only one transaction at a time changes rules."""
    Rulebook.objects.get_or_create(pk=1)
    return Rulebook.objects.select_for_update().get(pk=1)


def raise_version() -> None:
    """Raise the rulebook's version, so that rules decide about letters again.

    Call it in the transaction that changes the rules, after `lock`.
    """
    Rulebook.objects.filter(pk=1).update(version=F("version") + 1, changes_at=_next(lanes.database_now()))


def raise_version_if_due(now: datetime) -> bool:
    """Raise the rulebook's version if a rule became valid or expired since the version was last raised.

    Return whether the version was raised.
    """
    if not Rulebook.objects.filter(pk=1, changes_at__lte=now).exists():
        return False
    with transaction.atomic():
        book = lock()
        if book.changes_at is None or book.changes_at > now:
            return False
        Rulebook.objects.filter(pk=1).update(version=F("version") + 1, changes_at=_next(now))
        return True


def _next(now: datetime) -> datetime | None:
    periods = Row.objects.filter(enabled=True).values_list("valid_from", "valid_until")
    return min((at for period in periods for at in period if at is not None and at > now), default=None)


@dataclass(frozen=True, slots=True)
class RuleStatus:
    """An enabled rule that is valid now: its name, what it does, how often it decided, and its errors."""

    name: str
    action: str
    dlq: str | None  #: the name of the rule's DLQ; None: all DLQs
    #: how many letters the rule decided about; `stopped`: how many letters wait because the rule holds or delays them,
    #: or could not be evaluated
    match_count: int
    last_hit_at: datetime | None
    stopped: int
    error_count: int  #: how many letters the rule could not evaluate since a person last changed the rule
    asked: int | None  #: letters on which the rule was evaluated; None: not counted, because it had no errors
    asked_is_estimate: bool  #: whether `asked` is estimated from recent letters and stored counts
    last_error: str  #: the newest error

    @property
    def errs_too_often(self) -> bool:
        """Return whether the rule failed on at least 1 % of its letters, so that commands show an ERROR."""
        return self.error_count > 0 and self.error_count >= ERROR_SHARE * (self.asked or 0)


# A DLQ's letters are many, and their table has no index of the letters on which rules were evaluated. So the share of
# evaluated letters is read from recent letters, for each final state, and multiplied by the stored count of this state.
# All errors are compared with this number: among recent letters alone, errors are too many, because letters with
# errors wait until a person acts. If there is no recent letter in a state, all letters in the state count.
_RULE_STATUS = f"""
SELECT u.name, u.action, d.name AS dlq, u.match_count, u.last_hit_at, u.error_count, u.last_error,
       (SELECT count(*) FROM redrive_letter l
         WHERE l.rule_id = u.id AND l.state = 'waiting' AND l.route IN ('hold', 'erred', 'delay')) AS stopped,
       CASE WHEN u.error_count > 0 AND found.is_estimate THEN greatest(found.asked, u.error_count)
            WHEN u.error_count > 0 THEN coalesce(found.asked, 0) END AS asked,
       coalesce(found.is_estimate, false) AS asked_is_estimate
  FROM redrive_rule u LEFT JOIN redrive_dlq d ON d.id = u.dlq_id
 CROSS JOIN LATERAL (
       SELECT round(sum(CASE WHEN whole.state IN ('delivered', 'duplicate', 'discarded', 'parked')
                             THEN coalesce(whole.n * recent.asked / recent.n, whole.n)
                             ELSE coalesce(recent.asked, 0) END))::bigint AS asked,
              bool_or(whole.n > coalesce(recent.n, 0)) AS is_estimate
         FROM (SELECT dlq_id, state, sum(n) AS n FROM {COUNTS} t
                WHERE u.error_count > 0 AND (u.dlq_id IS NULL OR dlq_id = u.dlq_id) AND state <> 'captured'
                GROUP BY 1, 2) whole
         LEFT JOIN (
              SELECT d.id AS dlq_id, l.state, count(*) AS n, count(*) FILTER (
                     WHERE l.rulebook_version > 0
                       AND (b.id IS NULL OR (b.position, b.id) >= (u.position, u.id))) AS asked
                FROM redrive_dlq d CROSS JOIN LATERAL {RECENT_LETTERS} l LEFT JOIN redrive_rule b ON b.id = l.rule_id
               WHERE u.error_count > 0 AND (u.dlq_id IS NULL OR d.id = u.dlq_id)
               GROUP BY 1, 2) recent ON recent.dlq_id = whole.dlq_id AND recent.state = whole.state) found
 WHERE u.enabled AND coalesce(u.valid_from <= redrive_now(), true) AND coalesce(u.valid_until > redrive_now(), true)
   AND (%(dlq)b::bigint IS NULL OR u.dlq_id IS NULL OR u.dlq_id = %(dlq)b::bigint)
 ORDER BY u.position, u.id
"""  # noqa: S608  # the inserted text is a constant


def rule_statuses(dlq: int | None = None) -> list[RuleStatus]:
    """Return the rules that are enabled and valid now, in the order in which they are tried; each with its counts.

    `dlq`: only the rules that apply to this DLQ, which are its own rules and the rules for all DLQs; None: every rule.
    """
    return rows.fetch(RuleStatus, _RULE_STATUS, {"dlq": dlq, "most": MAX_OF_PART})
