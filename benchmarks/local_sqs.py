"""Measure how many messages per second the local SQS handles: receive, send and delete, as a redrive does.

Ten letters per call over keep-alive connections, 510-byte bodies with two message attributes, clients and server on one
machine. Starts its own server, measures every depth several times, prints the medians and the ratio of the slowest
depth to the fastest, and stops its server.
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import orjson

ROOT: Final = Path(__file__).resolve().parent.parent
BATCH: Final = 10  #: letters of one SQS call
ATTRIBUTES: Final = {
    "trace_id": {"DataType": "String", "StringValue": "5f0c9f2e7b1d4c6a"},
    "attempt": {"DataType": "Number", "StringValue": "3"},
}
LOWEST_RATE: Final = 20_000  #: letters per second at the slowest depth
LOWEST_RATIO: Final = 0.75  #: slowest depth divided by the fastest


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to measure: messages in the queue (`depths`), connections, repetitions (`rounds`), and moved letters.

    `body`: bytes of a body.
    """

    depths: tuple[int, ...]
    connections: int
    rounds: int
    letters: int
    body: int


class Client:
    """A keep-alive connection to the local SQS, with AWS's JSON protocol."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def call(self, action: str, parameters: dict[str, object]) -> dict[str, list[dict[str, str]]]:
        """Return the answer to one call; any status but 200 ends the benchmark."""
        body = orjson.dumps(parameters)
        head = (
            f"POST / HTTP/1.1\r\nHost: sqs\r\nX-Amz-Target: AmazonSQS.{action}\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        self._writer.write(head.encode() + body)
        answer = await self._reader.readuntil(b"\r\n\r\n")
        length = int(answer[answer.index(b"content-length: ") + 16 :].split(b"\r\n", 1)[0])
        content = await self._reader.readexactly(length)
        if not answer.startswith(b"HTTP/1.1 200"):
            sys.exit(f"{action} was refused: {content.decode()}")
        answered: dict[str, list[dict[str, str]]] = orjson.loads(content)
        return answered

    def close(self) -> None:
        """Close the connection."""
        self._writer.close()


async def connect(url: str) -> Client:
    """Return a client of the server at `url`."""
    host, port = urlsplit(url).hostname, urlsplit(url).port
    return Client(*await asyncio.open_connection(host, port, limit=4 * 1024 * 1024))


async def fill(client: Client, queue: str, depth: int, body: str) -> None:
    """Send `depth` messages to a queue."""
    entry = {"MessageBody": body, "MessageAttributes": ATTRIBUTES}
    for _ in range(depth // BATCH):
        entries = [{"Id": str(position), **entry} for position in range(BATCH)]
        await client.call("SendMessageBatch", {"QueueUrl": queue, "Entries": entries})


async def carry(client: Client, source: str, target: str, letters: int) -> int:
    """Receive, send and delete at least `letters` letters; return how many were moved."""
    carried = 0
    wanted = {
        "QueueUrl": source,
        "MaxNumberOfMessages": BATCH,
        "MessageAttributeNames": ["All"],
        "AttributeNames": ["All"],
    }
    while carried < letters:
        messages = (await client.call("ReceiveMessage", wanted)).get("Messages", [])
        if not messages:
            break
        copies = [
            {"Id": str(n), "MessageBody": message["Body"], "MessageAttributes": message["MessageAttributes"]}
            for n, message in enumerate(messages)
        ]
        await client.call("SendMessageBatch", {"QueueUrl": target, "Entries": copies})
        receipts = [{"Id": str(n), "ReceiptHandle": message["ReceiptHandle"]} for n, message in enumerate(messages)]
        await client.call("DeleteMessageBatch", {"QueueUrl": source, "Entries": receipts})
        carried += len(messages)
    return carried


async def measure(url: str, plan: Plan) -> dict[int, list[float]]:
    """Return the letters per second for every depth, one value per round.

    Moved letters go back, so depths stay the same. The depths alternate, so that a busy moment of the machine does not
    affect one depth alone.
    """
    clients = [await connect(url) for _ in range(plan.connections)]
    queues = {depth: f"http://sqs/000000000000/depth-{depth}" for depth in plan.depths}
    for depth, queue in queues.items():
        await clients[0].call("CreateQueue", {"QueueName": f"depth-{depth}"})
        await fill(clients[0], queue, depth, "x" * plan.body)
    rates: dict[int, list[float]] = {depth: [] for depth in plan.depths}
    for _ in range(plan.rounds):
        for depth, queue in queues.items():
            share = plan.letters // plan.connections
            started = time.perf_counter()
            carried = sum(await asyncio.gather(*(carry(client, queue, queue, share) for client in clients)))
            rates[depth].append(carried / (time.perf_counter() - started))
    for client in clients:
        client.close()
    return rates


def run(plan: Plan, options: list[str]) -> dict[str, object]:
    """Start a server, measure every depth, stop the server."""
    command = [sys.executable, "-m", "redrive_service.sandbox.sqs", *options]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as server:
        try:
            ready = server.stdout.readline().split() if server.stdout else []
            if len(ready) != 2:  # noqa: PLR2004 - "ready" and the URL
                sys.exit("The local SQS did not start.")
            rates = asyncio.run(measure(ready[1], plan))
        finally:
            server.terminate()
    medians = {depth: statistics.median(measured) for depth, measured in rates.items()}
    return {
        "letters_per_second": {str(depth): round(rate) for depth, rate in medians.items()},
        "rounds": {str(depth): [round(rate) for rate in measured] for depth, measured in rates.items()},
        "ratio": round(min(medians.values()) / max(medians.values()), 3),
        "cores": os.cpu_count(),
    }


def main() -> int:
    """Print the figures; return 1 when they are below what this project needs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--depths", default="1000,10000,50000", help="messages in the queue (default: %(default)s)")
    parser.add_argument("--connections", type=int, default=8, help="keep-alive connections (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="measurements per depth (default: %(default)s)")
    parser.add_argument("--letters", type=int, default=40_000, help="letters per measurement (default: %(default)s)")
    parser.add_argument("--body", type=int, default=510, help="bytes per body (default: %(default)s)")
    parser.add_argument("--data", help="let the server keep a journal in this folder")
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    plan = Plan(
        depths=tuple(int(depth) for depth in arguments.depths.split(",")),
        connections=arguments.connections,
        rounds=arguments.rounds,
        letters=arguments.letters,
        body=arguments.body,
    )
    figures = run(plan, ["--data", arguments.data] if arguments.data else [])
    if arguments.json:
        print(json.dumps(figures, indent=2))
    else:
        for depth, rate in figures["letters_per_second"].items():  # type: ignore[attr-defined]
            print(f"{int(depth):>7,} messages in the queue: {rate:>7,} letters/s")
        print(f"slowest to fastest depth: {figures['ratio']}")
    slowest = min(figures["letters_per_second"].values())  # type: ignore[attr-defined]
    return 0 if slowest >= LOWEST_RATE and figures["ratio"] >= LOWEST_RATIO else 1  # type: ignore[operator]


if __name__ == "__main__":
    sys.exit(main())
