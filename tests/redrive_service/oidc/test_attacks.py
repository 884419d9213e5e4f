"""Whoever is not vouched for by the provider, for this client and in this browser, is not signed in."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import jwt
import pytest
from django.contrib.auth.models import User
from django.test import Client

from tests.redrive_service.oidc.conftest import SignIn
from tests.redrive_service.oidc.provider import KID, Claims, Provider, jwk, key

pytestmark = pytest.mark.django_db


def is_signed_in(client: Client) -> bool:
    return client.get("/admin/").status_code == 200


def test_who_is_vouched_for_is_signed_in(client: Client, sign_in: SignIn) -> None:
    assert (sign_in(client).status_code, is_signed_in(client)) == (302, True)


def by_another_key(claims: Claims) -> str:
    return jwt.encode(claims, key("of mallory"), "RS256", {"kid": KID})


@pytest.mark.parametrize("lie", ["of another client", "of another key"])
def test_a_token_that_cannot_be_verified_signs_nobody_in(
    client: Client, provider: Provider, sign_in: SignIn, caplog: pytest.LogCaptureFixture, lie: str
) -> None:
    if lie == "of another client":
        provider.lies, why = {"aud": "another client"}, "InvalidAudienceError"
    else:
        provider.sign, why = by_another_key, "InvalidSignatureError"
    answer = sign_in(client)
    assert (answer.status_code, is_signed_in(client), User.objects.count()) == (403, False, 0)
    assert caplog.messages[0] == f"Sign-in refused: The sign-in failed: ID token: {why}"


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


def test_a_link_of_another_site_neither_signs_in_nor_out(client: Client, sign_in: SignIn) -> None:
    sign_in(client)
    links = ["", "?code=x", "?error=access_denied", "?error=login_required&state=x", "?state=x", "?code=x&state=x"]
    assert {client.get(f"/oidc/callback{link}").status_code for link in links} == {400}
    assert is_signed_in(client)


@pytest.mark.soak
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


@pytest.mark.soak
def test_a_sign_in_ends_on_this_host(client: Client, sign_in: SignIn) -> None:
    elsewhere = [
        "https://mallory.example/", "//mallory.example", "/\\mallory.example", "https:mallory.example",
        "javascript:alert(1)", "http://testserver@mallory.example/", "",
    ]  # fmt: skip
    assert {sign_in(client, f"?next={one}").headers["Location"] for one in elsewhere} == {"/admin/"}


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
