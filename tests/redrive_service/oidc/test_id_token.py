"""An ID token counts only if the provider signed it, for this client, for this sign-in, and lately."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Callable
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from redrive_service.oidc import id_token
from redrive_service.oidc.refusals import UNVERIFIED, SignInRefused
from tests.redrive_service.oidc.provider import CLIENT, KID, Claims, jwk, key

ISSUER = "https://login.example.com/realms/main"
CLAIMS = {
    "iss": ISSUER,
    "aud": CLIENT,
    "sub": "ann-1",
    "nonce": "n",
    "iat": 0,
    "exp": 300,
}  # seconds from now: see `timed`


def timed(claims: Claims) -> Claims:
    now = int(time.time())  # noqa: TID251  PyJWT reads the same clock
    return claims | {name: now + claims[name] for name in ("iat", "exp") if name in claims}


def signed(claims: Claims) -> str:
    return jwt.encode(claims, key(), "RS256", {"kid": KID})


def verify(token: object, *keys: object, nonce: str | None = "n") -> dict[str, Any]:
    return id_token.verified(token, {"keys": list(keys or [jwk(key())])}, issuer=ISSUER, client_id=CLIENT, nonce=nonce)


def refusal(token: object, *keys: object, nonce: str | None = "n") -> str:
    with pytest.raises(SignInRefused) as caught:
        verify(token, *keys, nonce=nonce)
    assert caught.value.refusal is UNVERIFIED
    return caught.value.why.removeprefix("ID token: ")


@pytest.mark.parametrize("more", [{}, {"azp": CLIENT}, {"aud": [CLIENT]}, {"aud": [CLIENT, "x"], "azp": CLIENT}])
def test_the_provider_s_token_is_verified(more: Claims) -> None:
    told = timed(CLAIMS | more)
    assert verify(signed(told)) == told


def test_clocks_may_differ_by_a_minute() -> None:
    verify(signed(timed(CLAIMS | {"exp": -30, "iat": 30})))


def test_a_key_without_an_id_is_the_only_one() -> None:
    token = jwt.encode(timed(CLAIMS), key(), "RS256")
    verify(token)
    assert refusal(token, jwk(key()), jwk(key("of mallory"))) == "2 keys of the provider fit its header, not one"


@pytest.mark.parametrize(
    "case",
    [
        ({"aud": "another client"}, "InvalidAudienceError"),
        ({"aud": None}, "MissingRequiredClaimError"),
        ({"aud": ["redrive", "another client"]}, "it was issued to another client (azp)"),
        ({"azp": "another client"}, "it was issued to another client (azp)"),
        ({"iss": "https://login.example.com"}, "InvalidIssuerError"),
        ({"iss": None}, "MissingRequiredClaimError"),
        ({"exp": -120}, "ExpiredSignatureError"),
        ({"exp": None}, "MissingRequiredClaimError"),
        ({"iat": 3600}, "ImmatureSignatureError"),
        ({"nonce": "of another sign-in"}, "another sign-in's nonce"),
        ({"nonce": None}, "another sign-in's nonce"),
        ({"sub": ""}, "sub is empty, too long or unprintable"),
        ({"sub": "a\0b"}, "sub is empty, too long or unprintable"),
        ({"sub": "a" * 256}, "sub is empty, too long or unprintable"),
        ({"sub": None}, "MissingRequiredClaimError"),
        ({"sub": 7}, "InvalidSubjectError"),
    ],
    ids=lambda case: f"{next(iter(case[0]))}: {case[1]}",
)
def test_a_token_that_is_not_for_this_sign_in_is_refused(case: tuple[Claims, str]) -> None:
    lies, why = case
    told = {name: value for name, value in (CLAIMS | lies).items() if value is not None}
    assert refusal(signed(timed(told))) == why


@pytest.mark.parametrize("nonce", [None, ""])
def test_a_sign_in_without_a_nonce_verifies_nothing(nonce: str | None) -> None:
    told = {name: value for name, value in CLAIMS.items() if name != "nonce"}
    assert (
        refusal(signed(timed(told) | ({} if nonce is None else {"nonce": nonce})), nonce=nonce)
        == "another sign-in's nonce"
    )


def coded(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def unsigned(claims: Claims) -> str:
    return jwt.encode(claims, "", "none", {"kid": KID})


def unsigned_with_the_name_of_a_signature(claims: Claims) -> str:
    head, body, _ = jwt.encode(claims, key(), "RS256", {"kid": KID}).split(".")
    return f"{head}.{body}."


def by_another_key(claims: Claims) -> str:
    return jwt.encode(claims, key("of mallory"), "RS256", {"kid": KID})


def by_a_key_that_it_brings(claims: Claims) -> str:
    return jwt.encode(claims, key("of mallory"), "RS256", {"kid": KID, "jwk": jwk(key("of mallory"))})


def by_a_key_elsewhere(claims: Claims) -> str:
    headers = {"kid": "mallory", "jku": "https://mallory.example/jwks"}
    return jwt.encode(claims, key("of mallory"), "RS256", headers)


def by_the_public_key_as_a_password(claims: Claims) -> str:
    """PyJWT refuses to sign so; an attacker does not."""
    text = f"{coded(json.dumps({'alg': 'HS256', 'kid': KID}).encode())}.{coded(json.dumps(claims).encode())}"
    public = key().public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return f"{text}.{coded(hmac.new(public, text.encode(), hashlib.sha256).digest())}"


def changed_after_it_was_signed(claims: Claims) -> str:
    head, _, signature = jwt.encode(claims, key(), "RS256", {"kid": KID}).split(".")
    body = jwt.encode(claims | {"groups": ["admins"]}, key("of mallory"), "RS256").split(".")[1]
    return f"{head}.{body}.{signature}"


def no_token_at_all(_: Claims) -> str:
    return "abc"


@pytest.mark.parametrize(
    ("sign", "why"),
    [
        (unsigned, "the algorithm 'none' is not accepted"),
        (unsigned_with_the_name_of_a_signature, "InvalidSignatureError"),
        (by_another_key, "InvalidSignatureError"),
        (by_a_key_that_it_brings, "InvalidSignatureError"),
        (by_a_key_elsewhere, "0 keys of the provider fit its header, not one"),
        (by_the_public_key_as_a_password, "the algorithm 'HS256' is not accepted"),
        (changed_after_it_was_signed, "InvalidSignatureError"),
        (no_token_at_all, "DecodeError"),
    ],
    ids=lambda told: told.__name__ if callable(told) else "",
)
def test_a_token_that_the_provider_did_not_sign_is_refused(sign: Callable[[Claims], str], why: str) -> None:
    assert refusal(sign(timed(CLAIMS))) == why


@pytest.mark.parametrize("token", [None, 7, {}])
def test_what_is_no_token_is_refused(token: object) -> None:
    assert refusal(token) == "the provider sent no ID token"


@pytest.mark.parametrize(
    "keys",
    [
        [[]], [jwk(key("of mallory"))], [jwk(key(), use="enc")], [jwk(key(), alg="RS512")], [jwk(key(), kid="another")],
        [jwk(key()), jwk(key("of mallory"))], [{"kty": "oct", "kid": KID, "k": "c2VjcmV0"}], ["none"],
    ],
    ids=["none", "another's", "to encrypt", "another algorithm", "another id", "two of one id", "a password", "text"],
)  # fmt: skip
def test_a_key_that_is_not_the_one_for_this_signature_verifies_nothing(keys: list[object]) -> None:
    why = refusal(signed(timed(CLAIMS)), *keys)
    assert why == "InvalidSignatureError" or why.endswith(" keys of the provider fit its header, not one")


def test_a_short_key_of_the_provider_verifies_nothing() -> None:
    short = generate_private_key(65537, 1024)
    with pytest.warns(jwt.InsecureKeyLengthWarning):
        token = jwt.encode(timed(CLAIMS), short, "RS256", {"kid": KID})
    assert refusal(token, jwk(short)) == "InvalidKeyError"
