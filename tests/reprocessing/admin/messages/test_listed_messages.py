from __future__ import annotations

import re
from urllib.parse import quote

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.db import connection, transaction
from django.http import QueryDict
from django.test import Client

from reprocessing.admin.messages import listed_messages
from reprocessing.admin.messages.listed_messages import MessageList
from reprocessing.models import Letter
from reprocessing.store.maintenance.counters import CountByState
from reprocessing.store.ordering.lanes import database_now
from tests.reprocessing.admin.parking_lot.parked_messages import LOOKS, dlq, failure_group, parked, person
from tests.reprocessing.pipeline.bench import Workbench
from tests.reprocessing.store.explained import explained
from tests.reprocessing.store.seeded_letters import automatic_run, nothing_is_vacuumed, seed

pytestmark = pytest.mark.django_db

ADDRESS = "/admin/reprocessing/{}/{}/change/"
_BY_STATE = '"redrive_letter"."state" = '


def neighbours(client: Client, address: str) -> tuple[int | None, int | None] | None:
    """The messages to which a page links; None: it has no links."""
    answer = client.get(address)
    assert answer.status_code == 200
    page = answer.content.decode()
    if 'aria-label="In the list"' not in page:
        return None
    found = {
        rel: int(pk)
        for pk, rel in re.findall(r'<a href="/admin/\w+/\w+/(\d+)/change/[^"]*" rel="(\w+)">[^<]*(?:Prev|Next)', page)
    }
    return found.get("prev"), found.get("next")


@pytest.mark.parametrize("model", ["letter", "parkedletter"])
def test_a_list_passes_its_filter_on_and_the_page_links_to_the_messages_beside_it(model: str) -> None:
    source, other = dlq(), dlq("other-dlq")
    first, _, second, third = parked(source), parked(other), parked(source), parked(source)
    ann = person("ann", *LOOKS)
    listed = ann.get(f"/admin/reprocessing/{model}/?dlq__id__exact={source.dlq_id}").content.decode()
    links = [address.replace("&amp;", "&") for address in re.findall(r'href="([^"]+\?list=[^"]*)"', listed)]
    assert len(links) == 3
    assert [neighbours(ann, link) for link in links] == [
        (None, second.pk), (third.pk, first.pk), (second.pk, None),
    ]  # fmt: skip


@pytest.mark.parametrize("model", ["letter", "parkedletter"])
def test_the_list_without_a_filter_has_neighbours_too_and_an_address_of_its_own_has_none(model: str) -> None:
    source = dlq()
    first, second = parked(source), parked(source)
    ann = person("ann", *LOOKS)
    at = ADDRESS.format(model, second.pk)
    assert [neighbours(ann, f"{at}?list="), neighbours(ann, at)] == [(None, first.pk), None]


def test_the_breadcrumb_leads_back_to_the_filtered_list() -> None:
    letter = parked(dlq())
    page = (
        person("ann", *LOOKS).get(f"{ADDRESS.format('letter', letter.pk)}?list=state__exact%3Dparked").content.decode()
    )
    assert '<a href="/admin/reprocessing/letter/?state__exact=parked">Messages</a>' in page


@pytest.mark.parametrize("model", ["letter", "parkedletter"])
@pytest.mark.parametrize(
    "query",
    [
        "nothing=1", "dlq=x", "state=none", "dlq__name__startswith=a", f"dlq__id__exact={'9' * 23}", "q=%00",
        "%ff%fe", "after=x", "text=secret", "sent_after=never", "o=-1", "q=" + "a" * 3_000, "list=list%3D", "e=1",
        "&".join(f"a{n}=1" for n in range(2_000)), "reason=refused&reason=none", "<script>", "p=2&all=",
    ],
    ids=range(18),
)  # fmt: skip
def test_a_wrong_query_has_no_links_and_is_no_error(model: str, query: str) -> None:
    source = dlq()
    parked(source)
    letter = parked(source)
    answer = person("ann", *LOOKS).get(f"{ADDRESS.format(model, letter.pk)}?list={quote(query)}")
    assert (answer.status_code, b'class="error' in answer.content, b"<script>" in answer.content) == (200, False, False)


def test_a_search_that_takes_too_long_has_no_links(monkeypatch: pytest.MonkeyPatch) -> None:
    source = dlq()
    parked(source)
    letter = parked(source)
    monkeypatch.setattr(listed_messages, "_SEARCH_TIMEOUT_MS", 1)
    monkeypatch.setattr(
        "reprocessing.store.parking_lot.filtered_letters._AFTER",
        "SELECT l.id FROM redrive_letter l, pg_sleep(5) WHERE {where}",
    )
    assert neighbours(person("ann", *LOOKS), f"{ADDRESS.format('parkedletter', letter.pk)}?list=") is None


@pytest.mark.soak
def test_neighbours_of_another_team_are_not_linked() -> None:
    source, theirs = dlq(), dlq("their-dlq")
    first, _, second, _ = parked(source), parked(theirs), parked(source), parked(theirs)
    team = Group.objects.create(name="ours")
    source.dlq.teams.set([team])
    user = User.objects.create_user("ben", is_staff=True)
    user.groups.set([team])
    user.user_permissions.set(Permission.objects.filter(codename__in=LOOKS))
    client = Client()
    client.force_login(user)
    asked = ["", quote(f"dlq__id__exact={theirs.dlq_id}"), quote(f"dlq={theirs.dlq_id}")]
    for model in ("letter", "parkedletter"):
        found = [neighbours(client, f"{ADDRESS.format(model, second.pk)}?list={query}") for query in asked]
        assert {pk for pair in found for pk in pair or ()} <= {None, first.pk}, model


def test_a_text_that_somebody_searched_for_is_in_no_address_of_a_message() -> None:
    parked(dlq(), body=b"4111-canary")
    listed = person("ann", *LOOKS, "view_payload").get("/admin/reprocessing/parkedletter/?text=4111-canary")
    links = re.findall(r'<td class="lot-id"><a href="([^"]*)"', listed.content.decode())
    assert [("4111" in link, "list=" in link) for link in links] == [(False, False)]


def test_messages_of_a_failure_group_are_linked_with_the_filter_of_the_group() -> None:
    source = dlq()
    group = failure_group(source)
    letters = [parked(source) for _ in range(3)]
    Letter.objects.exclude(pk=letters[1].pk).update(group=group)
    ann = person("ann", *LOOKS, "view_failuregroup")
    page = ann.get(f"/admin/reprocessing/failuregroup/{group.pk}/change/").content.decode()
    (link,) = re.findall(rf'href="(/admin/reprocessing/letter/{letters[2].pk}/change/[^"]*)"', page)
    assert neighbours(ann, link) == (None, letters[0].pk)


@pytest.mark.soak
@pytest.mark.django_db(transaction=True)
def test_a_page_of_old_queued_messages_does_not_read_the_newer_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listed_messages, "_NEWEST", 500)
    with nothing_is_vacuumed():
        bench = Workbench()
        # The letters are written without the triggers that count them.
        counts = [CountByState(bench.dlq.pk, "waiting", "", presumed=False, n=1_200)]
        monkeypatch.setattr(MessageList, "known_counts", counts)
        seed(bench, automatic_run(bench), 1, 20_000)
        old = list(Letter.objects.order_by("pk").values_list("pk", flat=True)[:1_200])
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET LOCAL session_replication_role = replica")
            Letter.objects.update(state="delivered", finished_at=database_now())
            Letter.objects.filter(pk__in=old).update(state="waiting", finished_at=None)
        with connection.cursor() as cursor:
            cursor.execute("VACUUM ANALYZE redrive_letter")
        ann, afters = person("ann", *LOOKS), ("", f"&after=[%22{old[100]}%22]")
        with explained() as statements:
            answers = [ann.get(f"/admin/reprocessing/letter/?state__exact=waiting{after}") for after in afters]
        with explained() as dense:
            ann.get("/admin/reprocessing/letter/?state__exact=delivered")
    found = [re.findall(r"/letter/(\d+)/change/[?]list", answer.content.decode()) for answer in answers]
    assert [list(dict.fromkeys(map(int, ids))) for ids in found] == [old[:-51:-1], old[99:49:-1]]
    listed, delivered = (
        [one.buffers for one in explained if _BY_STATE in one.text] for explained in (statements, dense)
    )
    # For each page: the newest messages, and then those that are shown.
    assert (len(listed), len(delivered)) == (4, 2)
    assert max(listed) < 1_500  # all letters have twice as many pages
    assert max(delivered) < 400  # those of one page


@pytest.mark.soak
@pytest.mark.django_db(transaction=True)
def test_a_page_of_the_few_presumed_deliveries_does_not_read_dlqs_that_have_none() -> None:
    with nothing_is_vacuumed():
        bench = Workbench()
        seed(bench, automatic_run(bench), 1, 20_000)
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET LOCAL session_replication_role = replica")
            Letter.objects.update(state="delivered", presumed=False, finished_at=database_now())
        source = dlq("other-dlq")
        letters = [parked(source).pk for _ in range(2)]
        presumed = {"state": "delivered", "reason": "", "presumed": True, "finished_at": database_now()}
        Letter.objects.filter(pk__in=letters).update(**presumed)
        with connection.cursor() as cursor:
            cursor.execute("VACUUM ANALYZE redrive_letter")
        with explained() as statements:
            page = person("ann", *LOOKS).get("/admin/reprocessing/letter/?state__exact=delivered&presumed__exact=1")
    found = dict.fromkeys(re.findall(r"/letter/(\d+)/change/[?]list", page.content.decode()))
    assert [int(pk) for pk in found] == letters[::-1]
    assert max(one.buffers for one in statements if _BY_STATE in one.text) < 400


def test_a_list_of_two_states_has_the_messages_of_both_on_each_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listed_messages, "REACH", 1)
    source = dlq()
    letters = [parked(source) for _ in range(4)]
    Letter.objects.filter(pk=letters[0].pk).update(state="waiting", finished_at=None, reason="")
    page = person("ann", *LOOKS).get("/admin/reprocessing/letter/?state__exact=parked&state__exact=waiting")
    found = dict.fromkeys(re.findall(r"/letter/(\d+)/change/[?]list", page.content.decode()))
    assert [int(pk) for pk in found] == [letter.pk for letter in reversed(letters)]


def test_messages_of_a_list_that_searches_a_text_link_to_no_list() -> None:
    letter = parked(dlq())
    query = QueryDict("q=%22secret text%22&state__exact=parked")
    assert listed_messages.link("/x/", query) == "/x/"
    assert listed_messages.link("/x/", QueryDict("q=key:a")) == "/x/?list=q%3Dkey%253Aa"
    assert neighbours(person("ann", *LOOKS), f"{ADDRESS.format('letter', letter.pk)}?list=q%3Dunknown%3A") is None
