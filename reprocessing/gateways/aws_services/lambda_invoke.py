"""Send letters to Lambda functions: up to 200 invocations at a time, each in a thread that waits for the answer."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from queue import Empty, SimpleQueue
from typing import Any, Final

from botocore.exceptions import ClientError

from reprocessing.domain.lifecycle import ParkedReason
from reprocessing.domain.replay.verdicts import NotSent, Outcome, Refused, Taken, Unknown
from reprocessing.domain.targets.async_sender import LambdaCall
from reprocessing.gateways.aws.clients import lambda_client
from reprocessing.gateways.aws.errors import (
    NOTHING_WAS_SENT,
    code_of,
    error_in_words,
    outcome_of,
    renew_credentials,
    status_of,
)
from reprocessing.gateways.aws.throttling import THROTTLED

LIMIT: Final = 200  #: invocations open at a time
SLACK: Final = 1.0  #: seconds that an answer may take beyond the invocation's timeout, for the network
_SERVICE: Final = "Lambda"
#: Seconds to wait after throttling if Lambda sends no Retry-After header, and most seconds to wait if it does.
_USUAL_WAIT: Final = 5
_LONGEST_WAIT: Final = 900
_MOST_OF_AN_ERROR: Final = 65_536  #: max bytes of an answer that are searched for the error's name
_PIECE: Final = 65_536  #: bytes of an answer that are read at once
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.$:-]{0,99}")
_SERVER_FAULT: Final = 500

#: Errors that depend only on the payload: https://docs.aws.amazon.com/lambda/latest/api/API_Invoke.html.
_POISON: Final = {
    "InvalidRequestContentException": Refused(
        "InvalidRequestContent", "It is no JSON that Lambda can read.", poison=True, reason=ParkedReason.UNSENDABLE
    ),
    "RequestTooLargeException": Refused(
        "RequestTooLarge", "It is larger than a function takes.", poison=True, reason=ParkedReason.TOO_LARGE
    ),
    "UnsupportedMediaTypeException": Refused(
        "UnsupportedMediaType", "Lambda takes no content of its type.", poison=True, reason=ParkedReason.UNSENDABLE
    ),
}
#: Error codes with status 500 or more after which the function did not start (API reference of Invoke).
_DID_NOT_BEGIN: Final = frozenset({
    "EC2AccessDeniedException", "EC2ThrottledException", "EC2UnexpectedException", "EFSIOException",
    "EFSMountConnectivityException", "EFSMountFailureException", "EFSMountTimeoutException",
    "ENILimitReachedException", "InvalidRuntimeException", "InvalidSecurityGroupIDException",
    "InvalidSubnetIDException", "InvalidZipFileException", "KMSAccessDeniedException", "KMSDisabledException",
    "KMSInvalidStateException", "KMSNotFoundException", "ResourceNotReadyException", "SnapStartException",
    "SnapStartNotReadyException", "SnapStartTimeoutException", "SubnetIPAddressLimitReachedException",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class _QueuedInvocation:
    """An invocation that is queued until a thread is free."""

    call: LambdaCall
    may_start: Callable[[], bool]


@dataclass(slots=True)
class Invocations:
    """Sends letters by invoking Lambda functions, and waits for their answers (invocation type RequestResponse).

    The outcomes are:

    - Taken: the function returned.
    - Refused: the function ran and failed. The outcome has the error's name and the request id, but not the error's
      text, which may quote the message. The function's log has the text.
    - NotSent: the function did not run. It is throttled (the outcome has the time to wait), does not exist, may not be
      invoked, or could not start.
    - Unknown: Lambda did not answer.

    Attributes:
        limit: the most invocations at a time, each with a thread and a connection. Further invocations are queued.
        slack: seconds for which an answer is awaited beyond an invocation's timeout.
    """

    limit: int = LIMIT
    slack: float = SLACK
    _queued: SimpleQueue[_QueuedInvocation | None] = field(default_factory=SimpleQueue, repr=False)
    _outcomes: SimpleQueue[tuple[int, Outcome]] = field(default_factory=SimpleQueue, repr=False)
    _threads: list[threading.Thread] = field(default_factory=list, repr=False)
    _open: int = 0
    _closed: bool = False

    @property
    def open(self) -> int:
        """Return how many calls were given to `start` and not yet returned by `ended`."""
        return self._open

    def start(self, calls: Sequence[LambdaCall], *, may_start: Callable[[], bool]) -> None:
        """Queue these calls, and do not wait. If `may_start` returns False before a call, the call ends as NotSent.

        `may_start` must be safe to call from several threads at once.
        """
        for call in calls:
            self._queued.put(_QueuedInvocation(call, may_start))
        self._open += len(calls)
        while len(self._threads) < min(self.limit, self._open):
            # A daemon thread, because a thread that waits for a function must not keep the process from ending.
            thread = threading.Thread(target=self._work, name="invocation", daemon=True)
            self._threads.append(thread)
            thread.start()

    def ended(self, *, within: float) -> list[tuple[int, Outcome]]:
        """Return ids and outcomes of ended attempts. Wait up to `within` seconds until at least one has ended."""
        outcomes: list[tuple[int, Outcome]] = []
        try:
            if self._open and within > 0:
                outcomes.append(self._outcomes.get(timeout=within))
            while len(outcomes) < self._open:
                outcomes.append(self._outcomes.get_nowait())
        except Empty:
            pass
        self._open -= len(outcomes)
        return outcomes

    def close(self) -> None:
        """Drop all open calls. Some of these calls may already have arrived at their functions."""
        self._closed = True
        self._open = 0
        for _ in self._threads:
            self._queued.put(None)

    def _work(self) -> None:
        while (invocation := self._queued.get()) is not None:
            if not self._closed:
                self._outcomes.put((invocation.call.attempt, self._outcome(invocation)))

    def _outcome(self, invocation: _QueuedInvocation) -> Outcome:
        try:
            if not invocation.may_start():
                return NotSent("no time was left to begin its request")
            return self._invoke(invocation.call)
        except Exception as error:  # noqa: BLE001  every letter needs an outcome
            return _outcome_of(error)

    def _invoke(self, call: LambdaCall) -> Outcome:
        seconds = call.timeout + self.slack
        client = lambda_client(call.region, call.role, seconds=seconds, connections=self.limit)
        answer = client.invoke(FunctionName=call.function, InvocationType="RequestResponse", Payload=call.payload)
        kind = answer.get("FunctionError")
        said = _drained(answer)
        if not kind:
            return Taken()
        request = answer.get("ResponseMetadata", {}).get("RequestId", "")
        return Refused(_name(kind) or "FunctionError", _sentence(_name_of_error(said), _name(request)))


def _drained(answer: Mapping[str, Any]) -> bytes:
    """Return the first 65,536 bytes of the answer. Read the rest too, so that the connection can be used again."""
    said = b""
    try:
        while piece := answer["Payload"].read(_PIECE):
            said += piece[: _MOST_OF_AN_ERROR - len(said)]
    except Exception:  # noqa: BLE001  the headers already say whether the function failed
        return b""
    return said


def _sentence(error: str, request: str) -> str:
    failed = f"the function failed with {error}" if error else "the function failed"
    return f"{failed}; its log has more about request {request}" if request else failed


def _name_of_error(said: bytes) -> str:
    try:
        error = json.loads(said)
    except (ValueError, RecursionError):
        return ""
    return _name(error.get("errorType")) if isinstance(error, dict) else ""


def _name(text: object) -> str:
    return text if isinstance(text, str) and _NAME.fullmatch(text) else ""


def _outcome_of(error: Exception) -> Outcome:
    if not isinstance(error, ClientError):
        return outcome_of(error, _SERVICE)
    renew_credentials(error)
    code, status = code_of(error), status_of(error)
    if code in _POISON:
        return _POISON[code]
    if code in THROTTLED:
        reason = _name(error.response.get("Reason"))
        why = f"{NOTHING_WAS_SENT}the function is throttled{f' ({reason})' if reason else ''}"
        return NotSent(why, after=_wait(error))
    if code not in _DID_NOT_BEGIN and status >= _SERVER_FAULT:
        return Unknown(f"{_SERVICE} failed: {code} ({status})")
    return NotSent(f"{NOTHING_WAS_SENT}{error_in_words(error)}", unreachable=True)


def _wait(error: ClientError) -> timedelta:
    said = str(error.response.get("ResponseMetadata", {}).get("HTTPHeaders", {}).get("retry-after", ""))
    seconds = int(said) if said.isascii() and said.isdigit() and len(said) <= len(str(_LONGEST_WAIT)) else _USUAL_WAIT
    return timedelta(seconds=min(max(seconds, 1), _LONGEST_WAIT))
