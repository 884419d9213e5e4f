"""Shared code of all batch calls. Up to ten entries have different ids. Each entry succeeds or fails by itself."""

import re
from collections.abc import Callable, Sequence
from typing import Final

from redrive_service.sandbox.sqs.api.errors import SqsError, missing_parameter, wrong_type
from redrive_service.sandbox.sqs.api.parameters import Answer, Request

MOST_ENTRIES: Final = 10  # max entries of a batch call (AWS)
_is_id: Final = re.compile(r"[A-Za-z0-9_-]{1,80}").fullmatch


def read_entries(request: Request, verb: str) -> list[dict[str, object]]:
    """Return the entries of a batch call. `verb` (Send, Delete or ChangeVisibility) is a word for error texts.

    Raises:
        SqsError: there are no entries or more than ten, or an id is invalid or occurs twice.
    """
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
        entry_id = entry.get("Id")
        if not isinstance(entry_id, str) or not _is_id(entry_id):
            raise _unusable(entry_id)
        if entry_id in seen:
            raise SqsError("BatchEntryIdsNotDistinct", f"Id {entry_id} repeated.")
        seen.add(entry_id)
    return entries


def _unusable(entry_id: object) -> SqsError:
    if entry_id is None:
        return missing_parameter("Id")
    if not isinstance(entry_id, str):
        return wrong_type("Id", "a string")
    sentence = "A batch entry id can only contain alphanumeric characters, hyphens and underscores."
    return SqsError("InvalidBatchEntryId", f"{sentence} It can be at most 80 letters long.")


def run_batch(entries: Sequence[Request], act: Callable[[Request], Answer]) -> Answer:
    """Execute `act` for every entry in order. Return an answer with the lists `Successful`, `Failed`, or both."""
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
    """Return the entry about this error for the list `Failed` of a batch answer."""
    return {"Id": entry_id, "SenderFault": error.sender_fault, "Code": error.code, "Message": error.message}
