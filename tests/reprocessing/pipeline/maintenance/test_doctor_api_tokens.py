"""The doctor warns some days before API tokens are refused because their owner did not sign in."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from pytest_django.fixtures import Settings

from reprocessing import conf
from reprocessing.domain.api.scopes import Scope
from reprocessing.models import ProviderIdentity
from reprocessing.pipeline.maintenance.doctor import api_tokens
from reprocessing.store.api import tokens
from reprocessing.store.api.tokens import TokenRequest
from reprocessing.store.ordering.lanes import database_now

pytestmark = pytest.mark.django_db


def _token(name: str, *, days: float) -> User:
    """Make a token whose owner the provider confirmed so many days ago for the last time."""
    owner = User.objects.create_user(f"owner-of-{name}", is_staff=True)
    confirmed_at = database_now() - timedelta(days=days)
    ProviderIdentity.objects.create(user=owner, issuer="https://login.example.com", subject=name)
    ProviderIdentity.objects.filter(user=owner).update(confirmed_at=confirmed_at)
    tokens.make_token(TokenRequest(name, (Scope.DLQS_READ,), owner), by="ann", reason="a test")
    return owner


def test_tokens_that_are_refused_or_soon_will_be_are_warned_of_by_name_and_owner() -> None:
    _token("fresh", days=22)
    _token("late", days=24)
    _token("gone", days=31)
    _token("revoked", days=31)
    tokens.revoke("revoked", by="ann", reason="a test")
    User.objects.filter(pk=_token("disabled", days=31).pk).update(is_active=False)
    tokens.make_token(
        TokenRequest("local", (Scope.DLQS_READ,), User.objects.create_user("ben")), by="ann", reason="a test"
    )
    found = [(row.where, row.what.partition(" 20")[0], row.cure) for row in api_tokens.findings(conf.current())]
    cure = (
        "Ask owner-of-{0} to sign in to the admin by the OpenID provider. Or revoke the token: "
        'manage.py revoke_api_token {0} --reason "its owner left" --confirm'
    )
    assert found == [
        ("gone", "The API token has been refused since", cure.format("gone")),
        ("late", "The API token will be refused from", cure.format("late")),
    ]


@pytest.mark.parametrize(("setting", "warned"), [(0, []), (4, ["late"])])
def test_a_short_limit_warns_later_and_no_limit_never(setting: int, warned: list[str], settings: Settings) -> None:
    settings.REDRIVE = {**settings.REDRIVE, "TOKEN_RECHECK": setting * 86_400}
    _token("fresh", days=2.9)
    _token("late", days=3.1)
    assert [row.where for row in api_tokens.findings(conf.current())] == warned
