"""What a browser may do with our pages: show our own files, and nothing that a letter might bring along."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest
from django.contrib.auth.models import User
from django.contrib.staticfiles import finders
from django.test import Client

from reprocessing.models import AuditEntry, Breaker
from reprocessing.store.safety import stops
from tests.reprocessing.admin.parking_lot.parked_messages import dlq, parked

pytestmark = pytest.mark.django_db

POLICY = {
    "base-uri": "'none'", "connect-src": "'self'", "default-src": "'none'", "form-action": "'self'",
    "frame-ancestors": "'none'", "img-src": "'self' data:", "script-src": "'self'", "style-src": "'self'",
}  # fmt: skip
#: What such a policy forbids: scripts and styles that stand in the page itself.
_INLINE = re.compile(
    r"<script(?![^>]*\s(?:src=|type=.application/json))[^>]*>|<style|\s(?:on\w+|style)\s*=", re.IGNORECASE
)


@pytest.fixture
def root(client: Client) -> Client:
    client.force_login(User.objects.create_superuser("root"))
    return client


def _policy(text: str) -> dict[str, str]:
    return dict(part.strip().partition(" ")[::2] for part in text.split(";") if part.strip())


@pytest.mark.parametrize("address", ["/admin/", "/admin/login/", "/admin/reprocessing/lane/", "/nowhere", "/reports"])
def test_every_answer_forbids_what_is_not_ours(root: Client, address: str) -> None:
    assert _policy(root.get(address).headers["Content-Security-Policy"]) == POLICY


@pytest.mark.soak
def test_no_page_needs_what_is_forbidden(root: Client) -> None:
    letter = parked(dlq("shop"), key="k")
    breaker = Breaker.objects.get(target=letter.target)
    stops.stop(None, by="ann", reason="a test")
    pages = [
        "/admin/", "/admin/board", "/admin/stop", "/admin/resume", "/admin/password_change/", "/admin/reprocessing/",
        "/admin/reprocessing/parkedletter/", "/admin/reprocessing/letter/?state__exact=parked",
        f"/admin/reprocessing/parkedletter/{letter.pk}/change/", f"/admin/reprocessing/breaker/{breaker.pk}/change/",
        f"/admin/reprocessing/deadletterqueue/{letter.dlq_id}/change/", "/admin/auth/user/add/",
        "/admin/auth/group/add/",
    ]  # fmt: skip
    found = {page: _INLINE.findall(root.get(page).content.decode()) for page in pages}
    assert [page for page, inline in found.items() if inline] == []


def test_what_is_forbidden_would_be_found() -> None:
    inline = ["<script>x</script>", '<p onclick="x">', '<p style="x">', "<style>x</style>"]
    assert [bool(_INLINE.search(one)) for one in inline] == [True] * 4
    assert not _INLINE.search('<script src="/x.js" defer></script><script type="application/json">1</script>')


def test_every_page_says_where_it_is_to_who_is_logged_in(root: Client, settings: object) -> None:
    settings.REDRIVE = {"PLACE": "orders, eu-west-1", "COLOUR": "violet"}  # type: ignore[attr-defined]
    page = root.get("/admin/reprocessing/lane/").content.decode()
    assert '<span class="place place-violet">orders, eu-west-1</span>' in page
    assert "| orders, eu-west-1 | Redrive</title>" in page
    assert 'class="place' not in Client().get("/admin/login/").content.decode()


def test_moments_are_told_in_seconds_of_utc(root: Client) -> None:
    AuditEntry.objects.create(act="noted", by="ann", reason="why", at=datetime(2026, 2, 1, 15, 4, 5, tzinfo=UTC))
    assert "2026-02-01 15:04:05 UTC" in root.get("/admin/reprocessing/auditentry/").content.decode()


def test_a_browser_that_asks_for_an_icon_where_no_page_names_one_is_shown_ours(client: Client) -> None:
    answer = client.get("/favicon.ico")
    assert (answer.status_code, answer.headers["Location"]) == (302, "/static/reprocessing/icon.svg")
    assert finders.find("reprocessing/icon.svg") is not None
