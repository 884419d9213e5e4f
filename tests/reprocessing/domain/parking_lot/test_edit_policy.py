"""Which attributes and bodies may be edited, and what a browser sends back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reprocessing.domain.message.envelope import Attribute
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
        ("ExtendedPayloadSize", LockedAttribute("the size of a body that lies in S3")),
        ("TraceParent", LockedAttribute("it links the message to its trace")),
        ("ERROR_CODE", LockedAttribute("AWS added it when delivery failed")),
        ("customer", SensitiveAttribute("it says which messages are redriven in order")),
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
        (b"[1]", b'{"a": NaN}', "The body was JSON that can be read and no longer is: NaN is not a JSON number."),
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
