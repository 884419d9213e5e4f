"""SQS for the actors: the local SQS's core in this very process, with a fault for any call, and the judge's log."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

import orjson
from botocore.exceptions import ClientError, EndpointConnectionError, ReadTimeoutError

from redrive_service.sandbox.sqs.api.call_record import Record
from redrive_service.sandbox.sqs.api.errors import SqsError
from redrive_service.sandbox.sqs.call_log.calls import Call
from redrive_service.sandbox.sqs.call_log.failed_entries import note_failed, note_undone
from redrive_service.sandbox.sqs.core import LocalSqs
from tests.proof.simulation.stage import Crash, Stage, mine

REGION: Final = "eu-west-1"
ADDRESS: Final = "http://sqs.local"
_READ_SECONDS: Final = 3.0  # after which a caller gives up
_ERRORS: Final = (
    ("InternalError", 500), ("ServiceUnavailable", 503), ("RequestThrottled", 403), ("ThrottlingException", 400),
    ("AccessDenied", 403), ("KMS.ThrottlingException", 400), ("KMS.DisabledException", 400),
)  # fmt: skip
_COUNTS: Final = (
    "ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible", "ApproximateNumberOfMessagesDelayed",
)  # fmt: skip
_BATCHES: Final = frozenset({"SendMessageBatch", "DeleteMessageBatch", "ChangeMessageVisibilityBatch"})


@dataclass(slots=True)
class Near:
    """In the place of boto3's client of SQS.

    Attributes:
        stage: whose time it is, and whose dice.
        log: every call, as the judge reads them.
        late: numbers of calls that a frozen actor put on the wire after its time.
        lag: seconds by which counts may lag: each of them by another time, with every answer.
    """

    stage: Stage
    core: LocalSqs = field(default_factory=lambda: LocalSqs(Random(0), region=REGION))
    log: list[dict[str, Any]] = field(default_factory=list)
    late: set[int] = field(default_factory=set)
    lag: float = 0.0
    _counted: dict[str, list[tuple[float, dict[str, str]]]] = field(default_factory=dict)

    def begin(self, seed: int, *, lag: float = 0.0) -> None:
        self.core, self.log, self.late = LocalSqs(Random(seed), region=REGION), [], set()
        self.lag, self._counted = lag, {}

    def __getattr__(self, name: str) -> Callable[..., dict[str, Any]]:
        """boto3's way to name an action."""
        action = "".join(word.title() for word in name.split("_"))
        return lambda **asked: self.call(action, asked)

    def call(self, action: str, asked: Mapping[str, Any]) -> dict[str, Any]:
        """One request of the actor whose thread this is: others move before it, while it is done, and after it."""
        actor = mine.actor
        request = _written(asked)
        if actor is None:
            return self._do(action, request, None)[0]
        self.stage.point(f"ask {action}", seconds=self.stage.dice.uniform(0.001, 0.02))
        fault = self._fault(action) if actor.mortal else None
        answer, call = self._do(action, request, fault)
        if actor.frozen_at_the_wire:
            self.late.add(call["n"])
            actor.frozen_at_the_wire = False
        try:
            lasts = _READ_SECONDS if fault == "unanswered" else self.stage.dice.uniform(0.001, 0.02)
            self.stage.point(f"heard {action}", seconds=lasts)
        except Crash:
            call["answered"] = False
            raise
        if fault == "unanswered":
            raise ReadTimeoutError(endpoint_url=ADDRESS)
        return answer

    def _fault(self, action: str) -> str | None:
        dice = self.stage.dice
        if dice.random() >= self.stage.odds.sqs:
            return None
        kinds = ["refused", "unreached", "unanswered"]
        kinds += ["partial"] if action in _BATCHES else []
        kinds += ["false empty", "early expiry"] if action == "ReceiveMessage" else []
        fault = dice.choice(kinds)
        self.stage.note(f"SQS {fault}", action)
        return fault

    def _do(self, action: str, request: dict[str, Any], fault: str | None) -> tuple[dict[str, Any], dict[str, Any]]:
        match fault:
            case "refused":
                code, status = self.stage.dice.choice(_ERRORS)
                raise self._refusal(action, request, SqsError.from_code(code, "It was told to fail.", status))
            case "unreached":
                self._note(action, request, None, None, Record(), undone=True)
                raise EndpointConnectionError(endpoint_url=ADDRESS)
            case "false empty":
                return {}, self._note(action, request, 200, None, Record())
            case "early expiry":
                request = {**request, "VisibilityTimeout": 0}
        if self.lag:
            self._count()
        struck = self._strike(request) if fault == "partial" else []
        try:
            answer: dict[str, Any] = self.core.handle(
                action, {**request, **_left(request, struck)}, now=self.stage.now, address=ADDRESS
            )
        except SqsError as error:
            raise self._refusal(action, request, error) from None
        record = self.core.record
        if struck:
            failed = [{"Id": one, "Code": "InternalError", "Message": "", "SenderFault": False} for one in struck]
            answer = {**answer, "Failed": [*failed, *answer.get("Failed", [])]}
        if answer.get("Failed"):
            note_failed(record, action, request, answer["Failed"])
        call = self._note(action, request, 200, None, record)
        call["answered"] = fault != "unanswered"
        if action == "GetQueueAttributes" and "Attributes" in answer:
            answer = {**answer, "Attributes": answer["Attributes"] | self._lagging(request)}
        return _read(answer), call

    def _count(self) -> None:
        """Remember what each queue holds now, for whoever asks within the time by which counts may lag."""
        queues: Any = self.core.handle("ListQueues", {}, now=self.stage.now, address=ADDRESS).get("QueueUrls", [])
        for url in queues:
            asked = {"QueueUrl": url, "AttributeNames": list(_COUNTS)}
            found: Any = self.core.handle("GetQueueAttributes", asked, now=self.stage.now, address=ADDRESS)
            told = self._counted.setdefault(queue_name(url), [])
            told.append((self.stage.now, found["Attributes"]))
            while told[0][0] < self.stage.now - self.lag:
                del told[0]

    def _lagging(self, request: Mapping[str, Any]) -> dict[str, str]:
        if not self.lag:
            return {}
        told = self._counted[queue_name(str(request["QueueUrl"]))]
        asked = set(request.get("AttributeNames", ()))
        wanted = [name for name in _COUNTS if name in asked or "All" in asked]
        return {name: self.stage.dice.choice(told)[1][name] for name in wanted}

    def _strike(self, request: Mapping[str, Any]) -> list[str]:
        """Ids of the entries that fail: some, never all."""
        ids = [one["Id"] for one in request["Entries"]]
        return self.stage.dice.sample(ids, self.stage.dice.randrange(1, len(ids))) if len(ids) > 1 else []

    def _refusal(self, action: str, request: dict[str, Any], error: SqsError) -> ClientError:
        self._note(action, request, error.status, error.code, Record(), undone=True)
        said: Any = {
            "Error": {"Code": error.code, "Message": error.message},
            "ResponseMetadata": {"HTTPStatusCode": error.status},
        }
        return ClientError(said, action)

    def _note(  # noqa: PLR0913  a line of the log
        self, action: str, request: dict[str, Any], status: int | None, code: str | None, record: Record, *,
        undone: bool = False,
    ) -> dict[str, Any]:  # fmt: skip
        if undone:
            note_undone(record, action, request, code)
        named = str(request.get("QueueUrl") or request.get("QueueName") or "").rpartition("/")[2]
        call = Call(
            at=self.stage.now, action=action, queue=named or None, status=status, code=code, fault=None,
            answered=status is not None, record=record, n=len(self.log),
        )  # fmt: skip
        told: dict[str, Any] = orjson.loads(call.line())
        self.log.append(told)
        return told


def _left(request: Mapping[str, Any], struck: list[str]) -> dict[str, Any]:
    return {"Entries": [one for one in request["Entries"] if one["Id"] not in struck]} if struck else {}


def _written(value: Any) -> Any:  # noqa: ANN401  whatever boto3 takes
    """As AWS JSON has it: bytes in base64."""
    if isinstance(value, Mapping):
        return {name: _written(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_written(one) for one in value]
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value


def _read(value: Any, name: str = "") -> Any:  # noqa: ANN401  as above
    """As boto3 gives it back, and nothing of it shared with the core."""
    if isinstance(value, Mapping):
        return {key: _read(one, key) for key, one in value.items()}
    if isinstance(value, list):
        return [_read(one) for one in value]
    return base64.b64decode(value) if name == "BinaryValue" else value


def queue_name(url: str) -> str:
    return re.split(r"[:/]", url)[-1]
