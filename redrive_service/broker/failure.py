"""Describe for the log why a receive failed: HTTP status and error code, without payloads and credentials."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Protocol, Self

from botocore.exceptions import ClientError

NO_ANSWER = 599  # status that kombu sets when curl failed: no connection, dropped, timed out
_CODE = re.compile(r"[A-Za-z][A-Za-z0-9._]{0,79}")
_LONGEST_ERROR_BODY = 16_384  # max bytes that are read; an SQS error has some hundred bytes, a proxy's may have more


class Answer(Protocol):
    """An HTTP response, in the form in which kombu passes it on."""

    @property
    def status(self) -> int:
        """The HTTP status; 599 if no HTTP response arrived."""

    def read(self) -> bytes | None:
        """Return the body, or None if the response has no body."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiveFailure:
    """Why a call of ReceiveMessage failed: HTTP status (599: no response arrived) and error code."""

    status: int
    code: str
    """SQS's error code, curl's error code (such as `curl-28`, a timeout), or the class of the exception; may be ""."""

    @classmethod
    def from_answer(cls, answer: Answer, *, curl_error: int | None = None) -> Self:
        """Return why the receive failed, from an HTTP response. SQS's error text is left out: it can quote requests."""
        code = f"curl-{curl_error}" if curl_error else _error_code(answer.read())
        return cls(status=answer.status, code=code)

    @classmethod
    def from_exception(cls, error: Exception) -> Self:
        """Return why the receive failed, from an exception: SQS's error code, else the class of the exception."""
        if isinstance(error, ClientError):
            status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", NO_ANSWER)
            return cls(status=status, code=_printable(error.response.get("Error", {}).get("Code", "")))
        return cls(status=NO_ANSWER, code=type(error).__name__)


def _error_code(body: bytes | None) -> str:
    """Return the error code of an error's JSON body (AWS JSON 1.0), such as `QueueDoesNotExist`, or "" without code.

    The code is the end of the body's member `__type`: `{"__type": "com.amazonaws.sqs#QueueDoesNotExist", …}`.
    """
    if not body or len(body) > _LONGEST_ERROR_BODY:
        return ""
    try:
        error = json.loads(body)
    except (ValueError, RecursionError):
        return ""
    kind = error.get("__type", "") if isinstance(error, dict) else ""
    return _printable(kind.rpartition("#")[2]) if isinstance(kind, str) else ""


def _printable(code: str) -> str:
    return code if _CODE.fullmatch(code) else ""
