"""Make frequent SQS requests without botocore's events and retries, which take 40 % of a request's processor time.

botocore still serializes the request, resolves the endpoint, signs with the client's credentials, and keeps the
connections, proxies and certificates. It also parses every answer that is not a plain success.
"""

from __future__ import annotations

import base64
from contextlib import suppress
from typing import Any, Final

import orjson
from botocore.awsrequest import AWSRequest, AWSResponse
from botocore.endpoint import convert_to_response_dict

#: The frequent actions: receiving, sending and deleting messages.
ACTIONS: Final = ("ReceiveMessage", "SendMessageBatch", "DeleteMessageBatch", "ChangeMessageVisibilityBatch")
_OK: Final = 200


def use_lean_requests(client: Any) -> None:  # noqa: ANN401 - boto3's client, through attributes that its stubs lack
    """Let this SQS client make the requests of `ACTIONS` itself. A handler of `before-call` may answer a call."""

    def answer(
        *, model: Any, params: dict[str, Any], request_signer: Any, context: dict[str, Any], **_: object  # noqa: ANN401 - as above
    ) -> tuple[AWSResponse, dict[str, Any]]:  # fmt: skip
        request = AWSRequest("POST", params["url"], params["headers"], params["body"])
        signing = context.get("signing", {})
        signer = request_signer.get_auth_instance(
            signing.get("signing_name", request_signer.signing_name), signing.get("region", client.meta.region_name)
        )
        signer.add_auth(request)
        response: AWSResponse = client._endpoint.http_session.send(request.prepare())  # noqa: SLF001 - has no public name
        if response.status_code == _OK:
            with suppress(ValueError):  # an answer of a proxy, or a text that orjson refuses
                return response, _read(response.content)
        parser = client._response_parser  # noqa: SLF001 - as above
        return response, parser.parse(convert_to_response_dict(response, model), model.output_shape)

    for action in ACTIONS:
        client.meta.events.register_last(f"before-call.sqs.{action}", answer)


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
