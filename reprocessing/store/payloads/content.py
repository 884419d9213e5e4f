"""Seal (encrypt) the content of letters before it is written, and open (decrypt) it after it was read.

The columns are the same with and without encryption: sealed bytes are recognised by their first bytes. Rows are opened
in sets, with one query for the keys that this process has not unwrapped yet.
"""

from __future__ import annotations

import base64
import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import Any, Final, LiteralString, Protocol, TypeVar

from reprocessing.domain.errors import PayloadDestroyed, PayloadUnreadable
from reprocessing.domain.message.identity import body_hash
from reprocessing.domain.payloads import sealing
from reprocessing.domain.payloads.sealing import DataKey, Part
from reprocessing.store.payloads import payload_keys
from reprocessing.store.payloads.payload_keys import INSTALLATION

#: SQS's own attributes that are sealed. Other attributes stay readable, because SQL statements read them.
_SEALED_SYSTEM: Final = frozenset({"AWSTraceHeader", "MessageDeduplicationId", "SenderId"})
_SYSTEM: Final = "sealed"  # the member of `system` that has the sealed attributes

#: SQL: true of bytes `{0}` that are sealed.
IS_SEALED: Final[LiteralString] = r"substring({0} FROM 1 FOR 2) = '\xff01'::bytea"
#: SQL: the length of the content of bytes `{0}`, sealed or not.
CONTENT_LENGTH: Final[LiteralString] = (
    r"(octet_length({0}) - CASE WHEN substring({0} FROM 1 FOR 2) = '\xff01'::bytea THEN 38 ELSE 0 END)"
)


class HasContent(Protocol):
    """A row with parts of a letter's content. It has `message_id`, and some of the fields that `CONTENT` names."""

    @property
    def message_id(self) -> str:
        """Return the letter's message id in its DLQ."""


Row = TypeVar("Row", bound=HasContent)
#: The fields of rows that may be sealed, each with the part of the letter's content that the field has.
CONTENT: Final[Mapping[str, Part]] = {
    "body": Part.BODY, "attributes": Part.ATTRIBUTES, "original_body": Part.BODY,
    "original_attributes": Part.ATTRIBUTES,
}  # fmt: skip


@dataclasses.dataclass(frozen=True, slots=True)
class Sealer:
    """Seals (encrypts) content with one data key; without a key it returns the content unchanged."""

    key: DataKey | None

    @property
    def key_id(self) -> int | None:
        """Return the id of the data key; None: content is stored without encryption."""
        return None if self.key is None else self.key.id

    def bytes(self, content: bytes, part: Part, *, of: str) -> bytes:
        """Return the content encrypted. `of`: the letter's message id, which must be given again to decrypt it."""
        return content if self.key is None else sealing.seal(self.key, content, part=part, of=of)

    def text(self, text: str, part: Part, *, of: str) -> str:
        """Return a text encrypted, and encoded for a text column. `of`: message id of the letter that it is about."""
        return text if self.key is None else sealing.to_text(self.bytes(text.encode(), part, of=of))

    def system(self, system: Mapping[str, str], *, of: str) -> dict[str, str]:
        """Return SQS's own attributes, those encrypted that may identify people (`_SEALED_SYSTEM`)."""
        secret = {name: value for name, value in system.items() if name in _SEALED_SYSTEM}
        if self.key is None or not secret:
            return dict(system)
        sealed = sealing.seal(self.key, json.dumps(secret).encode(), part=Part.SYSTEM, of=of)
        shown = {name: value for name, value in system.items() if name not in secret}
        return {**shown, _SYSTEM: base64.b64encode(sealed).decode()}


#: The sealer without a key: it encrypts nothing.
READABLE: Final = Sealer(None)


def sealer_of(dlq: int, day: date) -> Sealer:
    """Return the sealer for a DLQ's payloads, with the DLQ's data key of this day. Raises PayloadKeyUnavailable.

    Call it outside a transaction, because AWS KMS may be called.
    """
    return Sealer(payload_keys.current_key((dlq, day)))


def opened(found: Sequence[Row]) -> list[Row]:
    """Return rows with their content decrypted; content without encryption is unchanged. Raises PayloadUnreadable."""
    if not (ids := _key_ids(found)):
        return list(found)
    keys = payload_keys.unwrapped_keys(ids)
    return [_opened(row, keys) for row in found]


def opened_or_why(found: Sequence[Row]) -> tuple[list[Row], dict[str, str]]:
    """Decrypt rows. Return the decrypted rows, and, by message id, why the other rows cannot be decrypted."""
    readable, problems = opened_or_errors(found)
    return readable, {message_id: str(error) for message_id, error in problems.items()}


def opened_or_errors(
    found: Sequence[Row], failed: dict[int, PayloadUnreadable] | None = None
) -> tuple[list[Row], dict[str, PayloadUnreadable]]:
    """Decrypt rows. Return the decrypted rows, and, by message id, the errors of rows that cannot be decrypted.

    `failed`: the errors of data keys that cannot be unwrapped, by key id. This function adds to the dict, and does not
    try the keys in the dict again, because each try may wait for AWS KMS. So a caller that reads many sets of rows
    passes the same dict each time.
    """
    failed = {} if failed is None else failed
    sealed_by = [_key_ids_or_error(row) for row in found]
    keys = _unwrapped(set().union(*(ids for ids in sealed_by if isinstance(ids, set))), failed)
    readable, problems = list[Row](), dict[str, PayloadUnreadable]()
    for row, ids in zip(found, sealed_by, strict=True):
        error = _first_error(ids, failed) if isinstance(ids, set) else ids
        try:
            readable += [] if error else [_opened(row, keys)]
        except PayloadUnreadable as changed:
            error = changed
        if error:
            problems[row.message_id] = error
    return readable, problems


def _key_ids_or_error(row: HasContent) -> set[int] | PayloadUnreadable:
    try:
        return _key_ids([row])
    except PayloadUnreadable as error:
        return error


def _unwrapped(ids: set[int], failed: dict[int, PayloadUnreadable]) -> dict[int, DataKey]:
    """Return, by id, the data keys that can be unwrapped, except keys in `failed`. Add new errors to `failed`."""
    untried = ids - failed.keys()
    try:
        return payload_keys.unwrapped_keys(untried)
    except PayloadUnreadable:
        pass
    keys = dict[int, DataKey]()
    for key_id in sorted(untried):
        try:
            keys |= payload_keys.unwrapped_keys({key_id})
        except PayloadUnreadable as error:
            failed[key_id] = error
    return keys


def _first_error(ids: set[int], failed: Mapping[int, PayloadUnreadable]) -> PayloadUnreadable | None:
    """Return an error of these data keys; the error of a destroyed key comes first, since trying again cannot help."""
    errors = [failed[key_id] for key_id in sorted(ids) if key_id in failed]
    return next((error for error in errors if isinstance(error, PayloadDestroyed)), errors[0] if errors else None)


def opened_bytes(content: bytes, part: Part, *, of: str) -> bytes:
    """Return bytes decrypted, if they are encrypted. `of`: the letter's message id. Raises PayloadUnreadable."""
    if (key_id := sealing.key_id(content)) is None:
        return content
    return sealing.open_sealed(payload_keys.unwrapped_keys({key_id})[key_id], content, part=part, of=of)


def opened_system(system: Mapping[str, Any], *, of: str) -> dict[str, Any]:
    """Return SQS's own attributes of a message, decrypted. `of`: the letter's message id. Raises PayloadUnreadable."""
    if (sealed := _sealed_system(system)) is None:
        return dict(system)
    key_id = sealing.key_id(sealed) or 0
    return _open_system(system, sealed, payload_keys.unwrapped_keys({key_id})[key_id], of)


def sealed_text(text: str, part: Part) -> str:
    """Return a text encrypted with the installation's key, for a text column; if encryption is off, the text itself."""
    key = payload_keys.current_key(INSTALLATION)
    return text if key is None or not text else sealing.to_text(sealing.seal(key, text.encode(), part=part, of=""))


def opened_text(text: str, part: Part, *, of: str = "") -> str:
    """Decrypt a text that `sealed_text` or `Sealer.text` returned.

    `of`: for texts of `Sealer.text`, the letter's message id; else empty. Raises PayloadUnreadable.
    """
    sealed = sealing.from_text(text)
    return text if sealed is None else opened_bytes(sealed, part, of=of).decode()


def digests(bodies: Iterable[bytes]) -> list[bytes]:
    """Return the digests by which equal bodies are recognised; with encryption, HMACs with the installation's key.

    An HMAC prevents people without the key from finding a letter by a guessed body.
    """
    key = payload_keys.current_key(INSTALLATION)
    return [body_hash(body) if key is None else key.digest(body) for body in bodies]


def keyed(hashes: Sequence[bytes]) -> list[bytes]:
    """Return how hashes of private values are stored: as HMACs if payloads are encrypted, else unchanged."""
    key = payload_keys.current_key(INSTALLATION)
    return list(hashes) if key is None else [key.digest(found) for found in hashes]


def _key_ids(found: Iterable[HasContent]) -> set[int]:
    ids: set[int] = set()
    for row in found:
        for name in CONTENT:
            if (content := getattr(row, name, None)) and (key_id := sealing.key_id(content)) is not None:
                ids.add(key_id)
        if sealed := _sealed_system(getattr(row, "system", None) or {}):
            ids.add(sealing.key_id(sealed) or 0)
    return ids


def _opened(row: Row, keys: Mapping[int, DataKey]) -> Row:
    changed: dict[str, Any] = {}
    for name, part in CONTENT.items():
        content = getattr(row, name, None)
        if content and (key_id := sealing.key_id(content)) is not None:
            changed[name] = sealing.open_sealed(keys[key_id], content, part=part, of=row.message_id)
    system = getattr(row, "system", None) or {}
    if sealed := _sealed_system(system):
        changed["system"] = _open_system(system, sealed, keys[sealing.key_id(sealed) or 0], row.message_id)
    return dataclasses.replace(row, **changed) if changed else row  # type: ignore[type-var]  # rows are dataclasses


def _sealed_system(system: Mapping[str, Any]) -> bytes | None:
    """Return SQS's encrypted attributes, if there are any. Raises PayloadUnreadable if their bytes were changed."""
    if not isinstance(text := system.get(_SYSTEM), str):
        return None
    try:
        sealed = base64.b64decode(text, validate=True)
    except ValueError:
        raise sealing.changed(Part.SYSTEM) from None
    if sealing.key_id(sealed) is None:
        raise sealing.changed(Part.SYSTEM)
    return sealed


def _open_system(system: Mapping[str, Any], sealed: bytes, key: DataKey, of: str) -> dict[str, Any]:
    secret: dict[str, Any] = json.loads(sealing.open_sealed(key, sealed, part=Part.SYSTEM, of=of))
    return {name: value for name, value in system.items() if name != _SYSTEM} | secret
