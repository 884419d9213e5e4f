"""Celery's consumer, which does not tell what it cannot read."""

from __future__ import annotations

import logging

from celery.worker.consumer import Consumer as CeleryConsumer

from redrive_service.broker import envelope
from redrive_service.broker.version import KombuValue

logger = logging.getLogger("redrive.broker")


class Consumer(CeleryConsumer):
    """A consumer that leaves to SQS whatever is no task of ours, and logs its id alone.

    Celery quotes such a message whole, body and headers, and deletes what it cannot decode. A letter that somebody
    moved to the wrong queue would be lost, and its content in a log.
    """

    def create_task_handler(self, *args: KombuValue, **kwargs: KombuValue) -> KombuValue:
        """Celery's own handler, for what looks like a task of ours."""
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
        """A body that is not what its headers say."""
        self._leave(message, exc)

    def on_unknown_message(self, _body: object, message: KombuValue) -> None:
        """Something that is not a task at all."""
        self._leave(message)

    def on_unknown_task(self, _body: object, message: KombuValue, exc: Exception) -> None:
        """A task of another application, or of another version of this one."""
        self._leave(message, exc)

    def on_invalid_task(self, _body: object, message: KombuValue, exc: Exception) -> None:
        """A task whose envelope is damaged."""
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
    """Return what may be told of an error: ours names a part of the envelope, others quote what they choked on."""
    part = f" ({exc})" if isinstance(exc, envelope.EnvelopeIsUnusable) else ""
    return type(exc).__name__ + part
