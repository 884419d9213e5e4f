"""API tokens in the admin: the secret is shown once, and nobody gives a program more than they may do themselves."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client

from reprocessing.models import ApiToken, AuditEntry, ProviderIdentity
from reprocessing.store.api import tokens
from reprocessing.store.rights.roles import update_groups
from tests.reprocessing.admin.parking_lot.parked_messages import confirm, person, post

pytestmark = pytest.mark.django_db

ADD = "/admin/reprocessing/apitoken/add/"
MAKES = ("view_apitoken", "add_apitoken", "change_apitoken", "view_deadletterqueue", "view_run")


def made(client: Client, **given: object) -> str:
    return post(client, ADD, **{"name": "deploy", "scopes": ["dlqs:read"], "reason": "a pipeline", **given})


@pytest.mark.soak
def test_the_secret_is_shown_once() -> None:
    client = person("ann", *MAKES)
    page = made(client)
    (secret,) = re.findall(r"redrive-api-[\w-]+", page)
    row = ApiToken.objects.get()
    assert (tokens.by_secret(secret), str(row.user), row.scopes) == (row, "ann", ["dlqs:read"])
    entry = AuditEntry.objects.get()
    assert (entry.act, entry.by, entry.reason) == ("added", "ann", "a pipeline")
    address = f"/admin/reprocessing/apitoken/{row.pk}/change/"
    for shown in (ADD, address, "/admin/reprocessing/apitoken/", "/admin/reprocessing/auditentry/"):
        assert "redrive-api-" not in client.get(shown).content.decode()


def test_a_token_of_teams_belongs_to_nobody_else() -> None:
    team = Group.objects.create(name="payments")
    made(person("ann", *MAKES), teams=[team.pk])
    row = ApiToken.objects.get()
    assert (row.user, list(row.teams.all())) == (None, [team])


def test_a_role_is_not_offered_as_a_team() -> None:
    update_groups()
    Group.objects.create(name="payments")
    page = person("ann", *MAKES).get(ADD).content.decode()
    assert ("payments</option>" in page, "Redrive administrator</option>" in page) == (True, False)


def test_a_token_of_teams_gets_no_scope_that_only_users_can_use() -> None:
    team = Group.objects.create(name="payments")
    client = person("ann", *MAKES, "stop_sends")
    assert "The scope everything:stop is only for tokens of users" in made(
        client, teams=[team.pk], scopes=["everything:stop"]
    )
    assert ApiToken.objects.count() == 0


def test_nobody_gives_a_program_more_than_they_may() -> None:
    client = person("ann", *MAKES)
    assert "everything:stop" not in client.get(ADD).content.decode()
    page = made(client, scopes=["everything:stop"])
    assert "Select a valid choice. everything:stop is not one of the available choices." in page
    assert ApiToken.objects.count() == 0


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"reason": ""}, "This field is required."),
        ({"scopes": []}, "This field is required."),
        ({"expires_at": "2020-01-01 00:00"}, "The token would have expired already."),
    ],
    ids=["reason", "scopes", "past"],
)
def test_a_token_that_cannot_be_meant_is_not_made(given: dict[str, object], why: str) -> None:
    assert why in made(person("ann", *MAKES), **given)
    assert ApiToken.objects.count() == 0


def test_the_list_shows_a_token_whose_owner_the_provider_no_longer_confirms() -> None:
    client = person("ann", *MAKES)
    made(client)
    owner = User.objects.get(username="ann")
    User.objects.update(is_staff=True)
    identity = ProviderIdentity.objects.create(user=owner, issuer="https://login.example.com", subject="1")
    address = "/admin/reprocessing/apitoken/"
    assert "owner not confirmed" not in client.get(address).content.decode()
    ProviderIdentity.objects.update(confirmed_at=identity.confirmed_at - timedelta(days=31))
    assert "owner not confirmed" in client.get(address).content.decode()


def test_a_token_is_revoked_with_a_reason() -> None:
    client = person("ann", *MAKES)
    made(client)
    row = ApiToken.objects.get()
    assert "deploy is revoked." in confirm(client, f"/admin/reprocessing/apitoken/{row.pk}/revoke", reason="it leaked")
    assert ApiToken.objects.get().revoked_at is not None
    assert AuditEntry.objects.latest("pk").reason == "it leaked"
    assert (
        "The token was revoked already." in client.get(f"/admin/reprocessing/apitoken/{row.pk}/revoke").content.decode()
    )
