"""Find the cause of a letter's failure: a digest that equal failures share, and a title without the letter's contents.

The cause is the first of these that is known: the consumer's report; the reason for parking, if the message is invalid;
the target's last answer; attributes that brokers and frameworks set; the task's name; the message type; the structure
of the body. If the body is empty or too large for this, the reason for parking is the cause.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from reprocessing.domain.lifecycle import AttemptOutcome, ParkedReason
from reprocessing.domain.message import body_outline, json_view
from reprocessing.domain.message.body_outline import Outline
from reprocessing.domain.message.identity import LetterFacts, Selector, select_key
from reprocessing.domain.message.safe_text import visible
from reprocessing.domain.parking_lot import failure_attributes, message_type, text_pattern
from reprocessing.domain.parking_lot.text_pattern import NAME, STATUS
from reprocessing.domain.routing.message_fields import BODY_LIMIT
from reprocessing.domain.sources import celery_task, failed_delivery
from reprocessing.domain.sources.celery_task import TaskMessage
from reprocessing.domain.sources.failed_delivery import FailedDelivery, FailedDeliveryKind

#: Max characters of a cause's title.
LONGEST: Final = 200
_EDITION: Final = "2"  # change this value to change the digests of all causes

_SHORT_HEX: Final = re.compile(r"[0-9a-f]{8,128}")


class CauseKind(StrEnum):
    """What the cause of a failure was taken from."""

    REPORTED = "reported"
    PARKED = "parked"
    ANSWERED = "answered"
    LEFT = "left"
    TASK = "task"
    TYPE = "type"
    BODY = "body"

    @property
    def words(self) -> str:
        """Return in words what the cause was taken from."""
        return _WORDS[self]

    @property
    def names_failure(self) -> bool:
        """Return whether the cause says why the message failed, and not only what kind of message failed."""
        return self not in {CauseKind.TASK, CauseKind.TYPE, CauseKind.BODY}


#: Causes whose title is the type of the messages, such as order.paid, or the name of their Celery task.
TYPE_CAUSES: Final = (CauseKind.TYPE, CauseKind.TASK)

_WORDS: Final = {
    CauseKind.REPORTED: "its consumer reported it",
    CauseKind.PARKED: "the parking reason",
    CauseKind.ANSWERED: "the target's last answer",
    CauseKind.LEFT: "attributes of the broker or framework",
    CauseKind.TASK: "its task; the failure reason is not known",
    CauseKind.TYPE: "its type; the failure reason is not known",
    CauseKind.BODY: "the shape of its body; the failure reason is not known",
}

_AWS: Final = {
    FailedDeliveryKind.LAMBDA: "Lambda", FailedDeliveryKind.LAMBDA_DESTINATION: "Lambda", FailedDeliveryKind.SNS: "SNS",
    FailedDeliveryKind.EVENTBRIDGE: "EventBridge", FailedDeliveryKind.SCHEDULER: "EventBridge Scheduler",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Reported:
    """A consumer's report: the failure's type, and a fingerprint that is equal for failures with the same cause."""

    type: str
    fingerprint: str


@dataclass(frozen=True, slots=True)
class AttemptAnswer:
    """How a letter's newest attempt that was sent ended: its outcome, and the target's answer (`detail`)."""

    outcome: str
    detail: str


@dataclass(frozen=True, kw_only=True)
class FailureSigns:
    """What is known about a letter's failure.

    Attributes:
        letter: the letter; a body over 256 KiB (`message_fields.BODY_LIMIT`) may be left out.
        size: bytes of the body.
        type: the DLQ's selector of the message type. None: the DLQ has no such selector, so the type is taken from the
            first attribute or field with a usual name, such as `eventType`. The selector `none`: messages have no type.
        report: the consumer's last report of a failure.
        answer: the result of the newest attempt that was sent; None: no attempt was sent.
        reason: why the letter is parked; empty: the letter is not parked. `detail`: more about the reason.
    """

    letter: LetterFacts = field(repr=False)
    size: int
    type: Selector | None = None
    report: Reported | None = None
    answer: AttemptAnswer | None = None
    reason: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class FailureCause:
    """The cause of a letter's failure.

    `title`: words with types, and names of attributes and keys, but without other values. `digest`: 32 bytes, equal for
    equal causes. `keys`: if the structure of the body is the cause, its top-level keys. Causes with similar keys form
    one failure group.
    """

    kind: CauseKind
    title: str
    digest: bytes
    keys: tuple[str, ...] = ()


def failure_cause(signs: FailureSigns) -> FailureCause:
    """Return the cause of one letter's failure, in linear time. Never raises."""
    for look in (_reported, _parked, _answered, _left):
        if found := look(signs):
            return found
    return _what_it_is(signs)


def type_of(letter: LetterFacts, size: int, selector: Selector | None) -> str:
    """Return a letter's Celery task or message type, as titles of failure groups show it; "": it has neither.

    Never raises. `size`: bytes of the body. `selector`: the DLQ's selector of the message type (`FailureSigns.type`).
    """
    task = _task(letter) if size <= BODY_LIMIT else ""
    return text_pattern.type_name(task) if task else _type(letter, selector)


def _cause(kind: CauseKind, title: str, *parts: str, keys: tuple[str, ...] = ()) -> FailureCause:
    content = json.dumps([_EDITION, kind.value, *parts]).encode()
    shown = " ".join(visible(title).split())
    cut = shown if len(shown) <= LONGEST else f"{shown[: LONGEST - 1]}…"
    return FailureCause(kind, cut, hashlib.sha256(content).digest(), keys)


def _reported(signs: FailureSigns) -> FailureCause | None:
    if signs.report is None or not (signs.report.type or signs.report.fingerprint):
        return None
    kind, mark = text_pattern.type_name(signs.report.type), signs.report.fingerprint
    title = kind or "A failure that its consumer reported without a type"
    if _SHORT_HEX.fullmatch(mark):
        title = f"{title} ({mark[:8]})"
    return _cause(CauseKind.REPORTED, title, kind or text_pattern.without_values(signs.report.type), mark)


def _parked(signs: FailureSigns) -> FailureCause | None:
    if not (signs.reason and ParkedReason(signs.reason).is_message_fault):
        return None
    reason, more = ParkedReason(signs.reason), text_pattern.without_values(signs.detail)
    title = f"{reason.sentence.removesuffix('.')}: {more}" if more else reason.sentence
    return _cause(CauseKind.PARKED, title, reason.value, more)


def _answered(signs: FailureSigns) -> FailureCause | None:
    if signs.answer is None:
        return None
    code, colon, text = signs.answer.detail[: text_pattern.LONGEST].partition(": ")
    if not colon or not (NAME.fullmatch(code) or STATUS.fullmatch(code)):
        code, text = "", signs.answer.detail
    answer = " ".join(part for part in (code, text_pattern.without_values(text)) if part)
    match signs.answer.outcome:
        case AttemptOutcome.REFUSED:
            return _cause(CauseKind.ANSWERED, f"The target refused it: {answer}", "refused", answer)
        case AttemptOutcome.UNKNOWN:
            return _cause(CauseKind.ANSWERED, f"No answer: {answer}", "unknown", answer)
        case _:
            return None


def _left(signs: FailureSigns) -> FailureCause | None:
    found = failed_delivery.recognise(signs.letter.body, signs.letter.attributes, signs.letter.system)
    if found is not None and (NAME.fullmatch(found.code) or STATUS.fullmatch(found.code)):
        failure = ": ".join(part for part in (found.code, _function_error(found, signs.letter)) if part)
        return _cause(CauseKind.LEFT, f"{_AWS[found.kind]}: {failure}", found.kind.value, failure)
    if named := failure_attributes.named_failure(signs.letter):
        return _cause(CauseKind.LEFT, f"{named.source}: {named.failure}", named.key, named.failure)
    return None


def _function_error(found: FailedDelivery, letter: LetterFacts) -> str:
    """Return the error type or text of a failed Lambda function; "" for other services.

    The error code says little, because nearly all failed functions have the same code.
    """
    match found.kind:
        case FailedDeliveryKind.LAMBDA:
            return failure_attributes.without_quotes(found.message, letter)
        case FailedDeliveryKind.LAMBDA_DESTINATION:
            return text_pattern.type_name(found.message)
        case _:
            return ""


def _what_it_is(signs: FailureSigns) -> FailureCause:
    letter, large = signs.letter, signs.size > BODY_LIMIT
    if not large and (task := _task(letter)):
        name = text_pattern.type_name(task)
        title = f"Task {name}" if name else "A task with an unusual name"
        return _cause(CauseKind.TASK, title, name or text_pattern.without_values(task))
    if not large and (event := _event(letter, signs.type)):
        return event
    if kind := _type(letter, signs.type):
        return _cause(CauseKind.TYPE, kind, kind)
    outline = _LARGE if large else _outline(letter)
    if signs.reason and outline.parts in _MUTE:
        return _cause(CauseKind.PARKED, ParkedReason(signs.reason).sentence, signs.reason, "")
    shown = outline.title[:1].upper() + outline.title[1:]
    parts = ("keys", *outline.keys) if outline.keys else outline.parts
    return _cause(CauseKind.BODY, shown, *parts, keys=outline.keys)


def _type(letter: LetterFacts, selector: Selector | None) -> str:
    """Return the message type: what the DLQ's selector reads, else a field with a usual name; "": there is none."""
    if selector is None:
        return message_type.message_type(letter)
    found = select_key(selector, letter)
    return message_type.type_value(found) if isinstance(found, str) else ""


def _task(letter: LetterFacts) -> str:
    document = letter.document if letter.body.lstrip()[:1] == b"{" else None
    found = celery_task.read(letter.body, document, limit=BODY_LIMIT)
    return found.task if isinstance(found, TaskMessage) else ""


def _outline(letter: LetterFacts) -> Outline:
    """Return the outline of the body; if the body is an SNS notification, the outline of the message in it."""
    match letter.document:
        case {"Type": "Notification", "TopicArn": str(), "Message": str(message)}:
            inner = message.encode()
            outline = body_outline.of_bytes(inner, json_view.read(inner))
            return Outline(f"SNS notification: {outline.title}", ("sns", *outline.parts), outline.keys)
        case document:
            return body_outline.of_bytes(letter.body, document)


def _event(letter: LetterFacts, selector: Selector | None) -> FailureCause | None:
    """Return the cause of an EventBridge event: its type and source. None: no event, or the DLQ has a type selector."""
    match letter.document:
        case {"detail-type": str(kind), "source": str(source), "detail": dict()} if selector is None:
            kind, source = message_type.type_value(kind), message_type.type_value(source)
            if not (kind and source):
                return None
            return _cause(CauseKind.TYPE, f"Event {kind} from {source}", "event", kind, source)
        case _:
            return None


_LARGE: Final = Outline(f"a body of more than {BODY_LIMIT // 1024} KiB", ("large",))
#: The outlines of empty and of large bodies, which say nothing about a letter.
_MUTE: Final = frozenset({_LARGE.parts, ("empty",)})
