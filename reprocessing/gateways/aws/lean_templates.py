"""Build SQS requests from a template: the URL, region and headers of botocore's first request of an action."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from botocore.auth import SIGV4_TIMESTAMP
from botocore.awsrequest import AWSPreparedRequest
from botocore.compat import get_current_datetime

from reprocessing.gateways.aws.lean_connections import LeanHeaders
from reprocessing.gateways.aws.lean_signatures import Signing

_SAME: Final = frozenset({"x-amz-target", "content-type", "x-amzn-query-mode", "user-agent"})
_CHANGING: Final = frozenset({"x-amz-date", "x-amz-security-token", "authorization", "content-length"})
_OF_RETRIES: Final = frozenset({"amz-sdk-invocation-id", "amz-sdk-request"})  # headers of botocore's own retries


@dataclass(frozen=True, slots=True)
class Template:
    """What all requests of one action, such as SendMessageBatch, have in common.

    `signed`: the headers that the signature covers, by their names in lower case.
    """

    url: str
    headers: Mapping[str, str]
    signed: Mapping[str, str]
    signing: Signing
    signer: Any  # botocore's RequestSigner

    def request(self, body: bytes) -> AWSPreparedRequest:
        """Return a request with this body, signed with the current credentials.

        Raises botocore's errors if the credentials have to be renewed, and this fails.
        """
        credentials = _credentials(self.signer, self.signing)
        changing = {"X-Amz-Date": get_current_datetime().strftime(SIGV4_TIMESTAMP)}
        if credentials.token:
            changing["X-Amz-Security-Token"] = credentials.token
        signed = {**self.signed, **{name.lower(): value for name, value in changing.items()}}
        changing["Authorization"] = self.signing.authorization(signed, body, credentials)
        changing["Content-Length"] = str(len(body))
        headers: Any = LeanHeaders({**self.headers, **changing})
        return AWSPreparedRequest("POST", self.url, headers, body, stream_output=False)


def template_of(request: Any, signer: Any) -> Template | None:  # noqa: ANN401 - botocore's, not as in its stubs
    """Return the template of a request that botocore has signed; None if no template can be made.

    No template can be made if the request has a header that this module does not know, or if this module would sign the
    request differently.
    """
    headers = {name: value.decode() if isinstance(value, bytes) else value for name, value in request.headers.items()}
    found = {name.lower(): value for name, value in headers.items()}
    parts = urlsplit(request.url)
    if not {"x-amz-date", "authorization"} <= found.keys() <= _SAME | _CHANGING | _OF_RETRIES:
        return None
    known = (request.context or {}).get("signing", {})
    signing = Signing(
        known.get("region", signer.region_name), known.get("signing_name", signer.signing_name), parts.path
    )
    names = found["authorization"].partition("SignedHeaders=")[2].partition(",")[0].split(";")
    signed = {name: value for name, value in {**found, "host": parts.netloc}.items() if name in names}
    if signing.authorization(signed, request.body, _credentials(signer, signing)) != found["authorization"]:
        return None
    same = {name: value for name, value in headers.items() if name.lower() in _SAME}
    return Template(
        url=request.url,
        headers={"Host": parts.netloc, "Accept-Encoding": "identity", **same},
        signed={name: value for name, value in signed.items() if name not in _CHANGING | _OF_RETRIES},
        signing=signing,
        signer=signer,
    )


def _credentials(signer: Any, signing: Signing) -> Any:  # noqa: ANN401 - botocore's
    return signer.get_auth_instance(signing.service, signing.region).credentials
