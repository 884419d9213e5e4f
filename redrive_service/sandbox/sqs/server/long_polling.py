"""Long polling: a receive that found no message waits, and is executed again when its queue gets a message."""

import asyncio
from typing import Final, Protocol

from redrive_service.sandbox.sqs.core import LocalSqs
from redrive_service.sandbox.sqs.server.clock import Clock
from redrive_service.sandbox.sqs.server.exchange import Exchange
from redrive_service.sandbox.sqs.server.waiting_receives import WaitingReceive, WaitingReceives

# If a timer fires slightly too early, no deadline has passed, and the timer is set again: not for less than this, to
# avoid a busy loop.
_SHORTEST_SLEEP: Final = 0.001


class Performer(Protocol):
    """The part of the server that long polling uses. After a reset of the server, `core` is another object."""

    core: LocalSqs
    clock: Clock

    def perform(self, exchange: Exchange) -> bool:
        """Execute a call and answer it. Return False if it is a receive that found no message and may wait."""

    def answer_empty(self, exchange: Exchange) -> None:
        """Answer a receive without messages."""


class LongPolling:
    """Lets receives wait for messages, and answers them in their order of arrival.

    A client that has disconnected gets no messages.
    """

    def __init__(self, server: Performer) -> None:
        self._server = server
        self._room = WaitingReceives()
        self._alarm: asyncio.TimerHandle | None = None

    def wait(self, exchange: Exchange, deadline: float) -> None:
        """Let a receive wait for a message until `deadline`, in seconds of the server's clock."""
        self._room.enter(exchange, exchange.queue or "", deadline)

    def settle(self) -> None:
        """Execute the waiting receives whose queue got a message, and set the timer for the next deadline.

        The server calls this after every call of the API.
        """
        woken = self._server.core.take_woken()
        if not self._room:
            return
        while woken:
            for queue in woken:
                self._serve(queue)
            woken = self._server.core.take_woken()
        self._set_alarm()

    def ask_again(self) -> None:
        """Execute all waiting receives again. After a reset of the server, they fail: their queues do not exist now."""
        for waiter in self._room.everybody():
            self._try(waiter)

    def _serve(self, queue: str) -> None:
        waiter = self._room.first(queue)
        while waiter is not None and self._try(waiter):
            waiter = self._room.first(queue)

    def _try(self, waiter: WaitingReceive) -> bool:
        """Execute a waiting receive. Return whether it waits no longer: it was answered, or its client disconnected."""
        connection = waiter.exchange.connection
        if connection.peer_has_left() or self._server.perform(waiter.exchange):
            self._room.leave(waiter)
        return waiter.done

    def _set_alarm(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        dues = [due for due in (self._room.next_deadline(), self._server.core.next_due()) if due is not None]
        if self._room and dues:
            delay = max(min(dues) - self._server.clock.now(), _SHORTEST_SLEEP)
            self._alarm = asyncio.get_running_loop().call_later(delay, self._on_alarm)

    def _on_alarm(self) -> None:
        self._alarm = None
        now = self._server.clock.now()
        self._server.core.advance(now)
        self.settle()
        for waiter in self._room.overdue(now):
            if not waiter.exchange.connection.peer_has_left():
                self._server.answer_empty(waiter.exchange)
        self.settle()
