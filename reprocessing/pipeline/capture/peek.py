"""Look at messages of a dlq without taking them: received, shown, given back at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from reprocessing.domain.errors import DlqIsNotToBeRead
from reprocessing.domain.message.envelope import Arrival
from reprocessing.domain.message.identity import LetterFacts
from reprocessing.domain.ordering.placement import Place, Policy, place
from reprocessing.domain.replay.verdicts import Park
from reprocessing.domain.sources import celery_task
from reprocessing.domain.sources.celery_failure import causes
from reprocessing.domain.sources.celery_task import Read, TaskMessage
from reprocessing.gateways.sqs import QueueAddress, describe, receive, release
from reprocessing.models import DeadLetter, DeadLetterQueue, Target
from reprocessing.models.dlq import Mode
from reprocessing.models.target import TargetKind
from reprocessing.pipeline.capture import find_source
from reprocessing.store.capture import capture_lease

#: Seconds for which what is looked at stays out of sight, should this process die over it.
VISIBILITY = 30
#: Seconds of a long poll: one of any length asks all of SQS's servers.
WAIT = 1
_A_RECEIVE = 10


@dataclass(frozen=True, slots=True)
class Glimpse:
    """One message, as it lies in the dlq.

    Attributes:
        known: the state of its letter, when it has been captured before.
        where: its place in its lane, or why a run would park it.
        task: what it is as a task message.
        causes: what it probably died of; none where nobody says that it should be a task.
    """

    message_id: str
    sent_at: datetime
    origin: str | None
    receives: int
    size: int
    attributes: tuple[str, ...]
    known: str | None
    where: Place | Park
    task: Read
    causes: tuple[str, ...]
    body: bytes


@dataclass(frozen=True, slots=True)
class Peeked:
    """What was seen. `kept`: messages that could not be given back; they come to sight by themselves."""

    messages: list[Glimpse]
    kept: int


def messages(dlq: DeadLetterQueue, *, limit: int) -> Peeked:
    """Up to `limit` messages that are visible now. Each one's receive count rises, and nothing else changes.

    The dlq is this call's meanwhile, as it is a capture's: no capture can take what is looked at for absent.

    Raises:
        DlqIsNotToBeRead: it is being captured, or observed, or a receive can push its messages on.
        QueueIsOutOfReach: SQS refused or did not answer.
    """
    address = QueueAddress(dlq.url, dlq.region, dlq.role_arn)
    _refuse_what_a_receive_would_harm(dlq, address)
    capturing = capture_lease.lease(dlq.pk, lease=2.0 * VISIBILITY, dirty=float(VISIBILITY))
    if capturing is None:
        raise DlqIsNotToBeRead(
            f"{dlq.name} is being captured at this moment, so its messages are out of sight. "
            f"Watch manage.py redrive_status {dlq.name}, and try again."
        )
    found: dict[str, Arrival] = {}
    answered = False
    try:
        while len(found) < limit and (some := _some(address, limit - len(found))):
            found |= some
        answered = True  # a lost answer may have hidden messages that nobody knows of
    finally:
        back = release(address, {one.message_id: one.handle for one in found.values()})
        # Where an earlier capture died, what it hid stays hidden for as long as that was to be.
        clean = answered and not back.failed and capturing.clean
        capture_lease.end(capturing, clean=clean, drained=False, trouble=dlq.trouble)
    return Peeked(_glimpses(dlq, found), len(back.failed))


def _some(address: QueueAddress, most: int) -> dict[str, Arrival]:
    arrived = receive(address, wait=WAIT, visibility=VISIBILITY, maximum=min(_A_RECEIVE, most))
    return {one.message_id: one for one in arrived}


def _refuse_what_a_receive_would_harm(dlq: DeadLetterQueue, address: QueueAddress) -> None:
    if dlq.mode == Mode.OBSERVE:
        raise DlqIsNotToBeRead(
            f"{dlq.name} is in mode observe: nothing is received from it. First: "
            f"manage.py add_dlq {dlq.name} --mode manual --confirm"
        )
    onward = describe(address).redrive
    if onward:
        raise DlqIsNotToBeRead(
            f"{dlq.name} has a redrive policy of its own: messages that are looked at too often are moved to "
            f"{onward.target_arn}. Capture it instead: manage.py drain_dlq {dlq.name}, a dry run."
        )


def _glimpses(dlq: DeadLetterQueue, found: Mapping[str, Arrival]) -> list[Glimpse]:
    policy = Policy.of(
        fifo=dlq.fifo,
        ordering=dlq.ordering_key,
        sequence=dlq.sequence,
        idempotency=dlq.idempotency_key,
        missing_key=dlq.missing_key,
    )
    known = dict(DeadLetter.objects.filter(dlq=dlq, message_id__in=found).values_list("message_id", "state"))
    origins = find_source.Origins(dlq)
    at = {pk: origins.of(one.body, one.attributes, one.system) for pk, one in found.items()}
    return [
        _glimpse(one, policy, known.get(pk), origin.target if (origin := at[pk]) else None) for pk, one in found.items()
    ]


def _glimpse(one: Arrival, policy: Policy, known: str | None, origin: Target | None) -> Glimpse:
    task = celery_task.read(one.body)
    meant = isinstance(task, TaskMessage) or (origin is not None and origin.kind == TargetKind.CELERY)
    hidden = timedelta(seconds=origin.visibility) if origin else None
    return Glimpse(
        message_id=one.message_id,
        sent_at=one.sent_at,
        origin=find_source.died_in(one.body, one.attributes, one.system) or None,
        receives=one.receives,
        size=len(one.body),
        attributes=tuple(sorted(one.attributes)),
        known=known,
        where=place(policy, LetterFacts(one.message_id, one.body, one.attributes, one.system)),
        task=task,
        causes=tuple(causes(task, one.system, visibility=hidden)) if meant else (),
        body=one.body,
    )
