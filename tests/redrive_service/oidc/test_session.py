"""A session of a provider's person: how long it lasts, when the provider is asked again, and how it ends."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import timedelta
from html import unescape
from urllib.parse import parse_qs, urlsplit

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client
from pytest_django.fixtures import Settings

from redrive_service.oidc.recheck import GRACE
from redrive_service.oidc.views import ENDS_AT, RECHECK_AT
from reprocessing.store.rights import roles
from tests.redrive_service.oidc.conftest import SignIn
from tests.redrive_service.oidc.provider import CLIENT, Provider

pytestmark = pytest.mark.django_db


@pytest.fixture
def ann(client: Client, sign_in: SignIn) -> Client:
    sign_in(client)
    return client


def now() -> float:
    return time.time()  # noqa: TID251  the middleware reads the same clock


def set_time(client: Client, **keys: float) -> None:
    session = client.session
    session.update(keys)
    session.save()


def due(client: Client, *, overdue: float = 1) -> None:
    set_time(client, **{RECHECK_AT: now() - overdue})


def confirm(client: Client, provider: Provider) -> str:
    """Follow a page by way of the provider; where it ends."""
    asked = client.get(client.get("/admin/reprocessing/letter/?q=x").headers["Location"])
    return client.get(provider.authorize(asked.headers["Location"])).headers["Location"]


def test_the_provider_is_asked_again_without_a_page_when_it_is_time(ann: Client, provider: Provider) -> None:
    assert ann.get("/admin/").status_code == 200
    due(ann)
    key = ann.session.session_key
    away = ann.get("/admin/reprocessing/letter/?q=x").headers["Location"]
    assert away == "/oidc/sign-in?silent=yes&next=%2Fadmin%2Freprocessing%2Fletter%2F%3Fq%3Dx"
    asked = ann.get(away).headers["Location"]
    assert parse_qs(urlsplit(asked).query)["prompt"] == ["none"]
    assert ann.get(provider.authorize(asked)).headers["Location"] == "/admin/reprocessing/letter/?q=x"
    assert (ann.get("/admin/").status_code, ann.session.session_key) == (200, key)


def test_without_a_re_check_the_provider_is_not_asked(ann: Client, settings: Settings) -> None:
    settings.OIDC = replace(settings.OIDC, recheck=timedelta(0))
    due(ann)
    assert ann.get("/admin/").status_code == 200


def test_a_group_that_was_removed_at_the_provider_is_gone_with_the_next_re_check(
    ann: Client, provider: Provider
) -> None:
    roles.update_groups()
    provider.person["groups"] = ["pay"]
    due(ann)
    confirm(ann, provider)
    assert list(Group.objects.filter(user__username="ann").values_list("name", flat=True)) == ["payments"]


def test_who_lost_access_at_the_provider_is_signed_out_at_the_next_re_check(ann: Client, provider: Provider) -> None:
    provider.person["groups"] = []
    due(ann)
    asked = ann.get(ann.get("/admin/").headers["Location"])
    assert ann.get(provider.authorize(asked.headers["Location"])).status_code == 403
    assert ann.get("/admin/").headers["Location"] == "/admin/login/?next=/admin/"


def test_a_session_that_ended_at_the_provider_ends_here(ann: Client, provider: Provider) -> None:
    due(ann)
    asked = ann.get(ann.get("/admin/rights").headers["Location"]).headers["Location"]
    state = parse_qs(urlsplit(asked).query)["state"][0]
    answer = ann.get(f"/oidc/callback?error=login_required&state={state}", follow=True)
    assert answer.redirect_chain == [("/admin/login/?next=%2Fadmin%2Frights", 302)]
    page = answer.content.decode()
    assert "Your session at Example Login has ended. Sign in again." in page
    assert 'href="/oidc/sign-in?next=/admin/rights"' in page


def test_a_person_who_declines_is_told_so(client: Client, provider: Provider) -> None:
    state = parse_qs(urlsplit(client.get("/oidc/sign-in").headers["Location"]).query)["state"][0]
    answer = client.get(f"/oidc/callback?error=access_denied&state={state}")
    assert (answer.status_code, "You are not signed in" in answer.content.decode()) == (403, True)


def test_a_part_of_a_page_is_not_sent_to_the_provider_but_loads_its_page_anew(ann: Client) -> None:
    due(ann)
    parts = [{"hx-request": "true"}, {"sec-fetch-dest": "empty"}, {"sec-fetch-dest": "script"}]
    answers = [ann.get("/admin/board", headers=one) for one in parts]
    assert [(one.status_code, one.headers["HX-Refresh"]) for one in answers] == [(401, "true")] * 3


def test_a_form_that_was_open_may_be_submitted_for_ten_minutes_and_then_nothing_is_done(ann: Client) -> None:
    roles.update_groups()
    due(ann, overdue=GRACE - 60)
    assert ann.post("/admin/stop", {"reason": "a test"}).status_code != 403
    due(ann, overdue=GRACE + 60)
    answer = ann.post("/admin/stop", {"reason": "a test"})
    assert (answer.status_code, "Your session must be confirmed" in answer.content.decode()) == (403, True)


def test_a_session_ends_after_its_length_however_often_it_was_confirmed(ann: Client, provider: Provider) -> None:
    ends_at = ann.session[ENDS_AT]
    assert round((ends_at - now()) / 3600) == 12
    due(ann)
    confirm(ann, provider)
    assert ann.session[ENDS_AT] == ends_at
    set_time(ann, **{ENDS_AT: now() - 1})
    assert ann.get("/admin/").headers["Location"] == "/admin/login/?next=/admin/"


def test_a_user_who_is_disabled_here_is_signed_out(ann: Client) -> None:
    User.objects.update(is_active=False)
    assert ann.get("/admin/").wsgi_request.user.is_anonymous


def test_a_session_by_password_is_none_of_the_provider_s(client: Client, provider: Provider) -> None:
    client.force_login(User.objects.create_superuser("root"), backend="django.contrib.auth.backends.ModelBackend")
    set_time(client, **{RECHECK_AT: 0.0, ENDS_AT: 0.0})
    assert client.get("/admin/").status_code == 200


def test_signing_out_ends_the_session_here_and_leads_to_the_provider(ann: Client, provider: Provider) -> None:
    page = ann.post("/admin/logout/").content.decode()
    place = unescape(page.partition('content="0; url=')[2].partition('"')[0])
    assert place.startswith(f"{provider.url}/logout?")
    told = {name: values[0] for name, values in parse_qs(urlsplit(place).query).items()}
    assert (told["client_id"], told["post_logout_redirect_uri"]) == (CLIENT, "http://testserver/admin/login/")
    assert told["id_token_hint"].count(".") == 2
    assert ann.get("/admin/").status_code == 302


def test_without_a_place_to_sign_out_the_session_ends_here(client: Client, provider: Provider, sign_in: SignIn) -> None:
    provider.metadata = {"end_session_endpoint": None}
    sign_in(client)
    assert "oidc_id_token" not in client.session
    assert "Log in again" in client.post("/admin/logout/").content.decode()
    assert client.get("/admin/").status_code == 302
