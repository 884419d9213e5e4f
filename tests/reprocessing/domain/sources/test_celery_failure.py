"""Probable causes of a task's failure are named, and called probable."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from reprocessing.domain.message.json_view import Unreadable
from reprocessing.domain.sources.celery_failure import probable_causes
from reprocessing.domain.sources.celery_task import read
from tests import envelopes

SENT = datetime(2026, 11, 22, tzinfo=UTC)
SYSTEM = {"SentTimestamp": str(int(SENT.timestamp() * 1000)), "ApproximateReceiveCount": "4"}
HALF_A_MINUTE = timedelta(seconds=30)
UNKNOWN = (
    "its task failed (acks_late without acks_on_failure), its worker was killed while it ran (memory, a deployment), "
    'it ran for longer than the visibility timeout, or no worker knows the task "shop.charge".'
)
GUESS = f"It was received 4 times and never acknowledged: probably {UNKNOWN}"
OR_ELSE = f"It was received 4 times and never acknowledged: perhaps {UNKNOWN}"


def why(body: bytes, **said: bool) -> list[str]:
    return probable_causes(read(body), SYSTEM, visibility=HALF_A_MINUTE, **said)


def test_without_signs_the_likely_causes_are_named() -> None:
    assert why(envelopes.task()) == [GUESS]
    assert probable_causes(read(envelopes.task()), {}) == [
        GUESS.replace("received 4 times", "received as often as its queue allows")
    ]


def test_nothing_is_guessed_if_the_consumer_reported_why() -> None:
    assert why(envelopes.task(), reported=True) == []
    retried = "It had failed and been retried once before it came to the DLQ."
    assert why(envelopes.task(retries=1), reported=True) == [retried]


@pytest.mark.parametrize(("retries", "is_spent"), [(2, False), (3, True), (7, True)])
def test_retries_are_probably_spent_after_three(retries: int, is_spent: bool) -> None:
    spent = (
        f"It had been retried {retries} times: probably its retries were used up (Celery allows 3 unless a task says "
        "otherwise), and it failed once more."
    )
    some = f"It had failed and been retried {retries} times before it came to the DLQ."
    assert why(envelopes.task(retries=retries)) == [spent if is_spent else some, OR_ELSE]


@pytest.mark.parametrize(("wait", "is_cause"), [(30, False), (31, True)])
def test_an_eta_beyond_the_visibility_timeout_is_a_cause(wait: int, is_cause: bool) -> None:
    beyond = (
        "Its eta was about 31 seconds after it was sent, but its queue's visibility timeout is about 30 seconds: it "
        "was received again while workers waited for the eta, and probably came to the DLQ without having run."
    )
    found = why(envelopes.task(eta=SENT + timedelta(seconds=wait)))
    assert found == ([beyond, OR_ELSE] if is_cause else [GUESS])
    assert probable_causes(read(envelopes.task(eta=SENT + timedelta(seconds=wait))), SYSTEM) == [GUESS]


def test_a_time_limit_beyond_the_visibility_timeout_is_a_cause() -> None:
    assert why(envelopes.task(time_limit=30)) == [GUESS]
    running = (
        "It may run for about 31 seconds, but its queue's visibility timeout is about 30 seconds: it was probably "
        "still running when it came to the DLQ, perhaps several times at once."
    )
    assert why(envelopes.task(time_limit=31)) == [running, OR_ELSE]


def test_chords_foreign_bodies_and_unreadable_ones_have_their_own_causes() -> None:
    waits = "It waits for the tasks of a chord, and probably one of these tasks has never ended."
    assert why(envelopes.task("celery.chord_unlock", retries=9))[0] == waits
    foreign = "Not a Celery task: it is not a kombu message. No worker can run it, so it came to the DLQ."
    assert why(b"hello") == [foreign]
    assert probable_causes(Unreadable("x"), {}) == ["It is not known whether it is a Celery task: x."]
