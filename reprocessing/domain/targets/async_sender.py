"""What carries letters to a target that answers each in its own time, and what it is given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from reprocessing.domain.replay.verdicts import Outcome
from reprocessing.domain.targets.http_responses import Answers

Call_contra = TypeVar("Call_contra", contravariant=True)


@dataclass(frozen=True, slots=True)
class Post:
    """One letter on its way to an HTTP endpoint.

    Attributes:
        attempt: the id of the attempt; what became of it is reported under it.
        body: sent byte for byte.
        headers: names and values, as `domain.webhook` makes them; content type and signature included.
        timeout: seconds that all of it may take, from the connection to the end of the answer.
        answers: what the endpoint's status codes mean.
    """

    attempt: int
    url: str = field(repr=False)
    body: bytes = field(repr=False)
    headers: tuple[tuple[str, str], ...] = field(repr=False)
    timeout: float
    answers: Answers


@dataclass(frozen=True, slots=True)
class Invocation:
    """One letter on its way to a Lambda function.

    Attributes:
        attempt: the id of the attempt; what became of it is reported under it.
        function: the ARN, perhaps with a version or an alias.
        role: the ARN of the role that may invoke it; empty for the service's own.
        payload: what the function is given, byte for byte.
        timeout: seconds that it may take to answer.
    """

    attempt: int
    function: str
    region: str
    role: str
    payload: bytes = field(repr=False)
    timeout: float


class Carrier(Protocol[Call_contra]):
    """Carries many calls at once and tells of each, once, when it has ended. Used from one thread.

    An outcome is never more than what is known: NotSent where no byte of the call can have left, Unknown where it may
    have and no answer was had.
    """

    def start(self, calls: Sequence[Call_contra], *, may_start: Callable[[], bool]) -> None:
        """Begin these as soon as there is room; returns at once.

        Args:
            calls: any number; what is more than may be open waits for room.
            may_start: asked immediately before each request; one that it says no to ends as NotSent.
        """

    def ended(self, *, within: float) -> list[tuple[int, Outcome]]:
        """The attempts that have ended since this was asked, and how.

        Args:
            within: seconds to wait for the first of them, if none has ended; nothing open, and it returns at once.
        """

    @property
    def open(self) -> int:
        """The calls that were started and not yet told of."""

    def close(self) -> None:
        """Drop what is open: nothing more is sent, nothing more is told. What was on its way may have arrived."""
