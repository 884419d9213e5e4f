"""Put letters on the wire. No table is touched here, and no transaction is open."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from reprocessing.conf import Conf
from reprocessing.domain.replay.verdicts import NotSent, Outcome, Refused
from reprocessing.domain.targets.async_sender import Invocation, Post
from reprocessing.gateways.aws_services import publish, put
from reprocessing.gateways.sqs import QueueAddress, send
from reprocessing.models import Target
from reprocessing.models.target import TargetKind
from reprocessing.pipeline.replay import outgoing_message
from reprocessing.store.replay.intent import Intended

Form = TypeVar("Form")


def letters(
    intended: Sequence[Intended],
    targets: Mapping[int, Target],
    *,
    conf: Conf,
    dlqs: Mapping[int, str],
    may_start: Callable[[int], bool],
) -> dict[int, Outcome]:
    """Send letters whose intent is committed; every attempt's outcome by its id. Raises nothing of AWS's.

    Args:
        intended: the letters.
        targets: by id, those they go to.
        conf: the names of the marks.
        dlqs: the names of the dlqs by id: a letter says where it was reprocessed from.
        may_start: asked with the target's id before every request; where it says no, letters are not sent.
    """
    outcomes: dict[int, Outcome] = {}
    for target_id in sorted({one.target_id for one in intended}):
        target = targets[target_id]

        def still(which: int = target_id) -> bool:
            return may_start(which)

        its = [one for one in intended if one.target_id == target_id]
        outcomes |= _to(target, its, conf=conf, dlqs=dlqs, may_start=still)
    return outcomes


def _to(
    target: Target, its: Sequence[Intended], *, conf: Conf, dlqs: Mapping[int, str], may_start: Callable[[], bool]
) -> dict[int, Outcome]:
    """Send letters to one target that takes many at once."""
    match target.kind:
        case TargetKind.TOPIC:
            said = _sorted(
                {one.attempt_id: outgoing_message.publication(one, target, conf, dlqs[one.dlq_id]) for one in its}
            )
            return said.kept | publish(target.arn, said.leaving, may_start=may_start, role=target.role_arn)
        case TargetKind.BUS:
            happened = _sorted({one.attempt_id: outgoing_message.happening(one) for one in its})
            return happened.kept | put(target.arn, happened.leaving, may_start=may_start, role=target.role_arn)
        case _:
            address = QueueAddress(url=target.url, region=target.region, role=target.role_arn)
            queued = _sorted(
                {one.attempt_id: outgoing_message.departure(one, target, conf, dlqs[one.dlq_id]) for one in its}
            )
            return queued.kept | send(address, queued.leaving, may_start=may_start, largest=target.size_limit)


@dataclass(frozen=True, slots=True)
class _Sorted(Generic[Form]):
    """Letters that may leave, and what became of those that may not."""

    leaving: list[Form]
    kept: dict[int, Outcome]


def _sorted(wrapped: Mapping[int, Form | Refused]) -> _Sorted[Form]:
    return _Sorted(
        [one for one in wrapped.values() if not isinstance(one, Refused)],
        {attempt: one for attempt, one in wrapped.items() if isinstance(one, Refused)},
    )


def calls(
    intended: Sequence[Intended], targets: Mapping[int, Target], *, conf: Conf, dlqs: Mapping[int, str]
) -> tuple[list[tuple[Intended, Post | Invocation]], dict[int, Outcome]]:
    """What is to be asked of slow targets, each with its intent; and the outcomes of letters that cannot go.

    Args:
        intended: letters whose intent is committed.
        targets: by id, those they go to.
        conf: the names of the marks.
        dlqs: the names of the dlqs by id.
    """
    asked: list[tuple[Intended, Post | Invocation]] = []
    outcomes: dict[int, Outcome] = {}
    for one in intended:
        call = outgoing_message.call(one, targets[one.target_id], conf, dlqs[one.dlq_id])
        if isinstance(call, Refused | NotSent):
            outcomes[one.attempt_id] = call
        else:
            asked.append((one, call))
    return asked, outcomes
