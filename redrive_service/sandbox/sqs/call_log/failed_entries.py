"""Add sends and deletes that were refused, or not executed, to the record of a call in the call log."""

from collections.abc import Iterable
from hashlib import md5
from typing import Final

from redrive_service.sandbox.sqs.api.call_record import Record, Sent
from redrive_service.sandbox.sqs.api.errors import printable
from redrive_service.sandbox.sqs.api.parameters import Answer, Request
from redrive_service.sandbox.sqs.api.receipt_handles import message_id_in

_BATCH: Final = "Batch"
_SEND: Final = "SendMessage"
_DELETE: Final = "DeleteMessage"


def note_undone(record: Record, action: str, asked: Request, code: str | None) -> None:
    """Record the sends or deletes of a call that was not executed.

    `asked` has the call's parameters. `code` is the error in the answer, or None if there was no answer.
    """
    for entry in _entries(action, asked):
        _note(record, action, entry, code)


def note_failed(record: Record, action: str, asked: Request, failed: Iterable[Answer]) -> None:
    """Record the failed sends or deletes of a batch call. `failed` is the list `Failed` in its answer."""
    codes = {failure["Id"]: str(failure["Code"]) for failure in failed}
    for entry in _entries(action, asked):
        if entry.get("Id") in codes:
            _note(record, action, entry, codes[entry.get("Id")])


def _entries(action: str, asked: Request) -> list[Request]:
    if action.removesuffix(_BATCH) not in (_SEND, _DELETE):
        return []
    entries = asked.get("Entries") if action.endswith(_BATCH) else [asked]
    return [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []


def _note(record: Record, action: str, entry: Request, code: str | None) -> None:
    if action.startswith(_DELETE):
        record.deleted.append((message_id_in(_text(entry, "ReceiptHandle") or ""), False))
        return
    body = _text(entry, "MessageBody")
    sent = Sent(
        message_id=None,
        group=_text(entry, "MessageGroupId"),
        deduplication_id=_text(entry, "MessageDeduplicationId"),
        sequence_number=None,
        md5=None if body is None else md5(body.encode(), usedforsecurity=False).hexdigest(),
        attributes=_attributes(entry),
        accepted=False,
        code=code,
    )
    record.sent.append(sent)


def _text(entry: Request, name: str) -> str | None:
    value = entry.get(name)
    return printable(value) if isinstance(value, str) else None


def _attributes(entry: Request) -> dict[str, str]:
    """Return the text and number attributes of an entry. Attributes that cannot be read are left out."""
    found = entry.get("MessageAttributes")
    attributes = found.items() if isinstance(found, dict) else ()
    values = ((name, _text(value, "StringValue")) for name, value in attributes if isinstance(value, dict))
    return {printable(name): value for name, value in values if value is not None}
