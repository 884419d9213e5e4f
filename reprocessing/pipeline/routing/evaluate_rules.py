"""Find the first rule that matches a letter, and count the letters on which a rule fails."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from reprocessing.domain.message.envelope import unpack_attributes
from reprocessing.domain.message.identity import LetterFacts, Selector, SelectorSource
from reprocessing.domain.routing.condition_fields import Field, FieldKind
from reprocessing.domain.routing.first_match import (
    IndexedRules,
    NoRuleMatched,
    RoutingResult,
    Rule,
    RuleMatched,
    RuleUnreadable,
    index_rules,
)
from reprocessing.domain.routing.message_fields import BODY_LIMIT, MessageFields, SelectorSetting, read_selector
from reprocessing.models import DeadLetterQueue
from reprocessing.store.routing import rules
from reprocessing.store.routing.routable_letters import RoutableLetter
from reprocessing.store.routing.rules import BoundRule, InForce

LOG_EVERY = 60.0  # seconds between two log lines about a rule that fails

# Used in place of a body that is too large for rules, because such bodies are not loaded.
_TOO_LARGE = bytes(BODY_LIMIT + 1)


@dataclass(frozen=True, slots=True)
class _Dlq:
    """The compiled rules of one DLQ, and where in its letters the message type and the tenant are (selectors)."""

    name: str
    type: SelectorSetting
    tenant: SelectorSetting
    routes: IndexedRules
    reads_bodies: bool

    def facts(self, letter: RoutableLetter) -> MessageFields:
        body = bytes(letter.body) if letter.size <= BODY_LIMIT else _TOO_LARGE
        known = LetterFacts(letter.message_id, body, unpack_attributes(bytes(letter.attributes)), letter.system)
        return MessageFields(known, self.name, letter.source, self.type, self.tenant)


class RuleBook:
    """All rules, compiled for letters of any DLQ, and counts of the errors of each rule.

    Every change of a rule makes a new version of the rules. This object has the rules of one version.
    """

    def __init__(self, version: int, bound: Iterable[BoundRule]) -> None:
        self.version = version
        self.rules = tuple(sorted(bound, key=lambda row: (row.rule.position, row.rule.id)))
        self._broken = {row.rule.id: row.error for row in self.rules if row.error}
        self._dlqs: dict[int, _Dlq] = {}
        self._places = {row.rule.id: place for place, row in enumerate(self.rules)}
        self._asked = 0
        self._decided: Counter[int] = Counter()
        self._erred: Counter[int] = Counter()
        self._told: dict[int, float] = {}

    @classmethod
    def load(cls, known: RuleBook | None = None, version: int | None = None) -> RuleBook:
        """Return the current rules: `known` itself, if it is current; else the loaded rules.

        `version`: the number of the current version, if the caller knows it. All threads of a process share the
        compiled rules and their error counts.
        """
        if known is not None and known.version == (rules.version() if version is None else version):
            return known
        found = rules.in_force()
        latest = _LATEST.get(found)
        if latest is None:
            latest = cls(found.version, found.rules)
            _LATEST.clear()
            _LATEST[found] = latest
        return latest

    def reads_bodies(self, dlqs: Collection[int]) -> bool:
        """Return whether any rule reads bodies of letters of these DLQs; if not, bodies need not be loaded."""
        return any(self._of(dlq).reads_bodies for dlq in dlqs)

    def ask(self, letter: RoutableLetter) -> RoutingResult:
        """Return the rules' decision about a letter, or why a rule cannot be evaluated for the letter. Raise no error.

        The text of the result contains no message data.
        """
        dlq = self._of(letter.dlq_id)
        if not dlq.routes.rules:
            return NoRuleMatched()
        routed = dlq.routes.route(dlq.facts(letter))
        match routed:
            case RuleMatched(rule) if rule.id in self._broken:
                routed = RuleUnreadable(rule, self._broken[rule.id])
            case RuleUnreadable(_, why) if letter.size > BODY_LIMIT:
                routed = replace(routed, why=why.replace(f"{len(_TOO_LARGE)} bytes", f"{letter.size} bytes"))
            case _:
                pass
        self._count(routed)
        return routed

    def failing_rules(self) -> list[tuple[Rule, int, int]]:
        """Return the rules that fail on at least 1 % of the letters that they check; each rule at most once a minute.

        Each tuple has the rule, on how many letters it failed, and how many letters it checked.
        """
        now = time.monotonic()
        found: list[tuple[Rule, int, int]] = []
        for rule_id, erred in self._erred.copy().items():
            place = self._places[rule_id]
            asked = self._asked - sum(n for decided, n in self._decided.copy().items() if self._places[decided] < place)
            if erred >= rules.ERROR_SHARE * asked and now - self._told.get(rule_id, -LOG_EVERY) >= LOG_EVERY:
                self._told[rule_id] = now
                found.append((self.rules[place].rule, erred, asked))
        return found

    def _count(self, routed: RoutingResult) -> None:
        self._asked += 1
        if not isinstance(routed, NoRuleMatched):
            self._decided[routed.rule.id] += 1
        if isinstance(routed, RuleUnreadable):
            self._erred[routed.rule.id] += 1

    def _of(self, dlq_id: int) -> _Dlq:
        if (found := self._dlqs.get(dlq_id)) is None:
            found = self._dlqs[dlq_id] = self._prepared(dlq_id)
        return found

    def _prepared(self, dlq_id: int) -> _Dlq:
        row = DeadLetterQueue.objects.get(pk=dlq_id)
        its = [rule.rule for rule in self.rules if rule.dlq_id in {None, dlq_id}]
        kind, tenant = read_selector(row.message_type), read_selector(row.tenant)
        return _Dlq(row.name, kind, tenant, index_rules(its), _reads_bodies(its, kind, tenant))


_LATEST: dict[InForce, RuleBook] = {}


def _reads_bodies(some: Sequence[Rule], kind: SelectorSetting, tenant: SelectorSetting) -> bool:
    fields = {condition.field for rule in some for condition in rule.conditions}
    selected = {Field(FieldKind.TYPE): kind, Field(FieldKind.TENANT): tenant}
    return any(
        field.kind in (FieldKind.BODY, FieldKind.TASK)
        or (
            isinstance(selector := selected.get(field), Selector)
            and selector.source in (SelectorSource.BODY, SelectorSource.CONTENT_HASH)
        )
        for field in fields
    )
