from __future__ import annotations

import re
from html import unescape
from typing import NoReturn

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.test import Client

from reprocessing.domain.errors import PayloadKeyUnavailable
from reprocessing.domain.parking_lot.message_filter import MessageFilter
from reprocessing.models import SavedFilter
from reprocessing.store.payloads import erasure, installation_texts, payload_keys
from reprocessing.store.search import saved_filters, stored_filters
from tests.reprocessing.admin.parking_lot.parked_messages import LOOKS, dlq, parked
from tests.reprocessing.payload_rings import OLD, Rings, rings

__all__ = ["rings"]

pytestmark = pytest.mark.django_db

LOT = "/admin/reprocessing/parkedletter/"
LIST, SEARCH = "/admin/reprocessing/letter/", "/admin/search"
UNSAVE = f"{LOT}unsave"


def _member(name: str, *groups: Group, also: tuple[str, ...] = ()) -> Client:
    user = User.objects.create_user(name, is_staff=True)
    user.groups.set(groups)
    user.user_permissions.set(Permission.objects.filter(codename__in=(*LOOKS, *also)))
    client = Client()
    client.force_login(user)
    return client


def _team(name: str) -> Group:
    group = Group.objects.create(name=name)
    source = dlq(f"{name}-dlq")
    source.dlq.teams.add(group)
    parked(source, reason="stale")
    return group


def _save(client: Client, name: str, query: str = "state=parked&reason=stale", team: Group | None = None) -> str:
    answer = client.post(f"{LOT}save", {"name": name, "query": query, "team": team.pk if team else ""}, follow=True)
    assert answer.status_code == 200
    return unescape(answer.content.decode())


def _page(client: Client, address: str) -> str:
    answer = client.get(address, follow=True)
    assert answer.status_code == 200
    return answer.content.decode()


def _shown(client: Client, query: str = "", at: str = LOT) -> dict[str, str]:
    section = _page(client, at + query).partition('aria-label="Saved filters"')[2].partition("</section>")[0]
    found = re.findall(r'class="chip"[^>]*><a href="([^"]*)"[^>]*>([^<]*)</a>', section)
    return {unescape(name): unescape(address) for address, name in found}


def test_a_saved_filter_is_a_link_above_the_list_for_its_owner_alone() -> None:
    team = _team("shop")
    ann, bob = _member("ann", team), _member("bob", team)
    assert "The filter late ones is saved." in _save(ann, "late ones")
    assert _shown(ann) == {"late ones": f"{LOT}?state=parked&reason=stale"}
    assert "<strong>1</strong>" in ann.get(_shown(ann)["late ones"]).content.decode()
    assert _shown(bob) == {}


def _form(client: Client, at: str, query: str) -> dict[str, str]:
    """The hidden fields of the form "Save this filter"; empty: the page does not offer it."""
    form = _page(client, at + query).partition("<summary>Save this filter</summary>")[2].partition("</form>")[0]
    found = re.findall(r'<input type="hidden" name="(query|page)" value="([^"]*)"', form)
    return {name: unescape(value) for name, value in found}


@pytest.mark.parametrize(
    ("at", "query", "saved"),
    [
        (LIST, "?state__exact=waiting", f"{LIST}?state__exact=waiting"),
        (LIST, "?state=delivered&presumed=1&q=key:a", f"{LIST}?q=key%3Aa&state__exact=delivered&presumed__exact=1"),
        (LIST, "?dlq={dlq}&state__exact=parked&after=x", f"{LOT}?dlq={{dlq}}&state=parked"),
        (LIST, "?run=0&q=group:0", f"{LIST}?group__id__exact=0&run__id__exact=0"),
        (LIST, "?run=7&rule__id__exact=8", f"{LIST}?run__id__exact=7&rule__id__exact=8"),
        (SEARCH, "?q=state:queued+dlq:shop-dlq", f"{LIST}?state__exact=waiting&dlq__id__exact={{dlq}}"),
        (SEARCH, "?q=state:queued+state:sending", f"{LIST}?q=state%3Aqueued+state%3Asending"),
        (SEARCH, "?q=state:parked+reason:stale", f"{LOT}?state=parked&reason=stale"),
        (SEARCH, "?q=key:nobody", f"{LIST}?q=key%3Anobody"),
    ],
)
def test_a_filter_is_saved_on_the_list_of_messages_and_on_the_search_page(at: str, query: str, saved: str) -> None:
    team = _team("shop")
    ann, number = _member("ann", team), str(team.dlqs.get().pk)
    form = _form(ann, at, query.replace("{dlq}", number))
    answer = ann.post(f"{LOT}save", {"name": "mine", "team": "", **form})
    assert answer.status_code == 302
    expected = {"mine": saved.replace("{dlq}", number)}
    assert [_shown(ann, at=page) for page in (LIST, SEARCH, LOT)] == [expected] * 3
    assert ann.get(expected["mine"]).status_code == 200
    assert 'aria-current="true">mine</a>' in ann.get(answer.headers["Location"]).content.decode()


@pytest.mark.parametrize(
    ("at", "query"),
    [
        (LIST, ""), (LIST, "?o=1"), (LIST, "?lane=3&state__exact=parked"),
        (LIST, "?state__exact=delivered&presumed__exact=0"),
        (LIST, "?state__exact=parked&q=state:queued"), (LIST, "?dlq=5&q=dlq:shop-dlq"),
        (LIST, "?state__exact=parked&run__id__exact=7&run__id__exact=8"),
        (LIST, "?q=unknown:"), (SEARCH, ""), (SEARCH, "?q=unknown:4"),
    ],
)  # fmt: skip
def test_no_filter_is_offered_that_is_none_or_cannot_be_saved(at: str, query: str) -> None:
    ann = _member("ann", _team("shop"))
    assert _form(ann, at, query) == {}


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("lane=3", "A saved filter cannot have a key queue"),
        ("dlq__id__exact=5&q=dlq:shop-dlq", "both name a DLQ"), ("dlq=5&q=dlq:shop-dlq", "both name a DLQ"),
        ("state__exact=parked&q=state:queued", "both name a state"),
        ("group=4&state=parked&q=group:5", "both name a failure group"),
        ("state__exact=parked&run__id__exact=x", "The filter by run"),
        ("state__exact=parked&run__id__exact=7&run__id__exact=8", "The filter by run"),
        ("state__exact=parked&rule=7&rule__id__exact=8", "The filter by rule"),
        ("dlq__id__exact=5&state__exact=unknown", "The filter by state"),
        ("state__exact=parked&state__exact=waiting", "The filter by state"),
        ("state__exact=delivered&presumed__exact=0", "Choose the state “presumed delivered”"),
        ("state__exact=parked&presumed__exact=1", "Choose the state “presumed delivered”"),
        ("o=1&_unknown=2", "cannot have all filters"),
    ],
)  # fmt: skip
def test_a_filter_wider_than_the_list_is_not_saved(query: str, why: str) -> None:
    ann = _member("ann", _team("shop"))
    answer = ann.post(f"{LOT}save", {"name": "x", "team": "", "page": "list", "query": query}, follow=True)
    text = unescape(answer.content.decode())
    assert "Not saved: " in text
    assert why in text
    assert SavedFilter.objects.count() == 0


def test_the_list_says_why_its_filter_cannot_be_saved() -> None:
    ann = _member("ann", _team("shop"))
    why = "This filter cannot be saved: A saved filter cannot have a key queue. Search for its ordering key instead."
    assert why in ann.get(f"{LIST}?lane=3&state__exact=parked").content.decode()
    twice = ann.get(f"{LIST}?dlq__id__exact=5&q=dlq:shop-dlq").content.decode()
    assert "This filter cannot be saved: The search and the other filters of this list both name a DLQ." in twice
    for saved_invalid_or_unasked in ("state__exact=parked", "q=unknown:", "lane=3"):
        assert "cannot be saved" not in ann.get(f"{LIST}?{saved_invalid_or_unasked}").content.decode()


def test_a_search_for_a_word_that_was_done_in_bodies_is_saved_as_such() -> None:
    team = _team("shop")
    ann = _member("ann", team, also=("view_payload",))
    form = _form(ann, SEARCH, "?q=declined")
    assert form == {"query": '"declined"', "page": "search"}


def test_who_sees_no_parked_messages_is_shown_a_saved_filter_in_the_list() -> None:
    team = _team("shop")
    _save(_member("ann", team), "late", team=team)
    _save(_member("cat", team), "mine", "assigned=cat", team=team)
    eve = _member("eve", team)
    eve_user = User.objects.get(username="eve")
    eve_user.user_permissions.set(Permission.objects.filter(codename="view_letter"))
    assert _shown(eve, at=LIST) == {"late": f"{LIST}?q=reason%3Astale&state__exact=parked"}


@pytest.mark.soak
def test_a_saved_filter_of_a_team_is_seen_by_the_team_only() -> None:
    shop, billing = _team("shop"), _team("billing")
    ann, bob, eve = _member("ann", shop), _member("bob", shop), _member("eve", billing)
    _save(ann, "late", team=shop)
    assert ([*_shown(ann)], [*_shown(bob)], [*_shown(eve)]) == (["late"], ["late"], [])
    User.objects.get(username="ann").groups.clear()
    assert _shown(ann) == {}


def test_nobody_saves_a_filter_for_another_team() -> None:
    shop, billing = _team("shop"), _team("billing")
    assert "Not saved" in _save(_member("ann", shop), "late", team=billing)
    assert SavedFilter.objects.count() == 0


@pytest.mark.parametrize(
    ("who", "deletes"), [("owner", True), ("member", False), ("with the right", True), ("other team", None)]
)
def test_an_own_filter_is_deleted_and_another_with_the_right(who: str, deletes: bool | None) -> None:
    shop, billing = _team("shop"), _team("billing")
    clients = {
        "owner": _member("ann", shop), "member": _member("bob", shop),
        "with the right": _member("cat", shop, also=("delete_savedfilter",)),
        "other team": _member("eve", billing, also=("delete_savedfilter",)),
    }  # fmt: skip
    _save(clients["owner"], "late", team=shop)
    row = SavedFilter.objects.get().pk
    answer = clients[who].post(UNSAVE, {"saved": row, "back": f"{LOT}?state=discarded"})
    assert answer.status_code == {True: 302, False: 403, None: 404}[deletes]
    assert SavedFilter.objects.exists() is (deletes is not True)
    assert deletes is not True or answer.headers["Location"] == f"{LOT}?state=discarded"
    shown = clients["owner"].get(LOT).content.decode()
    assert (f'name="saved" value="{row}"' in shown) is (deletes is not True)


@pytest.mark.parametrize("back", ["https://evil.example/", "//evil.example", "/admin/logout/"])
def test_a_deletion_leads_back_to_the_list_alone(back: str) -> None:
    ann = _member("ann", _team("shop"))
    _save(ann, "late")
    answer = ann.post(UNSAVE, {"saved": SavedFilter.objects.get().pk, "back": back})
    assert answer.headers["Location"] == LOT


def test_a_name_is_there_once_and_a_filter_must_be_one() -> None:
    ann = _member("ann", _team("shop"))
    _save(ann, "late")
    assert "A saved filter is named 'late'" in _save(ann, "late", "state=discarded")
    assert "There is no filter 'unknown'" in _save(ann, "other", "unknown=1")
    assert "Enter a name of 1 to 60 characters" in _save(ann, " ")
    assert SavedFilter.objects.count() == 1


def test_there_are_at_most_50(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saved_filters, "MOST", 1)
    ann = _member("ann", _team("shop"))
    _save(ann, "one")
    assert "There are 1 saved filters" in _save(ann, "two")


def test_values_of_a_saved_filter_are_encrypted_and_erased(rings: Rings) -> None:
    rings(OLD)
    ann = _member("ann", _team("shop"))
    _save(ann, "Ann's orders", "state=parked&field=order_id:4711&q=4711")
    row = SavedFilter.objects.get()
    assert [row.filter["fields"][0], row.filter["named"][0]] == ["\x1a", "\x1a"]
    assert _shown(ann) == {"Ann's orders": f"{LOT}?state=parked&q=4711&field=order_id%3A4711"}
    assert installation_texts.erase_filters("4711", erasure.ERASED, whole_values_only=None) == 2
    row.refresh_from_db()
    assert stored_filters.read_filter(row.filter).fields == (f"order_id:{erasure.ERASED}",)


def test_a_key_that_is_not_available_is_asked_for_once(rings: Rings, monkeypatch: pytest.MonkeyPatch) -> None:
    rings(OLD)
    ann, asked = _member("ann", _team("shop")), list[set[int]]()
    for name in ("a", "b", "d"):
        _save(ann, name, f"state=parked&q={name}")
    _save(ann, "c")

    def unavailable(ids: set[int]) -> NoReturn:
        asked.append(ids)
        raise PayloadKeyUnavailable("AWS KMS does not answer.")

    monkeypatch.setattr(payload_keys, "unwrapped_keys", unavailable)
    assert _shown(ann) == {"c": f"{LOT}?state=parked&reason=stale"}
    assert len(asked) == 1


def test_readable_filters_are_sealed_when_payloads_are_encrypted(rings: Rings) -> None:
    ann = _member("ann", _team("shop"))
    _save(ann, "late", "field=order_id:4711")
    assert SavedFilter.objects.get().filter["fields"] == "order_id:4711"
    rings(OLD)
    assert installation_texts.seal_texts() == 1
    criteria = stored_filters.read_filter(SavedFilter.objects.get().filter)
    assert criteria == MessageFilter(fields=("order_id:4711",))
