"""The server's clock: wall time, plus the seconds by which tests moved the clock forward."""

from collections.abc import Callable


class Clock:
    """A clock that tests can move forward with `advance`. `read` returns wall time in seconds since 1970."""

    def __init__(self, read: Callable[[], float]) -> None:
        self._read = read
        self._offset = 0.0
        self._latest = 0.0

    def now(self) -> float:
        """Return the server's time in seconds since 1970."""
        self._latest = max(self._latest, self._read() + self._offset)
        return self._latest

    def advance(self, seconds: float) -> float:
        """Move the clock forward by `seconds`. Return the new time in seconds since 1970."""
        self._offset += seconds
        return self.now()

    def go_on_from(self, latest: float) -> None:
        """If wall time is earlier than `latest`, continue from `latest`, so that the clock never goes back."""
        self._offset += max(0.0, latest - self.now())

    def forget(self) -> None:
        """Set the clock to wall time, even if this sets the clock back. Only a reset of the server calls this."""
        self._offset = self._latest = 0.0
