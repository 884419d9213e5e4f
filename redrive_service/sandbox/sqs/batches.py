"""What all batch calls share: up to ten entries with distinct ids, each done or refused by itself."""

import re
from collections.abc import Callable, Sequence
from typing import Final

from redrive_service.sandbox.sqs.errors import SqsError, missing_parameter, wrong_type
from redrive_service.sandbox.sqs.parameters import Answer, Request

MOST_ENTRIES: Final = 10
_ENTRY_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,80}")


def read_entries(request: Request, verb: str) -> list[dict[str, object]]:
    """The entries of a batch call, with valid and distinct ids; `verb` is Send, Delete or ChangeVisibility."""
    entries = request.get("Entries")
    if entries is None:
        raise missing_parameter("Entries")
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise wrong_type("Entries", "a list of entries")
    if not entries:
        sentence = f"There should be at least one {verb}MessageBatchRequestEntry in the request."
        raise SqsError("EmptyBatchRequest", sentence)
    if len(entries) > MOST_ENTRIES:
        sentence = f"Maximum number of entries per request are {MOST_ENTRIES}. You have sent {len(entries)}."
        raise SqsError("TooManyEntriesInBatchRequest", sentence)
    seen = set()
    for entry in entries:
        entry_id = _read_id(entry)
        if entry_id in seen:
            raise SqsError("BatchEntryIdsNotDistinct", f"Id {entry_id} repeated.")
        seen.add(entry_id)
    return entries


def _read_id(entry: Request) -> str:
    entry_id = entry.get("Id")
    if entry_id is None:
        raise missing_parameter("Id")
    if not isinstance(entry_id, str):
        raise wrong_type("Id", "a string")
    if not _ENTRY_ID.fullmatch(entry_id):
        sentence = "A batch entry id can only contain alphanumeric characters, hyphens and underscores."
        raise SqsError("InvalidBatchEntryId", f"{sentence} It can be at most 80 letters long.")
    return entry_id


def run_batch(entries: Sequence[Request], act: Callable[[Request], Answer]) -> Answer:
    """Does `act` for every entry in order; the answer lists what worked and what did not, and omits empty lists."""
    successful: list[Answer] = []
    failed: list[Answer] = []
    for entry in entries:
        try:
            done = act(entry)
            done["Id"] = entry["Id"]
            successful.append(done)
        except SqsError as error:
            failed.append(failure(entry["Id"], error))
    answer: Answer = {}
    if successful:
        answer["Successful"] = successful
    if failed:
        answer["Failed"] = failed
    return answer


def failure(entry_id: object, error: SqsError) -> Answer:
    """One entry of a batch answer's `Failed`."""
    return {"Id": entry_id, "SenderFault": error.sender_fault, "Code": error.code, "Message": error.message}
