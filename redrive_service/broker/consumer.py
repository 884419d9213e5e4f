"""Celery's consumer, which does not log the content of messages that it cannot read."""

from __future__ import annotations

import logging

from celery.worker.consumer import Consumer as CeleryConsumer

from redrive_service.broker import envelope
from redrive_service.broker.version import KombuValue

logger = logging.getLogger("redrive.broker")


class Consumer(CeleryConsumer):
    """A consumer that does not delete messages that are no tasks of this service, and logs only their ids.

    SQS shows such a message again, and dead-letters it. Celery's own consumer would log its body and headers, and
    delete it if it cannot be decoded. A letter that was moved to the wrong queue would be lost, and its content logged.
    """

    def create_task_handler(self, *args: KombuValue, **kwargs: KombuValue) -> KombuValue:
        """Return Celery's own handler, for messages that look like tasks of this service."""
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
        """Do not delete a message whose body does not match its headers: SQS dead-letters it."""
        self._leave(message, exc)

    def on_unknown_message(self, _body: object, message: KombuValue) -> None:
        """Do not delete a message that is not a Celery task: SQS dead-letters it."""
        self._leave(message)

    def on_unknown_task(self, _body: object, message: KombuValue, exc: Exception) -> None:
        """Do not delete a task of another application, or of another version of this service: SQS dead-letters it."""
        self._leave(message, exc)

    def on_invalid_task(self, _body: object, message: KombuValue, exc: Exception) -> None:
        """Do not delete a task whose envelope is damaged: SQS dead-letters it."""
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
    """Return a loggable text for an error: this package's errors name a part of the envelope, others quote content."""
    part = f" ({exc})" if isinstance(exc, envelope.EnvelopeIsUnusable) else ""
    return type(exc).__name__ + part
