"""Read the body of a message from S3, if it is not larger than the caller allows. Nothing is stored."""

from __future__ import annotations

from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final

from botocore.exceptions import BotoCoreError, ClientError

from reprocessing.domain.message.s3_pointer import PointerToS3
from reprocessing.gateways.aws.clients import s3_client
from reprocessing.gateways.aws.errors import code_of, error_in_words, renew_credentials, status_of

_EMPTY: Final = "InvalidRange"  # S3's answer to a request for the first bytes of an empty object


@dataclass(frozen=True, slots=True)
class FoundObject:
    """The content of an object in S3."""

    content: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class TooLarge:
    """The object is larger than the caller allows: it has `size` bytes, and nothing was read."""

    size: int


@dataclass(frozen=True, slots=True)
class Denied:
    """S3 refused the request, with the error `code`.

    The object may be missing: S3 refuses requests for a missing object if the role may not list the bucket.
    """

    code: str


@dataclass(frozen=True, slots=True)
class Absent:
    """The object, or its bucket, does not exist."""


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """S3 did not answer, or failed: `why`, in words."""

    why: str


ReadObject = FoundObject | TooLarge | Denied | Absent | NoAnswer


def read_object(pointer: PointerToS3, region: str, role: str = "", *, most: int) -> ReadObject:
    """Return the content of an object of at most `most` bytes, or why it cannot be read."""
    try:
        answer = s3_client(region, role).get_object(Bucket=pointer.bucket, Key=pointer.key, Range=f"bytes=0-{most - 1}")
        size = int(str(answer.get("ContentRange", "")).rpartition("/")[2] or answer["ContentLength"])
        return TooLarge(size) if size > most else FoundObject(answer["Body"].read(most))
    except ClientError as error:
        renew_credentials(error)
        return _refusal(error)
    except (BotoCoreError, OSError) as error:
        renew_credentials(error)
        return NoAnswer(error_in_words(error))


def _refusal(error: ClientError) -> ReadObject:
    status = status_of(error)
    if code_of(error) == _EMPTY:
        return FoundObject(b"")
    if status == HTTPStatus.NOT_FOUND:
        return Absent()
    if status in {HTTPStatus.FORBIDDEN, HTTPStatus.UNAUTHORIZED}:
        return Denied(code_of(error))
    return NoAnswer(f"error {status or ''} {code_of(error)}".replace("  ", " "))
