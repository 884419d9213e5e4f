"""Define the interface of senders to targets that answer each letter separately, and the senders' calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from reprocessing.domain.replay.verdicts import Outcome
from reprocessing.domain.targets.http_responses import StatusMeanings

Call_contra = TypeVar("Call_contra", contravariant=True)


@dataclass(frozen=True, slots=True)
class HttpCall:
    """One letter for an HTTP endpoint.

    Attributes:
        attempt: the attempt's id, by which the outcome is returned; the same in all call classes.
        headers: with content type and signature (`webhook_headers`).
        timeout: seconds for everything from the connection to the end of the answer.
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
    """One letter for a Lambda function; `role`: the role that may invoke it, empty: the service's own."""

    attempt: int
    function: str
    region: str
    role: str
    payload: bytes = field(repr=False)
    timeout: float


class AsyncSender(Protocol[Call_contra]):
    """Sends many calls at once and returns the outcome of each, once. Used from one thread.

    An outcome is NotSent if no byte of the call can have left, Unknown if it may have and there was no answer.
    """

    def start(self, calls: Sequence[Call_contra], *, may_start: Callable[[], bool]) -> None:
        """Queue these calls and return at once. If `may_start` returns False before a request, it ends as NotSent."""

    def ended(self, *, within: float) -> list[tuple[int, Outcome]]:
        """Return the attempts that have ended, with outcomes; wait up to `within` seconds for the first one."""

    @property
    def open(self) -> int:
        """Return how many started calls have not ended."""

    def close(self) -> None:
        """Drop all open calls. Calls that were being sent may have arrived."""
