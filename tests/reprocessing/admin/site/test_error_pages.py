from __future__ import annotations

import io
import logging
import re
from collections.abc import Iterator
from unittest.mock import Mock
from urllib.parse import parse_qs, urlsplit

import pytest
from django.contrib.auth.models import User
from django.contrib.sessions.backends.db import SessionStore
from django.db import OperationalError
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from redrive_service.telemetry.log_format import LogFormatter, formatter
from reprocessing.store.dlqs import dlq_status
from tests.reprocessing.admin.parking_lot.parked_messages import dlq, parked, person
from tests.reprocessing.admin.site import test_matrix
from tests.reprocessing.admin.site.open_pages import furnished

pytestmark = pytest.mark.django_db

LOT = "/admin/reprocessing/parkedletter/"


@pytest.fixture
def root(client: Client) -> Client:
    client.force_login(User.objects.create_superuser("root"))
    return client


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    written, root = io.StringIO(), logging.getLogger()
    handler = logging.StreamHandler(written)
    handler.setFormatter(LogFormatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
    root.addHandler(handler)
    yield written
    root.removeHandler(handler)


def ways_back(page: str) -> list[str]:
    found = re.search(r'<div class="actions">(.*?)</div>', page, re.DOTALL)
    assert found
    return re.findall(r'href="([^"]*)"', found[1])


@pytest.mark.soak
def test_post_only_addresses_link_back(root: Client) -> None:
    furnished()
    sent_only = {
        name: address for name, address in test_matrix._addresses()
        if not test_matrix._expected(name) and root.get(address).status_code == 405
    }  # fmt: skip
    for name, address in sent_only.items():
        if name in {"reports", "logout"}:  # not of the desk; and the board is its page
            continue
        answer = root.get(address)
        assert (answer.status_code, answer.headers["Allow"]) == (405, "POST"), name
        assert "Use the button" in answer.content.decode()
        back = ways_back(answer.content.decode())
        assert [root.get(one).status_code for one in back] == [200] * len(back), name
        assert len(back) == (3 if re.search(r"/\d+/", address) else 2), name
    assert len(sent_only) > 12
    assert ways_back(root.get(reverse("admin:logout")).content.decode()) == ["/admin/"]


@pytest.mark.soak
def test_a_form_sent_after_the_session_ended_leads_to_a_page_that_can_be_opened(root: Client) -> None:
    furnished()
    sent_only = {address for _, address in test_matrix._addresses() if root.get(address).status_code == 405}
    assert len(sent_only) > 12
    for address in sent_only - {reverse("admin:logout")}:
        if not address.startswith("/admin/"):
            continue
        answer = Client().post(address, headers={"Referer": f"http://testserver{address}"})
        back = parse_qs(urlsplit(answer.headers["Location"]).query)["next"][0]
        assert root.get(back).status_code == 200, address


@pytest.mark.soak
def test_the_sign_in_page_says_that_nothing_was_done_and_leads_back_to_the_form() -> None:
    User.objects.create_superuser("ann", password="a pass phrase")
    rule = "/admin/reprocessing/rule/add/?letter=7"
    letter = parked(dlq())
    edit, record = (f"{LOT}{letter.pk}/{end}" for end in ("edit", "change/"))
    found = f"{LOT}?reason=attempts_spent"
    for address, before, back in (
        (rule, rule, rule), (edit, edit, record), (edit, found, found), (edit, "", record),
        (edit, "http://elsewhere.test/admin/", record), (f"{LOT}release", "", LOT),
    ):  # fmt: skip
        out = Client()
        typed = {"name": "typed-canary", "do": "write"}
        page = out.post(
            address,
            typed,
            follow=True,
            headers={"Referer": f"http://testserver{before}" if before[:1] == "/" else before},
        )
        text = page.content.decode()
        assert text.count("Your session ended. Nothing was saved or done. Sign in, then repeat it.") == 1
        assert "typed-canary" not in f"{text}{page.redirect_chain}{out.cookies}{dict(out.session)}"
        there = parse_qs(urlsplit(page.redirect_chain[0][0]).query)["next"][0]
        assert there == back
        signed_in = out.post("/admin/login/", {"username": "ann", "password": "a pass phrase", "next": there})
        assert (signed_in.status_code, signed_in.headers["Location"]) == (302, back)
        assert out.get(back).status_code == 200


def test_a_page_that_is_opened_after_the_session_ended_says_nothing_of_it() -> None:
    assert "Your session ended" not in Client().get("/admin/rights", follow=True).content.decode()


def test_read_only_page_refuses_a_form(root: Client) -> None:
    answer = root.post("/admin/rights")
    assert (answer.status_code, answer.headers["Allow"]) == (405, "GET, HEAD")
    assert "This page is read-only" in answer.content.decode()


@pytest.mark.parametrize(
    "address",
    ["/admin/reprocessing/bulkaction/999/change/", "/admin/reprocessing/run/999/change/", f"{LOT}999/change/",
     "/admin/reprocessing/lane/999/change/", "/admin/reprocessing/lane/a%20b/change/", f"{LOT}999/edit",
     "/admin/reprocessing/failuregroup/x/change/", f"/admin/reprocessing/failuregroup/{'9' * 30}/change/",
     "/admin/reprocessing/bulkaction/x/change/", f"/admin/reprocessing/bulkaction/{'9' * 30}/change/",
     "/admin/reprocessing/breaker/1/melt/now",
     "/admin/reprocessing/deadletterqueue/999/change/", "/admin/reprocessing/rule/999/change/",
     "/admin/reprocessing/target/999/change/", "/admin/reprocessing/auditentry/999/history/"],
)  # fmt: skip
def test_missing_row_links_to_its_list(root: Client, address: str) -> None:
    answer = root.post(address) if address.endswith("edit") else root.get(address)
    assert answer.status_code == 404
    page = answer.content.decode()
    assert "Not found" in page
    assert ways_back(page) == [re.sub(r"(reprocessing/\w+/).*", r"\1", address), "/admin/"]


@pytest.mark.parametrize(
    "address", ["/admin/nowhere", "/nowhere", "/admin/reprocessing/nothing/", "/admin/%00", "/%0a"]
)
def test_unknown_address_links_to_the_dashboard(root: Client, address: str) -> None:
    answer = root.get(address)
    assert (answer.status_code, ways_back(answer.content.decode())) == (404, ["/admin/"])


def test_error_page_tells_strangers_nothing(client: Client) -> None:
    page = client.get("/nowhere").content.decode()
    assert ways_back(page) == ["/admin/"]
    assert 'class="place' not in page
    assert "Your permissions" not in page


@pytest.mark.parametrize("query", ["state__regex=x", "dlq__id__exact=x", "bogus=1", "group=x", "state__exact=%00"])
def test_invalid_filter_is_refused(root: Client, query: str) -> None:
    parked(dlq("one"))
    parked(dlq("other"))
    answer = root.get(f"/admin/reprocessing/letter/?{query}")
    page = answer.content.decode()
    assert (answer.status_code, ways_back(page)) == (400, ["/admin/reprocessing/letter/", "/admin/"])
    assert "Unknown filter" in page


def test_missing_permission_links_to_permissions() -> None:
    page = person("ann", "view_deadletterqueue").get("/admin/stop")
    assert page.status_code == 403
    assert "You do not have the permission for this action." in page.content.decode()
    assert "Your permissions</a> lists" in page.content.decode()


def test_invalid_csrf_token_is_explained() -> None:
    ann = person("ann", "stop_sends")
    answer = ann.post("/admin/stop", {"reason": "why"})
    assert answer.status_code == 403
    assert "This page has expired" in answer.content.decode()


def test_too_large_form_is_explained(root: Client) -> None:
    answer = root.post(f"{LOT}note", {f"a{one}": "1" for one in range(1_001)})
    assert answer.status_code == 400
    assert "at most 1,000 messages can be selected" in answer.content.decode()
    assert ways_back(answer.content.decode()) == [LOT, "/admin/"]


SECRET = "4111-1111-1111-1111"


def lines(log: io.StringIO) -> list[str]:
    return [re.sub(r"^\S+ \S+ ", "", one) for one in log.getvalue().splitlines()]


def test_refusal_is_logged_in_one_line(log: io.StringIO) -> None:
    ann = person("ann", "view_letter")
    ann.get("/admin/stop")
    ann.post("/admin/rights", {"reason": SECRET})
    ann.get("/admin/reprocessing/letter/?state%0a__regex=x")
    ann.get("/nowhere%0aERROR%20root%20forged", headers={"Host": "localhost"})
    ann.get("/admin/", headers={"Host": "evil.invalid\x1b"})
    ann.post("/admin/login/", SECRET, content_type="application/x-www-form-urlencoded; charset=utf-7")
    ann.post("/admin/login/", {f"{SECRET}{one}": SECRET for one in range(1_001)})
    ann.post("/admin/login/", SECRET.encode(), content_type="multipart/form-data; boundary=\xfc")
    ann.get("/admin/reprocessing/letter/", {"q": f"{SECRET}\0"})
    at, form = (
        "/admin/reprocessing/letter/",
        "HTTP requests with the 'application/x-www-form-urlencoded' content type",
    )
    host = "'evil.invalid\\x1b'. The domain name provided is not valid according to RFC 1034/1035."
    most = "The number of GET/POST parameters exceeded settings.DATA_UPLOAD_MAX_NUMBER_FIELDS."
    assert lines(log) == [
        "WARNING django.request 403 Forbidden (Permission denied): /admin/stop",
        "WARNING django.security.csrf 403 Forbidden (CSRF token missing.): /admin/rights",
        f"ERROR django.security.DisallowedModelAdminLookup 400 Filtering by state\\n__regex not allowed: {at}",
        r"WARNING django.request 404 Not Found: /nowhere\nERROR root forged",
        f"ERROR django.security.DisallowedHost 400 Invalid HTTP_HOST header: {host}: /admin/",
        f"WARNING django.request 400 {form} must be UTF-8 encoded.: /admin/login/",
        f"ERROR django.security.TooManyFieldsSent 400 {most}: /admin/login/",
        "WARNING django.request 400 Bad request (Unable to parse request body): /admin/login/",
    ]


def test_service_uses_the_line_formatter(settings: Settings) -> None:
    made = dict(settings.LOGGING["formatters"]["line"])
    assert made.pop("()") == f"{formatter.__module__}.formatter"
    assert type(formatter(**made)) is LogFormatter


def test_errors_keep_their_traceback(log: io.StringIO) -> None:
    told = {"status_code": 500}
    logging.getLogger("django.request").error("Internal Server Error: /", extra=told, exc_info=RuntimeError("it broke"))
    assert log.getvalue().endswith("Internal Server Error: /\n  RuntimeError: it broke\n")


def test_an_outage_of_postgres_is_a_page_that_says_so_and_when_to_try_again(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The session cannot be read, so the page has neither a person nor navigation."""
    client.raise_request_exception = False
    client.cookies["sessionid"] = "of somebody"
    gone = OperationalError("the server closed the connection")
    monkeypatch.setattr(SessionStore, "load", Mock(side_effect=gone))
    answer = client.get("/admin/")
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "10")
    assert "<h1>PostgreSQL cannot be reached</h1>" in answer.content.decode()
    assert "no-store" in answer.headers["Cache-Control"]


def test_an_error_of_the_service_is_a_page_that_says_where_its_traceback_is(
    root: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    root.raise_request_exception = False
    monkeypatch.setattr(dlq_status, "dlq_statuses", Mock(side_effect=ValueError("a secret of a message")))
    answer = root.get("/admin/")
    page = answer.content.decode()
    assert (answer.status_code, "Retry-After" in answer.headers, "secret" in page) == (500, False, False)
    assert "The log of the web server has its traceback." in page
