"""Edit a parked letter: the edited bytes are sent, and the captured bytes are kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import assert_never

from reprocessing.domain.lifecycle import LetterState
from reprocessing.domain.message.envelope import Attribute, pack, unpack
from reprocessing.domain.message.identity import LetterFacts
from reprocessing.domain.message.redrive_attributes import MarkNames, size
from reprocessing.domain.ordering import placement
from reprocessing.domain.ordering.placement import Place, Policy
from reprocessing.domain.parking_lot import edit_policy
from reprocessing.domain.parking_lot.edit_policy import Keys, Locked
from reprocessing.domain.replay.verdicts import Park
from reprocessing.models import DeadLetterQueue
from reprocessing.models.audit import Act
from reprocessing.pipeline.parking_lot import act_on_parked
from reprocessing.pipeline.runs import place_letters
from reprocessing.store import rows
from reprocessing.store.parking_lot import editing
from reprocessing.store.parking_lot.editing import Revised, Stand

_DONE = {Act.RELEASED: "released", Act.DISCARDED: "discarded", Act.EDITED: "edited", Act.RESTORED: "restored"}


@dataclass(frozen=True, slots=True)
class Seen:
    """The version that a person saw: when it was parked, and its revision (0: as captured)."""

    finished_at: datetime
    revision: int


@dataclass(frozen=True, slots=True)
class Alteration:
    """What is to be sent. `key`: a new idempotency key; None: keep it."""

    body: bytes = field(repr=False)
    attributes: Mapping[str, Attribute] = field(repr=False)
    key: str | None = None

    @property
    def size(self) -> int:
        """Return the size in bytes, as SQS counts it."""
        return len(self.body) + size(self.attributes)


@dataclass(frozen=True, slots=True)
class Edited:
    """The letter has revision `no`. `left`: why it is still parked, if it was to be replayed."""

    no: int
    left: str = ""


@dataclass(frozen=True, slots=True)
class Overtaken:
    """Nothing was done: the letter has changed since it was seen."""

    why: str


@dataclass(frozen=True, slots=True)
class Unsendable:
    """Nothing was done: the edit cannot be sent, with reasons in sentences."""

    problems: tuple[str, ...]


def keys(dlq: DeadLetterQueue) -> Keys:
    """Return the keys that the DLQ and its rules read from a letter."""
    return edit_policy.keys(place_letters.policy_of(dlq), message_type=dlq.message_type, tenant=dlq.tenant)


def problems(stand: Stand, to: Alteration, names: MarkNames) -> list[str]:
    """Return why a letter cannot be edited so, in sentences without values."""
    body, own = bytes(stand.body), unpack(bytes(stand.attributes))
    if (to.body, dict(to.attributes)) == (body, own):
        return ["Nothing is changed."]
    found = edit_policy.problems(to.body, to.attributes, former=own, names=names, largest=stand.largest)
    found += [
        f"{name} stays as it is: {told.why}."
        for name in sorted(own.keys() | to.attributes.keys())
        if own.get(name) != to.attributes.get(name)
        and isinstance(told := edit_policy.standing(name, names, {}), Locked)
    ]
    if to.body != body:
        closed = edit_policy.closed(body, own)
        found += [f"Its body cannot be edited here: {closed}."] if closed else []
        found += edit_policy.body_problems(to.body)
        broken = edit_policy.json_problem(body, to.body)
        found += [broken] if broken else []
    return found


def touched(stand: Stand, to: Alteration, goes_by: Keys) -> list[str]:
    """Return which keys the edit changes, in sentences."""
    before = LetterFacts(stand.message_id, bytes(stand.body), unpack(bytes(stand.attributes)), stand.system)
    return edit_policy.touched(goes_by, before, _facts(stand, to))


def order(stand: Stand, to: Alteration, policy: Policy) -> str:
    """Return the letter's place after the edit, in sentences."""
    if not stand.led:
        return "The queue it goes back to is not known: as long as that is so, nothing replays it."
    if stand.ordering_key is not None:
        return "It keeps its ordering key, its lane and its place there, whatever the edit changes."
    if stand.placed:
        return "It has no ordering key and goes alone, in no order with other letters; the edit gives it none."
    found = placement.place(policy, _facts(stand, to))
    match found:
        case Place(key=None):
            return "It had no place. With this edit it has one, without an ordering key: it goes alone."
        case Place():
            return "It had no place. With this edit it has an ordering key, and takes its place in that lane."
        case Park(_, detail):
            return f"It has no place, and this edit gives it none: {detail} Replayed, it goes alone, in no order."
        case _ as never:
            assert_never(never)


def overtaken(pk: int, stand: Stand | None) -> str:
    """Return how a letter has changed since it was seen, and who changed it."""
    if stand is None:
        return "its bytes are no longer kept"
    now = "" if stand.state == LetterState.PARKED else f"; it is {stand.state}"
    deed = editing.last(pk)
    if deed is None:
        return f"it is not as you saw it any more{now}"
    what = _DONE.get(Act(deed.act), deed.act)
    return f'it is not as you saw it any more: {deed.by} {what} it at {deed.at:%H:%M:%S} UTC ("{deed.reason}"){now}'


def letter(  # noqa: PLR0913  # each by its name
    pk: int, seen: Seen, to: Alteration, *, names: MarkNames, by: str, reason: str, replay: bool
) -> Edited | Overtaken | Unsendable:
    """Edit a parked letter if it is exactly as it was seen; then release it, if `replay`; in one transaction.

    The captured bytes, the lane, the place and the claim stay. Returns of every version are recognised. `names` are the
    attributes that are added on replay.
    """
    if not by.strip() or not reason.strip():
        raise ValueError("an edit says who made it, and why")

    def decide() -> Edited | Overtaken | Unsendable:
        editing.lock(pk)
        stand = editing.stands(pk)
        if stand is None or not _is(stand, seen):
            return Overtaken(overtaken(pk, stand))
        if against := problems(stand, to, names):
            return Unsendable(tuple(against))
        made = editing.revise(
            pk, body=to.body, attributes=pack(to.attributes), size=to.size, key=to.key, by=by, reason=reason
        )
        _record(stand, to, made, by=by, reason=reason)
        if not replay:
            return Edited(made.no)
        return Edited(made.no, act_on_parked.release([pk], by=by, reason=reason).refused.get(pk, ""))

    return rows.whole(decide)


def _facts(stand: Stand, to: Alteration) -> LetterFacts:
    return LetterFacts(stand.message_id, to.body, to.attributes, stand.system)


def _is(stand: Stand, seen: Seen) -> bool:
    return (stand.state, stand.finished_at, stand.revision) == (LetterState.PARKED, seen.finished_at, seen.revision)


def _record(stand: Stand, to: Alteration, made: Revised, *, by: str, reason: str) -> None:
    """Record what was edited, without its content."""
    own = unpack(bytes(stand.attributes))
    changed = sorted(name for name in own.keys() | to.attributes.keys() if own.get(name) != to.attributes.get(name))
    before = {"revision": stand.revision, "size": stand.size}
    after = {
        "revision": made.no, "size": made.size, "sha256": bytes(made.body_hash).hex(), "attributes": changed,
        "body": to.body != bytes(stand.body), "new_key": to.key is not None,
    }  # fmt: skip
    editing.record(stand.letter_id, Act.EDITED, by=by, reason=reason, before=before, after=after)
