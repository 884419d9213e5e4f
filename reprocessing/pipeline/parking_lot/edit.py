"""Edit a parked letter: the edited bytes are sent later, and the captured bytes are kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import assert_never

from reprocessing.domain.approvals.requested_action import ActionKind, RequestedAction
from reprocessing.domain.lifecycle import LetterState
from reprocessing.domain.message.envelope import Attribute, pack_attributes, unpack_attributes
from reprocessing.domain.message.identity import LetterFacts
from reprocessing.domain.message.redrive_attributes import MarkNames, attributes_size
from reprocessing.domain.ordering import placement
from reprocessing.domain.ordering.placement import KeyPolicy, LetterPlace
from reprocessing.domain.parking_lot import edit_policy
from reprocessing.domain.parking_lot.edit_policy import LockedAttribute, SelectorsByPurpose
from reprocessing.domain.payloads.sealing import Part
from reprocessing.domain.replay.verdicts import Park
from reprocessing.models import DeadLetterQueue
from reprocessing.models.audit import AuditAct
from reprocessing.pipeline.parking_lot import act_on_parked
from reprocessing.pipeline.runs import place_letters
from reprocessing.store import rows
from reprocessing.store.approvals import guard
from reprocessing.store.ordering import lanes
from reprocessing.store.parking_lot import message_edits
from reprocessing.store.parking_lot.message_edits import EditableLetter, EditRecord, NewRevision, WrittenEdit
from reprocessing.store.payloads import content, payload_keys
from reprocessing.store.payloads.content import Sealer

_DONE = {
    AuditAct.RELEASED: "released",
    AuditAct.DISCARDED: "discarded",
    AuditAct.EDITED: "edited",
    AuditAct.RESTORED: "restored",
}


@dataclass(frozen=True, slots=True)
class SeenLetter:
    """The version of a letter that a person saw: when the letter was parked, and its revision (0: never edited)."""

    finished_at: datetime
    revision: int


@dataclass(frozen=True, slots=True)
class Alteration:
    """The letter as a person edited it. `key`: a new idempotency key; None: keep the old key."""

    body: bytes = field(repr=False)
    attributes: Mapping[str, Attribute] = field(repr=False)
    key: str | None = None

    @property
    def size(self) -> int:
        """Return the size of the edited letter in bytes, as SQS counts it."""
        return len(self.body) + attributes_size(self.attributes)


@dataclass(frozen=True, slots=True)
class Edited:
    """The edit was saved. `no`: the number of the revision.

    `still_parked_because`: why the letter was not released; empty: it was released, or the person did not want that.
    """

    no: int
    still_parked_because: str = ""


@dataclass(frozen=True, slots=True)
class ChangedMeanwhile:
    """Nothing was done, because the letter has changed since the person saw it. `why`: what changed, as text."""

    why: str


@dataclass(frozen=True, slots=True)
class Unsendable:
    """Nothing was done, because the edited message cannot be sent. `problems`: the reasons, as sentences."""

    problems: tuple[str, ...]


def keys_of(dlq: DeadLetterQueue) -> SelectorsByPurpose:
    """Return the selectors of a DLQ, by purpose: where in a letter the keys, the message type and the tenant are."""
    return edit_policy.selectors_by_purpose(
        place_letters.policy_of(dlq), message_type=dlq.message_type, tenant=dlq.tenant
    )


def problems(stand: EditableLetter, to: Alteration, names: MarkNames, *, typed: bool = True) -> list[str]:
    """Return why an edit is not possible, as sentences without message data; empty: it is possible.

    `stand`: the letter as it is now. `to`: the edit. `names`: the names of the redrive attributes, which cannot be
    edited. `typed`: whether the body comes from the text field of a web page, which cannot show all bodies.
    """
    body, own = bytes(stand.body), unpack_attributes(bytes(stand.attributes))
    if (to.body, dict(to.attributes)) == (body, own):
        return ["Nothing is changed."]
    found = edit_policy.problems(to.body, to.attributes, former=own, names=names, largest=stand.largest)
    found += [
        f"{name} stays as it is: {told.why}."
        for name in sorted(own.keys() | to.attributes.keys())
        if own.get(name) != to.attributes.get(name)
        and isinstance(told := edit_policy.attribute_class(name, names, {}), LockedAttribute)
    ]
    if to.body != body:
        closed = edit_policy.why_not_editable(body, own) if typed else edit_policy.why_no_body(body, own)
        found += [f"Its body cannot be edited here: {closed}."] if closed else []
        found += edit_policy.body_problems(to.body)
        broken = edit_policy.json_problem(body, to.body)
        found += [broken] if broken else []
    return found


def changed_keys(stand: EditableLetter, to: Alteration, goes_by: SelectorsByPurpose) -> list[str]:
    """Return a sentence for people for each key, and for the message type or tenant, that the edit changes.

    `stand`: the letter as it is now. `goes_by`: the selectors that say where these values are in the letter.
    """
    before = LetterFacts(stand.message_id, bytes(stand.body), unpack_attributes(bytes(stand.attributes)), stand.system)
    return edit_policy.changed_selectors(goes_by, before, _facts(stand, to))


def place_after_edit(stand: EditableLetter, to: Alteration, policy: KeyPolicy) -> str:
    """Return a sentence for people that says how the letter is ordered after the edit.

    For example, it keeps its place in its key queue.
    """
    if not stand.has_source:
        return "Its target is not known, so it cannot be released."
    if stand.ordering_key is not None:
        return "The message keeps its ordering key and its place in the key queue, whatever the edit changes."
    if stand.placed:
        return "It has no ordering key, also after the edit: it is sent without ordering."
    found = placement.choose_place(policy, _facts(stand, to))
    match found:
        case LetterPlace(key=None):
            return "It had no ordering key, also after the edit: it is sent without ordering."
        case LetterPlace():
            return "The edit gives it an ordering key and a place in the key queue."
        case Park(_, detail):
            no_key = f"It has no ordering key, also after the edit: {detail}"
            return f"{no_key} If you release it, it is sent without ordering."
        case _ as never:
            assert_never(never)


def describe_change(pk: int, stand: EditableLetter | None) -> str:
    """Return how a letter has changed since a person saw it, and who changed it.

    `pk`: the letter's id. `stand`: the letter now; None: its bytes are deleted.
    """
    if stand is None:
        return "its bytes are no longer kept"
    now = "" if stand.state == LetterState.PARKED else f"; it is {stand.state}"
    last = message_edits.last_action(pk)
    if last is None:
        return f"it has changed since you opened it{now}"
    what = _DONE.get(AuditAct(last.act), last.act)
    return f'it has changed since you opened it: {last.by} {what} it at {last.at:%H:%M:%S} UTC ("{last.reason}"){now}'


def edit_letter(  # noqa: PLR0913  # arguments are passed by name
    pk: int, seen: SeenLetter, to: Alteration, *, names: MarkNames, by: str, reason: str, replay: bool,
    approval: int | None = None,
) -> Edited | ChangedMeanwhile | Unsendable:  # fmt: skip
    """Save an edit of a parked letter, if the letter is as the person saw it (`seen`). `replay`: release it, too.

    All is one transaction. The captured bytes and the place in the lane are kept. An edited letter that fails again is
    recognised when it comes back to the DLQ. `names`: names of the redrive attributes. `approval`: id of the approval
    that is being executed.

    Raises:
        ApprovalNeeded: a second person is needed.
    """
    if not by.strip() or not reason.strip():
        raise ValueError("by and reason must not be empty")

    # Before the transaction: AWS KMS may have to unwrap the keys.
    before = message_edits.read_letter(pk)
    sealer = content.sealer_of(before.dlq_id, lanes.database_now().date()) if before else content.READABLE
    (digest,) = content.digests([to.body])

    def decide() -> Edited | ChangedMeanwhile | Unsendable:
        message_edits.lock_letter(pk)
        stand = message_edits.read_letter(pk)
        if stand is None or not _is(stand, seen):
            return ChangedMeanwhile(describe_change(pk, stand))
        if against := problems(stand, to, names):
            return Unsendable(tuple(against))
        guard.check(_action(pk, seen, to, replay=replay), {stand.dlq_id: 1}, by=by, approval=approval)
        if sealer.key_id is not None and not payload_keys.is_live(sealer.key_id):
            payload_keys.forget_unwrapped()
            return ChangedMeanwhile("somebody destroys the payloads of its DLQ")
        written = written_edit(stand, to, sealer, digest)
        (made,) = message_edits.add_revisions([written], by=by, reason=reason)
        message_edits.record_edits([record_of(stand, to, made)], by=by, reason=reason, operation=None)
        if not replay:
            return Edited(made.no)
        return Edited(made.no, _replay(pk, by, reason))

    return rows.in_transaction(decide)


def written_edit(stand: EditableLetter, to: Alteration, sealer: Sealer, digest: bytes) -> WrittenEdit:
    """Return an edit as it is stored: encrypted, if payloads are. `digest`: the body's digest (`content.digests`)."""
    packed, of = pack_attributes(to.attributes), stand.message_id
    return WrittenEdit(
        stand.letter_id, sealer.bytes(to.body, Part.BODY, of=of), sealer.bytes(packed, Part.ATTRIBUTES, of=of), digest,
        to.size, to.key,
    )  # fmt: skip


def _replay(pk: int, by: str, reason: str) -> str:
    return act_on_parked.release([pk], by=by, reason=reason, is_part=True).refused.get(pk, "")


def _action(pk: int, seen: SeenLetter, to: Alteration, *, replay: bool) -> RequestedAction:
    said = {
        "finished_at": seen.finished_at.isoformat(), "revision": seen.revision, "key": to.key, "replay": replay,
    }  # fmt: skip
    title = "Edit and release a parked message" if replay else "Edit a parked message"
    return RequestedAction(ActionKind.EDIT, title, said, (pk,), to.body, pack_attributes(to.attributes))


def _facts(stand: EditableLetter, to: Alteration) -> LetterFacts:
    return LetterFacts(stand.message_id, to.body, to.attributes, stand.system)


def _is(stand: EditableLetter, seen: SeenLetter) -> bool:
    return (stand.state, stand.finished_at, stand.revision) == (LetterState.PARKED, seen.finished_at, seen.revision)


def record_of(stand: EditableLetter, to: Alteration, made: NewRevision) -> EditRecord:
    """Return the record of an edit for the audit log. It contains nothing of the message's content."""
    own = unpack_attributes(bytes(stand.attributes))
    changed = sorted(name for name in own.keys() | to.attributes.keys() if own.get(name) != to.attributes.get(name))
    after = {
        "revision": made.no, "size": made.size, "digest": bytes(made.body_hash).hex(), "attributes": changed,
        "body": to.body != bytes(stand.body), "new_key": to.key is not None,
    }  # fmt: skip
    return EditRecord(stand.letter_id, {"revision": stand.revision, "size": stand.size}, after)
