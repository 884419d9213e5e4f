"""Show messages of a DLQ to a person: receive messages, and make them visible again at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from reprocessing.domain.errors import DlqNotReadable
from reprocessing.domain.message.envelope import ReceivedMessage
from reprocessing.domain.message.identity import LetterFacts
from reprocessing.domain.ordering.placement import KeyPolicy, LetterPlace, choose_place
from reprocessing.domain.replay.verdicts import Park
from reprocessing.domain.sources import celery_task
from reprocessing.domain.sources.celery_failure import probable_causes
from reprocessing.domain.sources.celery_task import TaskMessage, TaskReading
from reprocessing.domain.targets.target_kind import TargetKind
from reprocessing.gateways.sqs import QueueAddress, describe, receive, release
from reprocessing.models import DeadLetterQueue, Letter, Target
from reprocessing.models.dlq import Mode
from reprocessing.pipeline.capture import find_source
from reprocessing.pipeline.runs import place_letters
from reprocessing.store.capture import capture_lease

VISIBILITY = 30  # visibility timeout (s) of received messages; if this process dies, they are visible again after it
WAIT = 1  # seconds of a long poll; a long poll of any length asks all of SQS's servers, a short poll does not
_A_RECEIVE = 10  # most messages that SQS returns to one receive request


@dataclass(frozen=True, slots=True)
class PeekedMessage:
    """One message of the DLQ, as a person sees it."""

    message_id: str
    sent_at: datetime
    source: str | None
    receives: int
    size: int
    attributes: tuple[str, ...]
    known: str | None  # the letter's state, if the message was captured before
    where: LetterPlace | Park  # the message's place in its lane, or why a run would park it
    task: TaskReading  # the message, read as a Celery task
    causes: tuple[str, ...]  # why the task probably failed; empty if the message is not a task
    body: bytes


@dataclass(frozen=True, slots=True)
class Peeked:
    """The received messages.

    `kept`: how many of them could not be made visible again; they stay hidden until their visibility timeout ends.
    """

    messages: list[PeekedMessage]
    kept: int


def messages(dlq: DeadLetterQueue, *, limit: int) -> Peeked:
    """Return up to `limit` visible messages of a DLQ. In the DLQ, only their receive counts change.

    The messages are hidden for a moment. So the DLQ is leased meanwhile: a capture would take them for absent.

    Raises:
        DlqNotReadable: the DLQ is being captured, is in mode observe, or has a redrive policy of its own.
        QueueUnreachable: SQS refused or did not answer.
    """
    address = QueueAddress(dlq.url, dlq.region, dlq.role_arn)
    _refuse_what_a_receive_would_harm(dlq, address)
    capturing = capture_lease.lease(dlq.pk, lease=2.0 * VISIBILITY, dirty=float(VISIBILITY))
    if capturing is None:
        raise DlqNotReadable(
            f"{dlq.name} is being captured at this moment, so its messages are hidden. "
            f"Watch manage.py redrive_status {dlq.name}, and try again."
        )
    found: dict[str, ReceivedMessage] = {}
    answered = False
    try:
        while len(found) < limit and (some := _some(address, limit - len(found))):
            found |= some
        answered = True  # without an answer, SQS may have hidden messages that are not known here
    finally:
        back = release(address, {message.message_id: message.handle for message in found.values()})
        # The lease is clean only if it was clean before: a capture that died may still hide messages.
        clean = answered and not back.failed and capturing.clean
        capture_lease.end(capturing, clean=clean, drained=False, last_error=dlq.last_error)
    return Peeked(_peeked_messages(dlq, found), len(back.failed))


def _some(address: QueueAddress, most: int) -> dict[str, ReceivedMessage]:
    arrived = receive(address, wait=WAIT, visibility=VISIBILITY, maximum=min(_A_RECEIVE, most))
    return {message.message_id: message for message in arrived}


def _refuse_what_a_receive_would_harm(dlq: DeadLetterQueue, address: QueueAddress) -> None:
    if dlq.mode == Mode.OBSERVE:
        raise DlqNotReadable(
            f"{dlq.name} is in mode observe: nothing is received from it. First: "
            f"manage.py add_dlq {dlq.name} --mode manual --confirm"
        )
    onward = describe(address).redrive
    if onward:
        raise DlqNotReadable(
            f"{dlq.name} has a redrive policy of its own: messages that are received too often are moved to "
            f"{onward.target_arn}. Capture it instead: manage.py drain_dlq {dlq.name}, a dry run."
        )


def _peeked_messages(dlq: DeadLetterQueue, found: Mapping[str, ReceivedMessage]) -> list[PeekedMessage]:
    policy = place_letters.policy_of(dlq)
    known = dict(Letter.objects.filter(dlq=dlq, message_id__in=found).values_list("message_id", "state"))
    sources = find_source.Sources(dlq)
    glimpses: list[PeekedMessage] = []
    for message_id, message in found.items():
        source = sources.of(message.body, message.attributes, message.system)
        glimpses.append(_peeked_message(message, policy, known.get(message_id), source.target if source else None))
    return glimpses


def _peeked_message(
    message: ReceivedMessage, policy: KeyPolicy, known: str | None, target: Target | None
) -> PeekedMessage:
    task = celery_task.read(message.body)
    meant = isinstance(task, TaskMessage) or (target is not None and target.kind == TargetKind.CELERY)
    hidden = timedelta(seconds=target.visibility) if target else None
    return PeekedMessage(
        message_id=message.message_id, sent_at=message.sent_at,
        source=find_source.source_arn(message.body, message.attributes, message.system) or None,
        receives=message.receives, size=len(message.body), attributes=tuple(sorted(message.attributes)), known=known,
        where=choose_place(policy, LetterFacts(message.message_id, message.body, message.attributes, message.system)),
        task=task, causes=tuple(probable_causes(task, message.system, visibility=hidden)) if meant else (),
        body=message.body,
    )  # fmt: skip
