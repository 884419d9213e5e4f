"""A consumer acknowledges most of its letters, fails some and says nothing of others: each says exactly that."""

from __future__ import annotations

import json
from collections import Counter
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client

from reprocessing.models import Attempt, DeadLetter, Report
from reprocessing.store.outcomes import delivery_status, reporters
from tests.reprocessing.pipeline.bench import Clock, Workbench

pytestmark = pytest.mark.django_db(transaction=True)

MANY, WINDOW = 20, 100.0
DELIVERED, FAILED = range(14), range(14, 18)  # seven tenths, two tenths; of the rest nothing is said


class Consumer:
    """It takes messages from its queue, and says over HTTP what became of them."""

    def __init__(self, bench: Workbench) -> None:
        self._token = reporters.put("shop", [bench.target], anew=False, by="ann", reason="a test").token
        self.calls: list[dict[str, Any]] = []
        for sent in bench.delivered():
            number = int(sent["Body"])
            mark = {"redrive_id": sent["MessageAttributes"]["RedriveId"]["StringValue"]}
            named = mark if number % 2 else {"message_id": sent["MessageId"]}
            if number in DELIVERED:
                self.calls.append({**named, "verdict": "delivered"})
            elif number in FAILED:
                self.calls.append({**named, "verdict": "failed", "type": "KeyError", "message": "'card'"})

    def say(self, calls: list[dict[str, Any]]) -> dict[str, Any]:
        answer = Client(headers={"Authorization": f"Bearer {self._token}"}).post(
            "/reports", {"reports": calls}, content_type="application/json"
        )
        found: dict[str, Any] = answer.json()
        return found


def _told(letter: DeadLetter) -> tuple[str, str, bool | None]:
    found = delivery_status.of(letter)
    return letter.state, found.how.value, found.worked


def _everything() -> tuple[list[Any], ...]:
    return (
        list(DeadLetter.objects.order_by("pk").values()),
        list(Attempt.objects.order_by("pk").values()),
        list(Report.objects.order_by("pk").values()),
    )


def _letters(bench: Workbench) -> dict[int, DeadLetter]:
    found = DeadLetter.objects.filter(dlq=bench.dlq).select_related("payload")
    return {int(bytes(one.payload.body)): one for one in found}


def test_each_letter_has_the_outcome_that_its_consumer_reported(clock: Clock) -> None:
    bench = Workbench(
        fields={"max_attempts": 1},
        target_fields={"proof": "acknowledged", "advance": "settled", "window": WINDOW},
    )
    bench.redrive(*map(str, range(MANY)))
    consumer = Consumer(bench)
    assert consumer.say(consumer.calls) == {"accepted": 18, "repeated": 0, "refused": []}
    clock.advance(WINDOW + 1)
    bench.promote()

    expected: dict[int, tuple[str, str, bool | None]] = {
        number: ("delivered", "acknowledged", True) if number in DELIVERED
        else ("parked", "failed", False) if number in FAILED else ("parked", "silent", None)
        for number in range(MANY)
    }  # fmt: skip
    letters = _letters(bench)
    assert {number: _told(one) for number, one in letters.items()} == expected
    reasons = {number: one.reason for number, one in letters.items()}
    assert Counter(reasons.values()) == {"": 14, "attempts_spent": 4, "no_answer": 2}
    assert {one.how: one.n for one in delivery_status.counted(bench.dlq.pk)} == {
        "acknowledged": 14,
        "failed": 4,
        "silent": 2,
    }
    assert [one.type for one in delivery_status.reasons(letters[15])] == ["KeyError"]

    before = _everything()
    for calls in (consumer.calls, consumer.calls[::-1], consumer.calls[5:9]):
        assert consumer.say(calls) == {"accepted": 0, "repeated": len(calls), "refused": []}
    bench.promote()
    assert _everything() == before


def test_redrive_status_counts_letters_by_how_their_outcome_is_known(clock: Clock) -> None:
    bench = Workbench(target_fields={"proof": "acknowledged", "window": WINDOW})
    for number in (1, 14, 19):
        bench.bury(str(number))
    bench.ready()
    bench.replay()
    consumer = Consumer(bench)
    consumer.say(consumer.calls)
    clock.advance(WINDOW + 1)
    bench.promote()
    out = StringIO()
    call_command("redrive_status", bench.name, "--json", stdout=out)
    (told,) = json.loads(out.getvalue())["dlqs"]
    assert told["known"] == {"acknowledged": 1, "failed": 1, "silent": 1}
    out = StringIO()
    call_command("redrive_status", bench.name, stdout=out)
    (line,) = (one for one in out.getvalue().splitlines() if one.startswith("  known"))
    assert line == "  known     1 acknowledged, 1 failed, 1 silent"
