"""Which attributes and bodies may be edited, and what a browser sends back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reprocessing.domain.message.envelope import Attribute
from reprocessing.domain.message.identity import LetterFacts
from reprocessing.domain.message.redrive_attributes import MarkNames
from reprocessing.domain.ordering.placement import KeyPolicy
from reprocessing.domain.parking_lot import edit_policy
from reprocessing.domain.parking_lot.edit_policy import CustomAttribute, LockedAttribute, SensitiveAttribute

NAMES = MarkNames(reprocessed_from=None)
KEYS = edit_policy.selectors_by_purpose(
    KeyPolicy.of(fifo=False, ordering="attribute:customer"), message_type="body:kind"
)


def by_a_browser(text: str) -> str:
    """Return a field's text as browsers send it."""
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\n", "\r\n")


@given(
    st.binary(max_size=60)
    | st.text(alphabet="a\r\n\t\u00e9\x00\ud800", max_size=20).map(lambda t: t.encode("utf-8", "replace"))
)
def test_an_editable_body_comes_back_from_a_browser_byte_for_byte(body: bytes) -> None:
    if not edit_policy.why_not_text(body):
        assert edit_policy.with_original_line_ends(by_a_browser(body.decode()), body) == body


@pytest.mark.parametrize(
    ("name", "standing"),
    [
        ("RedriveId", LockedAttribute("it was added by this service, or by an earlier redrive")),
        ("sqs-dlq-replay-nb", LockedAttribute("it was added by this service, or by an earlier redrive")),
        ("ReprocessedFrom", CustomAttribute()),  # this mark is disabled
        ("ExtendedPayloadSize", LockedAttribute("it has the size of a body in S3")),
        ("TraceParent", LockedAttribute("it links the message to its trace")),
        ("ERROR_CODE", LockedAttribute("AWS added it when delivery failed")),
        ("customer", SensitiveAttribute("the ordering key is read from it")),
        ("kind", CustomAttribute()),
    ],
)
def test_attributes_are_locked_sensitive_or_custom(name: str, standing: edit_policy.AttributeClass) -> None:
    assert edit_policy.attribute_class(name, NAMES, KEYS) == standing


def test_a_pointer_into_s3_is_not_edited_as_text() -> None:
    body = b'["software.amazon.payloadoffloading.PayloadS3Pointer",{"s3BucketName":"in-1","s3Key":"k"}]'
    size = {"ExtendedPayloadSize": Attribute("Number", "300000")}
    assert edit_policy.why_not_editable(body, size) == "it is a pointer to a body in S3"
    assert edit_policy.why_not_editable(body, {}) == ""


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (b"{}", b"[", "Expecting value, line 1, column 2."),
        (b"[1]", b'{"a": NaN}', "The body was readable JSON and no longer is: NaN is not a JSON number."),
        (b"[1]", b"\xff", "it is not UTF-8."),
        (b"[1]", b"[" * 100 + b"]" * 100, "its JSON is nested more than 64 deep."),
        (b"[1]", b" [1, 2]", ""),
        (b"12", b"twelve", ""),  # a text that happened to be a number
        (b"{not json", b"{neither", ""),
    ],
)
def test_a_json_document_must_stay_one(before: bytes, after: bytes, told: str) -> None:
    found = edit_policy.json_problem(before, after)
    assert found.endswith(told)
    assert bool(found) is bool(told)


A_NUMBER = "n is a Number, and its value is not a number of at most 38 digits."
NO_NAME = "An attribute's name has 1 to 256 letters, digits, _ . and -, and does not begin with AWS."
NO_TYPE = "The type of n is not valid: String, Number or Binary, with an optional label after a full stop."


@pytest.mark.parametrize(
    ("name", "kind", "value", "told"),
    [
        ("n", "Number.money", "-12.50e3", []), ("n", "Number", f"0.{'1' * 38}00", []), ("n", "Binary", b"\xff", []),
        ("n", "Number", "1" * 39, [A_NUMBER]), ("n", "Number.x", "twelve", [A_NUMBER]), ("n", "String", "twelve", []),
        ("n", f"String.{'x' * 249}", "v", []), ("n", f"String.{'x' * 250}", "v", [NO_TYPE]),
        ("n", "Text", "v", [NO_TYPE]), ("AWS.n", "Text", "", [NO_NAME]),
        ("n", "String", "", ["n is empty; SQS does not accept empty values. Remove it, or enter a value."]),
        ("n", "String", "a\x00", ["n has a character that SQS does not accept (U+0000, character 2)."]),
        ("n", "String", "\ud800", ["n is not UTF-8, and SQS accepts only UTF-8."]),
    ],
)  # fmt: skip
def test_an_attribute_that_no_queue_accepts_is_told_unless_it_is_unchanged(
    name: str, kind: str, value: str | bytes, told: list[str]
) -> None:
    attributes = {name: Attribute(kind, value)}
    some = {"body": b"{}", "attributes": attributes, "names": NAMES, "largest": 1_000}
    assert edit_policy.problems(former={}, **some) == told  # type: ignore[arg-type]
    assert edit_policy.problems(former=attributes, **some) == []  # type: ignore[arg-type]


def test_marks_need_room_and_a_target_has_a_largest_size() -> None:
    seven = {f"a{number}": Attribute("String", "v") for number in range(7)}
    eight = {**seven, "b": Attribute("String", "v")}

    def problems(attributes: dict[str, Attribute], former: dict[str, Attribute], largest: int) -> list[str]:
        return edit_policy.problems(b"{}", attributes, former=former, names=NAMES, largest=largest)

    assert problems(seven, {}, 2 + 7 * 9) == []
    assert problems(seven, {}, 64) == ["Body and attributes have 65 bytes; its target accepts 64."]
    assert problems(eight, eight, 1_000) == []
    assert problems(eight, seven, 1_000) == [
        "There are 8 attributes; SQS accepts 10, of which the service adds 3. Remove 1."
    ]


def test_a_body_that_no_queue_accepts_is_told() -> None:
    assert edit_policy.body_problems(b"") == ["The body is empty; SQS does not accept empty messages."]
    assert edit_policy.body_problems(b"\xff") == ["The body is not UTF-8, and SQS accepts only UTF-8."]
    forbidden = "The body has a character that SQS does not accept (U+0000, character 1)."
    assert edit_policy.body_problems(b"\x00") == [forbidden]
    assert edit_policy.body_problems(b"a") == []


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"\xff", "it is not text (not UTF-8)"),
        (b"\x00", "it has characters that a web page cannot show and send back"),
        (b"a\nb\r\n", "it has different line ends, which a browser would make equal"),
        (b"a\rb", "it has different line ends, which a browser would make equal"),
        (b"a\nb\n", ""), (b"a\r\nb\r\n", ""),
    ],
)  # fmt: skip
def test_a_body_that_a_browser_would_change_is_not_editable(body: bytes, why: str) -> None:
    assert edit_policy.why_not_editable(body, {}) == why


def test_selectors_whose_values_an_edit_changes_are_named() -> None:
    keys = edit_policy.selectors_by_purpose(
        KeyPolicy.of(fifo=False, ordering="attribute:customer", idempotency="body:id", sequence="body:no"),
        message_type="body:kind", tenant="body:shop",
    )  # fmt: skip
    before, after = (
        LetterFacts("m", b'{"kind": "%s", "shop": "a"}' % kind, {"customer": Attribute("String", "7")}, {})
        for kind in (b"paid", b"sent")
    )
    assert edit_policy.changed_selectors(keys, before, after) == [
        "This changes body:kind, from which the message type is read."
    ]
    assert list(keys) == [
        "the ordering key", "the sequence", "the idempotency key",
        "the message type", "the tenant",
    ]  # fmt: skip
