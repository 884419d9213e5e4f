"""Somebody signs in by an OpenID provider, in a browser: service and provider are processes, set up by variables."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from django.contrib.auth.models import Group, User
from django.contrib.sessions.backends.db import SessionStore
from django.contrib.sessions.models import Session

from redrive_service.oidc.views import RECHECK_AT
from reprocessing.models import ProviderIdentity
from reprocessing.store.rights import roles
from tests.browser.chromium import Chromium, Window
from tests.browser.conftest import OPERATOR
from tests.conditions import eventually
from tests.redrive_service.oidc.provider import CLIENT, SECRET, running
from tests.redrive_service.test_server import started

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.soak]

PROVIDER = Path(__file__).parents[1] / "redrive_service/oidc/openid_provider.py"
SETTINGS = {
    "REDRIVE_OIDC_CLIENT_ID": CLIENT, "REDRIVE_OIDC_CLIENT_SECRET": SECRET,
    "REDRIVE_OIDC_NAME": "Example Login", "REDRIVE_OIDC_GROUPS": f"redrive-ops={OPERATOR}",
    "REDRIVE_PASSWORD_LOGIN": "no",
}  # fmt: skip


@pytest.fixture
def provider() -> Iterator[str]:
    process = subprocess.Popen(
        [sys.executable, str(PROVIDER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        text=True,
    )  # fmt: skip
    assert process.stdin
    assert process.stdout
    with process:
        yield f"http://localhost:{int(process.stdout.readline())}"
        process.stdin.close()  # it ends by this


@contextmanager
def desk(issuer: str, folder: Path) -> Iterator[str]:
    """The service where this provider is set."""
    roles.update_groups()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (SETTINGS | {"REDRIVE_OIDC_ISSUER": issuer}).items():
            patch.setenv(name, value)
        with started(folder) as web:
            yield f"http://127.0.0.1:{web.pages}"


def expected(issuer: str) -> tuple[str, ...]:
    """The provider, a style sheet of its pages, and statuses that are told in a page."""
    return (
        urlsplit(issuer).netloc,
        "picocss",
        "status of 403 (Forbidden) (http://127.0.0.1",
        "status of 401",
        "401: http://127.0.0.1",
    )


@contextmanager
def window_on(chromium: Chromium, issuer: str, folder: Path) -> Iterator[Window]:
    """A window in which only the provider's pages ask anybody else, and no script and no policy complains."""
    with desk(issuer, folder) as address:
        window = chromium.window(address)
        try:
            yield window
            assert [one for one in window.troubles() if not any(known in one for known in expected(issuer))] == []
        finally:
            window.close()


@pytest.fixture
def ann(chromium: Chromium, provider: str, tmp_path: Path) -> Iterator[Window]:
    with window_on(chromium, provider, tmp_path) as window:
        yield window


def sign_in(window: Window, person: str) -> None:
    window.press("Sign in with Example Login")
    window.press(person)


def now_has(provider: str, person: str, groups: list[str]) -> None:
    told = json.dumps({"preferred_username": person.partition("-")[0], "groups": groups}).encode()
    sent = urllib.request.Request(
        f"{provider}/users/{person}", told, {"Content-Type": "application/json"}, method="PUT"
    )
    urllib.request.urlopen(sent).close()


def make_due() -> None:
    for row in Session.objects.all():
        store = SessionStore(row.session_key)
        store[RECHECK_AT] = 0
        store.save()


def test_somebody_signs_in_works_is_asked_again_and_signs_out(ann: Window, provider: str) -> None:
    ann.open("/admin/rights")
    ann.sees("Sign in with Example Login")
    assert ann.do(lambda page: page.get_by_label("Password").count()) == 0
    sign_in(ann, "ann-1")
    ann.sees(OPERATOR)
    assert ann.address == "/admin/rights"
    assert list(ProviderIdentity.objects.values_list("user__username", "issuer", "subject")) == [
        ("ann", provider, "ann-1")
    ]

    make_due()
    ann.open("/admin/reprocessing/letter/?q=x")  # this provider ends its session at once
    ann.sees("Your session at Example Login has ended. Sign in again.")
    sign_in(ann, "ann-1")
    ann.sees("Messages", where="h1")
    assert ann.address == "/admin/reprocessing/letter/"

    ann.press("Log out")
    ann.do(lambda page: page.locator("button[type=submit]").click())  # a link has the same name
    ann.sees("Sign in with Example Login")
    assert ann.address == "/admin/login/"
    ann.open("/admin/")
    assert ann.address == "/admin/login/"


@pytest.mark.long
def test_a_dashboard_that_stays_open_is_confirmed_and_nobody_has_to_do_anything(
    chromium: Chromium, tmp_path: Path
) -> None:
    with running() as provider, window_on(chromium, provider.url, tmp_path) as ann:
        provider.person["groups"] = ["redrive-ops"]
        ann.open("/admin/")
        ann.press("Sign in with Example Login")
        ann.sees("No DLQ has been added yet.")
        make_due()
        provider.asked.clear()
        eventually(lambda: "/token" in provider.asked, within=20)  # the next look of the board loads the page anew
        ann.sees("No DLQ has been added yet.")
        ann.open("/admin/")
        ann.sees("No DLQ has been added yet.")


@pytest.mark.long
def test_who_has_no_group_is_told_so_and_may_use_another_account(ann: Window) -> None:
    ann.open("/admin/")
    sign_in(ann, "ben-1")
    ann.sees("Example Login knows you, but none of your groups has access to this service.")
    assert User.objects.count() == 0
    ann.press("Use another account of Example Login")
    ann.press("ann-1")
    ann.sees("No DLQ has been added yet.")


@pytest.mark.long
def test_a_group_that_is_removed_at_the_provider_is_removed_here_and_ends_the_session(
    ann: Window, provider: str
) -> None:
    ann.open("/admin/")
    sign_in(ann, "ann-1")
    ann.sees("No DLQ has been added yet.")
    now_has(provider, "ann-1", [])
    make_due()
    ann.open("/admin/rights")
    sign_in(ann, "ann-1")
    ann.sees("none of your groups has access")
    assert not Group.objects.get(name=OPERATOR).user_set.exists()
    ann.open("/admin/")
    assert ann.address == "/admin/login/"
