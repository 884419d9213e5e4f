"""Delete messages that were received from a DLQ, extend their visibility timeout, or make them visible.

A copy is the message of a captured letter, while it is still in the DLQ. One request handles up to ten copies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from threading import Event
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from reprocessing.gateways.aws.clients import client
from reprocessing.gateways.aws.errors import out_of_reach, refusal_in_words
from reprocessing.gateways.aws.queue_address import QueueAddress
from reprocessing.gateways.aws.request_threads import THREADS, run_in_parallel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Handle = tuple[str, str]  # a message id and its receipt handle
_MOST_ENTRIES = 10


@dataclass(frozen=True, slots=True)
class Deleted:
    """The result of deleting copies from a DLQ.

    Attributes:
        gone: the message ids of copies whose deletion SQS confirmed.
        failed: the error by message id, for each copy that may still exist. Deleting a copy twice does no harm.
    """

    gone: set[str]
    failed: dict[str, str]


@dataclass(frozen=True, slots=True)
class Extended:
    """The result of changing the visibility timeout of copies.

    Attributes:
        held: the message ids of copies whose new visibility timeout SQS confirmed.
        failed: the error by message id, for each copy that may have kept its old timeout.
    """

    held: set[str]
    failed: dict[str, str]


def delete(address: QueueAddress, handles: Mapping[str, str], *, threads: int = THREADS) -> Deleted:
    """Delete copies from a DLQ. `handles`: receipt handles by message id. Errors of SQS are returned, not raised."""

    def ask(some: Sequence[Handle]) -> Mapping[str, Any]:
        return client(address.region, role=address.role).delete_message_batch(
            QueueUrl=address.url,
            Entries=[{"Id": str(number), "ReceiptHandle": handle} for number, (_, handle) in enumerate(some)],
        )

    return Deleted(*_in_tens(address, "DeleteMessage", ask, handles, threads))


def extend(address: QueueAddress, handles: Mapping[str, str], seconds: int, *, threads: int = THREADS) -> Extended:
    """Hide copies in the DLQ for `seconds` (0 to 43,200) from now, at most until 12 hours after they were received.

    `handles`: receipt handles by message id. Errors of SQS are returned, not raised.
    """

    def ask(some: Sequence[Handle]) -> Mapping[str, Any]:
        return client(address.region, role=address.role).change_message_visibility_batch(
            QueueUrl=address.url,
            Entries=[
                {"Id": str(number), "ReceiptHandle": handle, "VisibilityTimeout": seconds}
                for number, (_, handle) in enumerate(some)
            ],
        )

    return Extended(*_in_tens(address, "ChangeMessageVisibility", ask, handles, threads))


def release(address: QueueAddress, handles: Mapping[str, str], *, threads: int = THREADS) -> Extended:
    """Make copies visible at once. `handles`: receipt handles by message id. Errors of SQS are returned, not raised."""
    return extend(address, handles, 0, threads=threads)


def _in_tens(
    address: QueueAddress,
    action: str,
    ask: Callable[[Sequence[Handle]], Mapping[str, Any]],
    handles: Mapping[str, str],
    threads: int,
) -> tuple[set[str], dict[str, str]]:
    """Send the requests, ten copies in each. If SQS does not answer one, those that are not sent yet are not sent."""
    is_silent = Event()

    def one_request(some: Sequence[Handle]) -> tuple[set[str], dict[str, str]]:
        ids = [message_id for message_id, _ in some]
        if is_silent.is_set():
            return set(), dict.fromkeys(ids, "SQS did not answer the requests before")
        try:
            answer = ask(some)
        except (BotoCoreError, ClientError) as error:
            if isinstance(error, BotoCoreError):
                is_silent.set()
            why = str(out_of_reach(address, action, error))
            return set(), dict.fromkeys(ids, why)
        return _read(answer, ids)

    done: set[str] = set()
    failed: dict[str, str] = {}
    for some_done, some_failed in run_in_parallel(one_request, list(_tens(handles)), threads):
        done |= some_done
        failed |= some_failed
    return done, failed


def _tens(handles: Mapping[str, str]) -> Iterator[list[Handle]]:
    rest = iter(handles.items())
    while some := list(islice(rest, _MOST_ENTRIES)):
        yield some


def _read(answer: Mapping[str, Any], ids: Sequence[str]) -> tuple[set[str], dict[str, str]]:
    numbers = {str(number): message_id for number, message_id in enumerate(ids)}
    done = {numbers[entry["Id"]] for entry in answer.get("Successful", []) if entry["Id"] in numbers}
    failed = dict.fromkeys((each for each in ids if each not in done), "the answer of SQS does not name it")
    for entry in answer.get("Failed", []):
        if entry["Id"] in numbers:
            failed[numbers[entry["Id"]]] = refusal_in_words(entry.get("Code", ""))
    return done, {message_id: why for message_id, why in failed.items() if message_id not in done}
