"""Make frequent SQS requests in 15 % of the processor time that botocore takes.

botocore makes the first request of each action, such as SendMessageBatch. This module makes the next requests from that
request as a template. They are signed with the client's credentials, and use the client's connections, proxies,
certificates and timeouts. If an answer is not a success, botocore reads the answer, and raises its usual errors.
"""

from __future__ import annotations

import base64
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

import orjson
from botocore import xform_name
from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.endpoint import convert_to_response_dict
from botocore.hooks import first_non_none_response
from botocore.httpsession import URLLib3Session

from reprocessing.gateways.aws.lean_connections import use_lean_connections
from reprocessing.gateways.aws.lean_templates import Template, template_of

#: The frequent actions: receiving, sending and deleting messages.
ACTIONS: Final = ("ReceiveMessage", "SendMessageBatch", "DeleteMessageBatch", "ChangeMessageVisibilityBatch")
_OK: Final = 200


def use_lean_requests(client: Any) -> None:  # noqa: ANN401 - boto3's client, through attributes that its stubs lack
    """Let this SQS client make the requests of `ACTIONS` from templates, not by botocore. Binary values must be bytes.

    Handlers of botocore's event `before-send` are still called, and may answer a request. If any handler is registered
    with the client later, botocore makes all further requests, so that the new handler is called.
    """
    session = client._endpoint.http_session  # noqa: SLF001 - has no public name
    if not isinstance(session, URLLib3Session):
        return
    use_lean_connections(session)
    actions = [_Action(client, action) for action in ACTIONS]
    emitter = client.meta.events._emitter  # noqa: SLF001 - has no public name
    handlers = emitter._lookup_cache  # noqa: SLF001 - private. A new handler makes botocore replace it.
    for action in actions:
        action.start(lambda: emitter._lookup_cache is handlers)  # noqa: SLF001 - has no public name


class _Action:
    """Makes the requests of one action (such as SendMessageBatch) of one client."""

    def __init__(self, client: Any, action: str) -> None:  # noqa: ANN401 - botocore's
        self._client, self._action = client, action
        self._call_botocore: Callable[..., dict[str, Any]] = getattr(client, xform_name(action))
        self._template: Template | None = None
        self._received = threading.local()  # `.answer`: an answer to this thread, which botocore is to read
        client.meta.events.register_last(f"before-call.sqs.{action}", self._hand_over)
        client.meta.events.register_last(f"before-send.sqs.{action}", self._learn)

    def start(self, may_go_on: Callable[[], bool]) -> None:
        """Replace the client's method for this action.

        The replacement calls the client's own method whenever `may_go_on` returns False.
        """
        self._may_go_on = may_go_on
        setattr(self._client, xform_name(self._action), self._call)

    def _call(self, **parameters: Any) -> dict[str, Any]:  # noqa: ANN401 - those of boto3's method
        if self._template is None or not self._may_go_on():
            return self._call_botocore(**parameters)
        try:
            body = orjson.dumps(parameters, default=_in_base64)
        except TypeError:  # orjson refuses a text with half a surrogate pair, but botocore can send it
            return self._call_botocore(**parameters)
        answer = self._send(self._template.request(body))
        if answer.status_code == _OK:
            with suppress(ValueError, AttributeError):  # if orjson cannot read the answer, botocore reads it below
                return _read(answer.content)
        self._received.answer = answer
        try:
            return self._call_botocore(**parameters)
        finally:
            del self._received.answer

    def _send(self, request: AWSPreparedRequest) -> AWSResponse:
        """Send a request once, and return the answer. Raises botocore's connection errors."""
        responses = self._client.meta.events.emit(f"before-send.sqs.{self._action}", request=request)
        answer: AWSResponse | None = first_non_none_response(responses)
        if answer is None:
            answer = self._client._endpoint.http_session.send(request)  # noqa: SLF001 - has no public name
        return answer

    def _hand_over(self, *, model: Any, **_: object) -> tuple[AWSResponse, dict[str, Any]] | None:  # noqa: ANN401 - botocore's
        answer = getattr(self._received, "answer", None)
        if answer is None:
            return None
        parser = self._client._response_parser  # noqa: SLF001 - has no public name
        return answer, parser.parse(convert_to_response_dict(answer, model), model.output_shape)

    def _learn(self, *, request: AWSPreparedRequest, **_: object) -> None:
        if self._template is None:
            self._template = template_of(request, self._client._request_signer)  # noqa: SLF001 - has no public name


def _in_base64(value: object) -> str:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    raise TypeError


def _read(content: bytes) -> dict[str, Any]:
    found = _without_nulls(orjson.loads(content))
    if "Messages" in found:
        found["Messages"] = [_message(message) for message in found["Messages"]]
    return found


def _message(message: dict[str, Any]) -> dict[str, Any]:
    message = _without_nulls(message)
    for value in message.get("MessageAttributes", {}).values():
        if "BinaryValue" in value:
            value["BinaryValue"] = base64.b64decode(value["BinaryValue"])
    return message


def _without_nulls(found: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in found.items() if value is not None}
