"""Consumer reports: bounded, storable, and with equal digests for repeats."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from hypothesis import example, given
from hypothesis import strategies as some

from reprocessing.domain.outcomes import consumer_report
from reprocessing.domain.outcomes.consumer_report import ConsumerReport, InvalidReport, read
from reprocessing.models.target import Verdict

ID = "0b9e2c7a-1111-4222-8333-444455556666"
MINIMAL = {"message_id": "m", "verdict": "failed"}

texts = some.text(max_size=60)
anything = some.recursive(
    some.none() | some.booleans() | some.integers() | some.floats() | texts,
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(texts, inner, max_size=3),
    max_leaves=10,
)
fields = some.sampled_from(["message_id", "redrive_id", "verdict", "type", "message", "fingerprint", "at", "else"])
nearly = some.dictionaries(fields, anything | some.sampled_from(["failed", ID, f"{ID}:1", "2026-03-01T08:00Z"]))


def test_the_verdicts_are_those_of_the_model() -> None:
    assert set(consumer_report.VERDICTS) == set(Verdict.values)


def test_all_fields_of_a_report_are_read() -> None:
    given = {
        "message_id": "m", "redrive_id": f"{ID.upper()}:12", "verdict": "delivered", "type": "KeyError",
        "message": "'card'", "fingerprint": "f", "at": "2026-03-01T09:00:00+01:00",
    }  # fmt: skip
    assert read(given) == ConsumerReport(
        verdict="delivered", message_id="m", public_id=UUID(ID), attempt_no=12, type="KeyError", message="'card'",
        fingerprint="f", at=datetime(2026, 3, 1, 8, tzinfo=UTC),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ([], "it is not an object"),
        (None, "it is not an object"),
        ({**MINIMAL, "body": "x", "card": "4111"}, "it has unknown fields: 'body', 'card'"),
        ({**MINIMAL, "message": 4111}, "message is not a text"),
        ({"message_id": "m"}, "verdict is not one of delivered, failed, retrying"),
        ({"verdict": "failed"}, "it names no message; give message_id, redrive_id, or both"),
        ({"verdict": "failed", "message_id": ""}, "it names no message; give message_id, redrive_id, or both"),
        ({**MINIMAL, "message_id": "m" * 201}, "message_id is longer than 200 characters"),
        ({**MINIMAL, "fingerprint": "f" * 129}, "fingerprint is longer than 128 characters"),
        ({**MINIMAL, "at": "yesterday"}, "at is not a time in ISO 8601, such as 2026-03-01T08:00:00Z"),
        ({**MINIMAL, "at": "0001-01-01T00:00:00+14:00"}, "at is not a time in ISO 8601, such as 2026-03-01T08:00:00Z"),
        *(
            (
                {**MINIMAL, "redrive_id": one},
                "redrive_id is not a UUID, with or without a colon and the number of the attempt",
            )
            for one in ("x", f"{ID}:0", f"{ID}:1x", f"{ID}:9999999999", f" {ID}")
        ),
    ],
)
def test_an_invalid_report_is_refused_in_a_sentence(given: object, why: str) -> None:
    assert read(given) == InvalidReport(why)


def test_unstorable_characters_are_replaced_and_long_texts_are_cut() -> None:
    found = read({**MINIMAL, "type": "T" * 300, "message": "a\0b\ud800" + "c" * 3_000})
    assert isinstance(found, ConsumerReport)
    assert (len(found.type), len(found.message)) == (200, 2_000)
    assert found.message.startswith("a\ufffdb\ufffdccc")


@pytest.mark.soak
@given(anything | nearly)
@example({"\U00010000" * 40 + str(number): None for number in range(5)})
def test_any_report_is_read_or_refused_without_quoting_it(said: Any) -> None:  # noqa: ANN401
    match read(said):
        case ConsumerReport() as found:
            json.dumps([found.message, found.type, found.message_id]).encode().decode()
            assert read({**said}) == found
            assert found.digest(1) == found.digest(1)
        case InvalidReport(why):
            assert 0 < len(why) < 400


def test_digests_differ_for_different_reports_and_reporters() -> None:
    base = {"message_id": "m", "redrive_id": f"{ID}:1", "verdict": "failed", "at": "2026-03-01T08:00Z"}
    others: list[dict[str, str]] = [
        {"message_id": "n"}, {"redrive_id": f"{ID}:2"}, {"redrive_id": ID}, {"verdict": "retrying"}, {"type": "T"},
        {"message": "T"}, {"fingerprint": "T"}, {"at": "2026-03-01T08:01Z"}, {"at": ""},
    ]  # fmt: skip
    found = [read(base), *(read({**base, **one}) for one in others)]
    digests = [one.digest(reporter) for one in found if isinstance(one, ConsumerReport) for reporter in (None, 1, 2)]
    assert len(set(digests)) == len(digests) == 3 * len(found)
