"""kombu's SQS channel, changed so that no error ends the polling of a queue."""

from __future__ import annotations

import logging
import time
from collections import Counter
from queue import Empty

from vine import promise

from redrive_service.broker.failure import NO_ANSWER, ReceiveFailure
from redrive_service.broker.settlement import SettlingChannel
from redrive_service.broker.version import KombuValue

logger = logging.getLogger("redrive.broker")

FAILURES: Counter[str] = Counter()  # number of failed receives in a row, by queue, in this process

_AFRESH_AFTER = 3  # failures in a row after which the queue's SQS clients are replaced


class Channel(SettlingChannel):
    """The channel of one worker. Every failed receive is logged and counted, and the queue is polled again."""

    clock = staticmethod(time.monotonic)

    def __init__(self, *args: KombuValue, **kwargs: KombuValue) -> None:
        self._polls: dict[str, int] = {}  # the number of the receive in progress, by queue
        self._polls_begun = 0
        self._overdue: dict[str, KombuValue] = {}  # by queue: the timer after which the receive in progress is given up
        self._paused_until: dict[str, float] = {}  # by queue: end of the pause (`clock`); blocking polls only
        super().__init__(*args, **kwargs)

    # Polls on the event loop (worker pools prefork, threads, solo).

    def _schedule_queue(self, queue: str) -> None:
        # No exception may leave this method. kombu calls it from the event loop, where an exception ends the worker, or
        # from a timer, which swallows an exception, so that the queue is never polled again.
        if queue not in self._active_queues or queue in self._polls:
            return
        if not self.qos.can_consume():
            self.hub.call_later(self.connection.polling_interval, self._schedule_queue, queue)
            return
        poll = self._begin_poll(queue)
        try:
            self._get_bulk_async(queue, callback=promise(self._end_poll, (queue, poll)))
        except Exception as error:  # noqa: BLE001  # no credentials or no endpoint, for example: the polling must go on
            self._end_poll(queue, poll, ReceiveFailure.from_exception(error))

    def _begin_poll(self, queue: str) -> int:
        self._polls_begun += 1
        self._polls[queue] = self._polls_begun
        lost = ReceiveFailure(status=NO_ANSWER, code="overdue")
        deadline = self.timeouts.overdue(long_poll=self.wait_time_seconds)
        self._overdue[queue] = self.hub.call_later(deadline, self._end_poll, queue, self._polls_begun, lost)
        return self._polls_begun

    def _end_poll(self, queue: str, poll: int, outcome: int | ReceiveFailure) -> None:
        if self.closed or self._polls.get(queue) != poll:  # a late answer to a poll that was given up
            return
        del self._polls[queue]
        self._overdue.pop(queue).cancel()
        if isinstance(outcome, ReceiveFailure):
            pause = self._note_failure(queue, outcome)
        else:
            self._note_answer(queue)
            pause = 0.0 if outcome else self.connection.polling_interval
        self.hub.call_later(pause, self._schedule_queue, queue)

    # Blocking polls (worker pools gevent and eventlet, or `drain_events` without a worker).

    def _get_bulk(self, queue: str, *_callback: KombuValue) -> None:
        answer = self._receive_or_pause(queue, self._get_message_estimate())
        if not self._on_messages_ready(self._resolve_queue_url(queue), queue, answer):
            raise Empty

    def _get(self, queue: str, timeout: float | None = None) -> KombuValue:  # noqa: ARG002  # kombu's signature
        messages = self._receive_or_pause(queue, 1).get("Messages")
        if not messages:
            raise Empty
        return self._message_to_python(messages[0], queue, self._resolve_queue_url(queue))

    def _receive_or_pause(self, queue: str, count: int) -> dict[str, KombuValue]:
        # All queues are polled in turn, so a sleep would delay all. Instead, a queue that failed counts as empty.
        if self.clock() < self._paused_until.get(queue, 0.0):
            raise Empty
        try:
            answer = self._receive_message(queue, count)
        except Exception as error:
            pause = self._note_failure(queue, ReceiveFailure.from_exception(error))
            self._paused_until[queue] = self.clock() + pause
            raise Empty from error
        self._note_answer(queue)
        return answer

    def _receive_message(
        self, queue: str, max_number_of_messages: int = 1, wait_time_seconds: int | None = None
    ) -> dict[str, KombuValue]:
        wanted = self.get_message_attributes
        answer: dict[str, KombuValue] = self._receiving_client(queue).receive_message(
            QueueUrl=self._resolve_queue_url(queue),
            MaxNumberOfMessages=max_number_of_messages,
            WaitTimeSeconds=self.wait_time_seconds if wait_time_seconds is None else wait_time_seconds,
            MessageSystemAttributeNames=wanted["MessageSystemAttributeNames"],
            MessageAttributeNames=wanted["MessageAttributeNames"],
        )
        return answer

    # Both kinds of polls handle answers and failures here.

    def _on_messages_ready(self, queue_url: str, queue: str, answer: KombuValue) -> int | ReceiveFailure:
        if isinstance(answer, ReceiveFailure):
            return answer
        messages = answer.get("Messages") or []
        if self.closed or not messages:
            return 0
        if queue not in self.connection._callbacks:  # noqa: SLF001  # no consumer is left: kombu returns all messages
            return int(super()._on_messages_ready(queue_url, queue, answer))  # type: ignore[misc]  # not in kombu's stubs
        for message in messages:
            self._hand_over(queue_url, queue, message)
        return len(messages)

    def _hand_over(self, queue_url: str, queue: str, message: dict[str, KombuValue]) -> None:
        try:
            self.connection._callbacks[queue](self._message_to_python(message, queue, queue_url))  # noqa: SLF001
        except Exception as error:  # noqa: BLE001  # an unreadable message must not stop the other messages
            logger.error(  # noqa: TRY400  # a traceback could quote the message
                "redrive.broker.message_refused queue=%s message=%s error=%s: left to reappear and to dead-letter",
                queue,
                message.get("MessageId"),
                type(error).__name__,
            )
            self._forget(message.get("ReceiptHandle", ""))

    def _note_answer(self, queue: str) -> None:
        if in_a_row := FAILURES.pop(queue, 0):
            logger.warning("redrive.broker.receive_recovered queue=%s after=%d failures", queue, in_a_row)

    def _note_failure(self, queue: str, failure: ReceiveFailure) -> float:
        FAILURES[queue] += 1
        in_a_row = FAILURES[queue]
        pause = self.timeouts.pause(failures_in_a_row=in_a_row)
        logger.warning(
            "redrive.broker.receive_failed queue=%s status=%d code=%s in_a_row=%d next_in=%.1fs",
            queue,
            failure.status,
            failure.code or "unknown",
            in_a_row,
            pause,
        )
        if in_a_row % _AFRESH_AFTER == 0:
            self._start_afresh(queue)
        return pause

    def _size(self, queue: str) -> int:
        # kombu asks for the queue's size when it declares the queue, but does not need the size. SQS may be down then.
        try:
            return super()._size(queue)
        except Exception as error:  # noqa: BLE001  # an exception would keep the worker from starting
            failure = ReceiveFailure.from_exception(error)
            code = failure.code or "unknown"
            logger.warning("redrive.broker.size_unknown queue=%s status=%d code=%s", queue, failure.status, code)
            return 0
