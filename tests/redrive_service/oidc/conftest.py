"""The service where a provider is set, and a browser's steps through a sign-in."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Protocol

import pytest
from django.contrib.auth.models import Group
from django.test import Client
from pytest_django.fixtures import Settings

import redrive_service.urls  # noqa: F401  read where no provider is set, as for all other tests
from redrive_service.environment import Oidc
from redrive_service.oidc.backend import BACKEND
from tests.redrive_service.oidc.provider import CLIENT, SECRET, Provider, running

if TYPE_CHECKING:
    from django.test.client import _MonkeyPatchedWSGIResponse as Response

RECHECK = "redrive_service.oidc.recheck.RecheckMiddleware"
MODEL_BACKEND = "django.contrib.auth.backends.ModelBackend"
GROUPS = (("ops", "Redrive operator"), ("admins", "Redrive administrator"), ("pay", "payments"))


class SignIn(Protocol):
    """Signs a browser in by way of the provider; the answer to what the provider sent it back with."""

    def __call__(self, client: Client, where: str = "") -> Response: ...


def oidc_of(issuer: str) -> Oidc:
    return Oidc(
        issuer=issuer, client_id=CLIENT, client_secret=SECRET, name="Example Login", scopes="openid profile email",
        groups_claim="groups", groups=GROUPS, staff_claim="", recheck=timedelta(hours=1),
    )  # fmt: skip


def configure(settings: Settings, oidc: Oidc, *, passwords: bool = True) -> None:
    """Set what `settings.py` sets where the environment names a provider."""
    settings.OIDC, settings.PASSWORD_LOGIN = oidc, passwords
    axes = settings.AUTHENTICATION_BACKENDS[0]
    settings.AUTHENTICATION_BACKENDS = [axes, *([MODEL_BACKEND] if passwords else []), BACKEND]
    settings.MIDDLEWARE = [*settings.MIDDLEWARE[:-1], RECHECK, settings.MIDDLEWARE[-1]]
    settings.ROOT_URLCONF = "tests.redrive_service.oidc.urls"


@pytest.fixture
def provider(settings: Settings) -> Iterator[Provider]:
    with running() as found:
        configure(settings, oidc_of(found.url))
        yield found


@pytest.fixture
def groups(db: None) -> None:
    Group.objects.bulk_create([Group(name=name) for name in (*(name for _, name in GROUPS), "by hand")])


@pytest.fixture
def sign_in(provider: Provider, groups: None) -> SignIn:
    def signs_in(client: Client, where: str = "") -> Response:
        began = client.get(f"/oidc/sign-in{where}")
        assert began.status_code == 302, began.content
        return client.get(provider.authorize(began.headers["Location"]))

    return signs_in
