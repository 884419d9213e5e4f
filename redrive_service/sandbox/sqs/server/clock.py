"""The server's clock: wall time plus what it was told to advance, never backwards."""

from collections.abc import Callable


class Clock:
    """`read` gives wall time in seconds; `advance` is how tests let hours pass."""

    def __init__(self, read: Callable[[], float]) -> None:
        self._read = read
        self._offset = 0.0
        self._latest = 0.0

    def now(self) -> float:
        """Seconds since the epoch, as far as this server is concerned."""
        self._latest = max(self._latest, self._read() + self._offset)
        return self._latest

    def advance(self, seconds: float) -> float:
        """Move on by `seconds`; return the time."""
        self._offset += seconds
        return self.now()

    def go_on_from(self, latest: float) -> None:
        """Goes on from `latest` at the pace of wall time, if wall time is not there yet."""
        self._offset += max(0.0, latest - self.now())

    def forget(self) -> None:
        """Back to wall time."""
        self._offset = self._latest = 0.0
