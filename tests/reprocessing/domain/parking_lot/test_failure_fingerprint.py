"""Causes: what equal failures share, from the best source, and without the letter's contents in a title."""

from __future__ import annotations

import hashlib
import json
import re
import string
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from reprocessing.domain.lifecycle import ParkedReason
from reprocessing.domain.message.envelope import Attribute
from reprocessing.domain.message.identity import LetterFacts, Selector
from reprocessing.domain.parking_lot.failure_fingerprint import (
    LONGEST,
    AttemptAnswer,
    CauseKind,
    FailureCause,
    FailureSigns,
    Reported,
    failure_cause,
    type_of,
)  # fmt: skip
from reprocessing.domain.parking_lot.message_type import type_value
from reprocessing.domain.parking_lot.text_pattern import without_values
from reprocessing.domain.routing.message_fields import BODY_LIMIT
from tests.proof.poison.corpus import CORPUS
from tests.proof.poison.secrecy import quoted
from tests.reprocessing.domain.dead import EVENT, NOTIFICATION, RECORD, RULE, TARGET, texts

TASK = {
    "body": "W1tdLCB7fSwge31d", "content-type": "application/json", "content-encoding": "utf-8",
    "headers": {"task": "shop.tasks.ship", "id": "1"}, "properties": {"body_encoding": "base64", "delivery_info": {}},
}  # fmt: skip


def signs(body: bytes = b"{}", attributes: dict[str, Attribute] | None = None, **more: Any) -> FailureSigns:  # noqa: ANN401
    letter = LetterFacts("m", body, attributes or {}, {})
    return FailureSigns(**{"letter": letter, "size": len(body), **more})


def told(*given_: object, **more: object) -> tuple[CauseKind, str]:
    found = failure_cause(signs(*given_, **more))  # type: ignore[arg-type]
    return found.kind, found.title


def test_the_best_source_is_used_first() -> None:
    full = signs(
        json.dumps(TASK).encode(), texts(exception_type="KeyError"), report=Reported("shop.CardDeclined", "0a1b2c3d4e"),
        answer=AttemptAnswer("refused", "503: Service Unavailable"), reason="unsendable",
    )  # fmt: skip
    steps = [full, replace(full, report=None)]
    steps.append(replace(steps[-1], reason="attempts_spent"))
    steps.append(replace(steps[-1], answer=None))
    steps.append(replace(steps[-1], letter=replace(full.letter, attributes={})))
    steps.append(signs(b'{"a": 1}', texts(kind="order.paid"), type=Selector.parse("attribute:kind")))
    steps.append(signs(b'{"a": 1}'))
    assert [failure_cause(step).kind for step in steps] == [
        CauseKind.REPORTED, CauseKind.PARKED, CauseKind.ANSWERED, CauseKind.LEFT, CauseKind.TASK, CauseKind.TYPE,
        CauseKind.BODY,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("report", "title"),
    [
        (Reported("shop.CardDeclined", ""), "shop.CardDeclined"),
        (Reported("KeyError", "0a1b2c3d4e5f6071"), "KeyError (0a1b2c3d)"),
        (Reported("KeyError", "order 4711"), "KeyError"),
        (Reported("no such card: 4111", "f"), "A failure that its consumer reported without a type"),
    ],
)
def test_a_reported_failure_is_titled_by_its_type_and_never_by_its_text(report: Reported, title: str) -> None:
    assert told(report=report) == (CauseKind.REPORTED, title)


def test_two_fingerprints_of_one_type_are_two_causes() -> None:
    first, second = (failure_cause(signs(report=Reported("KeyError", mark))) for mark in ("0a1b2c3d", "1a1b2c3d"))
    assert first.digest != second.digest
    assert first.title != second.title


FAULTS = {ParkedReason.UNSENDABLE, ParkedReason.UNREADABLE_TASK}


@pytest.mark.parametrize("reason", ParkedReason)
def test_the_cause_stays_the_same_when_a_letter_is_parked_unless_the_letter_is_at_fault(reason: ParkedReason) -> None:
    fault = (CauseKind.PARKED, reason.sentence)
    for known in (
        signs(attributes=texts(error_type="KeyError")), signs(answer=AttemptAnswer("refused", "503: Busy")),
        signs(json.dumps(TASK).encode()), signs(b'{"a": 1}', texts(kind="paid"), type=Selector.parse("attribute:kind")),
        signs(EVENT), signs(b'{"a": 1}'), signs(b"text"),
    ):  # fmt: skip
        before, after = failure_cause(known), failure_cause(replace(known, reason=reason))
        assert (after.kind, after.title) == (fault if reason in FAULTS else (before.kind, before.title))
        assert (after.digest == before.digest) is (reason not in FAULTS)


@pytest.mark.parametrize("reason", ParkedReason)
@pytest.mark.parametrize("mute", [signs(b""), signs(b" \n"), signs(b"", size=BODY_LIMIT + 1)])
def test_the_parking_reason_is_the_cause_if_nothing_else_is_known(mute: FailureSigns, reason: ParkedReason) -> None:
    found = failure_cause(replace(mute, reason=reason))
    assert (found.kind, found.title) == (CauseKind.PARKED, reason.sentence)


def test_faults_with_different_details_are_different_causes() -> None:
    one, other = (
        failure_cause(signs(reason="unreadable_task", detail=f"its {what}, of 4 bytes")) for what in ("id", "body")
    )
    assert one.title == f"{ParkedReason.UNREADABLE_TASK.sentence.removesuffix('.')}: its id, of # bytes"
    assert one.digest != other.digest


@pytest.mark.parametrize(
    ("outcome", "detail", "title"),
    [
        ("refused", "503: Service Unavailable", "The target refused it: 503 Service Unavailable"),
        ("refused", "Busy: order 4711 is locked", "The target refused it: Busy order # is locked"),
        ("refused", 'InvalidParameter: "x\'y" is none', "The target refused it: InvalidParameter … is none"),
        ("unknown", "no reply within 30 s", "No answer: no reply within # s"),
    ],
)
def test_a_targets_answer_is_the_cause_without_its_values(outcome: str, detail: str, title: str) -> None:
    assert told(reason="attempts_spent", answer=AttemptAnswer(outcome, detail)) == (CauseKind.ANSWERED, title)


@pytest.mark.parametrize("outcome", ["returned", "accepted", "failed", "silent"])
def test_an_accepted_attempt_is_no_cause(outcome: str) -> None:
    assert told(reason="attempts_spent", answer=AttemptAnswer(outcome, "x"))[0] is CauseKind.BODY


@pytest.mark.parametrize(
    ("one", "another"),
    [
        ("at 2026-01-02T03:04:05.678Z", "at 2027-11-12 13:14:15+01:00"),
        ("id 22b80b92-fdea-4c2c-8f9d-bdfb0c7bf324", "id 17554ea1-0000-4c2c-8f9d-bdfb0c7bf324"),
        ("at 0xdeadbeef", "at 0x1"), ("req 9f8e7d6c5b4a", "req 0a1b2c3d4e5f"),
        ("key AKIAIOSFODNN7EXAMPLE", "key AKIAI44QH8DHBEXAMPLE"), ("'4111'  of 1,234.5", "'5222' of 7"),
        ("to ann@example.com now", "to ben+x@example.org now"),
    ],
)  # fmt: skip
def test_ids_times_and_numbers_make_no_other_cause(one: str, another: str) -> None:
    assert without_values(one) == without_values(another)


@pytest.mark.parametrize(
    ("attributes", "title"),
    [
        (
            {"NServiceBus.ExceptionInfo.ExceptionType": "System.TimeoutException"},
            "NServiceBus: System.TimeoutException",
        ),
        ({"MT-Fault-ExceptionType": "Shop.CardDeclined"}, "MassTransit: Shop.CardDeclined"),
        ({"rbs2-error-details": "System.Exception: card 4111 is bad\n at Shop"}, "Rebus: System.Exception"),
        ({"kafka_dlt-exception-fqcn": "java.lang.IllegalStateException"}, "Spring: java.lang.IllegalStateException"),
        ({"exception-type": "System.Exception"}, "Wolverine: System.Exception"),
        ({"Error_Class": "Shop::KeyError: no 4711", "order": "4711"}, "Error_Class: Shop::KeyError"),
        ({"errorCode": "4031"}, "errorCode: 4031"),
        ({"ErrorMessage": "KeyError: 'total'"}, "ErrorMessage: KeyError: …"),
        ({"ErrorMessage": "division by zero\n  at card 4111"}, "ErrorMessage: division by zero"),
        (
            {"ErrorMessage": "2026-01-02T03:04:05.6Z 22b80b92-fdea-4c2c-8f9d-bdfb0c7bf324 Task timed out after 3.00 s"},
            "ErrorMessage: # # Task timed out after # s",
        ),
        ({"error-message": "card 4111-smith of ann@example.com is bad"}, "error-message: card # of # is bad"),
        ({"ErrorMessage": "KeyError: 'x'", "error_type": "KeyError"}, "error_type: KeyError"),
    ],
)
def test_the_attributes_of_frameworks_are_a_cause(attributes: dict[str, str], title: str) -> None:
    assert told(b"{}", texts(**attributes)) == (CauseKind.LEFT, title)


@pytest.mark.parametrize(
    ("name", "value"),
    [("error_type", text) for text in ("", "card 4111", "ä", "17554ea1f00d0", "Order4711222Failed", "<script>")]
    + [("ErrorMessage", text) for text in ("", " ", "'total'", "4111", "a1 b2", "\n\nx1", "of-ann", "/home/ann")],
)
def test_an_attribute_with_values_only_is_no_cause(name: str, value: str) -> None:
    assert told(b"{}", texts(**{name: value})) == (CauseKind.BODY, "An empty JSON object")


def test_a_text_is_shown_without_what_it_quotes_from_its_letter() -> None:
    body = b'{"order": {"customer": "Smith", "names": ["Ann Smith", "is"]}}'
    dead = texts(ErrorMessage="the customer Ann Smith (Smith) is blocked in north", region="north")
    assert told(body, dead) == (CauseKind.LEFT, "ErrorMessage: the customer … (…) is blocked in …")


def test_dead_letters_of_aws_have_their_error_as_cause() -> None:
    dead = texts(RequestID="r-1", ErrorMessage="no such card: 4111") | {"ErrorCode": Attribute("Number", "200")}
    assert told(b"{}", dead) == (CauseKind.LEFT, "Lambda: 200: no such card: #")
    dead = texts(RULE_ARN=RULE, TARGET_ARN=TARGET, ERROR_CODE="NO_PERMISSIONS", ERROR_MESSAGE="card 4111")
    assert told(EVENT, dead) == (CauseKind.LEFT, "EventBridge: NO_PERMISSIONS")
    assert told(RECORD) == (CauseKind.LEFT, "Lambda: RetriesExhausted: ValueError")


def test_a_tasks_cause_is_its_name_and_not_its_arguments() -> None:
    other = TASK | {"body": "W1sxXSwge30sIHt9XQ=="}
    assert told(json.dumps(TASK).encode()) == (CauseKind.TASK, "Task shop.tasks.ship")
    assert failure_cause(signs(json.dumps(TASK).encode())) == failure_cause(signs(json.dumps(other).encode()))


@pytest.mark.parametrize(
    ("body", "title"),
    [
        (b'{"id": 1, "items": [{"sku": "x"}]}', "JSON with id, items"),
        (b'{"4111111111111111": 1, "ann@example.com": 2}', "JSON with #"), (b"[1]", "A JSON list of numbers"),
        (b"[]", "An empty JSON list"), (b'"x"', "JSON: a text"), (b" ", "An empty body"),
        (b"\xef\xbb\xbf<?xml version='1.0'?>\n<!-- a - b --><!DOCTYPE o><order id='4'/>", "XML: order"),
        (b"name=ann&card=4111", "A form with card, name"), (b"gqFhAaFiwsDAwMDAwMA=", "Plain text body"),
        (NOTIFICATION, "SNS notification: plain text body"),
        (b'{"Type": "Notification", "TopicArn": "t", "Message": "{\\"sum\\": 1}"}', "SNS notification: JSON with sum"),
        (b"\x89PNG\xff", "Bytes that are no text"), (b"hello 4111", "Plain text body"),
        (b'{"a": NaN}', "Plain text body"),
    ],
)  # fmt: skip
def test_the_bodys_outline_is_the_last_cause(body: bytes, title: str) -> None:
    assert told(body) == (CauseKind.BODY, title)


def test_an_events_cause_is_its_type_and_its_source() -> None:
    assert told(EVENT) == (CauseKind.TYPE, "Event order.paid from shop.orders")
    assert told(EVENT.replace(b"order.paid", b"order 4711222"))[0] is CauseKind.BODY


def test_a_type_is_a_cause_whatever_else_the_body_has() -> None:
    kind = Selector.parse("body:kind")
    found = [failure_cause(signs(body, type=kind)) for body in (b'{"kind": "paid"}', b'{"kind": "paid", "x": 1}')]
    assert [(one.kind, one.title) for one in found] == [(CauseKind.TYPE, "paid")] * 2
    assert found[0].digest == found[1].digest


def test_without_a_selector_the_type_is_found_and_the_selector_none_switches_that_off() -> None:
    body = b'{"type": "invoice.paid", "data": {}}'
    assert told(body) == (CauseKind.TYPE, "invoice.paid")
    assert told(body, type=Selector.parse("none")) == (CauseKind.BODY, "JSON with data, type")
    assert told(body, type=Selector.parse("attribute:kind")) == (CauseKind.BODY, "JSON with data, type")
    assert told(EVENT, type=Selector.parse("none"))[0] is CauseKind.BODY


@pytest.mark.parametrize(
    ("body", "attributes", "kind"),
    [
        (b'{"type": "order.paid"}', {}, "order.paid"), (b"{}", texts(type="order.sent"), "order.sent"),
        (json.dumps(TASK).encode(), {}, "shop.tasks.ship"), (EVENT, {}, "order.paid"),
        (b'{"type": "4111 1111 1111 1111"}', {}, ""), (b'{"type": "<script>alert(1)</script>"}', {}, ""),
        (b"\xff", {}, ""),
    ],
    ids=["body", "attribute", "task", "event", "value", "script", "bytes"],
)  # fmt: skip
def test_a_messages_type_is_its_tasks_name_or_as_in_the_title_of_a_group(
    body: bytes, attributes: dict[str, Attribute], kind: str
) -> None:
    assert type_of(LetterFacts("m", body, attributes, {}), len(body), None) == kind


def test_a_messages_type_is_where_the_selector_says() -> None:
    letter = LetterFacts("m", b'{"type": "order.paid", "what": "refund"}', {}, {})
    assert [type_of(letter, 40, Selector.parse(said)) for said in ("body:what", "none")] == ["refund", ""]


def test_the_shape_of_a_body_is_its_top_level_keys_whatever_their_values_are() -> None:
    found = [failure_cause(signs(body)) for body in (b'{"b": 1, "a": [1]}', b'{"a": {"c": null}, "b": "x"}')]
    assert [one.keys for one in found] == [("a", "b")] * 2
    assert found[0].digest == found[1].digest


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(0, 9) | st.text("x", max_size=2),
    lambda one: st.lists(one, max_size=3) | st.dictionaries(st.text("aB1-\u00e4", max_size=4), one, max_size=4),
    max_leaves=12,
)


def _turned(value: Any) -> Any:  # noqa: ANN401  JSON
    """Return a value with other values of the same types, and its members in reverse order."""
    match value:
        case bool() | None:
            return value
        case int():
            return value + 1
        case str():
            return f"{value}!"
        case list():
            return [_turned(one) for one in value]
        case _:
            return {name: _turned(value[name]) for name in reversed(list(value))}


@settings(max_examples=50)
@given(JSON)
def test_letters_that_differ_only_in_values_have_one_cause(value: Any) -> None:  # noqa: ANN401  JSON
    one, other = (failure_cause(signs(json.dumps(each).encode())) for each in (value, _turned(value)))
    assert one == other


def _is_fit(found: FailureCause) -> bool:
    return found.title.isprintable() and 0 < len(found.title) <= LONGEST and len(found.digest) == 32


NAMES = re.compile("[A-Za-z_.:, ]*")
ODD = st.text(max_size=300) | st.text(alphabet=string.printable + "\u202e\ud800", max_size=300)


@pytest.mark.soak
@given(
    st.binary(max_size=400) | st.text(max_size=300).map(lambda text: text.encode(errors="replace")),
    st.dictionaries(st.sampled_from(["exception-type", "ErrorCode", "ErrorMessage", "x"]), ODD, max_size=4),
    ODD, ODD, st.sampled_from(["", *ParkedReason]), st.sampled_from(["refused", "unknown", "returned"]), ODD,
)  # fmt: skip
@example(b"", {"error_type": "\x00"}, "\x00", "", "unsendable", "refused", "\u202e")
def test_any_letter_has_a_cause_with_a_printable_title(  # noqa: PLR0913, PLR0917
    body: bytes, attributes: dict[str, str], kind: str, mark: str, reason: str, outcome: str, detail: str
) -> None:
    dead = texts(**attributes)
    for some in (
        signs(body, dead, type=Selector.parse("body:kind")),
        signs(body, dead, answer=AttemptAnswer(outcome, detail), reason=reason, detail=detail),
        signs(body, dead, report=Reported(kind, mark)),
    ):
        assert _is_fit(failure_cause(some))
        assert failure_cause(some) == failure_cause(some)


@given(st.text(alphabet=string.ascii_letters + string.digits, min_size=12, max_size=40))
def test_no_value_of_a_body_or_an_attribute_is_in_a_title(secret: str) -> None:
    body = {"a": secret, "b": [secret], "c": {"d": secret}}
    for some in (
        signs(json.dumps(body).encode(), texts(order=secret, note=f"of {secret}")),
        signs(json.dumps(body | {"headers": {}, "properties": {}}).encode()),
        signs(secret.encode()),
        signs(f"a={secret}".encode()),
        signs(f"<a>{secret}</a>".encode()),
        signs(answer=AttemptAnswer("refused", f'Busy: "{secret}" is in use')),
        signs(report=Reported(f"{secret} is bad", secret)),
    ):
        assert secret not in failure_cause(some).title


@pytest.mark.soak
def test_every_odd_message_has_a_cause_whose_title_quotes_only_names() -> None:
    wrong = []
    for odd in CORPUS.values():
        found = failure_cause(signs(odd.body.encode(), {name: Attribute(*one) for name, one in odd.attributes.items()}))
        is_type = found.kind is CauseKind.TYPE and bool(type_value(found.title))
        if not (_is_fit(found) and (is_type or NAMES.fullmatch(quoted(found.title, odd)))):
            wrong.append((odd.name, found.title))
    assert wrong == []


@pytest.mark.parametrize(
    "body",
    [
        b"[" * BODY_LIMIT, b'{"a":' * (BODY_LIMIT // 5), b'"' * BODY_LIMIT, b"<!--" + b"-" * BODY_LIMIT,
        b"<?" + b"<" * BODY_LIMIT, b"<" * BODY_LIMIT, b" " * BODY_LIMIT, b"a=" + b"%" * BODY_LIMIT, b"=&" * 120_000,
        b"a" * BODY_LIMIT,
        b"[" + b"1," * 130_000 + b"1]", b"{" + b",".join(b'"k%d":1' % n for n in range(20_000)) + b"}",
    ],
    ids=range(12),
)  # fmt: skip
@pytest.mark.timeout(60)
def test_a_hostile_body_has_a_cause(body: bytes) -> None:
    assert _is_fit(failure_cause(signs(body)))


def test_a_body_beyond_the_limit_is_not_read() -> None:
    assert told(b"", size=BODY_LIMIT + 1) == (CauseKind.BODY, "A body of more than 256 KiB")


def test_a_digest_changes_only_with_its_edition() -> None:
    some = [
        signs(report=Reported("KeyError", "0a1b2c3d")), signs(report=Reported("card 4111", "f")),
        signs(reason="unreadable_task", detail="its id, of 4 bytes"), signs(b"", reason="stale"),
        signs(answer=AttemptAnswer("refused", "503: Busy: 1")), signs(answer=AttemptAnswer("unknown", "no reply")),
        signs(attributes=texts(error_type="KeyError")), signs(attributes=texts(ErrorMessage="division by zero")),
        signs(attributes={"exception-type": Attribute("String", "System.Exception")}), signs(RECORD), signs(EVENT),
        signs(json.dumps(TASK).encode()), signs(NOTIFICATION), signs(b'{"a": [1]}'),
        signs(b'{"kind": "paid"}', type=Selector.parse("body:kind")),
    ]  # fmt: skip
    every = b"".join(failure_cause(each).digest for each in some)
    assert hashlib.sha256(every).hexdigest()[:16] == "0865bb38e454a85b"


def test_titles_of_unusual_names_and_of_more_than_200_characters() -> None:
    task = TASK | {"headers": {"task": "4111 4111", "id": "1"}}
    assert told(json.dumps(task).encode()) == (CauseKind.TASK, "A task with an unusual name")
    kind = Selector.parse("body:kind")
    assert told(b'{"kind": "4111 4111"}', type=kind) == (CauseKind.BODY, "JSON with kind")
    long = told(answer=AttemptAnswer("unknown", "no reply from the shop " * 20))[1]
    assert (len(long), long[:11], long[-3:]) == (LONGEST, "No answer: ", " r…")
