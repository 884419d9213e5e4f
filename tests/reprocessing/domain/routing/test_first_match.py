"""The first rule that matches decides, and a rule that cannot be evaluated holds the letter."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reprocessing.domain.errors import InvalidRule
from reprocessing.domain.message.envelope import Attribute
from reprocessing.domain.message.identity import LetterFacts, Selector
from reprocessing.domain.message.json_view import Unreadable
from reprocessing.domain.replay.backoff import Backoff
from reprocessing.domain.routing.conditions import Condition
from reprocessing.domain.routing.first_match import (
    CONDITIONS,
    Action,
    NoRuleMatched,
    RoutingResult,
    Rule,
    RuleMatched,
    RuleUnreadable,
    _evaluated,
    index_rules,
)  # fmt: skip
from reprocessing.domain.routing.message_fields import MessageFields

UNREADABLE = b'{"a": NaN}'
HELD = "NaN is not a JSON number"


def rule(number: int, *conditions: str, position: int | None = None, action: Action = Action.HOLD) -> Rule:
    at = number if position is None else position
    return Rule(number, f"rule-{number}", at, action, tuple(map(Condition.parse, conditions)))


def letter(body: bytes | dict[str, str] = b"{}", **attributes: str) -> MessageFields:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    given = {name: Attribute("String", value) for name, value in attributes.items()}
    return MessageFields(LetterFacts("m-1", raw, given, {}), "dlq", "source", None, Selector.parse("attribute:tenant"))


def routed(facts: MessageFields, *rules: Rule) -> RoutingResult:
    """Evaluate the rules one after another, and check that the index gives the same answer."""
    asked = (_evaluated(rule, facts) for rule in sorted(rules, key=lambda rule: (rule.position, rule.id)))
    answer = next(filter(None, asked), NoRuleMatched())
    again = MessageFields(facts.letter, facts.dlq, facts.source, facts.type, facts.tenant)
    assert index_rules(rules).route(again) == answer
    return answer


def test_the_first_rule_that_matches_decides() -> None:
    first, second = rule(1, "tenant equals acme"), rule(2, "tenant exists")
    assert routed(letter(tenant="acme"), first, second) == RuleMatched(first)
    assert routed(letter(tenant="globex"), first, second) == RuleMatched(second)
    assert routed(letter(), first, second) == NoRuleMatched()
    assert routed(letter()) == NoRuleMatched()


def test_rules_are_evaluated_by_position_and_then_by_id() -> None:
    late, early, equal = rule(1, position=7), rule(3, position=5), rule(2, position=7)
    assert routed(letter(), late, equal, early) == RuleMatched(early)
    assert routed(letter(), equal, late) == RuleMatched(late)


def test_a_rule_without_conditions_matches_every_letter() -> None:
    assert routed(letter(UNREADABLE), every := rule(1)) == RuleMatched(every)


def test_all_conditions_must_hold() -> None:
    both = rule(1, "tenant equals acme", "attribute:region in eu,us")
    assert routed(letter(tenant="acme", region="us"), both) == RuleMatched(both)
    assert routed(letter(tenant="acme", region="ap"), both) == NoRuleMatched()
    assert routed(letter(tenant="acme"), both) == NoRuleMatched()


def test_a_rule_that_cannot_be_evaluated_decides_before_a_later_one_that_matches() -> None:
    error_count, later = rule(1, "body:a equals x"), rule(2)
    assert routed(letter(UNREADABLE), error_count, later) == RuleUnreadable(error_count, f"body:a: {HELD}")


def test_a_rule_that_matches_decides_before_one_that_cannot_be_evaluated() -> None:
    first, error_count = rule(1, "tenant equals acme"), rule(2, "body:a equals x")
    assert routed(letter(UNREADABLE, tenant="acme"), first, error_count) == RuleMatched(first)
    assert routed(letter(UNREADABLE, tenant="globex"), first, error_count) == RuleUnreadable(
        error_count, f"body:a: {HELD}"
    )


@pytest.mark.parametrize("conditions", [("body:a equals x", "tenant exists"), ("tenant exists", "body:a equals x")])
def test_a_rule_that_cannot_match_does_not_err(conditions: tuple[str, str]) -> None:
    error_count = rule(1, *conditions)
    assert routed(letter(UNREADABLE), error_count) == NoRuleMatched()
    assert routed(letter(UNREADABLE, tenant="acme"), error_count) == RuleUnreadable(error_count, f"body:a: {HELD}")


def test_a_body_is_not_parsed_if_an_earlier_rule_decides() -> None:
    early, body = rule(1, "tenant equals acme"), rule(2, "body:a equals x")
    facts = letter(b'{"a": "x"}', tenant="acme")
    assert routed(facts, early, body) == RuleMatched(early)
    assert "document" not in vars(facts.letter)


def test_one_of_a_hundred_rules_for_values_of_one_field_is_evaluated(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    holds = Condition.holds

    def counted(self: Condition, found: str) -> bool | Unreadable:
        asked.append(str(self))
        return holds(self, found)

    monkeypatch.setattr(Condition, "holds", counted)
    routes = index_rules([rule(number, f"tenant equals t-{number}") for number in range(100)])
    assert isinstance(routes.route(letter(tenant="t-70")), RuleMatched)
    assert routes.route(letter(tenant="t-100")) == NoRuleMatched()
    assert asked == ["tenant equals t-70"]


_SHORT = st.sampled_from(["a", "b", "c"])
_TEXTS = st.one_of(
    st.builds("tenant equals {}".format, _SHORT), st.builds("attribute:region equals {}".format, _SHORT),
    st.builds("body:a equals {}".format, _SHORT), st.builds("body:b in {},{},a".format, _SHORT, _SHORT),
    st.builds("body:length(b) equals {}".format, st.integers(0, 2)),
    st.sampled_from(["dlq equals dlq", "source in source,other", "tenant exists", "tenant prefix a", "task regex a"]),
)  # fmt: skip
_RULES = st.lists(
    st.builds(
        lambda number, position, texts: rule(number, *texts, position=position), st.integers(1, 1_000),
        st.integers(0, 3), st.lists(_TEXTS, max_size=3),
    ),
    max_size=12,
    unique_by=lambda one: one.id,
)  # fmt: skip
_BODIES = st.one_of(
    st.sampled_from([b"", UNREADABLE, b'{"a": "a", "b": 1}', b'{"a": {}, "b": ["a"]}', b"{}" + b" " * 300_000]),
    st.dictionaries(st.sampled_from(["a", "b"]), _SHORT),
    st.binary(),
)
_LETTERS = st.builds(
    lambda body, attributes: letter(body, **attributes),
    _BODIES,
    st.dictionaries(st.sampled_from(["tenant", "region"]), _SHORT),
)


@pytest.mark.soak
@given(_RULES, st.lists(_LETTERS, max_size=4))
def test_the_index_answers_as_evaluating_each_rule_does(rules: list[Rule], letters: list[MessageFields]) -> None:
    for facts in letters:
        routed(facts, *rules)


REST = timedelta(seconds=5)


@pytest.mark.parametrize(
    "said",
    [
        {"action": Action.REPLAY, "target": 1, "rate_class": 2, "backoff": Backoff(REST, REST)},
        {"action": Action.DELAY, "delay": REST, "rate_class": 2, "backoff": Backoff(REST, REST)},
        {"action": Action.DIVERT, "target": 1}, {"action": Action.QUARANTINE}, {"action": Action.DISCARD},
        {"action": Action.HOLD},
    ],
)  # fmt: skip
def test_an_action_takes_the_values_that_it_needs(said: dict[str, object]) -> None:
    made = Rule(1, "r", 1, **said)  # type: ignore[arg-type]  # each a subset of its fields
    assert {name: getattr(made, name) for name in said} == said


DELAY = "the action delay needs a delay above 0, and no other action takes one. Set or remove it (--delay SECONDS)."
OTHERS = "a rate class and a backoff belong to replay and delay, not to"


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"action": Action.DELAY}, DELAY),
        ({"action": Action.DELAY, "delay": timedelta()}, DELAY),
        ({"action": Action.HOLD, "delay": REST}, DELAY),
        (
            {"action": Action.DIVERT},
            "the action divert needs the target that messages go to. Name the target (--to TARGET).",
        ),
        ({"action": Action.HOLD, "target": 1}, "a target belongs to replay and divert, not to hold. Leave it out."),
        ({"action": Action.DISCARD, "rate_class": 1}, f"{OTHERS} discard. Leave them out."),
        ({"action": Action.DIVERT, "target": 1, "backoff": Backoff(REST, REST)}, f"{OTHERS} divert. Leave them out."),
        (
            {"action": Action.HOLD, "conditions": (Condition.parse("tenant exists"),) * (CONDITIONS + 1)},
            "it has 33 conditions, 32 at most. Split it into several rules.",
        ),
    ],
)
def test_a_rule_with_wrong_values_for_its_action_is_refused(said: dict[str, object], why: str) -> None:
    with pytest.raises(InvalidRule) as refused:
        Rule(1, "r", 1, **said)  # type: ignore[arg-type]  # each a subset of its fields
    assert str(refused.value) == f'Rule "r" is unclear: {why}'
