"""A condition becomes a row and is read from it again without loss; what no row can show says why."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings

from reprocessing.domain.errors import InvalidRule
from reprocessing.domain.routing.condition_fields import Field, FieldKind
from reprocessing.domain.routing.condition_rows import (
    LONGEST,
    ConditionRow,
    OnlyText,
    condition_of,
    row_of,
    same_condition,
)
from reprocessing.domain.routing.conditions import Condition, Operator
from tests.reprocessing.domain.routing.test_conditions import _CONDITION


@pytest.mark.soak
@given(_CONDITION)
@example(Condition(Field(FieldKind.BODY, "a[?b == 'x in y']"), Operator.IN, ("z", "in")))
@example(Condition(Field(FieldKind.TENANT), Operator.IN, ("a,b", ' "c" ', "")))
@example(Condition(Field(FieldKind.TENANT), Operator.EQUALS, ('"quoted"',)))
@settings(max_examples=60)
def test_a_condition_is_read_from_its_row_again(condition: Condition) -> None:
    row = row_of(str(condition))
    if isinstance(row, OnlyText):
        assert condition.values == ("",)
        assert condition.operator is not Operator.IN
    else:
        assert condition_of(row) == str(condition)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('tenant equals ""', "a row cannot compare with an empty text."),
        (f"tenant in {'x' * 1_000},{'y' * 1_000},{'z' * 1_000},{'w' * 1_000}", "its values have 4,003 characters"),
        ("colour is red", "write FIELD OPERATOR VALUE."),
        ("", "write FIELD OPERATOR VALUE."),
        ("body:a[ equals 1", "Invalid jmespath expression"),
        ("tenant regex (?=a)", "perl"),
    ],
)
def test_what_no_row_can_show_says_why(text: str, why: str) -> None:
    found = row_of(text)
    assert isinstance(found, OnlyText)
    assert why in found.why


def test_a_row_of_a_condition_without_a_value_has_none() -> None:
    assert row_of("tenant exists") == ConditionRow("tenant", "exists", "")


@pytest.mark.parametrize(
    ("row", "written"),
    [
        (ConditionRow(" body:customer ", "equals", " acme "), 'body:customer equals " acme "'),
        (ConditionRow("body: customer", "equals", "acme"), "body:customer equals acme"),
        (ConditionRow("tenant", "in", "a, b"), "tenant in a,b"),
        (ConditionRow("tenant", "in", '["a,b", ""]'), 'tenant in ["a,b", ""]'),
        (ConditionRow("tenant", "exists", "left over"), "tenant exists"),
        (ConditionRow('body:"<b>x</b>"', "equals", "</script>"), 'body:"<b>x</b>" equals </script>'),
        (ConditionRow("body:a == 'x equals y'", "equals", "true"), "body:a == 'x equals y' equals true"),
    ],
)
def test_a_row_is_written_as_a_condition(row: ConditionRow, written: str) -> None:
    assert condition_of(row) == written


@pytest.mark.parametrize(
    ("row", "why"),
    [
        (ConditionRow("", "equals", "a"), "Enter a field: dlq,"),
        (ConditionRow("body:a", "like", "a"), "Choose an operator"),
        (ConditionRow("body:a", "equals", ""), "Enter a value."),
        (ConditionRow("body:a", "in", ""), "Enter a value."),
        (ConditionRow("colour", "equals", "a"), "Enter a field: dlq,"),
        (ConditionRow("tenant equals acme", "exists", ""), "Enter a field: dlq,"),
        (ConditionRow("body:a equals b", "exists", ""), "See jmespath.org"),
        (ConditionRow("attribute:a b", "exists", ""), "An attribute's name has letters"),
        (ConditionRow("tenant", "in", 'a,"b'), "Values with quotes"),
        (ConditionRow("body:a", "equals", "a\nb"), "A value holds a control character"),
        (ConditionRow("body:a", "equals", "x" * 1_025), "A value has 1024 characters at most"),
        (ConditionRow("body:" + "x" * 300, "exists"), "needs a JMESPath expression"),
        (ConditionRow("body:sum(a)", "equals", "1"), "A rule may not call sum()"),
        (ConditionRow("tenant", "regex", "(?=a)"), "perl"),
    ],
)
def test_an_incomplete_row_says_what_to_enter(row: ConditionRow, why: str) -> None:
    with pytest.raises(InvalidRule) as raised:
        condition_of(row)
    assert why in str(raised.value)


def test_spellings_of_one_condition_are_the_same() -> None:
    assert same_condition('tenant   in ["a","b"]', "tenant in a,b")
    assert not same_condition("tenant in a", "tenant equals a")
    assert not same_condition("broken", "broken")
    assert LONGEST == 4_000
