"""Who is admitted: tokens, scopes, owners, the rate limit."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.test import Client

from reprocessing.api.site import caller
from reprocessing.domain.api.scopes import Scope
from reprocessing.gateways.redis.request_rate import RequestRates
from reprocessing.models import ApiToken, AuditEntry, ProviderIdentity
from reprocessing.store.api import tokens
from reprocessing.store.api.tokens import TokenRequest
from reprocessing.store.ordering.lanes import database_now
from tests.reprocessing.admin.parking_lot.parked_messages import dlq
from tests.reprocessing.api.callers import Program, problem, program, told

pytestmark = pytest.mark.django_db


def names(answer: Any) -> list[str]:  # noqa: ANN401
    return [item["name"] for item in told(answer)["items"]]


def test_the_secret_is_kept_nowhere_and_finds_its_token() -> None:
    found = program(name="deploy")
    row = ApiToken.objects.get()
    assert tokens.by_secret(found.secret) == row
    assert found.secret.encode() not in bytes(row.token_hash)
    entry = AuditEntry.objects.get()
    assert (entry.act, entry.by, entry.reason, entry.after["api_token"]) == ("added", "ann", "a test", "deploy")
    assert found.secret not in str(entry.after)


@pytest.mark.parametrize("sent", [None, "", "Bearer", "Bearer x", "Basic redrive-api-x", f"Bearer {'x' * 5_000}"])
def test_without_a_known_token_nothing_is_answered(sent: str | None) -> None:
    headers = {} if sent is None else {"Authorization": sent}
    answer = Client().get("/api/v1/dlqs", headers=headers)
    assert problem(answer, 401).startswith("No API token has this secret.")
    assert answer.headers["WWW-Authenticate"] == "Bearer"


def test_a_session_of_the_admin_is_no_token(client: Client) -> None:
    client.force_login(User.objects.create_superuser("root"))
    assert client.get("/api/v1/dlqs").status_code == 401


def test_a_token_that_ended_is_refused_and_says_why() -> None:
    revoked, expired, left, orphan = program(), program(), program(), program(teams=(Group.objects.create(name="t"),))
    tokens.revoke(revoked.name, by="ann", reason="a test")
    ApiToken.objects.filter(name=expired.name).update(expires_at=database_now() - timedelta(seconds=1))
    User.objects.filter(api_tokens__name=left.name).update(is_active=False)
    Group.objects.all().delete()
    said = [problem(one.get("/dlqs"), 401) for one in (revoked, expired, left, orphan)]
    assert [text.partition(": ")[2].partition(".")[0] for text in said] == [
        "revoked", "expired", "owner inactive", "owner deleted",
    ]  # fmt: skip
    User.objects.all().delete()
    assert "owner deleted" in problem(left.get("/dlqs"), 401)


def test_a_token_of_a_person_without_access_at_the_provider_is_refused_until_the_person_has_access_again() -> None:
    caller = program()
    owner = User.objects.get(api_tokens__name=caller.name)
    ProviderIdentity.objects.create(user=owner, issuer="https://login.example.com", subject="ann-1")
    told(caller.get("/dlqs"))
    User.objects.update(is_staff=False)  # as a sign-in without a mapped group does
    assert "is refused: owner inactive." in problem(caller.get("/dlqs"), 401)
    User.objects.update(is_staff=True)
    told(caller.get("/dlqs"))


def owned_by_a_person_of_the_provider(*, last: timedelta) -> Program:
    """A program of a person whom the OpenID provider confirmed so long ago for the last time."""
    caller = program()
    owner = User.objects.get(api_tokens__name=caller.name)
    ProviderIdentity.objects.create(
        user=owner, issuer="https://login.example.com", subject=caller.name, confirmed_at=database_now() - last
    )
    return caller


def test_tokens_of_a_person_whom_the_provider_no_longer_confirms_are_refused() -> None:
    lately = owned_by_a_person_of_the_provider(last=timedelta(days=29, hours=23))
    caller = owned_by_a_person_of_the_provider(last=timedelta(days=30))
    told(lately.get("/dlqs"))
    assert problem(caller.get("/dlqs"), 401) == (
        f"The token {caller.name} is refused: owner not confirmed. The owner has not signed in to the admin by the "
        "OpenID provider for too long. Let the owner sign in again: then the token is accepted again."
    )
    ProviderIdentity.objects.update(confirmed_at=database_now())  # as a sign-in and a re-check do
    told(caller.get("/dlqs"))


@pytest.mark.parametrize(("seconds", "status"), [(0, 200), (5 * 86_400, 200), (86_400, 401)])
def test_the_time_without_a_confirmation_is_a_setting_and_zero_means_no_limit(
    seconds: int,
    status: int,
    settings: Any,  # noqa: ANN401
) -> None:
    settings.REDRIVE = {**settings.REDRIVE, "TOKEN_RECHECK": seconds}
    assert owned_by_a_person_of_the_provider(last=timedelta(days=4)).get("/dlqs").status_code == status


def test_tokens_of_a_local_user_and_of_teams_need_no_confirmation_by_the_provider() -> None:
    maker = owned_by_a_person_of_the_provider(last=timedelta(days=400))
    owner = User.objects.get(api_tokens__name=maker.name)
    local, team = program(), Group.objects.create(name="payments")
    User.objects.filter(api_tokens__name=local.name).update(last_login=database_now() - timedelta(days=400))
    made = tokens.make_token(
        TokenRequest("of-team", (Scope.DLQS_READ,), None, (team,)), by=owner.username, reason="a test"
    )
    told(local.get("/dlqs"))
    told(Program("of-team", made.secret).get("/dlqs"))


def test_a_token_of_teams_sees_their_dlqs_alone_and_one_of_a_user_sees_the_user_s() -> None:
    ours, theirs = dlq("ours").dlq, dlq("theirs").dlq
    team, user = Group.objects.create(name="team"), User.objects.create_user("bob")
    ours.teams.add(team)
    of_team = program(Scope.DLQS_READ, teams=(team,))
    made = tokens.make_token(TokenRequest("bobs", (Scope.DLQS_READ,), user), by="ann", reason="a test")
    of_user = Program("bobs", made.secret)
    assert names(program().get("/dlqs")) == ["ours", "theirs"]
    assert names(of_team.get("/dlqs")) == ["ours"]
    assert problem(of_team.get(f"/dlqs/{theirs.name}"), 404) == problem(of_team.get("/dlqs/missing"), 404)
    assert "which the user of the token does not have" in problem(of_user.get("/dlqs"), 403)
    user.user_permissions.add(Permission.objects.get(codename="view_deadletterqueue"))
    assert names(of_user.get("/dlqs")) == []
    user.groups.add(team)
    assert names(of_user.get("/dlqs")) == ["ours"]


def test_the_last_use_is_recorded_and_reads_are_counted() -> None:
    found = program()
    dlq("orders")
    told(found.get("/dlqs"))
    told(found.get("/dlqs/orders"))
    told(found.post("/dlqs/orders/stop"))
    row = ApiToken.objects.get()
    assert (row.reads, row.last_used_at is not None) == (2, True)
    assert AuditEntry.objects.exclude(after__has_key="api_token").count() == 0


def test_a_token_that_sends_too_fast_is_told_when_to_go_on(settings: Any) -> None:  # noqa: ANN401
    settings.REDRIVE = {**settings.REDRIVE, "API_RATE": 0.5}
    fast, other = program(), program()
    answers = [fast.get("/dlqs") for _ in range(4)]
    assert [answer.status_code for answer in answers] == [200, 200, 429, 429]
    assert "more than 0.5 requests a second" in problem(answers[-1], 429)
    assert answers[-1].headers["Retry-After"] in {"1", "2"}
    assert other.get("/dlqs").status_code == 200


def test_without_redis_requests_are_answered(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(caller, "request_rates", lambda: RequestRates.at("redis://127.0.0.1:9/0"))
    dlq("orders")
    assert told(program().post("/stop", confirm=True))["changed"] is True
    assert "are not limited: Redis does not answer (ConnectionError)" in caplog.text


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"name": "taken"}, "There is a token named taken already"),
        ({"user": None}, "A token belongs either to one user or to teams"),
        ({"expires_at": "past"}, "The token would have expired already."),
    ],
    ids=["taken", "nobody", "past"],
)
def test_a_token_that_nobody_could_use_is_not_made(change: dict[str, Any], why: str) -> None:
    program(name="taken")
    asked = TokenRequest("new", (Scope.DLQS_READ,), User.objects.create_user("bob"))
    if "expires_at" in change:
        change["expires_at"] = database_now() - timedelta(seconds=1)
    with pytest.raises(Exception, match=why):
        tokens.make_token(replace(asked, **change), by="ann", reason="a test")
    assert ApiToken.objects.count() == 1
