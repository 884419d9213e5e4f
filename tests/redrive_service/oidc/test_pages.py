"""The pages of the sign-in: what they offer, with and without passwords, behind a proxy, and without the provider."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from io import StringIO
from urllib.parse import parse_qs, urlsplit

import pytest
from axes.models import AccessAttempt
from django.contrib.auth import authenticate
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client, RequestFactory
from pytest_django.fixtures import Settings

from redrive_service.oidc import metadata
from redrive_service.oidc.checks import weak_sign_in
from redrive_service.oidc.refusals import SignInRefused
from tests.redrive_service.oidc.conftest import SignIn, configure, oidc_of
from tests.redrive_service.oidc.provider import SECRET, Claims, Provider
from tests.redrive_service.test_pages import _INLINE, POLICY, _policy

pytestmark = pytest.mark.django_db
PASSWORD = "a pass phrase"


@pytest.fixture
def root(settings: Settings) -> User:
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    return User.objects.create_superuser("root", password=PASSWORD)


def by_password(client: Client) -> int:
    return client.post("/admin/login/", {"username": "root", "password": PASSWORD}).status_code


def test_without_a_provider_the_page_has_a_password_form_alone(client: Client) -> None:
    page = client.get("/admin/login/").content.decode()
    assert ('name="password"' in page, "Sign in with" in page, "oidc" in page) == (True, False, False)
    assert client.get("/oidc/sign-in").status_code == 404


def test_the_page_offers_both_ways(client: Client, provider: Provider, root: User) -> None:
    page = client.get("/admin/login/?next=/admin/rights").content.decode()
    assert 'href="/oidc/sign-in?next=/admin/rights">Sign in with Example Login</a>' in page
    assert 'name="password"' in page
    assert by_password(client) == 302


def test_where_passwords_are_off_there_is_no_form_and_no_password_is_taken(
    client: Client, provider: Provider, root: User, settings: Settings
) -> None:
    client.post("/admin/login/", {"username": "root", "password": PASSWORD})
    configure(settings, settings.OIDC, passwords=False)
    assert client.get("/admin/").status_code == 302  # a session by password ended, too
    page = client.get("/admin/login/").content.decode()
    assert ('type="password"' in page, "Sign in with Example Login" in page) == (False, True)
    assert by_password(Client()) == 403
    request = RequestFactory().post("/admin/login/")
    assert authenticate(request, username="root", password=PASSWORD) is None


def test_sign_ins_by_the_provider_count_as_no_wrong_password(
    client: Client, provider: Provider, sign_in: SignIn, root: User
) -> None:
    provider.lies = {"aud": "another client"}
    assert {sign_in(client).status_code for _ in range(6)} == {403}
    assert AccessAttempt.objects.count() == 0
    assert by_password(client) == 302


def test_a_locked_user_name_does_not_lock_the_provider_s_people(
    client: Client, provider: Provider, sign_in: SignIn, root: User
) -> None:
    wrong = [client.post("/admin/login/", {"username": "ann", "password": "x"}).status_code for _ in range(5)]
    assert (wrong[-1], sign_in(client).status_code) == (429, 302)


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("/.well-known/openid-configuration", (500, "{}")), ("/.well-known/openid-configuration", (200, "<html>")),
        ("/.well-known/openid-configuration", (200, "[]")), ("/token", (503, "{}")), ("/token", (200, "<html>")),
        ("/token", (200, "[]")), ("/jwks", (500, "{}")), ("/userinfo", (500, "{}")), ("/userinfo", (200, "x")),
    ],
)  # fmt: skip
def test_a_provider_that_is_out_of_order_is_told_as_such(
    client: Client, provider: Provider, sign_in: SignIn, path: str, answer: tuple[int, str]
) -> None:
    provider.broken[path] = answer
    began = client.get("/oidc/sign-in")
    ended = client.get(provider.authorize(began.headers["Location"])) if began.status_code == 302 else began
    assert (ended.status_code, "Sign-in is not available" in ended.content.decode()) == (503, True)


def test_without_the_provider_nobody_hangs_and_passwords_still_work(
    client: Client, provider: Provider, root: User, settings: Settings
) -> None:
    settings.OIDC = oidc_of("http://127.0.0.1:1")
    assert client.get("/oidc/sign-in").status_code == 503
    assert by_password(client) == 302
    assert client.get("/readyz").status_code == 200


@pytest.mark.parametrize(
    "told",
    [
        {"issuer": "https://login.example.com"}, {"token_endpoint": "http://mallory.example/token"},
        {"authorization_endpoint": "javascript:alert(1)"}, {"jwks_uri": None},
    ],
    ids=lambda told: next(iter(told)),
)  # fmt: skip
def test_metadata_that_is_not_the_provider_s_is_not_used(
    client: Client, provider: Provider, settings: Settings, told: dict[str, object]
) -> None:
    secure = {"issuer": "https://login.example.org"}
    settings.OIDC = oidc_of("https://login.example.org")
    endpoints = ("authorization_endpoint", "token_endpoint", "jwks_uri", "userinfo_endpoint", "end_session_endpoint")
    usable = secure | {name: f"https://login.example.org/{name}" for name in endpoints}
    metadata._checked(usable, settings.OIDC)
    with pytest.raises(SignInRefused):
        metadata._checked(usable | told, settings.OIDC)


def test_behind_a_proxy_the_provider_sends_people_back_by_tls_and_cookies_are_for_tls(
    client: Client, provider: Provider, sign_in: SignIn, settings: Settings
) -> None:
    settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    settings.SESSION_COOKIE_SECURE = settings.CSRF_COOKIE_SECURE = settings.SECURE_SSL_REDIRECT = True
    settings.ALLOWED_HOSTS = ["redrive.example.com"]
    proxy = {"HTTP_X_FORWARDED_PROTO": "https", "HTTP_HOST": "redrive.example.com"}
    began = client.get("/oidc/sign-in", **proxy)  # type: ignore[arg-type]  # META
    asked = parse_qs(urlsplit(began.headers["Location"]).query)
    assert asked["redirect_uri"] == ["https://redrive.example.com/oidc/callback"]
    assert client.get(provider.authorize(began.headers["Location"]), **proxy).status_code == 302  # type: ignore[arg-type]
    cookie = client.cookies["sessionid"]
    assert (cookie["secure"], cookie["httponly"], cookie["samesite"]) == (True, True, "Lax")
    assert client.get("/admin/", **proxy).status_code == 200  # type: ignore[arg-type]


def test_a_host_that_is_not_ours_is_not_told_to_the_provider(client: Client, provider: Provider) -> None:
    assert client.get("/oidc/sign-in", HTTP_HOST="mallory.example").status_code == 400


def test_the_question_to_the_provider_has_all_that_guards_it(client: Client, provider: Provider) -> None:
    asked = parse_qs(urlsplit(client.get("/oidc/sign-in").headers["Location"]).query)
    assert sorted(asked) == [
        "client_id", "code_challenge", "code_challenge_method", "nonce", "redirect_uri", "response_type", "scope",
        "state",
    ]  # fmt: skip
    assert (asked["response_type"], asked["code_challenge_method"]) == (["code"], ["S256"])
    assert (len(asked["state"][0]), len(asked["nonce"][0]), len(asked["code_challenge"][0])) == (32, 32, 43)


def test_another_account_is_asked_for_at_the_provider(client: Client, provider: Provider) -> None:
    asked = [client.get(f"/oidc/sign-in?{how}").headers["Location"] for how in ("other=yes", "silent=yes")]
    assert [parse_qs(urlsplit(one).query).get("prompt") for one in asked] == [["login"], None]


def test_every_page_of_the_sign_in_keeps_the_policy_and_is_not_kept_by_caches(
    client: Client, provider: Provider, sign_in: SignIn
) -> None:
    sign_in(client)
    pages = [
        client.post("/admin/logout/"), client.get("/admin/login/"), client.get("/oidc/callback"),
        client.get("/oidc/sign-in"),
    ]  # fmt: skip
    assert [_policy(page.headers["Content-Security-Policy"]) for page in pages] == [POLICY] * 4
    assert [page for page in pages if _INLINE.search(page.content.decode())] == []
    assert {"no-store" in page.headers["Cache-Control"] for page in pages} == {True}


def test_no_token_and_no_secret_is_logged_or_shown(
    client: Client, provider: Provider, sign_in: SignIn, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    issued: list[str] = []
    sign = provider.sign

    def remembered(told: Claims) -> str:
        issued.append(sign(told))
        return issued[-1]

    provider.sign = remembered
    answers = [sign_in(client).content.decode()]
    provider.lies = {"aud": "another client"}
    answers.append(sign_in(Client()).content.decode())
    shown = StringIO()
    call_command("diffsettings", all=True, stdout=shown)
    everything = [caplog.text, shown.getvalue(), *answers]
    assert [text for text in everything for hidden in (SECRET, "hunter2", *issued) if hidden in text] == []
    assert len(issued) == 2


@pytest.mark.parametrize(
    ("passwords", "minutes", "secret", "found"),
    [
        (False, 60, "s" * 16, []), (False, 240, "s" * 16, []), (True, 60, "s" * 16, ["redrive_service.W001"]),
        (False, 0, "s" * 16, ["redrive_service.W002"]), (False, 241, "s" * 16, ["redrive_service.W002"]),
        (False, 60, "s" * 15, ["redrive_service.W003"]),
    ],
)  # fmt: skip
def test_the_deployment_check_says_what_is_weak(
    settings: Settings, passwords: bool, minutes: int, secret: str, found: list[str]
) -> None:
    settings.PASSWORD_LOGIN = passwords
    settings.OIDC = replace(oidc_of("https://x"), recheck=timedelta(minutes=minutes), client_secret=secret)
    assert [one.id for one in weak_sign_in()] == found
    settings.OIDC = None
    assert weak_sign_in() == []
