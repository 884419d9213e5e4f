"""Signatures follow Standard Webhooks, so that its libraries can verify them."""

from __future__ import annotations

import base64
import hashlib
import hmac
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reprocessing.domain.targets import signing_secret, webhook_signature

MOMENT = datetime.fromtimestamp(1614265330, UTC)


def signed(key: bytes, message_id: str, body: bytes) -> dict[str, str]:
    return dict(webhook_signature.headers(key, message_id=message_id, now=MOMENT, body=body))


def test_the_published_example_has_its_published_signature() -> None:
    key = signing_secret.secret_bytes("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    assert key is not None
    assert signed(key, "msg_p5jXN8AQM9LWM0D4loKWxJek", b'{"test": 2432232314}') == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }


@pytest.mark.soak
@given(st.binary(min_size=1), st.text("abc-0123", min_size=1), st.binary())
def test_only_the_same_key_id_and_body_give_the_same_signature(key: bytes, message_id: str, body: bytes) -> None:
    made = signed(key, message_id, body)
    over = f"{made['webhook-id']}.{made['webhook-timestamp']}.".encode() + body
    expected = base64.b64encode(hmac.new(key, over, hashlib.sha256).digest()).decode()
    assert made["webhook-signature"] == f"v1,{expected}"
    for other in (signed(key + b"!", message_id, body), signed(key, message_id, body + b"!"), signed(key, "x", body)):
        assert other["webhook-signature"] != made["webhook-signature"]
