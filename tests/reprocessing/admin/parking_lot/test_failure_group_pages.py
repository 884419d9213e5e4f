from __future__ import annotations

import html
import re
from datetime import timedelta
from typing import Any
from urllib.parse import quote

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from reprocessing.models import AuditEntry, FailureGroup, GroupHour, Letter, Source
from reprocessing.store.maintenance import counters
from reprocessing.store.ordering.lanes import database_now
from reprocessing.store.parking_lot import failure_group_pages
from tests.reprocessing.admin.parking_lot.parked_messages import DECIDES, LOOKS, dlq, parked, person, post
from tests.reprocessing.admin.parking_lot.parked_messages import failure_group as group

pytestmark = pytest.mark.django_db

LIST = "/admin/reprocessing/failuregroup/"
SEES = (*LOOKS, "view_failuregroup")
SETTLES = (*SEES, "change_failuregroup")


@pytest.fixture
def ann() -> Client:
    return person("ann", *SEES)


@pytest.fixture
def shop() -> Source:
    return dlq("shop")


def member(of: FailureGroup, source: Source, **fields: Any) -> Letter:  # noqa: ANN401
    letter = parked(source)
    Letter.objects.filter(pk=letter.pk).update(group=of, **fields)
    letter.refresh_from_db()
    return letter


def address(of: FailureGroup) -> str:
    return f"{LIST}{of.pk}/change/"


def seen(client: Client, of: FailureGroup) -> dict[str, str]:
    """What the group's page carries, to be sent back."""
    form = client.get(address(of)).context["form"]
    return {
        name: str(form[name].value() or "") for name in ("status", "note", "to", "seen_status", "seen_note", "seen_to")
    }


def titles(page: str) -> list[str]:
    return [html.unescape(one) for one in re.findall(r'<th scope="row"><a [^>]+>([^<]+)</a>', page)]


def read(client: Client, query: str = "") -> str:
    answer = client.get(f"{LIST}{query}")
    assert answer.status_code == 200
    return answer.content.decode()


def number(page: str, what: str) -> tuple[str, str]:
    """A number of a card, and where it leads."""
    found = re.search(rf"<dt>{re.escape(what)}</dt><dd>(?:<a href=\"([^\"]+)\">)?([^<]+)<", page)
    assert found, what
    return found[2], html.unescape(found[1] or "")


def old(source: Source, title: str, **fields: Any) -> FailureGroup:  # noqa: ANN401
    """A group that the service has known for two days."""
    made = group(source, title, **fields)
    FailureGroup.objects.filter(pk=made.pk).update(created_at=database_now() - timedelta(days=2))
    return made


def test_new_open_groups_come_first_then_open_ones_then_by_last_failure(ann: Client, shop: Source) -> None:
    now = database_now()
    for title, status, minutes, make in (
        ("settled", "resolved", 1, group), ("older", "open", 50, old), ("newer", "open", 20, old),
        ("seen", "acknowledged", 5, old), ("new", "open", 90, group),
    ):  # fmt: skip
        make(shop, title, status=status, settled_at=now, status_by="ann", last_at=now - timedelta(minutes=minutes))
    assert titles(read(ann)) == ["new", "newer", "older", "settled", "seen"]


@pytest.mark.soak
def test_groups_are_filtered_and_invalid_filters_ignored() -> None:
    ann, shop, mail = person("ann", *SEES), dlq("shop"), dlq("mail")
    group(shop, "a", assigned_to="ben")
    group(mail, "b", name="Money", note="50 % off")
    group(mail, "c", status="ignored", settled_at=database_now(), status_by="ann")
    assert titles(read(ann, f"?dlq={mail.dlq.pk}")) == ["Money", "c"]
    assert titles(read(ann, f"?dlq={mail.dlq.pk}&status=ignored")) == ["c"]
    assert titles(read(ann, "?status=ignored&dlq=")) == ["c"]
    for text, found in (("monEY", ["Money"]), ("0 %", ["Money"]), ("ben", ["a"]), ("_", [])):
        assert titles(read(ann, f"?q={quote(text)}")) == found
    for odd in ("?dlq=x&status=y&page=z&sort=;", "?dlq=-1", "?page=0&trend=1d", "?q=%00%E2%80%AE"):
        assert titles(read(ann, odd)) == ["Money", "a", "c"]
    assert "No group matches this filter." in read(ann, f"?dlq={10**17}")
    assert "No more groups." in read(ann, f"?page={10**17}")


@pytest.mark.soak
def test_a_click_on_a_column_sorts_by_it_and_another_click_turns_the_order(ann: Client, shop: Source) -> None:
    for title, n in (("a", 2), ("b", 0), ("c", 1)):
        ours = group(shop, title)
        for _ in range(n):
            member(ours, shop)
    page, found = read(ann, "?status=open"), []
    for _ in range(2):
        there = re.search(r'<a href="([^"]+)">Parked', page)
        assert there
        page = read(ann, html.unescape(there[1]))
        found.append((titles(page), re.findall(r'aria-sort="(\w+)"', page)))
    assert found == [(["a", "c", "b"], ["descending"]), (["b", "c", "a"], ["ascending"])]
    for order in failure_group_pages.ORDERS:
        assert sorted(titles(read(ann, f"?sort={order}"))) == ["a", "b", "c"]


def test_each_group_is_on_exactly_one_page(ann: Client, shop: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reprocessing.admin.parking_lot.failure_group_table.ROWS", 20)
    at = database_now()
    for n in range(45):
        settled = {"status": "resolved", "settled_at": at, "status_by": "ann"} if n % 3 else {}
        group(shop, f"g{n}", last_at=at, **settled)
    found, query = list[str](), ""
    for no in (1, 2, 3):
        page = read(ann, query)
        assert f"Page {no} of 3" in page
        found += titles(page)
        query = html.unescape(re.search(r'href="([^"]*)" rel="next"', page)[1]) if 'rel="next"' in page else ""  # type: ignore[index]
    assert query == ""
    assert sorted(found) == sorted(f"g{n}" for n in range(45))
    assert [one for one in found if int(one[1:]) % 3 == 0] == found[:15]


def test_a_row_has_its_counts_its_sample_and_a_sparkline(ann: Client, shop: Source) -> None:
    ours = group(shop, assigned_to="ben")
    first, last = member(ours, shop, ordering_key="k1"), member(ours, shop, ordering_key="k2")
    member(ours, shop, ordering_key=None, state="captured", reason="", finished_at=None)
    FailureGroup.objects.filter(pk=ours.pk).update(merged_into=None)
    now = database_now().replace(minute=0, second=0, microsecond=0)
    for hours, n in ((0, 4), (1, 2), (23, 1), (24, 9), (24 * 12, 8)):
        GroupHour.objects.create(group_id=ours.pk, hour=now - timedelta(hours=hours), n=n)
    [line] = ann.get(LIST).context["lines"]
    assert (line["group"].parked, line["group"].messages, line["keys"]) == (2, 3, "2")
    assert line["spark"]["words"] == "7 messages first sent in the last 24 hours, at most 4 in one hour"
    assert line["spark"]["path"] == "M0 20v-5h3v5zM88 20v-10h3v10zM92 20v-20h3v20z"
    assert ann.get(f"{LIST}?trend=14d").context["lines"][0]["spark"]["words"].startswith("24 messages first sent in")
    assert f"/admin/reprocessing/letter/{last.pk + 1}/change/" in read(ann)
    assert first.pk < last.pk
    assert "ben" in read(ann)


def test_the_actions_of_a_row_are_for_people_who_may_and_act_on_its_parked_messages() -> None:
    shop = dlq()
    ours = group(shop)
    member(ours, shop)
    rule = "/admin/reprocessing/rule/add/?group="
    may = person("ann", *DECIDES, "view_failuregroup", "change_failuregroup", "add_rule")
    page = read(may)
    assert re.findall(r'formaction="[^"]+/(\w+)" name="query" value="([^"]+)"', page) == [
        ("release", f"group={ours.pk}"), ("discard", f"group={ours.pk}")
    ]  # fmt: skip
    assert rule in page
    assert [rule in one.get(address(ours)).content.decode() for one in (may, person("eve", *SEES))] == [True, False]
    assert f"{address(ours)}?status=resolved#settle" in page
    asked = post(may, "/admin/reprocessing/parkedletter/release", scope="all", query=f"group={ours.pk}")
    assert "Release a parked message" in asked
    none = read(person("ben", *SEES))
    assert [none.count(text) for text in ("formaction", rule, "status=resolved#", 'name="pick"')] == [0, 0, 0, 0]
    assert none.count('aria-disabled="true"') == 5


def test_all_parked_messages_of_a_group_are_released_from_its_page_too() -> None:
    shop = dlq()
    ours = group(shop)
    member(ours, shop)
    may, eve = person("ann", *DECIDES, "view_failuregroup"), person("eve", *SEES)
    page = may.get(address(ours)).content.decode()
    assert re.findall(r'formaction="[^"]+/(\w+)" name="query" value="([^"]+)"', page) == [
        ("release", f"group={ours.pk}")
    ]
    assert "Release the parked message…" in page
    assert "formaction" not in eve.get(address(ours)).content.decode()
    asked = post(may, "/admin/reprocessing/parkedletter/release", scope="all", query=f"group={ours.pk}")
    assert "A rule that quarantined a message does not quarantine it again; other enabled rules still apply." in asked


def test_resolve_opens_the_form_with_that_status() -> None:
    ann, ours = person("ann", *SETTLES), group(dlq())
    assert '<option value="resolved" selected>' in ann.get(f"{address(ours)}?status=resolved").content.decode()
    assert '<option value="open" selected>' in ann.get(f"{address(ours)}?status=x").content.decode()


def test_an_assignee_is_a_user_and_is_recorded() -> None:
    ann, ours = person("ann", *SETTLES), group(dlq())
    assert "There is no active user" in post(ann, address(ours), **seen(ann, ours) | {"to": "nobody"}, reason="so")
    post(ann, address(ours), **seen(ann, ours) | {"to": "ann"}, reason="mine")
    assert FailureGroup.objects.get().assigned_to == "ann"
    entry = AuditEntry.objects.get()
    assert (entry.act, entry.before["assigned to"], entry.after["assigned to"]) == ("changed", "", "ann")


@pytest.mark.soak
def test_numbers_link_to_their_messages(ann: Client, shop: Source) -> None:
    ours, other = group(shop), group(shop, "Timeout")
    for state, finished in (
        ("parked", True), ("parked", True), ("captured", False), ("waiting", False), ("awaiting", False),
        ("delivered", True), ("discarded", True),
    ):  # fmt: skip
        reason = "stale" if state == "parked" else ""
        member(ours, shop, state=state, reason=reason, finished_at=database_now() if finished else None)
    member(other, shop)
    counters.fold_deltas()
    page = ann.get(address(ours)).content.decode()
    told = {what: number(page, what)[0] for what in ("In progress", "Finished", "Queued behind")}
    assert told == {"In progress": "2", "Finished": "2", "Queued behind": "none"}
    by_state = re.findall(r'<a href="([^"]+)">(\d+ [a-z ]+)</a>', page)
    assert [words for _, words in by_state] == [
        "1 queued", "1 awaiting outcome", "1 delivered or presumed delivered", "1 discarded"
    ]  # fmt: skip
    states = ("waiting", "awaiting", "delivered", "discarded")
    for (address_, _), state in zip(by_state, states, strict=True):
        rows = ann.get(html.unescape(address_)).context["cl"].result_list
        assert [(one.state, one.group_id) for one in rows] == [(state, ours.pk)]
    shown, leads = number(page, "Parked")
    assert (shown, ann.get(leads).content.decode().count('class="lot-id"')) == ("2", 2)
    shown, leads = number(page, "Captured")
    assert (shown, ann.get(leads).context["cl"].result_count) == ("1", 1)
    everything = re.search(r'href="([^"]+)">All messages<', page)
    assert everything
    assert ann.get(everything[1]).context["cl"].result_count == 7


@pytest.mark.soak
def test_messages_queued_behind_are_counted_to_a_limit(
    monkeypatch: pytest.MonkeyPatch, ann: Client, shop: Source
) -> None:
    ours = group(shop)
    first, second = member(ours, shop, single=False), member(ours, shop)
    for lane in (first, second):
        for n in range(3):
            behind = parked(shop)
            Letter.objects.filter(pk=behind.pk).update(
                lane=lane.lane, state="waiting", reason="", finished_at=None, sequence=f"9{n}", single=False
            )
    before = parked(shop)
    Letter.objects.filter(pk=before.pk).update(
        lane=first.lane, state="waiting", reason="", finished_at=None, sequence="", single=False
    )
    shown, leads = number(ann.get(address(ours)).content.decode(), "Queued behind")
    assert shown == "3"
    page = ann.get(leads).content.decode()
    waits = Letter.objects.filter(lane=first.lane, sequence__startswith="9").order_by("-pk")
    assert re.findall(r'<th scope="row"><a href="[^"]+">([^<]+)<', page) == [one.message_id for one in waits]
    monkeypatch.setattr("reprocessing.admin.parking_lot.failure_group_pages.LETTERS", 2)
    older = re.search(r'href="([^"]+)" rel="next"', ann.get(leads).content.decode())
    assert older
    rest = ann.get(address(ours) + html.unescape(older[1])).content.decode()
    assert re.findall(r'<th scope="row"><a href="[^"]+">([^<]+)<', rest) == [waits[2].message_id]
    for module in (
        "reprocessing.store.parking_lot.failure_group_pages",
        "reprocessing.admin.parking_lot.failure_group_cards",
    ):
        monkeypatch.setattr(f"{module}.MAX_BEHIND", 2)
    assert number(ann.get(address(ours)).content.decode(), "Queued behind")[0] == "2+"


@pytest.mark.soak
def test_its_newest_letters_are_listed_by_pages(ann: Client, shop: Source) -> None:
    ours = group(shop)
    ids = [member(ours, shop).message_id for _ in range(53)]
    page = ann.get(address(ours)).content.decode()
    older = re.search(r'href="(\?after=\d+)#letters" rel="next"', page)
    assert older
    rest = ann.get(address(ours) + older[1]).content.decode()
    found = [re.findall(r'<th scope="row"><a href="[^"]+">([^<]+)<', one) for one in (page, rest)]
    assert found == [ids[:2:-1], ids[2::-1]]
    assert 'rel="next"' not in rest


def test_status_takes_a_reason_and_is_recorded() -> None:
    ann, ours = person("ann", *SETTLES), group(dlq())
    given = seen(ann, ours) | {"status": "acknowledged", "note": "ticket 7\nann is on it"}
    assert "This field is required" in post(ann, address(ours), **given, reason=" ")
    assert FailureGroup.objects.get().status == "open"
    page = post(ann, address(ours), **given, reason="I see to it")
    now = FailureGroup.objects.get()
    assert (now.status, now.note, now.status_by) == ("acknowledged", "ticket 7\nann is on it", "ann")
    assert "Saved: acknowledged." in page
    assert "ticket 7<br>ann is on it" in page
    assert "status: open &rarr; acknowledged" in page
    one = AuditEntry.objects.get()
    assert (one.act, one.by, one.reason, one.group, one.dlq) == ("changed", "ann", "I see to it", ours, ours.dlq)


def test_browser_line_ends_are_no_change() -> None:
    ann, ours = person("ann", *SETTLES), group(dlq(), note="one\ntwo")
    given = {"status": "ignored", "note": "one\r\ntwo", "seen_status": "open", "seen_note": "one\r\ntwo"}
    post(ann, address(ours), **given, reason="noise")
    assert (FailureGroup.objects.get().status, FailureGroup.objects.get().note) == ("ignored", "one\ntwo")


def test_unchanged_status_is_refused() -> None:
    ann, ours = person("ann", *SETTLES), group(dlq())
    assert "Nothing was changed" in post(ann, address(ours), **seen(ann, ours), reason="so")
    assert not AuditEntry.objects.exists()


@pytest.mark.soak
def test_second_decision_names_the_first_and_can_be_repeated() -> None:
    ann, ben, ours = person("ann", *SETTLES), person("ben", *SETTLES), group(dlq())
    bens = seen(ben, ours)
    post(ann, address(ours), **seen(ann, ours) | {"status": "acknowledged"}, reason="I <see> to it")
    AuditEntry.objects.create(act="exported", group=ours, dlq=ours.dlq, by="carol", reason="for a report")
    page = post(ben, address(ours), **bens | {"status": "ignored", "note": "noise"}, reason="no")
    assert FailureGroup.objects.get().status == "acknowledged"
    told = "after you opened this page, ann changed it (&quot;I &lt;see&gt; to it&quot;). Its status is acknowledged."
    assert told in page
    assert re.search(r'<option value="ignored" selected>', page)
    assert ">\nnoise</textarea>" in page
    again = {"status": "ignored", "note": "noise", "seen_status": "acknowledged", "seen_note": ""}
    assert 'name="seen_status" value="acknowledged"' in page
    post(ben, address(ours), **again, reason="agreed with ann")
    assert FailureGroup.objects.get().status == "ignored"
    assert AuditEntry.objects.exclude(by="carol").count() == 2


def test_messages_of_a_group_take_a_permission() -> None:
    shop = dlq()
    ours = group(shop)
    letter = member(ours, shop)
    page = person("blind", "view_failuregroup").get(address(ours)).content.decode()
    assert "You may not see messages" in page
    assert letter.message_id not in page


@pytest.mark.soak
def test_pages_have_bounded_queries(django_assert_max_num_queries: DjangoAssertNumQueries) -> None:
    ann, shop = person("ann", *SETTLES), dlq()
    ours = group(shop)
    member(ours, shop)
    for page in (LIST, address(ours)):
        with django_assert_max_num_queries(12) as few:
            ann.get(page)
        for n in range(6):
            member(group(dlq(f"{n}-{len(page)}")), shop)
            member(ours, shop)
            AuditEntry.objects.create(group=ours, act="noted", by="ann", reason="x")
        with django_assert_max_num_queries(12) as many:
            ann.get(page)
        assert len(many) == len(few)


@pytest.mark.parametrize(("cause", "hints"), [("type", True), ("task", True), ("body", True), ("reported", False)])
def test_where_the_reason_is_not_known_the_pages_say_how_to_make_it_known(cause: str, hints: bool) -> None:
    found, ann = group(dlq(), "order.paid", cause=cause), person("ann", *SEES)
    pages = [ann.get(one).content.decode() for one in (LIST, f"{LIST}{found.pk}/change/")]
    assert ["use the package reprocessing.reasons" in page for page in pages] == [hints, hints]
    assert ["For developers: to see the reasons" in page for page in pages] == [hints, hints]
    support, developers = (pages[0].find(words) for words in ("open a group and use “Compare a", "For developers:"))
    assert (support < developers) is hints
    assert ["docs/" in page for page in pages] == [False, False]
    assert ">Failure or type<" in pages[0]


def test_times_are_named_as_the_times_at_which_messages_were_sent(ann: Client, shop: Source) -> None:
    ours = group(shop)
    pages = [ann.get(one).content.decode() for one in (LIST, address(ours))]
    assert [re.findall(r">(?:<a[^>]*>)?(First [a-z ]+|Last [a-z ]+)<", page) for page in pages] == [
        ["First sent", "Last sent"], ["Last message sent", "First message sent", "Last released"],
    ]  # fmt: skip
    assert [page.count(" failure</") for page in pages] == [0, 0]


def test_a_row_says_how_long_ago_messages_were_sent(ann: Client, shop: Source) -> None:
    now = database_now()
    group(shop, first_at=now - timedelta(hours=2, minutes=30), last_at=now + timedelta(hours=1))
    assert re.findall(r'data-what="(?:First|Last) sent"><time [^>]*>([^<]*)<', read(ann)) == ["2 h 30 min ago", "now"]


def test_a_parked_message_is_compared_with_a_delivered_one_in_one_click(shop: Source) -> None:
    ours = group(shop)
    chosen = member(ours, shop)
    member(ours, shop, state="delivered", reason="")
    may, eve = person("may", *SEES, "view_payload"), person("eve", *SEES)
    page = may.get(address(ours)).content.decode()
    there = f"/admin/reprocessing/letter/{chosen.pk}/compare"
    assert f'id="compare" action="{there}"' in page
    assert '<button type="submit" form="compare" class="button">Compare a parked message with a' in page
    assert "compare" not in eve.get(address(ours)).content.decode()
    answer = post(may, there, **{"with": ""})
    assert "No delivered message of the same type" in answer or "Two messages compared" in answer


def test_release_all_has_the_look_of_the_main_button(shop: Source) -> None:
    ours = group(shop)
    member(ours, shop)
    page = person("may", *DECIDES, "view_failuregroup").get(address(ours)).content.decode()
    assert re.findall(r'<button[^>]* class="([^"]+)">Release the parked message', page) == ["button default"]
