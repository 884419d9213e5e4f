"""Somebody signs in by an OpenID provider, in a browser: service and provider are processes, set up by variables."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from django.contrib.auth.models import Group, User
from django.contrib.sessions.models import Session

from redrive_service.oidc.views import RECHECK_AT
from reprocessing.models import ProviderIdentity
from reprocessing.store.maintenance import roles
from tests.browser.chromium import Chromium, Window
from tests.browser.conftest import OPERATOR
from tests.redrive_service.test_server import started

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.soak]

PROVIDER = Path(__file__).with_name("openid_provider.py")
SETTINGS = {
    "REDRIVE_OIDC_CLIENT_ID": "redrive", "REDRIVE_OIDC_CLIENT_SECRET": "a secret of 20 letters".replace(" ", "-"),
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


@pytest.fixture
def desk(provider: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    for name, value in (SETTINGS | {"REDRIVE_OIDC_ISSUER": provider}).items():
        monkeypatch.setenv(name, value)
    roles.update_groups()
    with started(tmp_path) as web:
        yield f"http://localhost:{web.port}"


@pytest.fixture
def ann(chromium: Chromium, desk: str, provider: str) -> Iterator[Window]:
    """Her window. The provider is the only other host that is asked, and no script and no policy complains."""
    with ExitStack() as stack:
        window = chromium.window(desk)
        stack.callback(window.close)
        yield window
        assert [one for one in window.troubles() if urlsplit(provider).netloc not in one] == []


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
        store = Session.get_session_store_class()(row.session_key)
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
    ann.open("/admin/reprocessing/letter/?q=x")
    ann.press("ann-1")  # this provider shows its page even to `prompt=none`
    ann.sees("Messages", where="h1")
    assert ann.address == "/admin/reprocessing/letter/"

    ann.press("Log out")
    ann.press("Yes")
    ann.sees("Sign in with Example Login")
    assert ann.address == "/admin/login/"
    ann.open("/admin/")
    assert ann.address == "/admin/login/"


def test_a_dashboard_that_is_open_goes_by_way_of_the_provider_when_it_is_time(ann: Window) -> None:
    ann.open("/admin/")
    sign_in(ann, "ann-1")
    ann.sees("No DLQ has been added yet.")
    make_due()
    ann.press("ann-1")  # the next look of the board loads the page anew
    ann.sees("No DLQ has been added yet.")
    assert [one for one in ann.troubles() if "401" not in one and "localhost" not in one] == []


def test_who_has_no_group_is_told_so_and_may_use_another_account(ann: Window) -> None:
    ann.open("/admin/")
    sign_in(ann, "ben-1")
    ann.sees("Example Login knows you, but none of your groups has access to this service.")
    assert User.objects.count() == 0
    ann.press("Use another account of Example Login")
    ann.press("ann-1")
    ann.sees("No DLQ has been added yet.")


def test_a_group_that_is_removed_at_the_provider_is_removed_here_and_ends_the_session(
    ann: Window, provider: str
) -> None:
    ann.open("/admin/")
    sign_in(ann, "ann-1")
    ann.sees("No DLQ has been added yet.")
    now_has(provider, "ann-1", [])
    make_due()
    ann.open("/admin/rights")
    ann.press("ann-1")
    ann.sees("none of your groups has access")
    assert not Group.objects.get(name=OPERATOR).user_set.exists()
    ann.open("/admin/")
    assert ann.address == "/admin/login/"
