"""A signature made here is the one that botocore makes."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, cast
from unittest.mock import patch
from urllib.parse import urlsplit

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from hypothesis import given
from hypothesis import strategies as st

from reprocessing.gateways.aws.lean_signatures import Signing

SHOWN = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=80)
SPACED = st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=1, max_size=80)


@pytest.mark.soak
@given(
    body=st.binary(max_size=2_000), key=SHOWN, secret=st.text(min_size=1, max_size=60).filter(str.isprintable),
    token=st.none() | SHOWN, agent=SPACED, region=st.sampled_from(["eu-west-1", "us-gov-west-1"]),
    path=st.sampled_from(["/", "/prefix/", "/a/b"]),
    now=st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1)),  # noqa: DTZ001 - hypothesis adds the zone below
)  # fmt: skip
def test_it_is_botocore_s_signature_to_the_byte(  # noqa: PLR0913, PLR0917 - what hypothesis varies
    body: bytes, key: str, secret: str, token: str | None, agent: str, region: str, path: str, now: datetime
) -> None:
    url = f"https://sqs.{region}.amazonaws.com{path}"
    request = AWSRequest("POST", url, {"X-Amz-Target": "AmazonSQS.SendMessageBatch", "x-agent": agent}, body)
    credentials = Credentials(key, secret, token)
    with patch("botocore.auth.get_current_datetime", lambda: now.replace(tzinfo=UTC)):
        SigV4Auth(credentials.get_frozen_credentials(), "sqs", region).add_auth(cast("Any", request))
    usual = dict(cast("Any", request.headers).items())
    headers = {name.lower(): value for name, value in usual.items() if name != "Authorization"}
    headers["host"] = urlsplit(url).netloc
    ours = Signing(region, "sqs", path).authorization(headers, body, credentials)
    assert ours == usual["Authorization"]
