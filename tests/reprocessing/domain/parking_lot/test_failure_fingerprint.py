"""Causes: what letters share, in which order it is asked, and that nothing a letter holds stands in a title."""

from __future__ import annotations

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
    Answer,
    Cause,
    CauseKind,
    Reported,
    Signs,
    cause,
)
from reprocessing.domain.parking_lot.text_pattern import normal
from reprocessing.domain.routing.message_fields import BODY_LIMIT
from tests.proof.poison.corpus import CORPUS
from tests.proof.poison.secrecy import quoted
from tests.reprocessing.domain.dead import EVENT, NOTIFICATION, RECORD, RULE, TARGET, texts

TASK = {
    "body": "W1tdLCB7fSwge31d", "content-type": "application/json", "content-encoding": "utf-8",
    "headers": {"task": "shop.tasks.ship", "id": "1"}, "properties": {"body_encoding": "base64", "delivery_info": {}},
}  # fmt: skip


def signs(body: bytes = b"{}", attributes: dict[str, Attribute] | None = None, **more: Any) -> Signs:  # noqa: ANN401
    letter = LetterFacts("m", body, attributes or {}, {})
    return Signs(**{"letter": letter, "size": len(body), **more})


def told(*given_: object, **more: object) -> tuple[CauseKind, str]:
    found = cause(signs(*given_, **more))  # type: ignore[arg-type]
    return found.kind, found.title


def test_what_is_known_best_is_asked_first() -> None:
    full = signs(
        json.dumps(TASK).encode(), texts(exception_type="KeyError"), report=Reported("shop.CardDeclined", "0a1b2c3d4e"),
        answer=Answer("refused", "503: Service Unavailable"), reason="unsendable",
    )  # fmt: skip
    assert [one.kind for one in map(cause, _less_and_less(full))] == [
        CauseKind.REPORTED, CauseKind.PARKED, CauseKind.ANSWERED, CauseKind.LEFT, CauseKind.TASK, CauseKind.TYPE,
        CauseKind.BODY,
    ]  # fmt: skip


def _less_and_less(full: Signs) -> list[Signs]:
    steps = [full, replace(full, report=None)]
    steps.append(replace(steps[-1], reason="attempts_spent"))
    steps.append(replace(steps[-1], answer=None))
    steps.append(replace(steps[-1], letter=replace(full.letter, attributes={})))
    steps.append(signs(b'{"a": 1}', texts(kind="order.paid"), type=Selector.parse("attribute:kind")))
    steps.append(signs(b'{"a": 1}'))
    return steps


@pytest.mark.parametrize(
    ("report", "title"),
    [
        (Reported("shop.CardDeclined", ""), "shop.CardDeclined"),
        (Reported("KeyError", "0a1b2c3d4e5f6071"), "KeyError (0a1b2c3d)"),
        (Reported("KeyError", "order 4711"), "KeyError"),
        (Reported("no such card: 4111", "f"), "A failure to which its consumer gives no name"),
    ],
)
def test_what_a_consumer_reported_goes_by_its_type_and_never_by_its_text(report: Reported, title: str) -> None:
    assert told(report=report) == (CauseKind.REPORTED, title)


def test_failures_of_one_type_with_two_fingerprints_are_two_causes() -> None:
    first, second = (cause(signs(report=Reported("KeyError", mark))) for mark in ("0a1b2c3d", "1a1b2c3d"))
    assert first.digest != second.digest
    assert first.title != second.title


FAULTS = {ParkedReason.UNSENDABLE, ParkedReason.UNREADABLE_TASK}


@pytest.mark.parametrize("reason", ParkedReason)
def test_what_a_letter_died_of_stays_its_cause_when_it_is_parked_unless_it_is_parked_for_a_fault_of_its_own(
    reason: ParkedReason,
) -> None:
    fault = (CauseKind.PARKED, reason.sentence)
    for known in (
        signs(attributes=texts(error_type="KeyError")), signs(answer=Answer("refused", "503: Busy")),
        signs(json.dumps(TASK).encode()), signs(b'{"a": 1}', texts(kind="paid"), type=Selector.parse("attribute:kind")),
        signs(EVENT), signs(b'{"a": 1}'), signs(b"text"),
    ):  # fmt: skip
        before, after = cause(known), cause(replace(known, reason=reason))
        assert (after.kind, after.title) == (fault if reason in FAULTS else (before.kind, before.title))
        assert (after.digest == before.digest) is (reason not in FAULTS)


@pytest.mark.parametrize("reason", ParkedReason)
@pytest.mark.parametrize("mute", [signs(b""), signs(b" \n"), signs(b"", size=BODY_LIMIT + 1)])
def test_where_nothing_else_is_known_every_reason_is_a_cause(mute: Signs, reason: ParkedReason) -> None:
    found = cause(replace(mute, reason=reason))
    assert (found.kind, found.title) == (CauseKind.PARKED, reason.sentence)


def test_faults_that_are_told_in_other_words_are_other_causes() -> None:
    one, other = (cause(signs(reason="unreadable_task", detail=f"its {what}, of 4 bytes")) for what in ("id", "body"))
    assert one.title == "It goes to Celery workers, and is no task message that can be read: its id, of # bytes"
    assert one.digest != other.digest


@pytest.mark.parametrize(
    ("outcome", "detail", "title"),
    [
        ("refused", "503: Service Unavailable", "The target refused it: 503 Service Unavailable"),
        ("refused", "Busy: order 4711 is locked", "The target refused it: Busy order # is locked"),
        ("refused", 'InvalidParameter: "x\'y" is none', "The target refused it: InvalidParameter … is none"),
        ("unknown", "no reply within 30 s", "No answer was heard: no reply within # s"),
    ],
)
def test_what_a_target_answered_is_told_without_what_differs(outcome: str, detail: str, title: str) -> None:
    assert told(reason="attempts_spent", answer=Answer(outcome, detail)) == (CauseKind.ANSWERED, title)


@pytest.mark.parametrize("outcome", ["returned", "accepted", "failed", "silent"])
def test_an_attempt_that_its_target_took_says_nothing_of_the_cause(outcome: str) -> None:
    assert told(reason="attempts_spent", answer=Answer(outcome, "x"))[0] is CauseKind.BODY


@pytest.mark.parametrize(
    ("one", "another"),
    [
        ("at 2026-01-02T03:04:05.678Z", "at 2027-11-12 13:14:15+01:00"),
        ("id 22b80b92-fdea-4c2c-8f9d-bdfb0c7bf324", "id 17554ea1-0000-4c2c-8f9d-bdfb0c7bf324"),
        ("at 0xdeadbeef", "at 0x1"),
        ("req 9f8e7d6c5b4a", "req 0a1b2c3d4e5f"),
        ("key AKIAIOSFODNN7EXAMPLE", "key AKIAI44QH8DHBEXAMPLE"),
        ("'4111'  of 1,234.5", "'5222' of 7"),
        ("to ann@example.com now", "to ben+x@example.org now"),
    ],
)
def test_ids_times_and_numbers_do_not_make_another_cause(one: str, another: str) -> None:
    assert normal(one) == normal(another)


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
def test_what_frameworks_leave_is_a_cause(attributes: dict[str, str], title: str) -> None:
    assert told(b"{}", texts(**attributes)) == (CauseKind.LEFT, title)


@pytest.mark.parametrize("value", ["", "card 4111", "ä", "17554ea1f00d0", "Order4711222Failed", "<script>"])
def test_an_attribute_that_names_no_type_is_no_cause(value: str) -> None:
    assert told(b"{}", texts(error_type=value)) == (CauseKind.BODY, "An empty JSON object")


@pytest.mark.parametrize("text", ["", " ", "'total'", "4111", "a1 b2", "\n\nx1", "of-ann", "/home/ann"])
def test_a_message_that_is_all_values_is_no_cause(text: str) -> None:
    assert told(b"{}", texts(ErrorMessage=text)) == (CauseKind.BODY, "An empty JSON object")


def test_a_message_that_quotes_its_letter_is_told_without_what_it_quotes() -> None:
    body = b'{"order": {"customer": "Smith", "names": ["Ann Smith", "is"]}}'
    dead = texts(ErrorMessage="the customer Ann Smith (Smith) is blocked in north", region="north")
    assert told(body, dead) == (CauseKind.LEFT, "ErrorMessage: the customer … (…) is blocked in …")


def test_functions_say_why_beside_a_status_that_is_always_the_same() -> None:
    dead = texts(RequestID="r-1", ErrorMessage="no such card: 4111") | {"ErrorCode": Attribute("Number", "200")}
    assert told(b"{}", dead) == (CauseKind.LEFT, "Lambda: 200: no such card: #")


def test_dead_letters_of_aws_say_why() -> None:
    dead = texts(RULE_ARN=RULE, TARGET_ARN=TARGET, ERROR_CODE="NO_PERMISSIONS", ERROR_MESSAGE="card 4111")
    assert told(EVENT, dead) == (CauseKind.LEFT, "EventBridge: NO_PERMISSIONS")
    assert told(RECORD) == (CauseKind.LEFT, "Lambda: RetriesExhausted: ValueError")


def test_a_task_goes_by_its_name_and_not_by_its_arguments() -> None:
    other = TASK | {"body": "W1sxXSwge30sIHt9XQ=="}
    assert told(json.dumps(TASK).encode()) == (CauseKind.TASK, "Task shop.tasks.ship")
    assert cause(signs(json.dumps(TASK).encode())) == cause(signs(json.dumps(other).encode()))


@pytest.mark.parametrize(
    ("body", "title"),
    [
        (b'{"id": 1, "items": [{"sku": "x"}]}', "JSON with id, items"),
        (b'{"4111111111111111": 1, "ann@example.com": 2}', "JSON with #"),
        (b"[1]", "A JSON list of numbers"),
        (b"[]", "An empty JSON list"),
        (b'"x"', "JSON: a text"),
        (b" ", "An empty body"),
        (b"\xef\xbb\xbf<?xml version='1.0'?>\n<!-- a - b --><!DOCTYPE o><order id='4'/>", "XML: order"),
        (b"name=ann&card=4111", "A form with card, name"),
        (b"gqFhAaFiwsDAwMDAwMA=", "Text"),
        (NOTIFICATION, "SNS notification: text"),
        (b'{"Type": "Notification", "TopicArn": "t", "Message": "{\\"sum\\": 1}"}', "SNS notification: JSON with sum"),
        (b"\x89PNG\xff", "Bytes that are no text"),
        (b"hello 4111", "Text"),
        (b'{"a": NaN}', "Text"),
    ],
)
def test_else_it_goes_by_what_its_body_looks_like(body: bytes, title: str) -> None:
    assert told(body) == (CauseKind.BODY, title)


def test_an_event_goes_by_what_it_is_and_whom_it_comes_from() -> None:
    assert told(EVENT) == (CauseKind.TYPE, "Event order.paid from shop.orders")
    assert told(EVENT.replace(b"order.paid", b"order 4711222"))[0] is CauseKind.BODY


def test_a_type_and_a_shape_together_are_a_cause() -> None:
    kind = Selector.parse("body:kind")
    found = [cause(signs(body, type=kind)) for body in (b'{"kind": "paid"}', b'{"kind": "paid", "x": 1}')]
    assert [one.title for one in found] == ["paid: JSON with kind", "paid: JSON with kind, x"]
    assert found[0].digest != found[1].digest


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(0, 9) | st.text("x", max_size=2),
    lambda one: st.lists(one, max_size=3) | st.dictionaries(st.text("aB1-\u00e4", max_size=4), one, max_size=4),
    max_leaves=12,
)


def _turned(value: Any) -> Any:  # noqa: ANN401  JSON
    """The same with other values of the same types, and its members the other way around."""
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
def test_letters_that_differ_in_values_alone_are_of_one_cause(value: Any) -> None:  # noqa: ANN401  JSON
    one, other = (cause(signs(json.dumps(each).encode())) for each in (value, _turned(value)))
    assert one == other


def _is_fit(found: Cause) -> bool:
    return found.title.isprintable() and 0 < len(found.title) <= LONGEST and len(found.digest) == 32


NAMES = re.compile("[A-Za-z_.:, ]*")
ODD = st.text(max_size=300) | st.text(alphabet=string.printable + "\u202e\ud800", max_size=300)


@given(
    st.binary(max_size=400) | st.text(max_size=300).map(lambda text: text.encode(errors="replace")),
    st.dictionaries(st.sampled_from(["exception-type", "ErrorCode", "ErrorMessage", "x"]), ODD, max_size=4),
    ODD, ODD, st.sampled_from(["", *ParkedReason]), st.sampled_from(["refused", "unknown", "returned"]), ODD,
)  # fmt: skip
@example(b"", {"error_type": "\x00"}, "\x00", "", "unsendable", "refused", "\u202e")
def test_whatever_others_wrote_a_cause_is_found_and_its_title_is_fit_to_be_read(  # noqa: PLR0913, PLR0917
    body: bytes, attributes: dict[str, str], kind: str, mark: str, reason: str, outcome: str, detail: str
) -> None:
    dead = texts(**attributes)
    for some in (
        signs(body, dead, type=Selector.parse("body:kind")),
        signs(body, dead, answer=Answer(outcome, detail), reason=reason, detail=detail),
        signs(body, dead, report=Reported(kind, mark)),
    ):
        assert _is_fit(cause(some))
        assert cause(some) == cause(some)


@given(st.text(alphabet=string.ascii_letters + string.digits, min_size=12, max_size=40))
def test_no_value_of_a_body_or_an_attribute_stands_in_a_title(secret: str) -> None:
    body = {"a": secret, "b": [secret], "c": {"d": secret}}
    for some in (
        signs(json.dumps(body).encode(), texts(order=secret, note=f"of {secret}")),
        signs(json.dumps(body | {"headers": {}, "properties": {}}).encode()),
        signs(secret.encode()),
        signs(f"a={secret}".encode()),
        signs(f"<a>{secret}</a>".encode()),
        signs(answer=Answer("refused", f'Busy: "{secret}" is in use')),
        signs(report=Reported(f"{secret} is bad", secret)),
    ):
        assert secret not in cause(some).title


def test_of_every_odd_message_a_cause_is_found_whose_title_quotes_nothing_of_it_but_names() -> None:
    wrong = []
    for odd in CORPUS.values():
        found = cause(signs(odd.body.encode(), {name: Attribute(*one) for name, one in odd.attributes.items()}))
        if not (_is_fit(found) and NAMES.fullmatch(quoted(found.title, odd))):
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
def test_of_a_body_of_poison_a_cause_is_found(body: bytes) -> None:
    assert _is_fit(cause(signs(body)))


def test_of_a_body_that_is_too_large_nothing_is_read() -> None:
    assert told(b"", size=BODY_LIMIT + 1) == (CauseKind.BODY, "A body of more than 256 KiB")
