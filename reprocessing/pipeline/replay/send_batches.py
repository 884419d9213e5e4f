"""Send letters to their targets in batches, without the database and outside of transactions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Final, TypeVar

from reprocessing.conf import Conf
from reprocessing.domain.replay.verdicts import NotSent, Outcome, Refused
from reprocessing.domain.targets.async_sender import HttpCall, LambdaCall
from reprocessing.domain.targets.target_kind import TargetKind
from reprocessing.gateways.aws_services import publish, put
from reprocessing.gateways.sqs import QueueAddress, send
from reprocessing.models import Target
from reprocessing.pipeline.replay import outgoing_message
from reprocessing.pipeline.replay.attempt_spans import TraceFields
from reprocessing.store.replay.intent import IntendedSend

Form = TypeVar("Form")
NO_FIELDS: Final[TraceFields] = MappingProxyType({})


def letters(  # noqa: PLR0913  # arguments are passed by name
    intended: Sequence[IntendedSend], targets: Mapping[int, Target], *, conf: Conf, dlqs: Mapping[int, str],
    may_start: Callable[[int], bool], fields: TraceFields = NO_FIELDS,
) -> dict[int, Outcome]:  # fmt: skip
    """Send letters; return the outcomes by attempt id. An error of AWS is an outcome, and is not raised.

    `targets`: by id. `dlqs`: names by id. `may_start`: called with the target's id before every request; if it returns
    False, the letters of the request are not sent. `fields`: the trace fields to send, by attempt id.
    """
    outcomes: dict[int, Outcome] = {}
    for target_id in sorted({attempt.target_id for attempt in intended}):
        group = [attempt for attempt in intended if attempt.target_id == target_id]
        outcomes |= _to(
            targets[target_id], group, conf=conf, dlqs=dlqs, may_start=partial(may_start, target_id), fields=fields
        )
    return outcomes


def _to(  # noqa: PLR0913  # arguments are passed by name
    target: Target, group: Sequence[IntendedSend], *, conf: Conf, dlqs: Mapping[int, str],
    may_start: Callable[[], bool], fields: TraceFields,
) -> dict[int, Outcome]:  # fmt: skip
    def trace(letter: IntendedSend) -> Mapping[str, str]:
        return fields.get(letter.attempt_id, {})

    match target.kind:
        case TargetKind.TOPIC:
            publications, refused = _split({
                letter.attempt_id: outgoing_message.topic_message(
                    letter, target, conf, dlqs[letter.dlq_id], trace(letter)
                )
                for letter in group
            })  # fmt: skip
            return refused | publish(target.arn, publications, may_start=may_start, role=target.role_arn)
        case TargetKind.BUS:
            events, refused = _split({letter.attempt_id: outgoing_message.bus_event(letter) for letter in group})
            return refused | put(target.arn, events, may_start=may_start, role=target.role_arn)
        case _:
            departures, refused = _split({
                letter.attempt_id: outgoing_message.queue_message(
                    letter, target, conf, dlqs[letter.dlq_id], trace(letter)
                )
                for letter in group
            })  # fmt: skip
            address = QueueAddress(url=target.url, region=target.region, role=target.role_arn)
            return refused | send(address, departures, may_start=may_start, largest=target.size_limit)


def _split(wrapped: Mapping[int, Form | Refused]) -> tuple[list[Form], dict[int, Outcome]]:
    return (
        [form for form in wrapped.values() if not isinstance(form, Refused)],
        {attempt: form for attempt, form in wrapped.items() if isinstance(form, Refused)},
    )


def slow_requests(
    intended: Sequence[IntendedSend], targets: Mapping[int, Target], *, conf: Conf, dlqs: Mapping[int, str],
    fields: TraceFields = NO_FIELDS,
) -> tuple[list[tuple[IntendedSend, HttpCall | LambdaCall]], dict[int, Outcome]]:  # fmt: skip
    """Make the requests to slow targets (HTTP, Lambda). Return them, and outcomes of letters that cannot be sent.

    The outcomes are by attempt id. `targets`: by id. `dlqs`: names by id. `fields`: the trace fields to send, by
    attempt id.
    """
    requests: list[tuple[IntendedSend, HttpCall | LambdaCall]] = []
    outcomes: dict[int, Outcome] = {}
    for letter in intended:
        call = outgoing_message.slow_request(
            letter, targets[letter.target_id], conf, dlqs[letter.dlq_id], fields.get(letter.attempt_id, {})
        )
        if isinstance(call, Refused | NotSent):
            outcomes[letter.attempt_id] = call
        else:
            requests.append((letter, call))
    return requests, outcomes
