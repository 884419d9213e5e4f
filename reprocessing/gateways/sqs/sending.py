"""Send messages. Each outcome says what is known, and no more."""

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
    departures: Iterable[OutgoingMessage],
    *,
    may_start: Callable[[], bool],
    largest: int = LARGEST,
    threads: int = THREADS,
) -> Outcomes:
    """Send letters, ten a request, several requests at a time; every attempt's outcome by its id.

    Nothing is sent twice by itself. A batch that is refused for what one of its letters carries is sent again in
    halves, until that letter stands alone. Letters of one FIFO group go in the order given, and none follows one of
    its group that was not taken, unless both were in one request, which SQS answers entry by entry.

    Args:
        address: the queue.
        departures: the letters, each with an attempt of its own.
        may_start: asked before every request, by several threads; where it says no, the letters are NotSent.
        largest: the bytes of a message that the queue is known to take.
        threads: the most requests at a time.

    Returns:
        Taken with SQS's message id. Refused: SQS has nothing of it, `poison` where what it carries is to blame.
        NotSent: nothing went out. Unknown: perhaps it did. No failure of SQS or of the network is raised.
    """
    outcomes: Outcomes = {}
    ready: list[PackedMessage] = []
    for departure in departures:
        made = pack(departure, fifo=address.fifo)
        if isinstance(made, Refused):
            outcomes[departure.attempt] = made
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
    if entry.get("MD5OfMessageBody") != md5(letter.departure.body, usedforsecurity=False).hexdigest():
        return Unknown(f"SQS took another body than was sent, as {entry.get('MessageId')}")
    return Taken(entry["MessageId"])
