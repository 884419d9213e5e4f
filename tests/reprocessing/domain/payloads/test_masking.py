from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from reprocessing.domain.message.envelope import Attribute, Attributes
from reprocessing.domain.message.json_view import JsonValue
from reprocessing.domain.payloads.mask_rules import mask_problem, mask_rules
from reprocessing.domain.payloads.masking import MASK, MaskedContent, mask, masked_document

#: Each occurrence must be masked by the rule beside it.
CANARY = "canary-4711"
M = MASK


def _mask(body: object, *rules: str, attributes: Attributes | None = None) -> MaskedContent:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return mask(raw, attributes or {}, mask_rules(rules))


C = CANARY


@pytest.mark.parametrize(
    ("rule", "body"),
    [
        ("email", {"email": C, "n": 1}),
        ("email", {"a": [{"E-Mail": C}, {"e_mail": C}], "emails": "x"}),
        ("card.number", {"card": {"number": C, "n": "x"}, "number": 1}),
        ("cards[*].no", {"cards": [{"no": C}, {"no": C}, {"n": 2}]}),
        ("cards[-1].no", {"cards": [{"no": 1}, {"no": C}]}),
        ("cards[1:]", {"cards": [1, C, C]}),
        ("people.*.name", {"people": {"a": {"name": C}, "b": {"name": C}}, "name": "x"}),
        ("a[].b[].c", {"a": [{"b": [{"c": C}]}, {"b": [{"c": C}, {"d": 1}]}]}),
        ("a[?kind=='secret'].v", {"a": [{"kind": "secret", "v": C}, {"kind": "x", "v": 1}]}),
        ("a[?contains(kind, 'x')].v", {"a": [{"kind": 1, "v": C}]}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_rules_mask_names_anywhere_and_nodes_by_expression(rule: str, body: object) -> None:
    found = _mask(body, rule)
    assert (json.loads(found.body), found.is_masked) == (json.loads(json.dumps(body).replace(C, M)), True)


@pytest.mark.parametrize("value", [1, 1.5, True, None, [C], {"x": C}], ids=str)
def test_values_of_every_type_are_masked(value: object) -> None:
    for rule in ("secret", "a.secret"):
        assert json.loads(_mask({"a": {"secret": value}}, rule).body) == {"a": {"secret": M}}


def test_an_expression_may_select_the_whole_body() -> None:
    assert json.loads(_mask({"a": C}, "@").body) == M


def test_json_within_texts_is_masked_and_what_cannot_be_searched_is_masked_whole() -> None:
    inner = json.dumps({"email": CANARY, "n": 1})
    hidden = base64.b64encode(inner.encode()).decode()
    found = json.loads(_mask({"Message": inner, "packed": hidden, "half": inner[:-3], "plain": "x"}, "email").body)
    assert found == {"Message": json.dumps({"email": M, "n": 1}), "packed": M, "half": M, "plain": "x"}


def test_the_arguments_of_a_celery_task_are_masked() -> None:
    body = base64.b64encode(b"\x80\x04" + CANARY.encode()).decode()
    task = {
        "body": body,
        "headers": {"task": "mail", "argsrepr": f"('{CANARY}',)", "kwargsrepr": "{}"},
        "properties": {},
    }
    found = json.loads(_mask(task, "email").body)
    assert found == {"body": M, "headers": {"task": "mail", "argsrepr": M, "kwargsrepr": M}, "properties": {}}


@pytest.mark.parametrize(
    "body",
    [C.encode(), b"\xff" + C.encode(), b'"%b"' % C.encode(), b"[" * 100, b"email=%b" % C.encode()],
    ids=["text", "bytes", "a JSON text", "too deep", "a form"],
)  # fmt: skip
def test_a_body_without_fields_is_masked_whole(body: bytes) -> None:
    found = _mask(body, "email")
    assert (found.body.startswith(b"[masked:"), CANARY.encode() in found.body, found.is_masked) == (True, False, True)


@pytest.mark.parametrize(
    "body", [b'{"email": "%b", "email": 1}', b'{"a": {"email": "%b"}, "a": 1}'], ids=["", "within"]
)
def test_a_name_that_is_there_twice_hides_nothing(body: bytes) -> None:
    assert CANARY.encode() not in _mask(body % CANARY.encode(), "email").body


def test_attributes_are_masked_by_name_and_binary_ones_always() -> None:
    attributes = {
        "e-mail": Attribute("String", CANARY), "json": Attribute("String", json.dumps({"email": CANARY})),
        "blob": Attribute("Binary", CANARY.encode()), "n": Attribute("Number", "1"),
    }  # fmt: skip
    found = _mask({}, "email", attributes=attributes).attributes
    shown: dict[str, Any] = {name: attribute.value for name, attribute in found.items()}
    assert shown == {"e-mail": M, "json": json.dumps({"email": M}), "blob": M, "n": "1"}


def test_without_a_match_the_exact_bytes_are_shown() -> None:
    body = b'{ "n":1.50,"u":"\\u00e9" }'
    assert (_mask(body, "email").body, _mask(body, "email").is_masked, _mask(body).body) == (body, False, body)


@pytest.mark.parametrize(
    "entry",
    [
        "length(a)", "a | b", "a[*].b | [0]", "(a[*].b)[0]", "(a[].b)[0]", "(a.*)[0]", "(a[?b].c)[0]", "{x: a}",
        "[a, b]", "`1`", "a || b",
    ],
)  # fmt: skip
def test_an_expression_that_selects_no_fields_is_refused(entry: str) -> None:
    assert mask_problem(entry) == (
        f'"{entry}" computes a value. Write an expression that selects fields, such as cards[*].number'
    )


@pytest.mark.parametrize(
    "entry", ["card.number", "a[*][0]", "a[-1].b", "a[1:]", "(a[*].b)[1:]", "a.*", "a[?b=='c'].d", "@"]
)
def test_an_expression_that_selects_fields_is_a_rule(entry: str) -> None:
    assert mask_problem(entry) == ""


@pytest.mark.parametrize(
    ("entry", "shown", "why"),
    [
        ("a[", "a[", 'Invalid jmespath expression: Incomplete expression: "a[" ^.'),
        ("", "", "body: needs a JMESPath expression of 1 to 256 characters, such as body:customer.email."),
        ("é" * 61, "é" * 60, "Bad jmespath expression: Unknown token é:"),
    ],
    ids=["incomplete", "empty", "long"],
)  # fmt: skip
def test_what_is_no_expression_is_refused_with_the_reason(entry: str, shown: str, why: str) -> None:
    told = f'"{shown}" is neither the name of a field nor a JMESPath expression: {why}'
    assert mask_problem(entry)[: len(told)] == told


def test_a_document_is_masked_as_its_text_is() -> None:
    document: JsonValue = {"email": CANARY, "n": 1}
    assert masked_document(document, mask_rules(("email",))) == {"email": M, "n": 1}
    assert masked_document([document], mask_rules(("email",))) == [{"email": M, "n": 1}]
    assert masked_document(CANARY, mask_rules(("email",))) == M
    assert masked_document(document, mask_rules(())) == document
