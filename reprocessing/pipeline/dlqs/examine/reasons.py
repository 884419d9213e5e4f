"""Say why each value of a DLQ and its targets is proposed, such as an attribute of the queue, or the default."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from reprocessing.domain.message.arn import resource_name
from reprocessing.domain.notifications.text import duration
from reprocessing.models.dlq import MAX_HELD_COPIES
from reprocessing.models.target import Advance, Proof
from reprocessing.pipeline.dlqs.examine.findings import Case
from reprocessing.pipeline.dlqs.examine.gathered import Wanted
from reprocessing.pipeline.dlqs.examine.proposal import must_delete_at_capture
from reprocessing.pipeline.dlqs.examine.queue_attributes import DescribedQueue
from reprocessing.store.dlqs import dlq_proposal

#: The reason for a value, by the label of its object (such as "DLQ orders") and the name of its field. For a source,
#: the second key is the ARN of the source, not the name of a field.
Reasons = Mapping[tuple[str, str], str]
GIVEN: Final = "As entered."
#: The reason of a value that is only read, and not decided.
REPORTED: Final = "SQS reports it."
_FACTS: Final = ("url", "arn", "region", "fifo", "visibility", "size_limit")


def reasons(case: Case, wanted: Wanted) -> Reasons:
    """Return a reason for each proposed value. A value that a person gave has the reason `GIVEN`."""
    dlq, found = f"{dlq_proposal.DLQ} {case.name}", dict[tuple[str, str], str]()
    of_dlq = {**dict.fromkeys(_FACTS, REPORTED), **_of_dlq(case), **dict.fromkeys(wanted.dlq, GIVEN)}
    found |= {(dlq, field): why for field, why in of_dlq.items()}
    found |= {(dlq, arn): why for arn, why in _of_sources(case)}
    found[dlq, dlq_proposal.DEFAULT] = "It is the only named source: messages that name no source count as its own."
    for arn in case.proposal.targets:
        kind = dlq_proposal.SOURCE_QUEUE if arn in case.proposal.ways else dlq_proposal.TARGET
        given = {**wanted.target, **wanted.targets.get(arn, {})}
        seen = case.observed.queues.get(arn)
        of_target = {**(_of_queue(case, seen) if seen else {}), **_of_rate(case, arn), **dict.fromkeys(given, GIVEN)}
        found |= {(f"{kind} {resource_name(arn)}", field): why for field, why in of_target.items()}
    return found


def _of_dlq(case: Case) -> dict[str, str]:
    facts = case.observed.dlq.facts
    kept, since = duration(facts.retention.total_seconds()), "it arrived" if facts.fifo else "its first send"
    return {
        "retention": f"SQS reports it: a message is deleted {kept} after {since}, unless it is captured before.",
        "mode": "The default: nothing is received or sent until a person starts a run.",
        "ordering_key": "It is a FIFO queue: the messages of a group stay in order."
        if facts.fifo
        else "It is a standard queue, which keeps no order. Set a key if messages of one customer must stay in order.",
        "sequence": "It is a FIFO queue: SQS numbers its messages." if facts.fifo else "The default: the sending time.",
        "idempotency_key": "The default: each message has its own id, so no two messages are taken for duplicates.",
        "delete_when": _of_deletion(case),
        "held_copies_limit": f"Set for this installation. SQS allows {MAX_HELD_COPIES:,} messages in flight.",
    }


def _of_deletion(case: Case) -> str:
    if not must_delete_at_capture(case.observed):
        return "The default: until a message is finished, it also stays in the DLQ, hidden from other readers."
    if case.observed.dlq.facts.fifo:
        return "It is a FIFO queue: a captured message that stays in it blocks its group."
    return "The DLQ has a redrive policy of its own: SQS would move captured messages that stay in it."


def _of_sources(case: Case) -> Iterator[tuple[str, str]]:
    for arn in case.proposal.ways:
        seen = case.observed.sources.get(arn)
        policy = seen.facts.redrive if seen else None
        if policy and policy.target_arn == case.arn:
            yield arn, f"Its redrive policy names this DLQ, after {policy.max_receives} receives (maxReceiveCount)."
        else:
            yield arn, "Entered as a source: no redrive policy of a queue says so."


def _of_queue(case: Case, seen: DescribedQueue) -> dict[str, str]:
    return {
        **dict.fromkeys(_FACTS, REPORTED),
        "window": _of_window(seen),
        "watched_by": _of_watcher(case, seen),
        "proof": _of_proof(case, seen),
        "advance": _of_advance(case, seen),
    }


def _of_window(seen: DescribedQueue) -> str:
    visibility = f"{seen.facts.visibility.total_seconds():g} s"
    if seen.facts.redrive is None:
        return f"Twice its visibility timeout of {visibility}: it has no redrive policy."
    receives = seen.facts.redrive.max_receives
    product = f"Its visibility timeout ({visibility}) times maxReceiveCount + 1 ({receives + 1})"
    return f"{product}: a failed message may take so long to come back."


def _of_watcher(case: Case, seen: DescribedQueue) -> str:
    if _watched_by(case, seen):
        return "Its redrive policy names this DLQ: a message that fails again comes back."
    return "No registered DLQ gets its failed messages."


def _of_proof(case: Case, seen: DescribedQueue) -> str:
    if case.of_target(seen, "proof") == Proof.ABSENCE:
        return "Failed messages come back to a registered DLQ, so a message that does not come back was processed."
    if _watched_by(case, seen) is None:
        return "No registered DLQ gets its failed messages, so nobody can see whether a message was processed."
    return "The DLQ that its redrive policy names is in mode observe: nobody would see that a message came back."


def _of_advance(case: Case, seen: DescribedQueue) -> str:
    if case.of_target(seen, "advance") == Advance.SETTLED:
        return "A standard queue keeps no order: a key's next message waits for the outcome of the one before."
    return "SQS keeps the order of a message group." if seen.facts.fifo else "Without an ordering key nothing waits."


def _of_rate(case: Case, arn: str) -> dict[str, str]:
    rate, depth = case.of_target(arn, "rate"), case.observed.depth.total
    takes = f" The DLQ's {depth:,} messages take {duration(depth / rate)} or longer." if rate and depth else ""
    return {
        "rate": f"The default, because nothing is known about its consumer. Sending starts at a tenth of it.{takes}",
        "burst": "The default: as many messages at once as the rate allows in one second.",
    }


def _watched_by(case: Case, seen: DescribedQueue) -> Any:  # noqa: ANN401  an ARN or None
    return case.of_target(seen, "watched_by")
