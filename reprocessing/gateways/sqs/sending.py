"""Send letters to SQS queues, and return the outcome of each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from hashlib import md5
from typing import Any

from reprocessing.domain.message.envelope import OutgoingMessage
from reprocessing.domain.replay.verdicts import Outcome, Refused, Taken, Unknown
from reprocessing.gateways.aws.clients import client
from reprocessing.gateways.aws.errors import outcome_of_entry
from reprocessing.gateways.aws.queue_address import QueueAddress
from reprocessing.gateways.aws.request_threads import THREADS
from reprocessing.gateways.sqs.batch_requests import BatchSender, Outcomes, send_chains
from reprocessing.gateways.sqs.batches import LARGEST, Batch, PackedMessage, batch_chains, pack


def send(
    address: QueueAddress,
    messages: Iterable[OutgoingMessage],
    *,
    may_start: Callable[[], bool],
    largest: int = LARGEST,
    threads: int = THREADS,
) -> Outcomes:
    """Send letters, ten in a request, several requests at a time. Return the outcomes by attempt id.

    Requests are not retried, with one exception. If SQS refuses a batch because of an invalid letter, the batch is sent
    again in halves, until the invalid letter is alone. Letters of one message group are sent in the given order. If a
    letter was not accepted, later letters of its group are not sent.

    Args:
        address: the queue.
        messages: the letters, each with a different attempt id.
        may_start: called before every request, by several threads. If it returns False, the letters are NotSent.
        largest: the queue's known size limit of a message, in bytes.
        threads: the most requests at a time.

    Returns:
        Taken: SQS accepted the letter. Refused: SQS refused it; `poison` if the letter is invalid. NotSent: nothing was
        sent. Unknown: SQS may have accepted the letter. Errors of SQS or the network are not raised.
    """
    outcomes: Outcomes = {}
    ready: list[PackedMessage] = []
    for message in messages:
        made = pack(message, fifo=address.fifo)
        if isinstance(made, Refused):
            outcomes[message.attempt] = made
        else:
            ready.append(made)

    def ask(load: Batch) -> list[Outcome]:
        answer = client(address.region, role=address.role).send_message_batch(
            QueueUrl=address.url,
            Entries=[letter.entry(number, fifo=address.fifo) for number, letter in enumerate(load)],
        )
        return _read(answer, load)

    packed = batch_chains(ready, fifo=address.fifo, largest=largest)
    return outcomes | send_chains(packed, BatchSender(ask, "SQS", address.fifo), may_start=may_start, threads=threads)


def _read(answer: Mapping[str, Any], load: Batch) -> list[Outcome]:
    taken = {entry["Id"]: entry for entry in answer.get("Successful", [])}
    failed = {entry["Id"]: entry for entry in answer.get("Failed", [])}
    return [_fate(taken.get(str(number)), failed.get(str(number)), letter) for number, letter in enumerate(load)]


def _fate(taken: Mapping[str, Any] | None, failed: Mapping[str, Any] | None, letter: PackedMessage) -> Outcome:
    if taken is not None and failed is not None:
        return Unknown("the answer of SQS names it as taken and as failed")
    if taken is not None:
        return _taken(taken, letter)
    if failed is not None:
        return outcome_of_entry(failed.get("Code", ""), failed.get("Message", ""))
    return Unknown("the answer of SQS does not name it")


def _taken(entry: Mapping[str, Any], letter: PackedMessage) -> Outcome:
    if entry.get("MD5OfMessageBody") != md5(letter.message.body, usedforsecurity=False).hexdigest():
        return Unknown(f"SQS took another body than was sent, as {entry.get('MessageId')}")
    return Taken(entry["MessageId"])
