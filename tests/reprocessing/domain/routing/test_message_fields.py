"""The fields of a letter that rules read: present, missing or unreadable."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from jmespath.visitor import TreeInterpreter

from reprocessing.domain.errors import InvalidRule
from reprocessing.domain.message import json_view
from reprocessing.domain.message.envelope import Attribute
from reprocessing.domain.message.identity import LetterFacts, Missing, Selector
from reprocessing.domain.message.json_view import JsonValue, Unreadable
from reprocessing.domain.routing import jmespath_query
from reprocessing.domain.routing.condition_fields import FieldValue, NotText
from reprocessing.domain.routing.conditions import Condition
from reprocessing.domain.routing.jmespath_query import STEPS
from reprocessing.domain.routing.message_fields import BODY_LIMIT, MessageFields
from tests import envelopes
from tests.reprocessing.domain.corpora.hostile import BODIES, EXPRESSIONS, SIZE

CANARY = "canary-7c1f"

BODY = {
    "order": {"id": "o-1", "total": 7.50, "paid": True, "open": False, "lines": [{"sku": "a"}, {}], "none": None},
    "tenant": "acme", "blank": " ", "empty": "", "no": 10**30,
}  # fmt: skip
ATTRIBUTES = {
    "region": Attribute("String", "eu"), "no": Attribute("Number.int", "007"), "raw": Attribute("Binary", b"eu"),
    "empty": Attribute("String", ""),
}  # fmt: skip
SOURCE = "arn:aws:sqs:eu-west-1:000000000000:orders"


def facts(body: bytes | object = BODY, type: str = "none", tenant: str | None = "body:tenant") -> MessageFields:  # noqa: A002
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    letter = LetterFacts("m-1", raw, ATTRIBUTES, {"MessageGroupId": "g-1"})
    return MessageFields(letter, "orders-dlq", SOURCE, Selector.parse(type), Selector.parse(tenant) if tenant else None)


def read(field: str, body: bytes | object = BODY, **selectors: str) -> FieldValue:
    return facts(body, **selectors).read(Condition.parse(f"{field} exists").field)


@pytest.mark.parametrize(
    ("field", "found"),
    [
        ("dlq", "orders-dlq"), ("source", "orders"), ("attribute:region", "eu"), ("attribute:no", "007"),
        ("attribute:raw", NotText()), ("attribute:empty", ""), ("attribute:absent", Missing()),
        ("body:order.id", "o-1"), ("body:order.total", "7.5"), ("body:order.paid", "true"),
        ("body:order.open", "false"), ("body:order.none", Missing()), ("body:order.absent.absent", Missing()),
        ("body:order", NotText()), ("body:order.lines", NotText()), ("body:blank", " "), ("body:empty", ""),
        ("body:no", "1000000000000000000000000000000"), ("body:`1.50`", "1.5"),
        ("body:`1e400`", Unreadable("its number is out of range")), ("body:order.total > `7`", "true"),
        ("body:order.total > 'a'", Missing()), ("body:order.id > `7`", Missing()), ("body:length(order.lines)", "2"),
        ("body:length(order.absent)", Missing()), ("body:order.lines[?length(sku) > `0`] | length(@)", "1"),
        ("body:!contains(tags, 'safe')", "true"), ("body:join('-', [tenant, order.id])", "acme-o-1"),
        ("body:join('-', [tenant, order.absent])", Missing()),
        ("body:contains(order, 'a')", Unreadable("contains() was given a value of the wrong type")),
        ("body:order.lines[].sku | [0]", "a"), ("body:order.lines[::-1] | [1].sku", "a"), ("body:[::0]", Missing()),
        ("type", Missing()), ("tenant", "acme"), ("task", Missing()),
    ],
)  # fmt: skip
def test_a_field_is_read(field: str, found: FieldValue) -> None:
    assert read(field) == found


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        ("none", Missing()), ("attribute:region", "eu"), ("attribute:raw", NotText()), ("body:order.total", "7.5"),
        ("body:order.paid", "true"), ("system:MessageGroupId", "g-1"), ("system:SequenceNumber", Missing()),
        ("message-id", "m-1"), ("body:absent", Missing()),
    ],
)  # fmt: skip
def test_type_and_tenant_are_read_by_the_dlqs_selectors(selector: str, found: FieldValue) -> None:
    assert read("type", type=selector) == found
    assert read("tenant", tenant=selector) == found
    assert facts(tenant=None).read(Condition.parse("tenant exists").field) == Missing()


@pytest.mark.parametrize("body", [b"", b"hello", b"\xff", b"{", b'{"a": 1,}', b"null", b"[]", b'"a"', b"1"])
def test_a_body_that_is_no_json_object_has_no_fields(body: bytes) -> None:
    assert (read("body:a", body), read("task", body)) == (Missing(), Missing())


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b'{"a": NaN}', "NaN is not a JSON number"),
        (b'{"a": "\\ud800"}', "its text holds half a surrogate pair, which is no character"),
        (b'{"a": ' + b"[" * 100 + b"]" * 100 + b"}", "its JSON is nested more than 64 deep"),
        (b'{"a": 1e99999999999999999999}', "it has a number that is out of range"),
        (b"{}" + b" " * BODY_LIMIT, f"its body has {BODY_LIMIT + 2} bytes, and rules read {BODY_LIMIT} at most"),
        (b'\xef\xbb\xbf{"a": 1}', "it is not JSON: Unexpected UTF-8 BOM (decode using utf-8-sig) at character 0"),
    ],
)
def test_json_that_only_other_parsers_read_is_unreadable_and_not_missing(body: bytes, why: str) -> None:
    # A consumer may act on such a body, so it must not evade a rule that is there to stop it.
    assert (read("body:a", body), read("task", body)) == (Unreadable(why), Unreadable(why))


@pytest.mark.parametrize("body", [b"\xef\xbb\xbfhello", b"\xef\xbb\xbf" * 2 + b"{}"])
def test_text_behind_a_byte_order_mark_has_no_fields(body: bytes) -> None:
    assert read("body:a", body) == Missing()


@pytest.mark.parametrize("selector", ["content-hash", "body:a"])
def test_bodies_are_read_up_to_the_limit(selector: str) -> None:
    fits = b'{"a":1}' + b" " * (BODY_LIMIT - 7)
    assert isinstance(read("tenant", fits, tenant=selector), str)
    assert read("tenant", fits + b" ", tenant=selector) == Unreadable(
        f"its body has {BODY_LIMIT + 1} bytes, and rules read {BODY_LIMIT} at most"
    )


@pytest.mark.parametrize(("body", "found"), [("1" * 1_024, "1" * 1_024), ("1" * 1_025, Unreadable)])
def test_numbers_are_read_up_to_1024_digits(body: str, found: object) -> None:
    value = read("body:a", f'{{"a": {body}}}'.encode())
    assert found in (value, type(value))


def kombu(headers: object, payload: object = None, encoding: str = "base64") -> dict[str, object]:
    text = json.dumps(payload)
    written = base64.b64encode(text.encode()).decode() if encoding == "base64" else text
    return {"body": written, "headers": headers, "properties": {"body_encoding": encoding}}


HEADERS = {"lang": "py", "task": "billing.charge", "id": "1"}
PROTOCOL_1 = {"task": "billing.charge", "id": "1", "args": [], "kwargs": {}}


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (kombu(HEADERS), "billing.charge"), (kombu({}, PROTOCOL_1), "billing.charge"),
        (kombu({}, PROTOCOL_1, "utf-8"), "billing.charge"), (kombu({}, {"task": 1, "id": "1"}), Missing()),
        (kombu({}, [1]), Missing()), (kombu({"task": 1}), Missing()), (kombu({"task": ""}), Missing()),
        (kombu([]), Missing()), ({"headers": HEADERS}, Missing()),
        ({"body": "!", "headers": {}, "properties": {"body_encoding": "base64"}}, Missing()),
        ({"body": "\N{GRINNING FACE}", "headers": {}}, Missing()), ([kombu(HEADERS)], Missing()),
    ],
)  # fmt: skip
def test_a_celery_task_has_its_name_in_plain_and_base64_messages(body: object, found: FieldValue) -> None:
    plain = json.dumps(body).encode()
    assert (read("task", plain), read("task", base64.b64encode(plain))) == (found, found)


@pytest.mark.parametrize("protocol", [1, 2])
@pytest.mark.parametrize(
    ("field", "found"),
    [
        ("task", "billing.charge"), ("task:name", "billing.charge"), ("task:id", "t-1"), ("task:retries", "2"),
        ("task:retries > `1`", "true"), ("task:eta", "2026-11-22T00:00:00+00:00"), ("task:expires", Missing()),
        ("task:group", Missing()), ("task:args", NotText()), ("task:args[0].order", "o-1"),
        ("task:args[1]", Missing()), ("task:kwargs.tenant", "acme"), ("task:kwargs.absent", Missing()),
        ("task:contains(args, 'a')", "false"),
        ("task:starts_with(retries, 'a')", Unreadable("starts_with() was given a value of the wrong type")),
    ],
)  # fmt: skip
def test_the_fields_and_arguments_of_a_task_are_read(protocol: int, field: str, found: FieldValue) -> None:
    eta = datetime(2026, 11, 22, tzinfo=UTC)
    options: dict[str, Any] = {"task_id": "t-1", "retries": 2, "eta": eta, "kwargs": {"tenant": "acme"}}
    for plain in (True, False):
        body = envelopes.task("billing.charge", {"order": "o-1"}, protocol=protocol, plain=plain, **options)
        assert read(field, body) == found


@pytest.mark.parametrize(
    ("field", "found"),
    [("task", "t"), ("task:id", "t-1"), ("task:retries", "0"), ("task:args[0]", None), ("task:[id, args]", None)],
)
def test_fields_in_a_pickled_payload_are_unreadable_and_headers_are_read(field: str, found: str | None) -> None:
    closed = Unreadable("its payload is pickled, and unpickling could run code")
    body = envelopes.task("t", 1, serializer="pickle", task_id="t-1")
    assert read(field, body) == (found or closed)
    assert read(field, envelopes.task("t", 1, serializer="pickle", task_id="t-1", protocol=1)) == closed


def test_a_payload_is_unpacked_up_to_the_limit() -> None:
    body = envelopes.task("t", "a" * BODY_LIMIT, compression="gzip")
    assert read("task", body) == "t"
    assert read("task:args[0]", body) == Unreadable(
        f"its payload has more than {BODY_LIMIT} bytes, the most that is read"
    )


@pytest.mark.parametrize("field", ["task", "task:args"])
def test_a_body_that_is_no_task_has_no_task_fields(field: str) -> None:
    assert read(field) == Missing()


def test_a_task_that_only_other_parsers_read_is_unreadable() -> None:
    nested = b'{"task": "t", "args": NaN}'
    inner = {"body": base64.b64encode(nested).decode(), "headers": {}, "properties": {"body_encoding": "base64"}}
    assert read("task", inner) == Unreadable("NaN is not a JSON number")
    assert read("task", base64.b64encode(nested)) == Unreadable("NaN is not a JSON number")


def test_a_body_is_parsed_at_most_once(monkeypatch: pytest.MonkeyPatch) -> None:
    bodies: list[bytes] = []
    real = json_view.read

    def counted(body: bytes) -> object:
        bodies.append(body)
        return real(body)

    monkeypatch.setattr(json_view, "read", counted)
    letter = facts(kombu(HEADERS), type="body:headers.task")
    letter.read(Condition.parse("dlq exists").field)
    assert bodies == []
    for field in ("type", "tenant", "task", "body:headers.id", "body:headers.lang"):
        letter.read(Condition.parse(f"{field} exists").field)
    assert len(bodies) == 1


@given(
    st.binary() | st.sampled_from(list(BODIES.values())) | st.binary().map(base64.b64encode),
    st.dictionaries(st.text(max_size=3), st.builds(Attribute, st.just("String"), st.text() | st.binary()), max_size=2),
    st.sampled_from(
        ["body:a", "task", "task:args[0]", "tenant", "attribute:a", "body:[*].a[] || b", "source", "body:length(a)"]
    ),
)
@example(b"\x00", {}, "task")
@settings(max_examples=40)
def test_no_letter_makes_reading_raise(body: bytes, attributes: Mapping[str, Attribute], field: str) -> None:
    letter = LetterFacts("m-1", body, attributes, {})
    MessageFields(letter, "", "", None, Selector.parse("attribute:a")).read(Condition.parse(f"{field} exists").field)


@pytest.mark.parametrize("text", EXPRESSIONS, ids=range(len(EXPRESSIONS)))
def test_a_hostile_expression_is_refused_or_ends_within_the_step_limit(
    text: str, parsed: list[JsonValue], monkeypatch: pytest.MonkeyPatch
) -> None:
    try:
        Condition.parse(f"body:{text} exists")
    except InvalidRule:
        return
    visit, visited = TreeInterpreter.visit, list[object]()

    def counted(interpreter: TreeInterpreter, node: object, value: object) -> object:
        visited.append(node)
        return visit(interpreter, node, value)

    monkeypatch.setattr(TreeInterpreter, "visit", counted)
    for document in parsed:
        visited.clear()
        jmespath_query.search(text, document)
        assert len(visited) <= STEPS


@pytest.fixture(scope="module")
def parsed() -> list[JsonValue]:
    documents = map(json_view.read, BODIES.values())
    return [document for document in documents if not isinstance(document, Unreadable)]


@pytest.mark.parametrize("field", ["body:[*].a", "task", "task:args"])
@pytest.mark.parametrize("name", BODIES)
def test_a_hostile_letter_is_read_or_unreadable(name: str, field: str) -> None:
    found, fits = read(field, BODIES[name]), len(BODIES[name]) <= SIZE
    assert isinstance(found, str | Missing | NotText | Unreadable if fits else Unreadable)


def test_the_corpus_reaches_the_limit_of_what_rules_read() -> None:
    assert SIZE == BODY_LIMIT
    assert sum(len(body) <= SIZE for body in BODIES.values()) >= 30
    assert len([text for text in EXPRESSIONS if jmespath_query.problem(text) is None]) >= 30


@pytest.mark.parametrize(
    "text",
    [
        "[*].a", "[][][]", "a[].b[].c || [?@ == `1`]", "[::1]", "@ == [@]", "contains(@, `7`)",
        "join(' ', [*].to_string)", "|".join(["[@,@]"] * 12) + "|@ == @", "[" + ",".join(["@"] * 100) + "][]",
    ],
)  # fmt: skip
def test_an_expression_that_needs_too_many_steps_fails(text: str) -> None:
    assert jmespath_query.search(text, list(range(3 * STEPS))) == jmespath_query.Failed(
        f"the expression takes more than {STEPS} steps on this message", exhausted=True
    )


@pytest.mark.parametrize("text", ["[0]", "[-1]", "length(@)", "[0:2] | [1]", "not_null(@) | [3]"])
def test_an_expression_that_reads_little_of_a_large_list_succeeds(text: str) -> None:
    assert isinstance(jmespath_query.search(text, list(range(STEPS // 2))), int)


@pytest.mark.parametrize(
    "text",
    ["contains(a, 'x')", "join(a, b)", "starts_with(b, a)", "length(n)", "keys(b)", "join(',', [a, n])",
     "not_null(n) | length(@)"],
)  # fmt: skip
def test_no_error_quotes_the_letter(text: str) -> None:
    body = {"a": {CANARY: CANARY}, "b": [CANARY], "n": 7_331_733}
    found = read(f"body:{text}", body)
    assert isinstance(found, Unreadable)
    assert CANARY not in found.why
    assert "7331733" not in found.why
    assert CANARY not in repr(facts(body))
