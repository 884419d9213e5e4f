"""Task messages as Celery and kombu write them, without a broker: what a user's application would have sent to SQS."""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import Callable
from typing import Any

from celery import Celery

Document = dict[str, Any]


def task(name: str = "shop.charge", *args: object, queue: str = "shop", plain: bool = False, **options: Any) -> bytes:  # noqa: ANN401  # those of send_task
    """The body of one task's message; `plain`: not in base64. Options: `protocol`, and what `send_task` takes."""
    protocol = options.pop("protocol", 2)
    return written(
        document(lambda app: app.send_task(name, args, queue=queue, **options), protocol, queue), plain=plain
    )


def document(send: Callable[[Celery], object], protocol: int = 2, queue: str = "shop") -> Document:
    """The envelope that an application leaves in a queue when it sends something."""
    return documents(send, protocol, queue)[0]


def documents(send: Callable[[Celery], object], protocol: int = 2, queue: str = "shop") -> list[Document]:
    """All of them."""
    app = Celery(uuid.uuid4().hex, broker="memory://", backend="cache+memory://", set_as_current=False)
    app.conf.task_protocol = protocol
    app.conf.task_default_queue = queue
    with app.connection_for_write() as connection:
        channel: Any = connection.default_channel
        channel.queues.pop(queue, None)
        send(app)
        found = []
        while channel.queues[queue].qsize():
            found.append(channel.queues[queue].get())
    app.close()
    return found


def written(envelope: Document, *, plain: bool = False) -> bytes:
    """The body that kombu makes of an envelope for SQS."""
    text = json.dumps(envelope).encode()
    return text if plain else base64.b64encode(text)


def opened(body: bytes) -> Document:
    """The envelope in a body, read without any of our code."""
    text = body if body.startswith(b"{") else base64.b64decode(body)
    found: Document = json.loads(text)
    return found


def payload(envelope: Document) -> Any:  # noqa: ANN401  # JSON
    """What is in an envelope whose payload is JSON that is not compressed."""
    return json.loads(base64.b64decode(envelope["body"]))
