"""Put letters on the wire. No table is touched here, and no transaction is open."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from reprocessing.conf import Conf
from reprocessing.domain.carrier import Invocation, Post
from reprocessing.domain.envelope import Departure
from reprocessing.domain.verdict import NotSent, Outcome, Refused
from reprocessing.models import Target
from reprocessing.models.intent import Intended
from reprocessing.pipeline import wrap
from reprocessing.sqs import QueueAddress, send


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
        its = [one for one in intended if one.target_id == target_id]
        wrapped = {one.attempt_id: wrap.departure(one, target, conf, dlqs[one.dlq_id]) for one in its}

        def still(which: int = target_id) -> bool:
            return may_start(which)

        leaving = [one for one in wrapped.values() if isinstance(one, Departure)]
        outcomes |= {attempt: one for attempt, one in wrapped.items() if isinstance(one, Refused)}
        address = QueueAddress(url=target.url, region=target.region, role=target.role_arn)
        outcomes |= send(address, leaving, may_start=still, largest=target.size_limit)
    return outcomes


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
        call = wrap.call(one, targets[one.target_id], conf, dlqs[one.dlq_id])
        if isinstance(call, Refused | NotSent):
            outcomes[one.attempt_id] = call
        else:
            asked.append((one, call))
    return asked, outcomes
