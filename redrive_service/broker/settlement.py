"""Delete the messages of finished tasks from the service's own queues. SQS delivers all other messages again."""

from __future__ import annotations

import logging

from redrive_service.broker.clients import ClientsChannel
from redrive_service.broker.failure import ReceiveFailure
from redrive_service.broker.version import KombuValue

logger = logging.getLogger("redrive.broker")


class SettlingChannel(ClientsChannel):
    """A channel that deletes the messages of finished tasks. It continues when SQS refuses a call or does not answer.

    If a message cannot be deleted, SQS delivers it again after its visibility timeout, and its task runs again.
    """

    def basic_ack(self, delivery_tag: str, multiple: bool = False) -> None:  # noqa: ARG002, FBT001, FBT002  # kombu's signature
        """Delete a message whose task is done."""
        try:
            client, address = self._address(self.qos.get(delivery_tag))
            client.delete_message(**address)
        except Exception as error:  # noqa: BLE001  # an exception would end the worker
            _note_unsettled("delete", error)
        finally:
            self._forget(delivery_tag)

    def basic_reject(self, delivery_tag: str, requeue: bool = False) -> None:  # noqa: FBT001, FBT002  # kombu's signature
        """Leave a message in SQS, which delivers it again after its visibility timeout.

        If `requeue` is true, SQS delivers the message already after the time of one long poll. After `maxReceiveCount`
        receives, SQS moves it to the queue's dead-letter queue. kombu 5.7.0 would delete a rejected message of a queue
        without a redrive policy.
        """
        try:
            if requeue:
                self._show_again(self.qos.get(delivery_tag), after=self.wait_time_seconds)
        except KeyError as error:
            _note_unsettled("show again", error)
        finally:
            self._forget(delivery_tag)

    def _restore(self, message: KombuValue, unwanted_delivery_info: KombuValue = ()) -> None:  # noqa: ARG002  # kombu's signature
        # At shutdown, messages whose tasks have not begun become visible again at once, for another worker.
        self._show_again(message, after=0)

    def _show_again(self, message: KombuValue, *, after: int) -> None:
        try:
            client, address = self._address(message)
            client.change_message_visibility(**address, VisibilityTimeout=after)
        except Exception as error:  # noqa: BLE001  # an exception would end the worker
            _note_unsettled("show again", error)

    def _address(self, message: KombuValue) -> tuple[KombuValue, dict[str, str]]:
        """Return the SQS client of the message's queue, and the arguments that identify the message in a request."""
        info = message.delivery_info
        client = self.sqs(queue=self.canonical_queue_name(info["routing_key"]))
        return client, {"QueueUrl": info["sqs_queue"], "ReceiptHandle": info["sqs_message"]["ReceiptHandle"]}

    def _message_to_python(self, message: KombuValue, queue: str, queue_url: str) -> KombuValue:
        # kombu deletes a message from the queue in the routing key, which the sender wrote. A message copied from
        # elsewhere can name an unknown queue there. So set the queue from which the message was received.
        payload = super()._message_to_python(message, queue, queue_url)  # type: ignore[misc]  # not in kombu's stubs
        payload["properties"]["delivery_info"].update(exchange="", routing_key=queue)
        return payload

    def _forget(self, delivery_tag: str) -> None:
        # Frees the slot of the message, because a worker without free slots does not poll.
        if delivery_tag in (self.qos._delivered or ()):  # noqa: SLF001
            self.qos.ack(delivery_tag)


def _note_unsettled(wanted: str, error: Exception) -> None:
    failure = ReceiveFailure.from_exception(error)
    logger.error(
        "redrive.broker.settle_failed wanted=%r status=%d code=%s: SQS shows the message again",
        wanted,
        failure.status,
        failure.code or "unknown",
    )
