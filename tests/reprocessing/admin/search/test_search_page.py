"""From a number that a customer says to the message, with one search."""

from __future__ import annotations

import json
import re
from html import unescape
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.test import Client

from reprocessing.models import DeadLetterQueue, Letter, Rule, Run, SearchEntry, Source
from reprocessing.pipeline.search import reindex
from reprocessing.store.search import found_letters
from tests.reprocessing.admin.parking_lot.parked_messages import LOOKS, dlq, failure_group, parked, person

pytestmark = pytest.mark.django_db

SEARCH, LOT = "/admin/search", "/admin/reprocessing/parkedletter/"
READS = (*LOOKS, "view_payload")
REVEALS = (*READS, "reveal_payload")


def _order(source: Source, number: object, **more: Any) -> Letter:  # noqa: ANN401  fields of a body
    return parked(source, key=f"key-{number}", body=json.dumps({"order": {"id": number}, **more}).encode())


def _shop(name: str = "orders", *fields: str, **columns: object) -> Source:
    source = dlq(name)
    declared = list(fields or ["order_id=body:order.id"])
    DeadLetterQueue.objects.filter(pk=source.dlq_id).update(search_fields=declared, **columns)
    return source


def _indexed() -> None:
    assert reindex.reindex_dlqs(seconds=10)


def _page(client: Client, q: str, address: str = SEARCH, name: str = "q") -> str:
    answer = client.get(address, {name: q}, follow=True)
    assert answer.status_code == 200
    return unescape(answer.content.decode())


def _opened(client: Client, q: str) -> str:
    answer = client.get(SEARCH, {"q": q})
    return str(answer.headers.get("Location", ""))


@pytest.fixture
def ann() -> Client:
    return person("ann", *READS)


@pytest.mark.parametrize("how", ["value", "field", "message id", "redrive id", "key", "key condition"])
def test_one_exact_match_is_opened(how: str, ann: Client) -> None:
    letter = _order(_shop(), 4711)
    _order(letter.source or _shop(), 4712)
    _indexed()
    asked = {
        "value": "4711", "field": "order_id:4711", "message id": letter.message_id,
        "redrive id": str(letter.public_id), "key": "key-4711", "key condition": "key:key-4711",
    }  # fmt: skip
    assert _opened(ann, asked[how]) == f"{LOT}{letter.pk}/change/"


@pytest.mark.soak
def test_the_opened_message_says_what_matched(ann: Client) -> None:
    letter = _order(_shop(), 4711)
    _indexed()
    told = {q: _page(ann, q) for q in (letter.message_id, "key-4711", "order_id:4711")}
    assert f"Found by the search: message id is {letter.message_id}." in told[letter.message_id]
    assert "Found by the search: ordering key is key-4711." in told["key-4711"]
    assert "Found by the search: order_id is 4711 in 1 DLQ: orders." in told["order_id:4711"]


def test_a_message_that_is_not_parked_is_opened_too(ann: Client) -> None:
    letter = _order(_shop(), 4711)
    Letter.objects.update(state="delivered", reason="")
    _indexed()
    assert _opened(ann, "4711") == f"/admin/reprocessing/letter/{letter.pk}/change/"


@pytest.mark.parametrize(
    ("typed", "found", "meaning"),
    [
        ("state:presumed-delivered", 1, "state is presumed delivered"),
        ('state:"presumed delivered"', 1, "state is presumed delivered"),
        ("state:delivered", 2, "state is delivered or presumed delivered"),
        ("state:presumed state:parked", 2, "state is presumed delivered or parked"),
    ],
)
def test_states_are_found_by_the_names_that_pages_show(ann: Client, typed: str, found: int, meaning: str) -> None:
    letters = [_order(_shop(name), 4711) for name in ("orders", "billing", "returns")]
    Letter.objects.filter(pk__in=[letter.pk for letter in letters[:2]]).update(state="delivered", reason="")
    Letter.objects.filter(pk=letters[0].pk).update(presumed=True)
    page = _page(ann, typed)
    assert re.findall(r"<strong>(\d)</strong> messages? found", page) == [str(found)]
    assert meaning in page


def test_the_meaning_is_shown_with_the_dlqs_that_declare_the_field(ann: Client) -> None:
    for name in ("orders", "billing", "returns"):
        _order(_shop(name), 4711)
    _indexed()
    page = _page(ann, "order_id:4711")
    assert "order_id is 4711 in 3 DLQs: billing, orders, returns" in page
    assert re.search(r"<strong>3</strong> messages found", page)
    assert "order_id is 4712 in 1 DLQ: orders" in _page(ann, "dlq:orders order_id:4712")


def test_a_result_leads_to_the_same_filter_of_the_parking_lot(ann: Client) -> None:
    for name in ("orders", "billing"):
        _order(_shop(name), 4711)
    _order(_shop("others"), 9)
    _indexed()
    (there,) = re.findall(rf'href="({LOT}\?[^"]*)"', _page(ann, "order_id:4711"))
    assert there == f"{LOT}?state=parked&field=order_id%3A4711"
    lot = unescape(ann.get(there).content.decode())
    assert "<strong>2</strong> parked messages whose order_id is 4711" in lot
    assert 'name="search" value="order_id:4711"' in lot


def test_the_box_of_the_parking_lot_leads_to_an_address_to_share(ann: Client) -> None:
    _order(_shop(), 4711)
    _indexed()
    answer = ann.get(LOT, {"search": "order_id:47* dlq:orders", "assigned": "-", "q": ""})
    there = answer.headers["Location"]
    one = DeadLetterQueue.objects.get().pk
    assert there == f"{LOT}?dlq={one}&state=parked&assigned=-&field=order_id%3A47%2A"
    assert "whose order_id begins with 47" in unescape(ann.get(there).content.decode())
    assert "No DLQ declares" in _page(ann, "invoice:1", LOT, "search")


def test_the_list_of_all_messages_is_searched_in_the_same_way(ann: Client) -> None:
    letter = _order(_shop(), 4711)
    _order(_shop("billing"), 4712)
    _indexed()
    page = _page(ann, "order_id:4711", "/admin/reprocessing/letter/")
    assert letter.message_id in page
    assert "1 message" in page
    assert "No DLQ declares" in _page(ann, "invoice:1", "/admin/reprocessing/letter/")


def test_every_page_has_the_box_and_its_example_works_without_search_fields(ann: Client) -> None:
    page = _page(ann, "", "/admin/")
    assert 'action="/admin/search"' in page
    (example,) = re.findall(r'placeholder="Search: id, key, ([^"]*)"', page)
    assert 'role="alert"' not in _page(ann, example)


@pytest.mark.parametrize(
    ("q", "told"),
    [
        ("ordr_id:4711", 'No DLQ declares the search field "ordr_id". Search fields are: order_id.'),
        ("ordr_id:4711", "To declare the field, use Change… on the page of its DLQ, or run (NAME: the DLQ): "),
        ("ordr_id:4711", "manage.py add_dlq NAME --search-field ordr_id=body:ordr_id"),
        ("dlq:ordres 1", "You see no DLQ 'ordres'. Write dlq: and one of orders."),
        ('"card', "A quotation mark has no partner"),
        ("order_id:", "order_id:VALUE"),
    ],
)
def test_a_wrong_search_says_what_to_write(q: str, told: str, ann: Client) -> None:
    _shop()
    _indexed()
    page = _page(ann, q)
    assert told in page
    assert 'role="alert"' in page


def test_a_word_that_is_no_id_and_no_value_is_searched_for_in_bodies(ann: Client) -> None:
    letter = _order(_shop(), 4711, note="card declined")
    _indexed()
    page = _page(ann, "declined")
    assert letter.message_id in page
    assert 'No message has this id, key or value. Searched bodies for "declined" instead.' in page
    assert "This was a scan of the bodies of all 1 messages" in page


def test_a_scan_says_where_it_stopped(ann: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reprocessing.store.search.filter_conditions.SEARCHED_LETTERS", 1)
    source = _shop()
    old, new = _order(source, 1, note="declined"), _order(source, 2, note="declined")
    page = _page(ann, '"declined"')
    assert (old.message_id in page, new.message_id in page) == (False, True)
    assert f"newest 1 messages. It stopped at messages captured on {new.captured_at:%Y-%m-%d %H:%M} UTC" in page


def test_nothing_found_says_what_would_have_to_be_declared(ann: Client) -> None:
    _order(_shop(), 4711)
    dlq("billing")
    _indexed()
    page = _page(ann, "order_id:9")
    assert "No message found" in page
    assert "were not searched: billing." in page
    assert "manage.py add_dlq NAME --search-field order_id=body:order.id" in page


@pytest.mark.parametrize(
    ("q", "meant"),
    [
        ("Parked", "state:parked"), ("queued", "state:queued"), ("awaiting outcome", "state:awaiting-outcome"),
        ("presumed", "state:presumed-delivered"), ("dlq:orders delivered", "dlq:orders state:delivered"),
        ("declined", ""), ("state:discarded parked", ""), ("x5:parked", ""),
    ],
)  # fmt: skip
def test_the_name_of_a_state_that_finds_nothing_suggests_a_search_by_state(q: str, meant: str, ann: Client) -> None:
    _order(_shop("orders", "x5=body:x5"), 4711)
    page = _page(ann, q)
    assert "No message found" in page
    assert re.findall(r'Did you mean <a href="\?q=([^"]*)">([^<]*)</a>\?', page) == (
        [(quote(meant, safe=""), meant)] if meant else []
    )


@pytest.mark.parametrize("how", ["beginning", "seven characters", "other id", "word"])
def test_the_beginning_of_an_id_that_finds_nothing_says_that_ids_are_found_whole(how: str, ann: Client) -> None:
    public_id = str(_order(_shop(), 4711).public_id)
    given = {
        "beginning": public_id[:11],
        "seven characters": public_id[:7],
        "other id": str(uuid4()),
        "word": "declined",
    }
    page = _page(ann, given[how])
    assert ("No message found" in page, "Ids are found only whole." in page) == (True, how == "beginning")


def test_people_who_may_not_see_payloads_search_no_bodies_but_fields() -> None:
    letter = _order(_shop(), 4711, note="declined")
    _indexed()
    bob = person("bob", *LOOKS)
    assert "This searches bodies, which needs the permission" in _page(bob, '"declined"')
    assert "No message found" in _page(bob, "declined")
    assert _opened(bob, "4711") == f"{LOT}{letter.pk}/change/"


def test_masked_values_are_found_only_by_who_may_reveal_them(ann: Client) -> None:
    letter = _order(_shop("orders", masked_fields=["id"]), 4711)
    _indexed()
    page = _page(ann, "order_id:4711")
    assert "No message found" in page
    assert "Masked values are not searched" in page
    assert _opened(person("eve", *REVEALS), "order_id:4711") == f"{LOT}{letter.pk}/change/"


@pytest.mark.soak
def test_a_filter_with_masked_values_shows_them_only_to_who_may_reveal_them(ann: Client) -> None:
    _order(_shop("orders", masked_fields=["id"]), 4711)
    _indexed()
    eve = person("eve", *REVEALS)
    assert "whose order_id is 4711" in _page(eve, "order_id:4711", LOT, "search")
    assert "<strong>1</strong>" in _page(eve, "order_id:4711", LOT, "search")
    assert "<strong>0</strong>" in _page(ann, "order_id:4711", LOT, "search")


def test_other_teams_are_in_no_answer_count_or_name() -> None:
    ours, theirs = _shop("ours"), _shop("theirs", "secret_id=body:order.id")
    mine, hidden = _order(ours, 4711), _order(theirs, 4711)
    _indexed()
    group = Group.objects.create(name="us")
    ours.dlq.teams.add(group)
    theirs.dlq.teams.add(Group.objects.create(name="them"))
    user = User.objects.create_user("bob", is_staff=True)
    user.groups.add(group)
    user.user_permissions.set(Permission.objects.filter(codename__in=READS))
    bob = Client()
    bob.force_login(user)
    assert _opened(bob, "4711") == f"{LOT}{mine.pk}/change/"
    for q in (hidden.message_id, str(hidden.public_id), "secret_id:4711", "x"):
        page = _page(bob, q).replace(q.partition(":")[0], "")
        assert [word for word in ("theirs", "secret", hidden.message_id) if word in page] == []


def test_an_index_that_is_not_complete_is_said(ann: Client) -> None:
    _order(_shop(), 4711)
    assert "Search fields of orders are being indexed" in _page(ann, "order_id:4711")


def test_the_search_takes_the_permission_to_see_messages() -> None:
    assert person("bob").get(SEARCH).status_code == 403


def test_results_have_pages(ann: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reprocessing.admin.search.search_page.SHOWN", 2)
    source = _shop("orders", "tenant=body:tenant")
    letters = [_order(source, number, tenant="acme") for number in range(3)]
    _indexed()
    first = _page(ann, "tenant:acme")
    (following,) = re.findall(r'href="(\?[^"]*)" rel="next"', first)
    second = unescape(ann.get(SEARCH + following).content.decode())
    shown = [re.findall(r'class="lot-id"><a [^>]*>([^<]*)<', page) for page in (first, second)]
    assert shown == [[letters[2].message_id, letters[1].message_id], [letters[0].message_id]]
    assert SearchEntry.objects.count() == 3


def _sum(page: str) -> str:
    (line,) = re.findall(r'<p class="lot-sum">(.*?)</p>', page)
    return str(line)


def _links(page: str) -> dict[str, str]:
    return {words: address for address, words in re.findall(r'<a href="([^"]*)">([^<]*)</a>', _sum(page))}


def test_counts_by_state_of_a_capped_search_are_not_shown_as_exact(
    ann: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(found_letters, "MAX_COUNT", 2)
    source = _shop()
    letters = [_order(source, number) for number in range(5)]
    Letter.objects.filter(pk__lt=letters[-1].pk).update(state="delivered", reason="")
    page = _page(ann, "dlq:orders")
    assert "<strong>2+</strong> messages found: " in page
    links = _links(page)
    assert list(links) == [
        "captured", "queued", "sending", "awaiting outcome", "delivered or presumed delivered", "parked", "duplicate",
        "discarded",
    ]  # fmt: skip
    assert links["parked"] == f"{LOT}?dlq={source.dlq_id}&state=parked"
    assert re.findall(r"\d\+? \w+", _sum(_page(ann, "dlq:orders state:delivered"))) == ["2+ delivered"]
    assert list(_links(_page(ann, "dlq:orders state:delivered state:parked"))) == [
        "delivered or presumed delivered", "parked",
    ]  # fmt: skip


def test_a_state_link_shows_only_that_state(ann: Client) -> None:
    source = _shop()
    letters = [_order(source, number) for number in range(5)]
    Letter.objects.update(ordering_key="customer-7")
    Letter.objects.filter(pk__in=[letter.pk for letter in letters[:2]]).update(
        state="waiting", reason="", finished_at=None
    )
    Letter.objects.filter(pk__in=[letter.pk for letter in letters[2:4]]).update(state="delivered", reason="")
    links = _links(_page(ann, "key:customer-7 state:queued state:delivered"))
    assert list(links) == ["2 delivered or presumed delivered", "2 queued"]
    shown = unescape(ann.get(SEARCH + links["2 queued"]).content.decode())
    found = re.findall(r'class="lot-id"><a [^>]*>([^<]*)<', shown)
    assert found == [letter.message_id for letter in reversed(letters[:2])]


@pytest.mark.soak
def test_search_in_the_list_of_a_run_finds_older_messages_of_the_run(
    ann: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reprocessing.admin.search.list_search.REACH", 2)
    source = _shop()
    letters = [parked(source, key="customer-7") for _ in range(6)]
    run = Run.objects.create(name="monday", dlq=source.dlq, state="running")
    rule = Rule.objects.create(name="bots", action="park", created_by="ann")
    group = failure_group(source, "declined")
    of_all = {"run": run, "rule": rule, "group": group}
    Letter.objects.filter(pk__in=[letter.pk for letter in letters[:2]]).update(**of_all)

    def listed(**filters: int) -> tuple[list[Letter], bool]:
        asked: dict[str, Any] = {"q": "customer-7", **filters}
        answer = ann.get("/admin/reprocessing/letter/", asked)
        warning = "More than 2 messages match. The list shows only the newest 2 of them at most."
        return list(answer.context["cl"].result_list), warning in str(answer.content)

    for name, row in of_all.items():
        assert listed(**{name: row.pk}) == ([letters[1], letters[0]], False), name
        assert listed(**{f"{name}__id__exact": row.pk}) == ([letters[1], letters[0]], False), name
    assert listed() == ([letters[5], letters[4]], True)
    page = ann.get(f"/admin/reprocessing/letter/{letters[5].pk}/change/", {"list": "q=customer-7"})
    assert (str(letters[4].pk) + "/change/" in str(page.content), "More than 2" in str(page.content)) == (
        True, False,
    )  # fmt: skip


def test_lists_show_the_type_and_when_a_message_finished(ann: Client) -> None:
    source = _shop()
    letters = [_order(source, 4711) for _ in range(4)]
    titles = {"type": "order.paid", "task": "shop.pay", "body": "JSON with id"}
    for letter, (cause, title) in zip(letters, titles.items(), strict=False):
        group = failure_group(source, title, cause=cause)
        Letter.objects.filter(pk=letter.pk).update(group=group)
    Letter.objects.filter(pk=letters[0].pk).update(state="waiting", reason="", finished_at=None)
    cells = dict[str, list[str]]()
    for label, text in re.findall(r'<td data-label="(.*?)">(.*?)</td>', _page(ann, "key:key-4711")):
        cells.setdefault(label, []).append(text)
    assert cells["Type"] == ["-", "-", "shop.pay", "order.paid"]
    times = [f"{letter.finished_at:%Y-%m-%d %H:%M:%S}" for letter in reversed(letters[1:])]
    assert cells["Parked or finished (UTC)"] == [*times, "-"]
    listed = _page(ann, "", "/admin/reprocessing/letter/")
    assert re.findall(r'<td class="field-type">(.*?)</td>', listed) == ["-", "-", "shop.pay", "order.paid"]
