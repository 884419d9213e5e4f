"""Celery's consumer, which does not log the content of messages that it cannot read."""

from __future__ import annotations

import logging

from celery.worker.consumer import Consumer as CeleryConsumer

from redrive_service.broker import envelope
from redrive_service.broker.version import KombuValue

logger = logging.getLogger("redrive.broker")


class Consumer(CeleryConsumer):
    """A consumer that leaves messages in SQS if they are not tasks of this service, and logs only their ids.

    SQS delivers such a message again, and later moves it to the queue's dead-letter queue. Celery's own consumer would
    log the body and headers of the message, and delete a message that it cannot decode. So messages that somebody
    moved to the wrong queue would be lost.
    """

    def create_task_handler(self, *args: KombuValue, **kwargs: KombuValue) -> KombuValue:
        """Return a handler that passes only tasks of this service to Celery's handler. Other messages stay in SQS."""
        handle = super().create_task_handler(*args, **kwargs)

        def on_message(message: KombuValue) -> None:
            try:
                envelope.check(message)
            except envelope.EnvelopeIsUnusable as error:
                self._leave(message, error)
            else:
                handle(message)

        return on_message

    def on_decode_error(self, message: KombuValue, exc: Exception) -> None:
        """Leave a message in SQS if its body does not match its headers. SQS later dead-letters the message."""
        self._leave(message, exc)

    def on_unknown_message(self, _body: object, message: KombuValue) -> None:
        """Leave a message in SQS if it is not a Celery task. SQS later dead-letters the message."""
        self._leave(message)

    def on_unknown_task(self, _body: object, message: KombuValue, exc: Exception) -> None:
        """Leave a task of another application or version in SQS. SQS later dead-letters its message."""
        self._leave(message, exc)

    def on_invalid_task(self, _body: object, message: KombuValue, exc: Exception) -> None:
        """Leave a task with an invalid envelope in SQS. SQS later dead-letters its message."""
        self._leave(message, exc)

    def _leave(self, message: KombuValue, exc: Exception | None = None) -> None:
        logger.error(
            "redrive.broker.message_refused queue=%s message=%s error=%s: left to reappear and to dead-letter",
            message.delivery_info.get("routing_key"),
            message.delivery_info.get("sqs_message", {}).get("MessageId"),
            "not a task" if exc is None else _safe_words(exc),
        )
        message.reject()


def _safe_words(exc: Exception) -> str:
    """Return a text about an error for the log: its class and, if the error is of this package, its text.

    The texts of other errors could quote the content of a message.
    """
    part = f" ({exc})" if isinstance(exc, envelope.EnvelopeIsUnusable) else ""
    return type(exc).__name__ + part
