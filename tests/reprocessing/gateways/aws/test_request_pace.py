"""A throttled request is repeated with backoff, and slows the other threads down; a refused one is not repeated."""

from __future__ import annotations

from itertools import count

import pytest
from botocore.exceptions import ClientError, ConnectTimeoutError

from reprocessing.domain.errors import QueueUnreachable
from reprocessing.gateways.aws.request_pace import ATTEMPTS, RequestPace


class Paced:
    """A pace whose clock is the sum of its sleeps."""

    def __init__(self) -> None:
        self.slept: list[float] = []
        self.calls = 0
        self.pace = RequestPace(lambda: 0.5, sleep=self.slept.append, clock=lambda: 100 + sum(self.slept))

    def ask(self, *errors: Exception | None) -> str:
        each = iter(errors)

        def call() -> str:
            self.calls += 1
            error = next(each, None)
            if error is not None:
                raise QueueUnreachable("It failed.") from error
            return "done"

        return self.pace.request(call)


def refused(code: str) -> ClientError:
    answer = {"Error": {"Code": code, "Message": ""}, "ResponseMetadata": {"HTTPStatusCode": 400}}
    return ClientError(answer, "GetQueueAttributes")  # type: ignore[arg-type]  # a part of an answer


def test_a_throttled_request_is_repeated_until_it_succeeds() -> None:
    paced = Paced()
    assert paced.ask(refused("RequestThrottled"), refused("RequestThrottled")) == "done"
    assert (paced.calls, paced.pace.repeats) == (3, 2)


def test_after_throttling_the_next_requests_pause_shorter_and_shorter_until_they_pause_no_more() -> None:
    paced = Paced()
    paced.ask(refused("RequestThrottled"))
    before = len(paced.slept)
    for _ in range(20):
        paced.ask()
    pauses = paced.slept[before:]
    assert 0 < len(pauses) < 20
    assert pauses == sorted(pauses, reverse=True)


def test_throttling_that_does_not_end_is_raised_after_the_last_attempt() -> None:
    paced = Paced()
    with pytest.raises(QueueUnreachable):
        paced.ask(*(refused("ThrottlingException") for _ in range(ATTEMPTS)))
    assert paced.calls == ATTEMPTS


def test_a_refused_request_is_not_repeated() -> None:
    paced = Paced()
    with pytest.raises(QueueUnreachable):
        paced.ask(refused("AccessDenied"))
    assert (paced.calls, paced.slept) == (1, [])


def test_without_an_answer_there_are_three_attempts() -> None:
    paced = Paced()
    with pytest.raises(QueueUnreachable):
        paced.ask(*(ConnectTimeoutError(endpoint_url=str(n)) for n, _ in zip(count(), range(9), strict=False)))
    assert paced.calls == 3
