"""API tokens are made, listed and revoked; their secrets are shown once."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Group, User

from reprocessing.models import ApiToken, AuditEntry
from reprocessing.store.api import tokens
from reprocessing.store.rights.roles import update_groups
from tests.reprocessing.commands.conftest import Ask, AskJson
from tests.reprocessing.commands.refusals import refusal

pytestmark = pytest.mark.django_db

SCOPES = ("--scope", "runs:read", "--scope", "dlqs:read")


@pytest.fixture(autouse=True)
def _owners() -> None:
    User.objects.create_user("ann")
    Group.objects.create(name="payments")


def test_the_secret_that_is_printed_is_the_token_s_and_is_kept_nowhere(ask: Ask, ask_json: AskJson) -> None:
    assert ask("make_api_token", "deploy", "--team", "payments", *SCOPES).splitlines() == [
        "deploy belongs to the teams payments. It may:",
        "  dlqs:read          list DLQs and read their status and stops",
        "  runs:read          list runs and read their progress",
        "This was a dry run: deploy is made with --confirm.",
    ]
    assert (ApiToken.objects.count(), AuditEntry.objects.count()) == (0, 0)
    ends = ("--expires", "2100-01-01T00:00:00Z")
    told = ask_json("make_api_token", "deploy", "--user", "ann", *SCOPES, *ends, "--by", "bob", "--confirm")
    secret = told.pop("secret")
    assert told == {
        "api_token": "deploy", "dry_run": False, "scopes": ["dlqs:read", "runs:read"], "user": "ann", "teams": [],
        "expires_at": "2100-01-01T00:00:00Z",
    }  # fmt: skip
    row = ApiToken.objects.get()
    assert (tokens.by_secret(secret), row.added_by, str(row.user)) == (row, "bob", "ann")
    entry = AuditEntry.objects.get()
    assert (entry.act, entry.by, entry.after["expires_at"]) == ("added", "bob", "2100-01-01T00:00:00+00:00")
    assert ask("make_api_token", "other", "--user", "ann", *SCOPES, "--confirm").splitlines()[-2:-1] == [
        "Its secret, which is not shown again:"
    ]


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (("--user", "nobody"), 'No user is named "nobody".'),
        (("--team", "nobodys"), 'No team is named "nobodys". The teams are: payments.'),
        ((), "A token belongs either to one user or to teams, and sees their DLQs. Give --user NAME or --team NAME."),
        (("--user", "ann", "--team", "payments"), "A token belongs either to one user or to teams"),
        (
            ("--team", "payments", "--scope", "everything:stop"),
            (
                "The scope everything:stop is only for tokens of users: it is about all DLQs, and a token of teams "
                "sees only the DLQs of its teams. Leave out the scope, or make a token that belongs to a user."
            ),
        ),
        (
            ("--team", "payments", "--scope", "approvals:decide"),
            "The scope approvals:decide is only for tokens of users: a person decides, and",
        ),
        (
            ("--team", "Redrive administrator"),
            '"Redrive administrator" is a role, and roles are not teams: DLQs belong to teams.',
        ),
        (("--user", "ann", "--expires", "2020-01-01T00:00:00Z"), "The token would have expired already."),
    ],
    ids=["user", "team", "nobody", "both", "stop", "decide", "role", "past"],
)
def test_a_token_that_could_do_nothing_is_refused_even_by_a_dry_run(given: tuple[str, ...], why: str) -> None:
    update_groups()
    for confirm in ((), ("--confirm",)):
        assert refusal("make_api_token", "deploy", *given, *SCOPES, *confirm).startswith(why)
    assert ApiToken.objects.count() == 0


def test_a_token_is_revoked_once_and_its_name_is_not_reused(ask: Ask, ask_json: AskJson) -> None:
    revoke = ("revoke_api_token", "deploy", "--reason", "it leaked")
    assert "None has been made yet. Make one: manage.py make_api_token" in refusal(*revoke)
    ask("make_api_token", "deploy", "--user", "ann", *SCOPES, "--confirm")
    assert ask(*revoke) == "This was a dry run: deploy is revoked with --confirm.\n"
    assert ask(*revoke, "--confirm") == "deploy is revoked.\n"
    assert ask(*revoke, "--confirm") == "deploy was revoked already: nothing to change.\n"
    assert ask_json(*revoke, "--confirm") == {"api_token": "deploy", "dry_run": False, "already": True}
    assert [entry.after["revoked"] for entry in AuditEntry.objects.order_by("id")] == [False, True]
    assert "names are not reused" in refusal("make_api_token", "deploy", "--user", "ann", *SCOPES, "--confirm")
    assert 'No API token is named "other". There are: deploy.' in refusal("revoke_api_token", "other", "--reason", "x")


def test_tokens_are_listed(ask: Ask, ask_json: AskJson) -> None:
    assert ask("list_api_tokens").startswith("No API token has been made yet. Make one: manage.py make_api_token")
    ask("make_api_token", "deploy", "--team", "payments", *SCOPES, "--confirm")
    tokens.record_use(ApiToken.objects.get().pk, reads=True)
    (row,) = ask_json("list_api_tokens")["api_tokens"]
    assert (row["state"], row["teams"], row["reads"], row["last_used_at"] is not None) == (
        "active", ["payments"], 1, True,
    )  # fmt: skip
    header, line = ask("list_api_tokens").splitlines()
    assert header.lower().split() == ["token", "state", "belongs", "to", "last", "use", "reads", "scopes"]
    assert line.split()[:3] == ["deploy", "active", "payments"]
