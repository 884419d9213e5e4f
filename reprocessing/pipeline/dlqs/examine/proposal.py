"""What is to be remembered of a dlq: what a person said, and for the rest what its queues suggest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from reprocessing.domain.message.identity import Selector, Source
from reprocessing.domain.ordering.placement import Policy
from reprocessing.models import Target
from reprocessing.models.dlq import DeleteWhen, MissingKey, Mode
from reprocessing.models.target import Advance, Proof, TargetKind
from reprocessing.pipeline.dlqs.examine.default_targets import RATE, drafted
from reprocessing.pipeline.dlqs.examine.gathered import Ask, Sight
from reprocessing.pipeline.dlqs.examine.queue_attributes import Seen
from reprocessing.store.dlqs.registration import Proposal


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a person asked for.

    Attributes:
        url: the dlq's; None where it was added before.
        origins: URLs of queues whose messages die into it, where SQS does not tell of them, or ARNs of what else failed
            to take its letters.
        to: where letters of the named origins go instead of back; where none is named, those of all.
        takes_back: they go back to where they died, though somebody said otherwise before.
        dlq: values by the names of the row's fields (see registration.Proposal); what is not here was not said.
        target: the same for the targets of all its origins.
    """

    name: str
    url: str | None = None
    origins: tuple[str, ...] = ()
    to: Target | None = None
    takes_back: bool = False
    dlq: Mapping[str, Any] = field(default_factory=dict)
    target: Mapping[str, Any] = field(default_factory=dict)

    @property
    def ask(self) -> Ask:
        """What is to be looked at."""
        return Ask(
            name=self.name, url=self.url, role=self.dlq.get("role_arn"), origins=self.origins, to=self.to,
            takes_back=self.takes_back, parking_url=self.dlq.get("parking_url", ""),
        )  # fmt: skip


def propose(wanted: Wanted, sight: Sight, *, custody_limit: int) -> Proposal:
    """The proposal that holds what was asked for, completed; of a dlq that is there, only what was asked for.

    Raises:
        SelectorIsUnclear: a key that is always needed was switched off.
    """
    dlq = _facts_of_dlq(sight)
    if sight.row is None:
        dlq |= _new_dlq(wanted, sight) | {"custody_limit": custody_limit}
    dlq |= wanted.dlq
    if "interval" in wanted.dlq:
        dlq["crontab"] = None
    if "crontab" in wanted.dlq:
        dlq["interval"] = None
    keyed = policy(wanted, sight).ordering
    return Proposal(
        name=wanted.name,
        dlq=dlq,
        ways=sight.ways,
        targets={
            **{arn: _target(wanted, sight, seen, keyed) for arn, seen in sight.queues.items()},
            **{arn: _other(wanted, sight, one) for arn, one in sight.others.items()},
        },
        default_origin=sight.named[0] if len(sight.named) == 1 else None,
    )


def policy(wanted: Wanted, sight: Sight) -> Policy:
    """Where the dlq's letters will carry their keys.

    Raises:
        SelectorIsUnclear: a key that is always needed was switched off.
    """
    row = sight.row

    def said(name: str) -> str:
        return str(wanted.dlq.get(name, getattr(row, name) if row else ""))

    return Policy.of(
        fifo=sight.dlq.facts.fifo,
        ordering=said("ordering_key"),
        sequence=said("sequence"),
        idempotency=said("idempotency_key"),
        missing_key=said("missing_key") or MissingKey.PARK,
    )


def mode(wanted: Wanted, sight: Sight) -> Mode:
    """In which mode the dlq will be."""
    return Mode(wanted.dlq.get("mode", sight.row.mode if sight.row else Mode.MANUAL))


def watcher(sight: Sight, seen: Seen) -> str | None:
    """The ARN of the watched dlq that a queue's messages die into, this one or another; None where there is none."""
    behind = seen.facts.redrive.target_arn if seen.facts.redrive else None
    return behind if behind == sight.dlq.facts.arn or behind in sight.dlqs else None


def _facts_of_dlq(sight: Sight) -> dict[str, Any]:
    facts = sight.dlq.facts
    return {
        "url": sight.row.url if sight.row else sight.dlq.address.url,
        "arn": facts.arn,
        "region": sight.dlq.address.region,
        "fifo": facts.fifo,
        "retention": int(facts.retention.total_seconds()),
    }


def _new_dlq(wanted: Wanted, sight: Sight) -> dict[str, Any]:
    keys = policy(wanted, sight)
    return {
        "mode": Mode.MANUAL.value,
        "ordering_key": str(keys.ordering),
        "sequence": str(keys.sequence),
        "idempotency_key": str(keys.idempotency),
        "delete_when": (DeleteWhen.CAPTURED if must_delete_at_capture(sight) else DeleteWhen.TERMINAL).value,
    }


def must_delete_at_capture(sight: Sight) -> bool:
    """Whether copies must not stay in the dlq: they block their FIFO groups, or its own redrive policy moves them."""
    return sight.dlq.facts.fifo or sight.dlq.facts.redrive is not None


def _target(wanted: Wanted, sight: Sight, seen: Seen, keyed: Selector) -> dict[str, Any]:
    """A target's values: its queue's, what it has already, what was asked for; for a new one, what suits it."""
    facts = seen.facts
    row = sight.targets.get(facts.arn)
    watching = watcher(sight, seen)
    window = seen.window.total_seconds()
    values: dict[str, Any] = {
        "url": row.url if row else seen.address.url,
        "region": seen.address.region,
        "role_arn": (row.role_arn if row else "") or seen.address.role,
        "fifo": facts.fifo,
        "visibility": int(facts.visibility.total_seconds()),
        "size_limit": facts.largest,
        # A longer one was a person's: their consumer hides letters for longer than its queue says.
        "window": max(window, row.window) if row else window,
        "watched_by": watching,
    }
    if row is None:
        values |= {"rate": RATE, "burst": None, "proof": _proof(wanted, sight, watching).value}
        values["advance"] = _advance(keyed, fifo=facts.fifo).value
    return {**values, **wanted.target}


def _other(wanted: Wanted, sight: Sight, target: Target) -> dict[str, Any]:
    """The same for a target that SQS was not asked about."""
    if target.arn in sight.targets:
        return dict(wanted.target)
    names = drafted(TargetKind(target.kind), target.arn)
    return {**{name: getattr(target, name) for name in names}, "role_arn": target.role_arn, **wanted.target}


def _proof(wanted: Wanted, sight: Sight, watching: str | None) -> Proof:
    if watching is None:
        return Proof.ACCEPTED
    its_mode = mode(wanted, sight) if watching == sight.dlq.facts.arn else sight.dlqs[watching].mode
    return Proof.ACCEPTED if its_mode == Mode.OBSERVE else Proof.ABSENCE


def _advance(keyed: Selector, *, fifo: bool) -> Advance:
    """Where the target keeps the order of a lane itself, or where no order is asked for, nothing is waited for."""
    if keyed.source is Source.NONE or (fifo and str(keyed) == "system:MessageGroupId"):
        return Advance.ACCEPTED
    return Advance.SETTLED
