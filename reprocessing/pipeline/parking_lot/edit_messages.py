"""Edit many parked letters with one patch. Each letter gets a revision, and its captured bytes are kept.

A batch is first prepared outside a transaction: its letters are decrypted, patched and encrypted. A transaction then
stores the edits of the letters that are still unchanged. So each letter is edited once, even if the worker is killed.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from typing import Final
from uuid import UUID, uuid5

from reprocessing.domain.lifecycle import LetterState
from reprocessing.domain.message.envelope import unpack_attributes
from reprocessing.domain.message.redrive_attributes import MarkNames
from reprocessing.domain.parking_lot import edit_policy, patched_body
from reprocessing.domain.parking_lot.bulk_edit import BulkEdit
from reprocessing.domain.parking_lot.patched_body import Unfit
from reprocessing.models import DeadLetterQueue
from reprocessing.pipeline.parking_lot import act_on_parked, edit
from reprocessing.pipeline.parking_lot.act_on_parked import Reviewed
from reprocessing.pipeline.parking_lot.edit import Alteration
from reprocessing.store.ordering import lanes
from reprocessing.store.parking_lot import decisions, message_edits
from reprocessing.store.parking_lot.message_edits import EditableLetter, LetterVersion, WrittenEdit
from reprocessing.store.payloads import content, payload_keys, sealed_search
from reprocessing.store.payloads.content import Sealer

#: Seconds for which a batch is prepared. The lease of a bulk action lasts longer (`bulk_actions.LEASE_SECONDS`).
PREPARE_SECONDS: Final = 5.0
_NEW_KEYS: Final = UUID(
    "8f0c3c55-7a0f-4f0e-9a5d-3d1c0d0b6f27"
)  # namespace of the new idempotency keys of a bulk action
_DELETED: Final = "its bytes are no longer kept"
_DESTROYED: Final = "a person destroyed the key of its payload"
_CHANGED: Final = "somebody edited or parked it again meanwhile"


@dataclass(frozen=True, slots=True)
class Patched:
    """The edit of one letter by the patch.

    `stand`: the letter before the edit. `to`: the letter after the edit. `touched`: a sentence for each key that
    changes.
    """

    stand: EditableLetter = field(repr=False)
    to: Alteration = field(repr=False)
    touched: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PreparedBatch:
    """Letters of a bulk action that are patched, but not stored yet.

    Attributes:
        letters: ids of the letters, ascending.
        refused: why a letter is not edited, by letter id.
        patched: the edits before encryption, by letter id.
        written: the edits as they are stored (encrypted, if payloads are), by letter id.
        sealers: the objects that encrypted the edits, by DLQ id.
    """

    letters: tuple[int, ...]
    refused: Mapping[int, str]
    patched: Mapping[int, Patched] = field(repr=False)
    written: Mapping[int, WrittenEdit] = field(repr=False)
    sealers: Mapping[int, Sealer] = field(repr=False)


class Patcher:
    """Applies a patch to letters. `names`: the names of the redrive attributes, which cannot be edited."""

    def __init__(self, wanted: BulkEdit, names: MarkNames) -> None:
        self._wanted, self._names = wanted, names
        self._keys = lru_cache(lambda dlq: edit.keys_of(DeadLetterQueue.objects.get(pk=dlq)))

    def patched(self, letters: Sequence[int], *, seconds: float) -> Iterator[tuple[int, Patched | Unfit]]:
        """Yield, for each letter, its id and its edit, or why it cannot be edited.

        Stop when `seconds` have passed, but not before the first letter.

        Raises:
            PayloadUnreadable: a key is not available now.
        """
        ends, done = time.monotonic() + seconds, 0
        for chunk in sealed_search.chunks(letters):
            stands, destroyed = message_edits.read_letters(chunk)
            found = {stand.letter_id: stand for stand in stands}
            for letter in chunk:
                if done and time.monotonic() > ends:
                    return
                done += 1
                missing = Unfit(_DESTROYED if letter in destroyed else _DELETED)
                yield letter, self._patched(found[letter]) if letter in found else missing

    def _patched(self, stand: EditableLetter) -> Patched | Unfit:
        body, attributes = bytes(stand.body), unpack_attributes(bytes(stand.attributes))
        if why := edit_policy.why_no_body(body, attributes):
            return Unfit(why)
        after = patched_body.apply(self._wanted.patch, body)
        if isinstance(after, Unfit):
            return after
        to = Alteration(after, attributes)
        if to.size > stand.largest:
            return Unfit(f"it would be larger than its target accepts ({stand.largest:,} bytes)")
        if problems := edit.problems(stand, to, self._names, typed=False):
            return Unfit(" ".join(problems))
        return Patched(stand, to, tuple(edit.changed_keys(stand, to, self._keys(stand.dlq_id))))


def prepare(letters: Sequence[int], wanted: BulkEdit, names: MarkNames, *, operation: int) -> PreparedBatch:
    """Patch and encrypt the first of these letters: at least one, and as many as memory and time allow.

    Call this function outside a transaction, because AWS KMS may be called.
    """
    refused, patched = dict[int, str](), dict[int, Patched]()
    chunk = next(sealed_search.chunks(letters), [])
    taken: list[int] = []
    for letter, found in Patcher(wanted, names).patched(chunk, seconds=PREPARE_SECONDS):
        taken.append(letter)
        if isinstance(found, Unfit):
            refused[letter] = found.why
        elif found.touched and not wanted.changes_keys:
            refused[letter] = f"nobody confirmed that keys may change: {found.touched[0]}"
        else:
            key = str(uuid5(_NEW_KEYS, f"{operation} {letter}")) if wanted.new_keys else None
            patched[letter] = replace(found, to=replace(found.to, key=key))
    day = lanes.database_now().date()
    sealers = {dlq: content.sealer_of(dlq, day) for dlq in {one.stand.dlq_id for one in patched.values()}}
    digests = content.digests([one.to.body for one in patched.values()])
    written = {
        letter: edit.written_edit(one.stand, one.to, sealers[one.stand.dlq_id], digest)
        for (letter, one), digest in zip(patched.items(), digests, strict=True)
    }
    return PreparedBatch(tuple(taken), refused, patched, written, sealers)


def apply(  # noqa: PLR0913  # arguments are passed by name
    batch: PreparedBatch, wanted: BulkEdit, *, by: str, reason: str, operation: int, seen_at: datetime
) -> Reviewed:  # fmt: skip
    """Store the edits of a prepared batch, for letters that are still unchanged, in the caller's transaction.

    Return the edited letters, and why others were refused. A letter that was edited, but cannot be released, is among
    the refused. `seen_at`: when the person saw the letters. A letter that another edit changed after this time is not
    edited.
    """
    locked = decisions.lock_letters(batch.letters, need_lane=False)
    now = message_edits.read_versions(batch.letters)
    refused = dict(batch.refused)
    refused |= {
        letter: _CHANGED for letter, one in batch.patched.items() if not _is_unchanged(one, now.get(letter), seen_at)
    }
    refused |= dict.fromkeys(set(batch.letters) - now.keys(), _DELETED)
    refused |= {one.letter_id: one.refusal for one in locked if one.refusal}
    dead = {dlq for dlq, sealer in batch.sealers.items() if sealer.key_id and not payload_keys.is_live(sealer.key_id)}
    if dead:
        payload_keys.forget_unwrapped()
    refused |= {letter: _DESTROYED for letter, one in batch.patched.items() if one.stand.dlq_id in dead}
    able = [written for letter, written in batch.written.items() if letter not in refused]
    made = message_edits.add_revisions(able, by=by, reason=reason)
    patched = [(batch.patched[one.letter_id], one) for one in made]
    message_edits.record_edits(
        [edit.record_of(one.stand, one.to, revision) for one, revision in patched], by=by, reason=reason,
        operation=operation,
    )  # fmt: skip
    done = [one.letter_id for one in made]
    if wanted.release and done:
        left = act_on_parked.release(done, by=by, reason=reason, operation=operation).refused
        refused |= {letter: f"it is edited, but stays parked: {why}" for letter, why in left.items()}
    return Reviewed(tuple(letter for letter in done if letter not in refused), refused)


def _is_unchanged(one: Patched, now: LetterVersion | None, seen_at: datetime) -> bool:
    if now is None or (now.edited_at is not None and now.edited_at > seen_at):
        return False
    then = (one.stand.letter_id, LetterState.PARKED.value, one.stand.finished_at, one.stand.revision)
    return (now.letter_id, now.state, now.finished_at, now.revision) == then
