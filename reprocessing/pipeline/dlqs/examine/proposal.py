"""Propose the values to store for a DLQ: the values that a person gave, or else defaults by its queues' attributes."""

from __future__ import annotations

from typing import Any

from reprocessing.domain.message.identity import Selector, SelectorSource
from reprocessing.domain.ordering.placement import KeyPolicy
from reprocessing.domain.targets.target_kind import TargetKind
from reprocessing.models import Target
from reprocessing.models.dlq import DeleteWhen, MissingKey, Mode
from reprocessing.models.target import Advance, Proof
from reprocessing.pipeline.dlqs.examine.default_targets import RATE, default_fields
from reprocessing.pipeline.dlqs.examine.gathered import Observed, Wanted
from reprocessing.pipeline.dlqs.examine.queue_attributes import DescribedQueue
from reprocessing.store.dlqs.dlq_proposal import DlqProposal


def propose(wanted: Wanted, observed: Observed, *, held_copies_limit: int) -> DlqProposal:
    """Return the values to store: those that a person gave, and defaults for a new DLQ and new targets.

    Raises:
        InvalidSelector: a key that is always needed, such as the idempotency key, was switched off.
    """
    dlq = _facts_of_dlq(observed)
    if observed.row is None:
        dlq |= _new_dlq(wanted, observed) | {"held_copies_limit": held_copies_limit}
    dlq |= wanted.dlq
    for schedule, other in (("interval", "crontab"), ("crontab", "interval")):
        if dlq.get(schedule) is not None and other not in wanted.dlq:
            dlq[other] = None
    keyed = policy(wanted, observed).ordering
    return DlqProposal(
        name=wanted.name,
        dlq=dlq,
        ways=observed.targets_by_source,
        targets={
            **{arn: _target(wanted, observed, seen, keyed) for arn, seen in observed.queues.items()},
            **{arn: _other(wanted, observed, target) for arn, target in observed.other_targets.items()},
        },
        default_source=wanted.default_source or _only(observed.named if wanted.names_default else []),
        teams=wanted.teams,
    )


def _only(named: list[str]) -> str | None:
    return named[0] if len(named) == 1 else None


def policy(wanted: Wanted, observed: Observed) -> KeyPolicy:
    """Return from which parts of a letter its ordering key, sequence and idempotency key will be read.

    Raises:
        InvalidSelector: a key that is always needed, such as the idempotency key, was switched off.
    """
    row = observed.row

    def said(name: str) -> str:
        return str(wanted.dlq.get(name, getattr(row, name) if row else ""))

    return KeyPolicy.of(
        fifo=observed.dlq.facts.fifo,
        ordering=said("ordering_key"),
        sequence=said("sequence"),
        idempotency=said("idempotency_key"),
        missing_key=said("missing_key") or MissingKey.PARK,
    )


def mode(wanted: Wanted, observed: Observed) -> Mode:
    """Return the mode that the DLQ will have after the proposed values are stored."""
    return Mode(wanted.dlq.get("mode", observed.row.mode if observed.row else Mode.MANUAL))


def watcher(observed: Observed, seen: DescribedQueue) -> str | None:
    """Return the ARN of the DLQ into which messages of this queue fail, if that DLQ is watched; else None."""
    behind = seen.facts.redrive.target_arn if seen.facts.redrive else None
    return behind if behind == observed.dlq.facts.arn or behind in observed.dlqs else None


def _facts_of_dlq(observed: Observed) -> dict[str, Any]:
    facts = observed.dlq.facts
    return {
        "url": observed.row.url if observed.row else observed.dlq.address.url,
        "arn": facts.arn,
        "region": observed.dlq.address.region,
        "fifo": facts.fifo,
        "retention": int(facts.retention.total_seconds()),
    }


def _new_dlq(wanted: Wanted, observed: Observed) -> dict[str, Any]:
    keys = policy(wanted, observed)
    return {
        "mode": Mode.MANUAL.value,
        "ordering_key": str(keys.ordering),
        "sequence": str(keys.sequence),
        "idempotency_key": str(keys.idempotency),
        "delete_when": (DeleteWhen.CAPTURED if must_delete_at_capture(observed) else DeleteWhen.TERMINAL).value,
    }


def must_delete_at_capture(observed: Observed) -> bool:
    """Return whether messages must be deleted from the DLQ when they are captured.

    In a FIFO DLQ, they would block their message groups. If the DLQ has a redrive policy, SQS would move them to yet
    another DLQ.
    """
    return observed.dlq.facts.fifo or observed.dlq.facts.redrive is not None


def _target(wanted: Wanted, observed: Observed, seen: DescribedQueue, keyed: Selector) -> dict[str, Any]:
    """Return the values to store for a target queue.

    A value comes from the options that a person gave, from SQS, or from the stored target. A new target gets defaults.
    """
    facts = seen.facts
    row = observed.targets.get(facts.arn)
    watching = watcher(observed, seen)
    values: dict[str, Any] = {
        "url": row.url if row else seen.address.url,
        "region": seen.address.region,
        "role_arn": (row.role_arn if row else "") or seen.address.role,
        "fifo": facts.fifo,
        "visibility": int(facts.visibility.total_seconds()),
        "size_limit": facts.largest,
        "window": _window(seen, row),
        "watched_by": watching,
    }
    if row is None:
        values |= {"rate": RATE, "burst": None, "proof": _proof(wanted, observed, watching).value}
        values["advance"] = _advance(keyed, fifo=facts.fifo).value
    return {**values, **wanted.target, **wanted.targets.get(facts.arn, {})}


def _window(seen: DescribedQueue, row: Target | None) -> float:
    """Return the return window of a target in seconds: how long a failed message may take to come back to the DLQ.

    A stored window stays, unless the queue's visibility timeout has changed so that a longer window is needed.
    """
    needed = seen.window.total_seconds()
    if row is None or row.visibility != int(seen.facts.visibility.total_seconds()):
        return max(needed, row.window) if row else needed
    return row.window


def _other(wanted: Wanted, observed: Observed, target: Target) -> dict[str, Any]:
    """Return the values to store for a target that is not a queue."""
    if target.arn in observed.targets:
        return {**wanted.target, **wanted.targets.get(target.arn, {})}
    names = default_fields(TargetKind(target.kind), target.arn)
    return {**{name: getattr(target, name) for name in names}, "role_arn": target.role_arn, **wanted.target}


def _proof(wanted: Wanted, observed: Observed, watching: str | None) -> Proof:
    if watching is None:
        return Proof.ACCEPTED
    its_mode = mode(wanted, observed) if watching == observed.dlq.facts.arn else observed.dlqs[watching].mode
    return Proof.ACCEPTED if its_mode == Mode.OBSERVE else Proof.ABSENCE


def _advance(keyed: Selector, *, fifo: bool) -> Advance:
    """Return when the next message of a key may be sent: when the target accepted the one before, or at its outcome.

    `accepted` is enough if the target is a FIFO queue with the same message groups, or if messages have no order.
    """
    if keyed.source is SelectorSource.NONE or (fifo and str(keyed) == "system:MessageGroupId"):
        return Advance.ACCEPTED
    return Advance.SETTLED
