"""Repeat read requests that AWS throttled or did not answer, and send requests more slowly while AWS throttles."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final, TypeVar

from botocore.exceptions import ClientError

from reprocessing.domain.errors import RedriveError
from reprocessing.gateways.aws.errors import is_temporary

Done = TypeVar("Done")

ATTEMPTS: Final = 8  #: most attempts for a request that AWS throttles
_UNANSWERED: Final = 3  #: most attempts if AWS does not answer; fewer, because each waits until a timeout
_FIRST_BACKOFF: Final = 0.1  #: seconds of the first backoff (each attempt doubles it), and of the first shared pause
_LONGEST: Final = 5.0  #: most seconds of a backoff, and of the shared pause
_RELIEF: Final = 0.8  #: a successful request multiplies the shared pause by this


class RequestPace:
    """The pace of several threads that send read requests to one account and region.

    A request that AWS throttled is repeated after a random backoff. Also, every thread waits before each request. This
    pause is the same for all threads. Throttling doubles the pause, up to 5 s. Each success shortens it by 20 %.
    """

    def __init__(
        self, dice: Callable[[], float], *, sleep: Callable[[float], object] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self._dice, self._sleep, self._clock = dice, sleep, clock
        self._lock = threading.Lock()
        self._pause, self._doubled_at = 0.0, 0.0
        self.repeats = 0  #: how many requests were repeated

    def request(self, call: Callable[[], Done]) -> Done:
        """Call `call`, and return its result. After a temporary error, call it again, at most 8 times in all.

        If AWS does not answer, `call` is called at most 3 times.

        Raises:
            RedriveError: the last error of `call`.
        """
        for attempt in range(ATTEMPTS):
            if pause := self._pause:
                self._sleep(pause * (0.5 + self._dice()))
            try:
                done = call()
            except RedriveError as error:
                most = ATTEMPTS if isinstance(error.__cause__, ClientError) else _UNANSWERED
                if attempt + 1 >= most or not is_temporary(error.__cause__):
                    raise
                self._slow_down()
                self._sleep(min(_FIRST_BACKOFF * 2**attempt, _LONGEST) * self._dice())
            else:
                self._speed_up()
                return done
        raise AssertionError("the last attempt returns or raises")

    def _slow_down(self) -> None:
        with self._lock:
            self.repeats += 1
            now = self._clock()
            if now - self._doubled_at >= self._pause:
                self._pause = min(max(2 * self._pause, _FIRST_BACKOFF), _LONGEST)
                self._doubled_at = now

    def _speed_up(self) -> None:
        if self._pause:
            with self._lock:
                shorter = self._pause * _RELIEF
                self._pause = shorter if shorter >= _FIRST_BACKOFF / 10 else 0.0
