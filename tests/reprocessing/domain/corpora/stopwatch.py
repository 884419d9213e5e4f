"""How long a rule takes for what is hostile to it."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

#: Seconds, whatever a rule asks and of which letter.
AT_MOST = 0.050


def quickest(act: Callable[[], object]) -> float:
    """Seconds of this process; if that is too long, of the quickest of five, since other work slows the processor.

    Without the garbage collector, as timeit has it: its time depends on what else the process holds.
    """
    best = float("inf")
    for _ in range(5):
        gc.disable()
        begun = time.process_time()
        act()
        best = min(best, time.process_time() - begun)
        gc.enable()
        if best < AT_MOST:
            break
    return best
