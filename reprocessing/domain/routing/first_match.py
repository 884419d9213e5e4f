"""Find the rule that decides about a letter: the first rule that matches or that cannot be evaluated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from heapq import heappop, heappush

from reprocessing.domain.errors import InvalidRule
from reprocessing.domain.message.json_view import Unreadable
from reprocessing.domain.replay.backoff import Backoff
from reprocessing.domain.routing.condition_fields import Field, FieldKind
from reprocessing.domain.routing.conditions import Condition
from reprocessing.domain.routing.message_fields import MessageFields

CONDITIONS = 32  #: max conditions of a rule


class Action(StrEnum):
    """What happens to a letter that a rule matches."""

    REPLAY = "replay"  #: redriven, with the target, rate class and backoff that the rule sets
    DELAY = "delay"  #: redriven after a delay
    DIVERT = "divert"  #: sent to another target
    QUARANTINE = "quarantine"  #: parked
    DISCARD = "discard"
    HOLD = "hold"  #: held until the rule changes


_REPLAYING = (Action.REPLAY, Action.DELAY)
_SENDING = (Action.REPLAY, Action.DIVERT)


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule: an action for letters that match all conditions; without conditions, for every letter.

    Attributes:
        position: rules are evaluated by position, then by id.
        delay: required by the action `delay`, and allowed for no other action.
        target: a target's id; required by `divert`, optional for `replay`.
        rate_class: id of a rate class (a rate limit and a backoff); allowed for `replay` and `delay`.
        backoff: replaces the DLQ's backoff; allowed for `replay` and `delay`.

    Raises:
        InvalidRule: a value is missing, or does not belong to the action.
    """

    id: int
    name: str
    position: int
    action: Action
    conditions: tuple[Condition, ...] = ()
    delay: timedelta | None = None
    target: int | None = None
    rate_class: int | None = None
    backoff: Backoff | None = None

    def __post_init__(self) -> None:
        if problem := _problem(self):
            raise InvalidRule(f'Rule "{self.name}" is unclear: {problem}')


@dataclass(frozen=True, slots=True)
class RuleMatched:
    """The rule matches the letter, and decides about it."""

    rule: Rule


@dataclass(frozen=True, slots=True)
class RuleUnreadable:
    """The rule cannot be evaluated, so the letter is held. `why` names the field and contains no message data."""

    rule: Rule
    why: str


@dataclass(frozen=True, slots=True)
class NoRuleMatched:
    """No rule matches: the letter is redriven as its DLQ and target are configured."""


RoutingResult = RuleMatched | RuleUnreadable | NoRuleMatched


def index_rules(rules: Sequence[Rule]) -> IndexedRules:
    """Return the rules in order of evaluation, indexed so that they are evaluated fast on many letters."""
    return IndexedRules(rules)


class IndexedRules:
    """Rules, indexed by the values they expect in fields, so that only rules that may match a letter are evaluated."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self.rules = tuple(sorted(rules, key=lambda rule: (rule.position, rule.id)))
        self._always: list[int] = []  # rules that are checked for every letter; ascending, so the list is a heap
        indexed: dict[Field, dict[str, list[int]]] = {}
        for position, rule in enumerate(self.rules):
            if key := _key(rule):
                index = indexed.setdefault(key.field, {})
                for value in dict.fromkeys(key.matched_texts):
                    index.setdefault(value, []).append(position)
            else:
                self._always.append(position)
        self._indexes = sorted(
            (_Index(field, values) for field, values in indexed.items()), key=lambda index: index.first
        )

    def route(self, facts: MessageFields) -> RoutingResult:
        """Return the first rule that matches a letter or that cannot be evaluated, if there is one. Never raises."""
        candidates = self._always.copy()
        for index in self._indexes:
            # If an earlier rule decides, do not read the field of this index, which may be in the body.
            if routed := self._first(candidates, index.first, facts):
                return routed
            for position in index.find(facts):
                heappush(candidates, position)
        return self._first(candidates, len(self.rules), facts) or NoRuleMatched()

    def _first(self, candidates: list[int], before: int, facts: MessageFields) -> RuleMatched | RuleUnreadable | None:
        while candidates and candidates[0] < before:
            if routed := _evaluated(self.rules[heappop(candidates)], facts):
                return routed
        return None


class _Index:
    """The rules that compare one field, as positions in the order of evaluation, by the values that they expect."""

    def __init__(self, field: Field, positions: Mapping[str, list[int]]) -> None:
        self._field, self._positions = field, positions
        self._all = sorted({position for of_value in positions.values() for position in of_value})
        self.first = self._all[0]

    def find(self, facts: MessageFields) -> Sequence[int]:
        """Return the positions of the rules that expect the value that the letter has in the field.

        If the value cannot be read, return the positions of all rules in this index.
        """
        match facts.read(self._field):
            case str(text):
                return self._positions.get(text, ())
            case Unreadable():
                return self._all
            case _:
                return ()


def _evaluated(rule: Rule, facts: MessageFields) -> RuleMatched | RuleUnreadable | None:
    """Return whether a rule matches a letter, or cannot be evaluated; None: it does not match.

    If one condition does not match, the rule does not match, even if another condition cannot be evaluated.
    """
    erred: RuleUnreadable | None = None
    for condition in rule.conditions:
        match condition.holds(facts.read(condition.field)):
            case False:
                return None
            case Unreadable(why) if not erred:
                erred = RuleUnreadable(rule, f"{condition.field}: {why}")
            case _:
                pass
    return erred or RuleMatched(rule)


def _key(rule: Rule) -> Condition | None:
    """Return the condition by which `IndexedRules` finds a rule; None: the rule has no condition `equals` or `in`.

    Conditions that do not read the body are preferred, because parsing the body takes time.
    """
    keys = [condition for condition in rule.conditions if condition.matched_texts]
    return min(keys, key=lambda key: key.field.kind in (FieldKind.BODY, FieldKind.TASK), default=None)


def _problem(rule: Rule) -> str | None:
    if len(rule.conditions) > CONDITIONS:
        return f"it has {len(rule.conditions)} conditions, {CONDITIONS} at most. Split it into several rules."
    delays = rule.delay is not None and rule.delay > timedelta()
    if delays is not (rule.action is Action.DELAY) or (rule.delay is not None and not delays):
        return (
            "the action delay needs a delay above 0, and no other action takes one. Set or remove it (--delay SECONDS)."
        )
    if rule.action is Action.DIVERT and rule.target is None:
        return "the action divert needs the target that messages go to. Name the target (--to TARGET)."
    if rule.action not in _SENDING and rule.target is not None:
        return f"a target belongs to replay and divert, not to {rule.action}. Leave it out."
    if rule.action not in _REPLAYING and (rule.rate_class is not None or rule.backoff is not None):
        return f"a rate class and a backoff belong to replay and delay, not to {rule.action}. Leave them out."
    return None
