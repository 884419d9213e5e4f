"""The headers of a letter: its content type, its marks, and no forged line."""

from __future__ import annotations

import string
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reprocessing.domain.message.envelope import Attribute, Attributes
from reprocessing.domain.message.redrive_attributes import Mark, MarkNames, marks
from reprocessing.domain.targets import webhook_headers

MARK = Mark(UUID("6b0f1f9a-3a4e-4a43-8f6a-0d6f2b9c1a11"), 3)


def headers(
    body: bytes = b"{}", *, names: MarkNames = MarkNames(), attributes: Attributes | None = None,  # noqa: B008
    content_type: str = "", key: str = "order-17",
) -> dict[str, str]:  # fmt: skip
    added = marks(names, MARK, idempotency_key=key, message_id="m-1", reprocessed_from="orders-dlq")
    made = webhook_headers.headers(added, names, attributes=attributes or {}, body=body, content_type=content_type)
    assert len(dict(made)) == len(made)
    assert all(webhook_headers.is_header(name, value) for name, value in made)
    return dict(made)


def test_a_letter_carries_its_marks() -> None:
    assert headers() == {
        "Content-Type": "application/json", "Redrive-Id": f"{MARK.public_id}:3", "Idempotency-Key": "order-17",
        "Original-Message-Id": "m-1", "Reprocessed-From": "orders-dlq", "Redrive-Attempt": "3",
    }  # fmt: skip


def test_disabled_marks_are_not_sent() -> None:
    names = MarkNames(redrive=None, message_id=None, reprocessed_from=None)
    assert headers(names=names) == {"Content-Type": "application/json", "Idempotency-Key": "order-17"}


def test_marks_with_other_names_keep_them_unless_these_are_reserved() -> None:
    names = MarkNames(redrive="x-redrive", idempotency_key="Host", message_id="content-type", reprocessed_from="a.b_c")
    assert headers(names=names) == {
        "Content-Type": "application/json", "x-redrive": f"{MARK.public_id}:3", "Redrive-Host": "order-17",
        "Redrive-content-type": "m-1", "a.b_c": "orders-dlq", "Redrive-Attempt": "3",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("own", "of_the_target", "body", "content_type"),
    [
        ({"Content-Type": "text/csv"}, "text/plain", b"{}", "text/csv"),
        ({"content-type": "text/csv; charset=utf-8"}, "", b"{}", "text/csv; charset=utf-8"),
        ({"ContentType": "text/csv"}, "text/plain", b"{}", "text/plain"),
        ({"content-type": "text/csv\r\nX: y"}, "text/plain", b"{}", "text/plain"),
        ({"content-type": "csv"}, "text/plain", b"{}", "text/plain"),
        ({"content-type": "text/csv; é"}, "", b"{}", "application/json"),
        ({"content-type": "text/csv; a=" + "b" * 2_000}, "", b"{}", "application/json"),
        ({}, "text/plain", b"{}", "text/plain"),
        ({}, "", b' {"a": [1, 2]} ', "application/json"),
        ({}, "", b'"text"', "application/json"),
        ({}, "", b"[" * 1_000 + b"]" * 1_000, "application/json"),
        ({}, "", b"not json", "application/octet-stream"),
        ({}, "", b"", "application/octet-stream"),
        ({}, "", b"\xff\xfe", "application/octet-stream"),
    ],
)  # fmt: skip
def test_the_content_type_is_the_letters_or_the_targets_or_the_bodys(
    own: dict[str, str], of_the_target: str, body: bytes, content_type: str
) -> None:
    attributes = {name: Attribute("String", value) for name, value in own.items()}
    assert headers(body, attributes=attributes, content_type=of_the_target)["Content-Type"] == content_type


def test_a_binary_content_type_is_ignored() -> None:
    attributes = {"Content-Type": Attribute("Binary", b"text/csv")}
    assert headers(attributes=attributes)["Content-Type"] == "application/json"


@pytest.mark.parametrize("key", ["größe", "a\r\nX-Forged: yes", " a", "a ", "x" * 256, "\x00", "\ud800", "日本"])
def test_a_key_that_no_header_can_hold_is_sent_as_a_stable_digest(key: str) -> None:
    [first, second, other] = [headers(key=one)["Idempotency-Key"] for one in (key, key, key + "!")]
    assert first.startswith("sha256-")
    assert len(first) == len("sha256-") + 64
    assert first == second != other


@given(st.text(), st.text())
def test_no_header_contains_a_line_break(name: str, value: str) -> None:
    if webhook_headers.is_header(name, value):
        line = f"{name}: {value}".encode("latin-1")
        assert not set(line) & {0, 10, 13}
        assert set(name) <= set(string.ascii_letters + string.digits + "!#$%&'*+.^_`|~-")


@given(st.text(), st.text(), st.text(), st.binary())
def test_all_headers_of_any_letter_are_valid(key: str, kind: str, usual: str, body: bytes) -> None:
    headers(body, key=key, attributes={"content-type": Attribute("String", kind)}, content_type=usual)
