"""Define the interface for sending letters to HTTP endpoints and Lambda functions, one request for each letter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from reprocessing.domain.replay.verdicts import Outcome
from reprocessing.domain.targets.http_responses import StatusMeanings

Call_contra = TypeVar("Call_contra", contravariant=True)


@dataclass(frozen=True, slots=True)
class HttpCall:
    """One letter to send to an HTTP endpoint.

    Attributes:
        attempt: the attempt's id, by which the caller finds the outcome.
        headers: all headers to send, with content type and signature (see `webhook_headers`).
        timeout: seconds from the connection to the end of the answer.
        answers: the meanings of the endpoint's status codes.
    """

    attempt: int
    url: str = field(repr=False)
    body: bytes = field(repr=False)
    headers: tuple[tuple[str, str], ...] = field(repr=False)
    timeout: float
    answers: StatusMeanings


@dataclass(frozen=True, slots=True)
class LambdaCall:
    """One letter to send to a Lambda function.

    Attributes:
        attempt: the attempt's id, by which the caller finds the outcome.
        role: the ARN of the role that may invoke the function. If empty, the service's own role is used.
        timeout: seconds from the connection to the end of the answer.
    """

    attempt: int
    function: str
    region: str
    role: str
    payload: bytes = field(repr=False)
    timeout: float


class AsyncSender(Protocol[Call_contra]):
    """Sends many calls at once, and returns the outcome of each call once. Only one thread may use it.

    An outcome is NotSent only if it is certain that nothing was sent. An outcome is Unknown if something may have been
    sent, and no answer came.
    """

    def start(self, calls: Sequence[Call_contra], *, may_start: Callable[[], bool]) -> None:
        """Queue these calls, and do not wait for their outcomes.

        Before each call, `may_start()` is checked. If it returns False, the call is not made, and ends as NotSent.
        """

    def ended(self, *, within: float) -> list[tuple[int, Outcome]]:
        """Return ids and outcomes of ended attempts. Wait up to `within` seconds until at least one has ended."""

    @property
    def open(self) -> int:
        """Return how many of the queued calls have not ended."""

    def close(self) -> None:
        """Drop all open calls. Some of these calls may already have arrived at their targets."""
