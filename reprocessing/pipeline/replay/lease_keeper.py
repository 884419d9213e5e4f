"""Renew the leases of lanes while their letters are being sent."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import wait
from typing import Final, TypeVar

from django.db import Error as DatabaseError
from django.db import connection

from reprocessing.domain.replay.verdicts import Outcome
from reprocessing.gateways.aws.request_threads import run_beside
from reprocessing.store.ordering import lanes
from reprocessing.store.replay.intent import IntendedSend

logger = logging.getLogger(__name__)
Done = TypeVar("Done")

SEND_MARGIN = 2.0  # seconds that must be left of a lease when a request begins
#: This clock continues while the machine is suspended; Linux's monotonic clock does not.
_WAKEFUL: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class LeaseKeeper:
    """Renews the leases of lanes while their letters are being sent.

    `beside`: a function that is called after each renewal.
    """

    def __init__(
        self, intended: Sequence[IntendedSend], lease: float, *, began: float, beside: Callable[[], None] = lambda: None
    ) -> None:
        """Prepare to renew the leases of the lanes of these attempts.

        `lease`: length of a lease (s). `began`: monotonic time before the attempts were committed as open.
        """
        self._lanes, self._fences = [attempt.lane_id for attempt in intended], [attempt.fence for attempt in intended]
        self._lease, self._began, self._beside = lease, began, beside
        #: The monotonic time until which requests may start.
        self.until = began + min([lease, *(attempt.lease_left for attempt in intended)]) - SEND_MARGIN

    def send(self, deliver: Callable[[], dict[int, Outcome]]) -> dict[int, Outcome]:
        """Call `deliver` in another thread, renew the leases until it ends, and return the outcomes that it returns."""
        return run_while_renewing(deliver, self._renew, every=self._lease / 3)

    def renew_if_due(self) -> None:
        """Renew the leases if a third of their length has passed since the attempts were opened."""
        if time.monotonic() - self._began > self._lease / 3:
            self._renew()

    def _renew(self) -> None:
        began = time.monotonic()
        try:
            mine = lanes.renew(self._lanes, self._fences, lease=self._lease)
        except DatabaseError as error:
            logger.warning("Leases were not renewed: %s", error, extra={"key_queue_ids": self._lanes})
            connection.close_if_unusable_or_obsolete()
        else:
            if len(mine) == len(self._lanes):
                self.until = began + self._lease - SEND_MARGIN
        self._beside()


def run_while_renewing(work: Callable[[], Done], renew: Callable[[], None], *, every: float) -> Done:
    """Run `work` in another thread, and return its result; meanwhile, call `renew` every `every` seconds."""
    trip = run_beside(work)
    try:
        while not wait([trip], timeout=every).done:
            renew()
    finally:
        trip.exception()  # waits until the work has ended, also if `renew` failed
    return trip.result()


def suspend_aware_clock() -> Callable[[], float]:
    """Return a clock: a function that returns the time in seconds. It begins at the present monotonic time.

    The monotonic clock of Linux stands still while the machine is suspended. This clock goes on, as the leases in
    PostgreSQL do.
    """
    told, began = time.clock_gettime(_WAKEFUL), time.monotonic()
    return lambda: began + time.clock_gettime(_WAKEFUL) - told
