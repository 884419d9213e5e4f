"""Conditions are parsed and written back unchanged, and invalid ones are refused with what to write."""

from __future__ import annotations

import pytest
import re2
from hypothesis import example, given, settings
from hypothesis import strategies as st

from reprocessing.domain.errors import InvalidRule
from reprocessing.domain.message.identity import Missing
from reprocessing.domain.message.json_view import Unreadable
from reprocessing.domain.routing import jmespath_query, linear_regex
from reprocessing.domain.routing.condition_fields import Field, FieldKind, FieldValue, NotText
from reprocessing.domain.routing.conditions import VALUE_LENGTH, VALUES, Condition, Operator
from reprocessing.domain.routing.linear_regex import Pattern
from tests.reprocessing.domain.corpora.hostile import CONDITIONS, EXPRESSIONS, REGEXES, TEXTS

_WORD = st.sampled_from(["a", "in", "equals", "exists", "order", "x1", "regex"])
_LITERAL = st.sampled_from(["' in '", "'a equals b'", "`1`", '`" exists "`', "'it\\'s in'", '"a in b"', "`[1, 2]`"])
_EXPRESSION = st.recursive(
    _WORD | _LITERAL,
    lambda inner: st.one_of(
        st.builds("{} . {}".format, inner, _WORD), st.builds("{}[0]".format, inner),
        st.builds("{} || {}".format, inner, inner), st.builds("{}[? {} == {}]".format, inner, inner, inner),
        st.builds("[ {} , {} ]".format, inner, inner), st.builds("contains( {} , {} )".format, inner, inner),
        st.builds("( {} )".format, inner),
    ),
    max_leaves=6,
)  # fmt: skip
_FIELD = st.one_of(
    st.sampled_from([Field(kind) for kind in FieldKind if kind not in (FieldKind.ATTRIBUTE, FieldKind.BODY)]),
    st.from_regex(r"[A-Za-z0-9_.-]{1,20}", fullmatch=True).map(lambda name: Field(FieldKind.ATTRIBUTE, name)),
    st.builds(
        Field,
        st.sampled_from([FieldKind.BODY, FieldKind.TASK]),
        _EXPRESSION.filter(lambda text: not jmespath_query.problem(text)),
    ),
)
_VALUE = st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"]), max_size=20) | st.text(
    ' ,"[]\\a in', max_size=8
)
_ASKED = st.one_of(
    st.tuples(st.just(Operator.EQUALS), st.tuples(_VALUE)),
    st.tuples(st.just(Operator.PREFIX), st.tuples(_VALUE.filter(bool))),
    st.tuples(st.just(Operator.IN), st.lists(_VALUE, min_size=1, max_size=5).map(tuple)),
    st.tuples(st.just(Operator.EXISTS), st.just(())),
    st.tuples(
        st.just(Operator.REGEX), st.tuples(st.sampled_from([*REGEXES, "^billing\\..*", "", " a ", '"x"']))
    ).filter(lambda asked: isinstance(Pattern.parse(asked[1][0]), Pattern)),
)
_CONDITION = st.builds(lambda field, asked: Condition(field, *asked), _FIELD, _ASKED)


@pytest.mark.soak
@given(_CONDITION)
@example(Condition(Field(FieldKind.BODY, "a[?b == 'x in y']"), Operator.IN, ("z", "in")))
@example(Condition(Field(FieldKind.TENANT), Operator.IN, ('"' * VALUE_LENGTH,) * VALUES))
@settings(max_examples=40)
def test_a_written_condition_is_parsed_back(condition: Condition) -> None:
    assert Condition.parse(str(condition)) == condition


@given(st.text() | st.text("abody:tenant equalsinexists.[]?'\"`\\, ", max_size=60))
def test_any_text_is_parsed_or_refused_with_rule_is_unclear(text: str) -> None:
    try:
        condition = Condition.parse(text)
    except InvalidRule:
        return
    assert Condition.parse(str(condition)) == condition


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("tenant equals acme", "tenant equals acme"),
        ("  tenant   equals   acme corp  ", "tenant equals acme corp"),
        ("attribute:region in eu, us", "attribute:region in eu,us"),
        ('tenant in ["a,b","c"]', 'tenant in ["a,b", "c"]'),
        ('tenant in ["a", "b"]', "tenant in a,b"),
        ('tenant equals "acme"', "tenant equals acme"),
        ('tenant equals ""', 'tenant equals ""'),
        ('tenant equals " a "', 'tenant equals " a "'),
        ('tenant equals "\\"a\\""', 'tenant equals "\\"a\\""'),
        ("tenant equals [a", "tenant equals [a"),
        ("body: order.total  exists", "body:order.total exists"),
        ("type prefix order.", "type prefix order."),
        (r"task regex ^billing\..*", r"task regex ^billing\..*"),
        ("dlq equals orders in dlq", "dlq equals orders in dlq"),
        ("body:in in in", "body:in in in"),
        ("body:a || exists exists", "body:a || exists exists"),
        ("body:total > `100` equals true", "body:total > `100` equals true"),
        ('tenant equals "\\u00e4"', "tenant equals ä"),
        ('tenant in ["ä,b"]', 'tenant in ["ä,b"]'),
    ],
)
def test_a_condition_has_one_canonical_text(text: str, written: str) -> None:
    assert str(Condition.parse(text)) == written


SHAPE = (
    "write FIELD OPERATOR VALUE. FIELD is dlq, source, attribute:NAME, body:JMESPATH, type, tenant, task or "
    "task:JMESPATH; OPERATOR is equals, in, prefix, exists or regex."
)
LIST = 'Write in ["a,b", "c"].'
QUOTED = f"values with quotes, or empty ones, need a list. {LIST}"
JSON = 'a value that begins with " or [ must be JSON, and this is not. Write "say \\"hi\\"" or ["a,b", "c"].'
EXPRESSION = "{}: needs a JMESPath expression of 1 to 256 characters, such as {}."
SORT = "a rule may not call sort(). It may call contains, ends_with, join, keys, length, not_null, starts_with, values."
RE2 = (
    "RE2 refuses the regex: {}. RE2 supports neither look-around nor back-references; see "
    "github.com/google/re2/wiki/Syntax."
)


@pytest.mark.parametrize(
    ("quoted", "rest", "why"),
    [
        ("", "", SHAPE),
        ("tenant", "", SHAPE),
        ("tenant is acme", "", SHAPE),
        ("colour equals red", "", SHAPE),
        ("tenant:x equals y", "", "tenant takes no name. Write tenant alone."),
        ("task: exists", "", EXPRESSION.format("task", "task:kwargs.order")),
        ("task:sort(args) exists", "", SORT),
        (
            "attribute:a b exists", "",
            "an attribute's name has letters, digits, _ . and -, 256 at most. Write attribute:NAME.",
        ),
        ("tenant equals", "", 'equals takes a value. Write equals acme, or "" for an empty one.'),
        ("tenant exists", "acme", "exists takes no value. Remove the value."),
        ("tenant prefix", '""', "an empty prefix matches every text. Write exists instead."),
        ("tenant in", "", QUOTED),
        ("tenant in a,,b", "", QUOTED),
        ('tenant in "a"', "", QUOTED),
        ("tenant in [1]", "", f"a list has texts in quotes. {LIST}"),
        ("tenant in", "[]", f"in takes 1 to {VALUES} values, not 0. Write in a,b or several rules."),
        ('tenant equals "a', "", JSON),
        (
            "tenant equals", '"a\\u0000"',
            "a value holds a control character. Leave it out, or write a regex with \\x{...} in its place.",
        ),
        ("body:length(a, b) exists", "", "length() takes 1 arguments, not 2."),
        ("body:sort(a) exists", "", SORT),
        ("task regex", r"(a)\1", RE2.format(r"invalid escape sequence: \1")),
        ("task regex", r"[\pL\pN]{1,1000}x", RE2.format("pattern too large - compile failed")),
        ("task regex", "a" * 513, "a regex has 512 characters at most, this one 513. Write a shorter one."),
    ],
)  # fmt: skip
def test_an_invalid_condition_is_refused_with_what_to_write(quoted: str, rest: str, why: str) -> None:
    with pytest.raises(InvalidRule) as refused:
        Condition.parse(f"{quoted} {rest}".rstrip() if rest else quoted)
    assert str(refused.value) == f'"{quoted}" is not a condition: {why}'


@pytest.mark.parametrize(("text", "why"), CONDITIONS, ids=range(len(CONDITIONS)))
def test_a_condition_beyond_the_limits_is_refused_in_a_short_sentence(text: str, why: str) -> None:
    with pytest.raises(InvalidRule) as refused:
        Condition.parse(text)
    assert str(refused.value).partition(" is not a condition: ")[2] == why
    assert len(str(refused.value)) < 1_000


def test_the_end_of_an_expression_is_searched_within_its_longest_length(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[int] = []

    def problem(text: str) -> str:
        tried.append(len(text))
        return "it is none"

    monkeypatch.setattr(jmespath_query, "problem", problem)
    with pytest.raises(InvalidRule):
        Condition.parse("body:(" + " in" * 300_000)
    assert tried == list(range(1, jmespath_query.LENGTH + len("attribute:") - len("body:") + 1, len(" in")))


@pytest.mark.parametrize(
    ("text", "found", "answer"),
    [
        ("tenant equals acme", "acme", True), ("tenant equals acme", "acme ", False),
        ("tenant equals acme", Missing(), False), ("tenant equals acme", NotText(), False),
        ("tenant in acme,globex", "globex", True), ("tenant in acme,globex", "acme,globex", False),
        ("type prefix order.", "order.paid", True), ("type prefix order.", "order", False),
        ("tenant exists", "", True), ("tenant exists", NotText(), True), ("tenant exists", Missing(), False),
        (r"task regex ^billing\.", "billing.charge", True), (r"task regex ^billing\.", "my.billing.charge", False),
        ("task regex charge", "billing.charge", True), ("task regex charge$", "billing.charge\n", False),
        ("task regex ä.ö", "ä\N{GRINNING FACE}ö", True), ("task regex a", NotText(), False),
        ("task regex .", "\ud800", True), ("tenant exists", Unreadable("so"), Unreadable("so")),
        ("tenant equals a", Unreadable("so"), Unreadable("so")),
    ],
)  # fmt: skip
def test_a_condition_matches_the_values_it_names(text: str, found: FieldValue, answer: bool | Unreadable) -> None:
    assert Condition.parse(text).holds(found) == answer


def test_a_text_too_long_for_its_regex_is_unreadable() -> None:
    read = Pattern.parse("(a|b)*a(a|b){400}c")
    assert isinstance(read, Pattern)
    assert read.finds("a" * read.longest) is False
    assert read.finds("a" * (read.longest + 1)) == Unreadable(
        f"it has {read.longest + 1} bytes, and the regex may read at most {read.longest}"
    )


def test_a_condition_keeps_its_compiled_regex(monkeypatch: pytest.MonkeyPatch) -> None:
    condition = Condition.parse("type regex ^a")
    monkeypatch.setattr(re2, "compile", None)
    linear_regex._compiled.cache_clear()  # as a thousand other patterns would do
    assert condition.holds("abc") is True


@pytest.mark.parametrize("regex", REGEXES, ids=range(len(REGEXES)))
def test_a_hostile_regex_is_refused_or_has_a_bounded_cost(regex: str) -> None:
    read, field = Pattern.parse(regex), Field(FieldKind.TENANT)
    if isinstance(read, Unreadable):
        with pytest.raises(InvalidRule, match="is not a condition"):
            Condition(field, Operator.REGEX, (regex,))
        return
    assert read.longest == linear_regex.MOST_COST // read._compiled.programsize >= linear_regex.LEAST_TEXT_BYTES
    condition = Condition(field, Operator.REGEX, (regex,))
    for text in TEXTS:
        fits = len(text.encode(errors="surrogatepass")) <= read.longest
        assert isinstance(condition.holds(text), bool if fits else Unreadable)


@pytest.mark.parametrize("text", EXPRESSIONS, ids=range(len(EXPRESSIONS)))
def test_a_hostile_expression_is_refused_or_within_the_limits(text: str) -> None:
    try:
        Condition(Field(FieldKind.BODY, text), Operator.EXISTS)
    except InvalidRule:
        return
    assert len(text) <= jmespath_query.LENGTH
    assert len(jmespath_query._levels(jmespath_query._compiled(text).parsed)) <= jmespath_query.DEPTH


@pytest.mark.parametrize(
    ("text", "reveals"),
    [
        ("dlq equals a", False), ("source exists", False), ("type exists", False), ("type equals order.paid", False),
        ("type in order.paid,4711", True), ("type prefix order", True), ("task equals shop.ship", False),
        ("body:order.id exists", False), ("body:order.id equals 7", True), ("body:a[?b == `1`] exists", True),
        ("task:kwargs.order exists", False), ("attribute:a exists", False), ("tenant equals acme", True),
    ],
)  # fmt: skip
def test_only_names_and_whether_a_field_exists_reveal_no_value(text: str, reveals: bool) -> None:
    assert Condition.parse(text).reveals_values is reveals
