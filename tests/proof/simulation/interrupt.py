"""Ctrl-C while a world plays: nobody is left in the middle of a move."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any, Self


class Interrupt:
    """Remembers Ctrl-C inside a `with` block, for `let_through` or the block's end to raise it.

    A second Ctrl-C is raised at once. In a thread other than the main one it does nothing: such are never interrupted.
    """

    def __init__(self) -> None:
        self._came = False
        self._before: Any = None

    def __enter__(self) -> Self:
        self._came = False
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._remember)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
        if kind is None:
            self.let_through()

    def let_through(self) -> None:
        """Raise what came.

        Raises:
            KeyboardInterrupt: Ctrl-C was pressed since the block began.
        """
        if self._came:
            raise KeyboardInterrupt

    def _remember(self, number: int, frame: FrameType | None) -> None:
        if self._came:
            signal.default_int_handler(number, frame)
        self._came = True
