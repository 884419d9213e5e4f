"""Keep lanes leased as long as their letters are on the wire."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Final, TypeVar

from django.db import Error as DatabaseError
from django.db import connection

from reprocessing.domain.replay.verdicts import Outcome
from reprocessing.store.ordering import lanes
from reprocessing.store.replay.intent import Intended

logger = logging.getLogger(__name__)
Done = TypeVar("Done")

#: Seconds of lease that must be left when letters are committed to the wire: a request's timeouts fit into it.
SEND_MARGIN = 2.0
#: Linux's monotonic clock stands still while the machine is suspended, and this one goes on.
_WAKEFUL: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Ownership:
    """The leases of lanes whose letters are on the wire, renewed as long as requests are open.

    Whoever has other leases to renew meanwhile says so: `beside` is called as often.
    """

    def __init__(
        self, intended: Sequence[Intended], lease: float, *, began: float, beside: Callable[[], None] = lambda: None
    ) -> None:
        """`began`: the monotonic clock before the intent: what passes between it and the wire counts."""
        self._lanes, self._fences = [one.lane_id for one in intended], [one.fence for one in intended]
        self._lease, self._began, self._beside = lease, began, beside
        #: On the monotonic clock: until when requests may start.
        self.until = began + min([lease, *(one.lease_left for one in intended)]) - SEND_MARGIN

    def while_it_lasts(self, deliver: Callable[[], dict[int, Outcome]]) -> dict[int, Outcome]:
        """The outcomes of a trip to the wire, which another thread makes while this one renews the leases."""
        return meanwhile(deliver, self._renew, every=self._lease / 3)

    def keep_up(self) -> None:
        """Renew, where that is due: what was loaded before the first request took its time."""
        if time.monotonic() - self._began > self._lease / 3:
            self._renew()

    def _renew(self) -> None:
        began = time.monotonic()
        try:
            mine = lanes.renew(self._lanes, self._fences, lease=self._lease)
        except DatabaseError as error:
            logger.warning("Leases were not renewed: %s", error)
            connection.close_if_unusable_or_obsolete()
        else:
            if len(mine) == len(self._lanes):
                self.until = began + self._lease - SEND_MARGIN
        self._beside()


def meanwhile(work: Callable[[], Done], renew: Callable[[], None], *, every: float) -> Done:
    """What `work` comes to, which another thread does while this one calls `renew` every so many seconds."""
    with ThreadPoolExecutor(max_workers=1) as pool:
        trip = pool.submit(work)
        while not wait([trip], timeout=every).done:
            renew()
        return trip.result()


def unslept() -> Callable[[], float]:
    """The monotonic clock as it goes on from now: what the machine sleeps through counts, too, where it can be told.

    Leases and tokens end while it sleeps, since they are others' to give again.
    """
    told, began = time.clock_gettime(_WAKEFUL), time.monotonic()
    return lambda: began + time.clock_gettime(_WAKEFUL) - told
