from __future__ import annotations

import json
import re
from html import unescape

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from reprocessing.admin.messages.messages import MessagesAdmin
from reprocessing.admin.site.readonly_admin import ReadOnlyAdmin
from reprocessing.models import Letter
from reprocessing.store.ordering.lanes import database_now
from tests.reprocessing.admin.parking_lot.parked_messages import LOOKS, dlq, parked, person

pytestmark = pytest.mark.django_db

LETTERS = "/admin/reprocessing/letter/"


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(ReadOnlyAdmin, "list_per_page", 2)
    return 2


def walk(client: Client, address: str) -> list[list[int]]:
    """The rows of every page, from the first to the last, by the page's own links."""
    pages: list[list[int]] = []
    query = address.partition("?")[2]
    while True:
        answer = client.get(f"{address.partition('?')[0]}?{query.lstrip('?')}")
        pages.append([row.pk for row in answer.context["cl"].result_list])
        found = re.search(r'href="([^"]*)">Next', answer.content.decode())
        if found is None:
            return pages
        query = unescape(found[1])


@pytest.mark.parametrize("tied", [False, True])
def test_pages_have_every_row_once_ties_by_id(short: int, tied: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    source = dlq()
    letters = [parked(source).pk for _ in range(5)]
    if tied:
        monkeypatch.setattr(MessagesAdmin, "ordering", ("-first_sent_at",))
        Letter.objects.update(first_sent_at=database_now())
    assert walk(person("ann", *LOOKS), LETTERS) == [letters[4:2:-1], letters[2:0:-1], letters[0:1]]


def test_new_rows_do_not_shift_pages_which_use_no_offset(short: int) -> None:
    source, ann = dlq(), person("ann", *LOOKS)
    letters = [parked(source).pk for _ in range(4)]
    first = ann.get(LETTERS).context["cl"]
    parked(source)
    with CaptureQueriesContext(connection) as asked:
        second = ann.get(LETTERS + first.more).context["cl"]
    assert not any("OFFSET" in one["sql"] for one in asked)
    assert [row.pk for one in (first, second) for row in one.result_list] == letters[::-1]


def test_filters_hold_on_every_page(short: int) -> None:
    here, there = dlq("here"), dlq("there")
    wanted = [parked(here, key="k").pk for _ in range(3)]
    parked(there, key="k")
    ann = person("ann", *LOOKS)
    assert walk(ann, f"{LETTERS}?dlq__id__exact={here.dlq_id}&q=k") == [wanted[:0:-1], wanted[:1]]
    page = ann.get(LETTERS + ann.get(LETTERS).context["cl"].more).content.decode()
    assert [one for one in re.findall(r'href="(\?[^"]*)"', page) if "after=" in one and "Next" not in one] == (
        re.findall(r'href="([^"]*)">Next', page)
    )


def test_nullable_order_has_numbered_pages(short: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MessagesAdmin, "ordering", ("expires_at",))
    source = dlq()
    for _ in range(3):
        parked(source)
    page = person("ann", *LOOKS).get(LETTERS)
    assert (page.context["cl"].is_keyed, b"?p=2" in page.content) == (False, True)


NOWHERE = (
    "", "x", "[]", "{}", "[1]", '["x"]', '["1","2"]', json.dumps(["9" * 400]), '["\\u0000"]', "[" * 5_000, "null",
    '["\\ud800"]',
)  # fmt: skip


@pytest.mark.parametrize("after", NOWHERE, ids=range(len(NOWHERE)))
@pytest.mark.parametrize("model", ["letter", "target", "run", "reporter"])
def test_invalid_position_shows_the_first_page(model: str, after: str, client: Client) -> None:
    source = dlq()
    client.force_login(User.objects.create_superuser("root"))
    parked(source)
    answer = client.get(f"/admin/reprocessing/{model}/", {"after": after})
    assert answer.status_code == 200


def test_long_lists_use_keyset_pagination(client: Client) -> None:
    client.force_login(User.objects.create_superuser("root"))
    long = {"letter", "attempt", "auditentry", "report", "parkingqueuemessage", "lane", "wave", "targetcheck"}
    pages = {
        model._meta.model_name: client.get(f"/admin/reprocessing/{model._meta.model_name}/").context["cl"]
        for model, desk in admin.site._registry.items()
        if isinstance(desk, ReadOnlyAdmin) and model._meta.model_name in long
    }
    assert {name: page.is_keyed for name, page in pages.items()} == dict.fromkeys(long, True)


@pytest.mark.parametrize("query", ["body_hash=x", "state__regex=(a%2B)%2B", "idempotency_key__startswith=a"])
def test_unknown_lookups_are_refused(query: str) -> None:
    parked(dlq())
    assert person("ann", *LOOKS).get(f"{LETTERS}?{query}").status_code == 400
