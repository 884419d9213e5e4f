"""A local SQS in the tests' hands: its clock, short names for its calls, and raw HTTP."""

from __future__ import annotations

import contextlib
import json
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from random import Random
from typing import Any, Self
from urllib.parse import urlsplit

from redrive_service.sandbox.sqs.api.errors import SqsError
from redrive_service.sandbox.sqs.core import LocalSqs

Message = dict[str, Any]
START = 1_800_000_000.0


class World:
    def __init__(self, seed: int = 1, in_flight_limit: int = 120_000) -> None:
        self.sqs = LocalSqs(Random(seed), in_flight_limit=in_flight_limit)
        self.now = START

    def later(self, seconds: float) -> None:
        self.now += seconds

    def call(self, action: str, **parameters: object) -> dict[str, Any]:
        return self.sqs.handle(action, parameters, now=self.now)

    def refusal(self, action: str, **parameters: object) -> tuple[str, str]:
        """Code and message of the error that a call gets."""
        try:
            answer = self.call(action, **parameters)
        except SqsError as error:
            return error.code, error.message
        raise AssertionError(f"{action} was not refused but answered {answer}")

    def code(self, action: str, **parameters: object) -> str:
        return self.refusal(action, **parameters)[0]

    # -- queues

    def queue(self, name: str, **attributes: str) -> str:
        if name.endswith(".fifo"):
            attributes["FifoQueue"] = "true"
        return str(self.call("CreateQueue", QueueName=name, Attributes=attributes)["QueueUrl"])

    def dead_letter_pair(self, source: str, target: str, receives: int = 1, **attributes: str) -> tuple[str, str]:
        dlq = self.queue(target)
        policy = {"deadLetterTargetArn": arn(target), "maxReceiveCount": receives}
        return self.queue(source, RedrivePolicy=json.dumps(policy), **attributes), dlq

    def set(self, url: str, **attributes: str) -> None:
        self.call("SetQueueAttributes", QueueUrl=url, Attributes=attributes)

    def attribute(self, url: str, name: str) -> str | None:
        answer = self.call("GetQueueAttributes", QueueUrl=url, AttributeNames=[name])
        value: str | None = answer.get("Attributes", {}).get(name)
        return value

    def counts(self, url: str) -> tuple[int, int, int]:
        """Visible, in flight, delayed."""
        names = ["", "NotVisible", "Delayed"]
        answer = self.call("GetQueueAttributes", QueueUrl=url, AttributeNames=["All"])["Attributes"]
        visible, in_flight, delayed = (int(answer[f"ApproximateNumberOfMessages{name}"]) for name in names)
        return visible, in_flight, delayed

    # -- messages

    def send(self, url: str, body: str, **parameters: object) -> Message:
        answer: Message = self.call("SendMessage", QueueUrl=url, MessageBody=body, **parameters)
        return answer

    def send_group(self, url: str, group: str, *bodies: str) -> list[Message]:
        return [self.send(url, body, MessageGroupId=group, MessageDeduplicationId=f"{group}-{body}") for body in bodies]

    def receive(self, url: str, most: int = 10, **parameters: object) -> list[Message]:
        answer = self.call(
            "ReceiveMessage",
            QueueUrl=url,
            MaxNumberOfMessages=most,
            AttributeNames=["All"],
            MessageAttributeNames=["All"],
            **parameters,
        )
        messages: list[Message] = answer.get("Messages", [])
        return messages

    def bodies(self, url: str, most: int = 10, **parameters: object) -> list[str]:
        return [message["Body"] for message in self.receive(url, most, **parameters)]

    def delete(self, url: str, message: Message) -> None:
        self.call("DeleteMessage", QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])

    def hide(self, url: str, message: Message, seconds: int) -> None:
        handle = message["ReceiptHandle"]
        self.call("ChangeMessageVisibility", QueueUrl=url, ReceiptHandle=handle, VisibilityTimeout=seconds)


def arn(name: str) -> str:
    return f"arn:aws:sqs:us-east-1:000000000000:{name}"


# -- a server of its own


class Server:
    def __init__(self, *options: str) -> None:
        command = [sys.executable, "-m", "redrive_service.sandbox.sqs", *options]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.startswith("ready http://127.0.0.1:"), (line, self.process.communicate())
        self.url = line.split()[1]

    def connect(self) -> Client:
        return Client(self.url)

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        self.process.communicate()
        return self.process.returncode


@contextlib.contextmanager
def running(*options: str) -> Iterator[Server]:
    server = Server(*options)
    try:
        yield server
    finally:
        if server.process.returncode is None:
            server.stop()


class Client:
    def __init__(self, url: str) -> None:
        address = urlsplit(url)
        assert address.hostname is not None
        assert address.port is not None
        self.socket = socket.create_connection((address.hostname, address.port), timeout=30)
        self._buffer = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def write(self, data: bytes) -> None:
        self.socket.sendall(data)

    def post(self, action: str, **parameters: object) -> None:
        self.write(call_bytes(action, parameters))

    def call(self, action: str, **parameters: object) -> dict[str, Any]:
        """The answer's body; `__type` in it tells an error."""
        self.post(action, **parameters)
        answer: dict[str, Any] = self.read()[1]
        return answer

    def control(self, method: str, path: str, content: object = None) -> dict[str, Any]:
        self.post_control(method, path, content)
        answer: dict[str, Any] = self.read()[1]
        return answer

    def post_control(self, method: str, path: str, content: object = None) -> None:
        body = b"" if content is None else json.dumps(content).encode()
        head = f"{method} /_sandbox/{path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
        self.write(head.encode() + body)

    def read(self) -> tuple[int, Any]:
        """Status and JSON of the next answer."""
        while b"\r\n\r\n" not in self._buffer:
            self._fill()
        head, _, self._buffer = self._buffer.partition(b"\r\n\r\n")
        lines = head.split(b"\r\n")
        headers = dict(line.lower().split(b": ", 1) for line in lines[1:])
        length = int(headers.get(b"content-length", b"0"))
        while len(self._buffer) < length:
            self._fill()
        body, self._buffer = self._buffer[:length], self._buffer[length:]
        return int(lines[0].split()[1]), json.loads(body) if body else None

    def is_silent(self, seconds: float) -> bool:
        return not self._buffer and not select.select([self.socket], [], [], seconds)[0]

    def is_closed(self) -> bool:
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True

    def _fill(self) -> None:
        data = self.socket.recv(1 << 20)
        if not data:
            raise ConnectionError("the server closed the connection")
        self._buffer += data


def call_bytes(action: str, parameters: object) -> bytes:
    body = json.dumps(parameters).encode()
    head = f"POST / HTTP/1.1\r\nHost: local\r\nX-Amz-Target: AmazonSQS.{action}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def url_of(name: str) -> str:
    return f"http://local/000000000000/{name}"
