"""Read for a person the body of a message that its producer stored in S3 (SQS extended client). Store nothing."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from typing import Final, assert_never

from reprocessing.domain.message import s3_pointer
from reprocessing.domain.message.envelope import unpack_attributes
from reprocessing.domain.message.s3_pointer import PointerToS3
from reprocessing.gateways.aws_services.s3_get import Absent, Denied, FoundObject, NoAnswer, TooLarge, read_object
from reprocessing.models import DeadLetterQueue, Letter
from reprocessing.store.parking_lot import message_edits
from reprocessing.store.payloads import viewed_content

#: Max bytes that are read.
MOST: Final = 1_048_576
_NOT_IN_S3: Final = "The body of this message is not in S3."


@dataclass(frozen=True, slots=True)
class BodyInS3:
    """A body that was read from S3. `is_masked`: whether the values of masked fields are hidden in it."""

    body: bytes = field(repr=False)
    is_masked: bool = False


@dataclass(frozen=True, slots=True)
class NotRead:
    """The body could not be read: `why`, as sentences for people."""

    why: str


def read_s3_body(letter: Letter, *, by: str, why: str, revealed: bool) -> BodyInS3 | NotRead:
    """Read the body of a letter from S3, with the role of its DLQ, and record the view in the audit log.

    Values are masked by the rules of the DLQ, unless `revealed`. `why`: the reason that the person gave. The caller
    must have checked the permissions.

    Raises:
        PayloadUnreadable: the letter is encrypted, and its key is missing or was destroyed.
    """
    stand = message_edits.read_letter(letter.pk)
    attributes = {} if stand is None else unpack_attributes(bytes(stand.attributes))
    pointer = None if stand is None else s3_pointer.read(bytes(stand.body), attributes)
    if pointer is None:
        return NotRead(_NOT_IN_S3)
    viewed_content.record_view(letter.pk, by=by, why=why, revealed=revealed)
    found = read_object(pointer, letter.dlq.region, letter.dlq.role_arn, most=MOST)
    if not isinstance(found, FoundObject):
        return NotRead(_why_not(found, pointer, letter.dlq))
    if revealed:
        return BodyInS3(found.content)
    shown = viewed_content.masked(letter.dlq, found.content, {})
    return BodyInS3(shown.body, shown.is_masked)


def _why_not(found: TooLarge | Absent | Denied | NoAnswer, pointer: PointerToS3, dlq: DeadLetterQueue) -> str:
    match found:
        case TooLarge(size):
            copy = shlex.join(["aws", "s3", "cp", f"s3://{pointer.bucket}/{pointer.key}", "-"])
            return f"The body in S3 has {size:,} bytes; at most {MOST:,} are shown. To read it: {copy}"
        case Absent():
            return f"S3 has no {_named(pointer)}. It may have been deleted, for example by a lifecycle rule."
        case Denied(code):
            return _denied(pointer, dlq, code)
        case NoAnswer(reason):
            return f"S3 did not return {_named(pointer)}: {reason}. Try again."
        case _ as never:
            assert_never(never)


def _named(pointer: PointerToS3) -> str:
    return f'object "{pointer.key}" in the bucket {pointer.bucket}'


def _denied(pointer: PointerToS3, dlq: DeadLetterQueue, code: str) -> str:
    who = f"The role {dlq.role_arn}" if dlq.role_arn else "The service's role"
    return (
        f"S3 refused to return {_named(pointer)} ({code}). {who} needs s3:GetObject for it, and kms:Decrypt if a KMS "
        f"key encrypts it. To print the policy, use the command iam_policy with --bucket {pointer.bucket}"
    )
