"""The rules that hold now, and the rulebook's version, which rises with whatever changes which do."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F, Q

from reprocessing.domain.errors import RuleIsUnclear
from reprocessing.domain.replay.backoff import Backoff
from reprocessing.domain.routing.conditions import Condition
from reprocessing.domain.routing.first_match import Action, Rule
from reprocessing.models.dlq import Jitter
from reprocessing.models.rule import Rule as Row
from reprocessing.models.rule import Rulebook
from reprocessing.store import rows

#: The share of the letters that a rule is asked about on which it may err before somebody is told.
ILL = 0.01
#: The id of a row that is not there yet: it comes after those that are.
UNSAVED = 2**62


@dataclass(frozen=True, slots=True)
class Bound:
    """A rule, and the dlq whose letters it is for (None: the letters of all).

    Attributes:
        broken: why the rule that is written down cannot be asked; empty when it can. Such a rule stands for every
            letter: what cannot be asked might be what a rule is there to stop.
    """

    rule: Rule
    dlq_id: int | None
    broken: str = ""


@dataclass(frozen=True, slots=True)
class InForce:
    """The rules that hold, in their order, under a version of the rulebook."""

    version: int
    rules: tuple[Bound, ...]


def version() -> int:
    """The rulebook's version; 0 as long as there was no rule."""
    found = rows.column(int, "SELECT version FROM redrive_rulebook WHERE id = 1", {})
    return found[0] if found else 0


def in_force() -> InForce:
    """The rules that hold now.

    The version is read first: rules that change at this moment are then asked of each letter once more.
    """
    known = version()
    now = _clock()
    held = Row.objects.filter(
        Q(valid_from=None) | Q(valid_from__lte=now), Q(valid_until=None) | Q(valid_until__gt=now), enabled=True
    )
    return InForce(known, tuple(bound(row) for row in held.order_by("position", "id")))


def leading(dlq: int) -> list[Row]:
    """The enabled rules for letters of this dlq that name a target, with it; without those that have ended."""
    found = Row.objects.filter(
        Q(valid_until=None) | Q(valid_until__gt=_clock()), Q(dlq=None) | Q(dlq=dlq), enabled=True, target__isnull=False
    )
    return list(found.select_related("target").order_by("position", "id"))


def bound(row: Row) -> Bound:
    """A row as rules are asked; one that cannot be is broken."""
    try:
        return Bound(read(row), row.dlq_id)
    except RuleIsUnclear as error:
        return Bound(Rule(row.pk, row.name, row.position, Action.HOLD), row.dlq_id, broken=str(error))


def read(row: Row) -> Rule:
    """What a row says.

    Raises:
        RuleIsUnclear: it cannot be asked; the message says what is wrong, and how to write it.
    """
    if not isinstance(row.conditions, list) or not all(isinstance(one, str) for one in row.conditions):
        raise RuleIsUnclear(f'Rule "{row.name}" is unclear: its conditions are no list of texts. Write it anew.')
    if row.action not in list(Action):
        raise RuleIsUnclear(f'Rule "{row.name}" is unclear: it knows no action. Say one of {", ".join(Action)}.')
    return Rule(
        id=row.pk or UNSAVED,
        name=row.name,
        position=row.position,
        action=Action(row.action),
        conditions=tuple(Condition.parse(one) for one in row.conditions),
        delay=None if row.delay is None else timedelta(seconds=row.delay),
        target=_target(row),
        rate_class=row.rate_class_id,
        backoff=_backoff(row),
    )


def _target(row: Row) -> int | None:
    return row.target_id if row.target is None or row.target_id else UNSAVED


def _backoff(row: Row) -> Backoff | None:
    if row.backoff_base is None or row.backoff_cap is None:
        return None
    base, cap = timedelta(seconds=row.backoff_base), timedelta(seconds=row.backoff_cap)
    return Backoff(base, cap, "none" if row.backoff_jitter == Jitter.NONE else "full")


def lock() -> Rulebook:
    """The rulebook, to be changed in the caller's transaction: one change at a time."""
    Rulebook.objects.get_or_create(pk=1)
    return Rulebook.objects.select_for_update().get(pk=1)


def bump() -> None:
    """What holds has changed: every head is asked anew. In the transaction of the change, the rulebook locked."""
    Rulebook.objects.filter(pk=1).update(version=F("version") + 1, changes_at=_next(_clock()))


def turn_over(now: datetime) -> bool:
    """When a rule has begun or ended by now, the version rises, once, whoever asks; whether it did."""
    if not Rulebook.objects.filter(pk=1, changes_at__lte=now).exists():
        return False
    with transaction.atomic():
        book = lock()
        if book.changes_at is None or book.changes_at > now:
            return False
        Rulebook.objects.filter(pk=1).update(version=F("version") + 1, changes_at=_next(now))
        return True


def _next(now: datetime) -> datetime | None:
    """When an enabled rule begins or ends next."""
    moments = Row.objects.filter(enabled=True).values_list("valid_from", "valid_until")
    return min((one for both in moments for one in both if one is not None and one > now), default=None)


def _clock() -> datetime:
    return rows.value(datetime, "SELECT redrive_now() AS now", {})


@dataclass(frozen=True, slots=True)
class Standing:
    """A rule that holds, and what it has come to.

    Attributes:
        dlq: the name of the one it is for; None: all.
        hits: letters that it has decided about; `stopped` of them it holds, delays, or errs on, now.
        errs: letters that it could not be asked about since it was written, of those that it was `asked` about.
        trouble: what the newest of these tripped over.
    """

    name: str
    action: str
    dlq: str | None
    hits: int
    last_hit_at: datetime | None
    stopped: int
    errs: int
    asked: int | None
    trouble: str

    @property
    def errs_too_often(self) -> bool:
        """Whether somebody has to look after it."""
        return self.errs > 0 and self.errs >= ILL * (self.asked or 0)


# Which letters a rule was asked about is counted only for one that errs: all that no rule before it decided about.
_STANDING = """
SELECT u.name, u.action, d.name AS dlq, u.hits, u.last_hit_at, u.errs, u.trouble,
       (SELECT count(*) FROM redrive_letter l
         WHERE l.rule_id = u.id AND l.state = 'waiting' AND l.route IN ('hold', 'erred', 'delay')) AS stopped,
       CASE WHEN u.errs > 0 THEN (
            SELECT count(*) FROM redrive_letter l LEFT JOIN redrive_rule b ON b.id = l.rule_id
             WHERE l.route_version > 0 AND (u.dlq_id IS NULL OR l.dlq_id = u.dlq_id)
               AND (b.id IS NULL OR (b.position, b.id) >= (u.position, u.id))) END AS asked
  FROM redrive_rule u LEFT JOIN redrive_dlq d ON d.id = u.dlq_id
 WHERE u.enabled AND coalesce(u.valid_from <= redrive_now(), true) AND coalesce(u.valid_until > redrive_now(), true)
   AND (%(dlq)b::bigint IS NULL OR u.dlq_id IS NULL OR u.dlq_id = %(dlq)b::bigint)
 ORDER BY u.position, u.id
"""


def standing(dlq: int | None = None) -> list[Standing]:
    """The rules that hold for this dlq, or all that hold, in their order."""
    return rows.fetch(Standing, _STANDING, {"dlq": dlq})
