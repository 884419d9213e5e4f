"""Whoever is not vouched for by the provider, for this client and in this browser, is not signed in."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

import jwt
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from django.contrib.auth.models import User
from django.test import Client

from tests.redrive_service.oidc.conftest import SignIn
from tests.redrive_service.oidc.provider import KID, Claims, Provider, jwk, key

pytestmark = pytest.mark.django_db


def is_signed_in(client: Client) -> bool:
    return client.get("/admin/").status_code == 200


def test_who_is_vouched_for_is_signed_in(client: Client, sign_in: SignIn) -> None:
    assert (sign_in(client).status_code, is_signed_in(client)) == (302, True)


NOW = int(time.time())  # noqa: TID251  PyJWT reads the same clock


@pytest.mark.parametrize(
    "case",
    [
        ({"aud": "another client"}, "InvalidAudienceError"),
        ({"aud": None}, "MissingRequiredClaimError"),
        ({"aud": ["redrive", "another client"]}, "it was issued to another client (azp)"),
        ({"azp": "another client"}, "it was issued to another client (azp)"),
        ({"iss": "https://login.example.com"}, "InvalidIssuerError"),
        ({"iss": None}, "MissingRequiredClaimError"),
        ({"exp": NOW - 120}, "ExpiredSignatureError"),
        ({"exp": None}, "MissingRequiredClaimError"),
        ({"iat": NOW + 3600}, "ImmatureSignatureError"),
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
def test_a_token_that_is_not_for_this_sign_in_is_refused(
    client: Client, provider: Provider, sign_in: SignIn, caplog: pytest.LogCaptureFixture, case: tuple[Claims, str]
) -> None:
    provider.lies, why = case
    answer = sign_in(client)
    assert (answer.status_code, is_signed_in(client), User.objects.count()) == (403, False, 0)
    assert caplog.messages[0] == f"Sign-in refused: The sign-in failed: ID token: {why}"


def unsigned(claims: Claims) -> str:
    return jwt.encode(claims, None, "none", {"kid": KID})


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
    import base64  # noqa: PLC0415
    import hashlib  # noqa: PLC0415
    import hmac  # noqa: PLC0415

    def coded(raw: bytes) -> str:
        return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()

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
    "sign",
    [
        unsigned, unsigned_with_the_name_of_a_signature, by_another_key, by_a_key_that_it_brings, by_a_key_elsewhere,
        by_the_public_key_as_a_password, changed_after_it_was_signed, no_token_at_all,
    ],
    ids=lambda told: told.__name__,
)  # fmt: skip
def test_a_token_that_the_provider_did_not_sign_is_refused(
    client: Client, provider: Provider, sign_in: SignIn, sign: Callable[[Claims], str]
) -> None:
    provider.sign = sign
    assert (sign_in(client).status_code, is_signed_in(client), User.objects.count()) == (403, False, 0)


@pytest.mark.parametrize(
    "keys",
    [
        [], [jwk(key("of mallory"))], [jwk(key(), use="enc")], [jwk(key(), alg="RS512")], [jwk(key(), kid="another")],
        [jwk(key()), jwk(key("of mallory"))], [{"kty": "oct", "kid": KID, "k": "c2VjcmV0"}], ["none"],
    ],
    ids=["none", "another's", "to encrypt", "another algorithm", "another id", "two of one id", "a password", "text"],
)  # fmt: skip
def test_a_key_that_is_not_the_one_for_this_signature_verifies_nothing(
    client: Client, provider: Provider, sign_in: SignIn, keys: list[Any]
) -> None:
    provider.keys = keys
    assert (sign_in(client).status_code, is_signed_in(client)) == (403, False)


def test_a_new_key_of_the_provider_is_used_at_once(client: Client, provider: Provider, sign_in: SignIn) -> None:
    sign_in(client)
    provider.keys = [jwk(key("a new one"), kid="key-2")]
    provider.sign = lambda claims: jwt.encode(claims, key("a new one"), "RS256", {"kid": "key-2"})
    assert sign_in(Client()).status_code == 302


def test_an_answer_counts_once(client: Client, provider: Provider, sign_in: SignIn) -> None:
    back = provider.authorize(client.get("/oidc/sign-in").headers["Location"])
    assert [client.get(back).status_code for _ in range(2)] == [302, 400]
    assert is_signed_in(client)


def test_an_answer_to_another_browser_signs_nobody_in(client: Client, provider: Provider, sign_in: SignIn) -> None:
    """Mallory sends Ann a link that would sign Ann in as Mallory."""
    back = provider.authorize(Client().get("/oidc/sign-in").headers["Location"])
    for ann in (client, Client()):
        if ann is client:
            ann.get("/oidc/sign-in")
        assert (ann.get(back).status_code, is_signed_in(ann)) == (400, False)
    assert "/token" not in provider.asked


@pytest.mark.parametrize("answer", ["", "?code=x", "?error=access_denied", "?error=login_required&state=x", "?state=x"])
def test_a_link_of_another_site_neither_signs_in_nor_out(client: Client, sign_in: SignIn, answer: str) -> None:
    sign_in(client)
    assert (client.get(f"/oidc/callback{answer}").status_code, is_signed_in(client)) == (400, True)


def test_a_code_in_the_address_of_the_password_form_is_not_used(
    client: Client, provider: Provider, groups: None
) -> None:
    back = provider.authorize(client.get("/oidc/sign-in").headers["Location"])
    client.post(f"/admin/login/?{urlsplit(back).query}", {"username": "ann", "password": "x"})
    assert (is_signed_in(client), provider.asked) == (False, ["/.well-known/openid-configuration"])


def test_a_stolen_code_is_worth_nothing_without_the_verifier(client: Client, provider: Provider, groups: None) -> None:
    ann, mallory = (client.get("/oidc/sign-in").headers["Location"], Client())
    stolen = parse_qs(urlsplit(provider.authorize(ann)).query)["code"][0]
    state = parse_qs(urlsplit(mallory.get("/oidc/sign-in").headers["Location"]).query)["state"][0]
    answer = mallory.get(f"/oidc/callback?code={stolen}&state={state}")
    assert (answer.status_code, is_signed_in(mallory)) == (403, False)


@pytest.mark.parametrize(
    "elsewhere",
    [
        "https://mallory.example/", "//mallory.example", "/\\mallory.example", "https:mallory.example",
        "javascript:alert(1)", "http://testserver@mallory.example/", "",
    ],
)  # fmt: skip
def test_a_sign_in_ends_on_this_host(client: Client, sign_in: SignIn, elsewhere: str) -> None:
    assert sign_in(client, f"?next={elsewhere}").headers["Location"] == "/admin/"


def test_a_sign_in_goes_back_to_the_page_that_was_asked_for(client: Client, sign_in: SignIn) -> None:
    page = client.get("/admin/reprocessing/letter/?q=x", follow=True).content.decode()
    assert 'href="/oidc/sign-in?next=/admin/reprocessing/letter/%3Fq%3Dx"' in page
    answer = sign_in(client, "?next=/admin/reprocessing/letter/%3Fq%3Dx")
    assert answer.headers["Location"] == "/admin/reprocessing/letter/?q=x"


def test_the_userinfo_of_another_person_is_refused(client: Client, provider: Provider, sign_in: SignIn) -> None:
    provider.userinfo = {"sub": "ben-1", "groups": ["admins"]}
    assert (sign_in(client).status_code, is_signed_in(client)) == (403, False)


def test_no_method_but_get_is_answered(client: Client, provider: Provider) -> None:
    assert [client.post(f"/oidc/{name}").status_code for name in ("sign-in", "callback")] == [405, 405]
