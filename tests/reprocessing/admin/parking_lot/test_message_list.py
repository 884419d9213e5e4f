from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from html import unescape
from typing import Any
from urllib.parse import urlencode

import pytest
from django.test import Client

from reprocessing.admin.parking_lot import message_list
from reprocessing.admin.parking_lot.decision import pack_messages
from reprocessing.domain.message.envelope import Attribute
from reprocessing.models import AuditAct, AuditEntry, BulkAction, Letter, Target
from reprocessing.pipeline.parking_lot import act_on_parked, run_bulk_actions
from reprocessing.store.ordering.lanes import database_now
from reprocessing.store.parking_lot import filtered_letters
from reprocessing.store.safety import stops
from reprocessing.store.search import filter_conditions
from tests.reprocessing.admin.parking_lot.parked_messages import (
    DECIDES,
    LOOKS,
    dlq,
    failure_group,
    parked,
    person,
    post,
    token,
)
from tests.reprocessing.admin.parking_lot.test_parking_lot import carried, messages, states

pytestmark = pytest.mark.django_db
LOT = "/admin/reprocessing/parkedletter/"
EVERYTHING = (*DECIDES, "assign_parkedletter", "export_letter", "view_bulkaction", "view_payload")
OF_A_FILTER = {"token": "0b5c2a3e-7d4e-4a57-9b7e-6a2f1f2b8a11"}


def listed(client: Client, **query: Any) -> list[str]:  # noqa: ANN401  what an address says
    page = client.get(LOT, query).content.decode()
    return [unescape(one) for one in re.findall(r'class="lot-id"><a href="[^"]*">([^<]*)</a>', page)]


def hidden(page: str, name: str) -> str:
    found = re.search(rf'name="{name}" value="([^"]*)"', page)
    assert found, name
    return unescape(found[1])


def pages(client: Client, query: str = "") -> Iterator[str]:
    while True:
        page = client.get(LOT + query).content.decode()
        yield page
        found = re.search(r'href="(\?[^"]*)" rel="next"', page)
        if found is None:
            return
        query = unescape(found[1])


def test_pages_show_each_message_once_newest_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(message_list, "SHOWN", 2)
    source = dlq()
    letters = [parked(source) for _ in range(5)]
    Letter.objects.filter(pk__in=[one.pk for one in letters[:2]]).update(finished_at=letters[0].finished_at)
    found = list(pages(person("ann", *LOOKS), f"?dlq={source.dlq_id}"))
    shown = [re.findall(r'class="lot-id"><a[^>]*>([^<]*)<', page) for page in found]
    ids = [one.message_id for one in letters]
    assert shown == [[ids[4], ids[3]], [ids[2], ids[1]], [ids[0]]]
    assert ["First page" in page for page in found] == [False, True, True]
    assert {re.search(r"<strong>([\d,+]+)</strong> parked", page)[1] for page in found} == {"5"}  # type: ignore[index]


def test_a_count_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filtered_letters, "MAX_COUNT", 3)
    monkeypatch.setattr(message_list, "SHOWN", 2)
    source = dlq()
    for _ in range(5):
        parked(source)
    assert "<strong>3+</strong>" in person("ann", *LOOKS).get(LOT).content.decode()


@pytest.mark.soak
def test_every_filter_of_the_page_narrows_the_list() -> None:
    here, there = dlq("here"), dlq("there")
    one, other = parked(here, reason="stale", key="a", body=b"card"), parked(there, reason="refused", key="b")
    group = failure_group(here)
    Letter.objects.filter(pk=one.pk).update(
        group=group, assigned_to="ben", first_sent_at=database_now() - timedelta(days=2)
    )
    client = person("ann", *EVERYTHING)
    asked: tuple[dict[str, Any], ...] = (
        {"dlq": here.dlq_id}, {"dlq__id__exact": here.dlq_id}, {"reason": "stale"}, {"reason__exact": "stale"},
        {"q": "a"}, {"q": one.message_id}, {"q": str(one.public_id)},
        {"group": group.pk}, {"assigned": "ben"}, {"text": "card"}, {"source": here.pk}, {"key": "a"},
        {"sent_before": (database_now() - timedelta(days=1)).isoformat()},
        {"target": one.target_id, "parked_after": "2020-01-01T00:00"},
    )  # fmt: skip
    for query in asked:
        assert listed(client, **query) == [one.message_id], query
    assert set(listed(client)) == {one.message_id, other.message_id}
    assert listed(client, assigned="-") == [other.message_id]
    assert "failure group: KeyError" in client.get(LOT, {"group": group.pk}).content.decode()


@pytest.mark.soak
def test_invalid_filter_lists_nothing() -> None:
    parked(dlq())
    client = person("ann", *LOOKS)
    refused: tuple[tuple[dict[str, Any], str], ...] = (
        ({"dlq": "x"}, "takes the number of an id"), ({"colour": "red"}, "There is no filter"),
        ({"state": "waiting"}, "in progress"), ({"after": "x"}, "Go to the first page."),
    )  # fmt: skip
    for query, sentence in refused:
        answer = client.get(LOT, query)
        assert (answer.status_code, sentence in answer.content.decode(), listed(client, **query)) == (200, True, [])


@pytest.mark.soak
def test_body_search_takes_the_permission_everywhere() -> None:
    parked(dlq(), body=b"4111-canary")
    client = person("ann", *DECIDES, "export_letter", "assign_parkedletter")
    assert client.get(LOT, {"text": "4111"}).status_code == 403
    given = {"csrfmiddlewaretoken": token(client, "/admin/password_change/"), "query": "text=4111", "scope": "all"}
    sent = OF_A_FILTER | {"opened": database_now().isoformat(), "reason": "x", "kind": "csv"}
    for action in ("release", "discard", "assign", "note", "export"):
        for more in ({}, sent):
            assert client.post(LOT + action, given | more).status_code == 403
    assert "you may not see payloads" in client.get(LOT).content.decode()


@pytest.mark.soak
def test_the_list_of_discarded_letters_offers_to_restore_them() -> None:
    source = dlq()
    chosen, other = parked(source), parked(source, reason="stale")
    act_on_parked.discard([chosen.pk, other.pk], by="ann", reason="test data")
    client = person("ben", *DECIDES)
    page = client.get(LOT, {"state": "discarded"}).content.decode()
    assert set(re.findall(r'formaction="([^"]*)"', page)) == {f"{LOT}restore"}
    pick = re.search(rf'value="({chosen.pk}@\d+@0)"', page)
    assert pick
    page = post(client, LOT + "restore", scope="ticked", pick=pick[1], query="state=discarded")
    done = post(client, LOT + "restore", letters=carried(page), query=hidden(page, "query"), reason="they are needed")
    assert messages(done) == ["1 message restored to the parking lot."]
    assert states(chosen, other) == ["parked", "discarded"]
    assert AuditEntry.objects.filter(letter=chosen).latest("id").act == AuditAct.RESTORED


@pytest.mark.soak
def test_ticked_letters_are_released_at_a_time_and_to_another_target() -> None:
    source, there = dlq(), dlq("there")
    letter = parked(source)
    client = person("ann", *DECIDES)
    pick = pack_messages([letter])
    page = post(client, LOT + "release", scope="ticked", pick=pick, how="to")
    assert ["id_due" in page, "id_target" in page] == [True, True]
    due = (database_now() + timedelta(hours=2)).replace(second=0, microsecond=0)
    given = {"letters": carried(page), "how": "to", "target": there.target_id, "reason": "they take it"}
    assert "Enter a future time" in post(client, LOT + "release", **given, due="2020-01-01T00:00")
    post(client, LOT + "release", **given, due=f"{due:%Y-%m-%dT%H:%M}")
    letter.refresh_from_db()
    assert (letter.state, letter.due_at, letter.target_id) == ("waiting", due, there.target_id)


def test_a_queue_that_is_watched_is_no_target_to_be_released_to() -> None:
    watched = dlq("watched").dlq
    Target.objects.create(arn=watched.arn, url=watched.url, region="us-east-1")
    letter = parked(dlq())
    page = post(person("ann", *DECIDES), LOT + "release", letters=pack_messages([letter]), how="to")
    assert re.findall(r'<option value="\d+">([^<]*)</option>', page) == ["shop-dlq-source", "watched-source"]


@pytest.mark.soak
def test_second_assignment_names_the_first() -> None:
    letter = parked(dlq())
    ann, ben = person("ann", *EVERYTHING), person("ben", *EVERYTHING)
    seen = pack_messages([letter])
    was = [hidden(post(one, LOT + "assign", letters=seen), "assigned") for one in (ann, ben)]
    done = post(ann, LOT + "assign", letters=seen, assigned=was[0], to="ann", reason="mine")
    assert "1 message assigned to ann." in done
    late = post(ben, LOT + "assign", letters=seen, assigned=was[1], to="ben", reason="mine, too")
    assert "Nothing was done." in late
    assert "it is now assigned to ann. Last action: assigned by ann," in late
    again = post(ann, LOT + "assign", letters=seen, assigned=was[0], to="ann", reason="mine")
    assert "Nothing was done." in again
    was[0] = hidden(post(ann, LOT + "assign", letters=seen), "assigned")
    assert "1 message assigned to nobody." in post(
        ann, LOT + "assign", letters=seen, assigned=was[0], to="", reason="no"
    )
    lost = post(ben, LOT + "assign", letters=seen, to="ben", reason="I saw nothing")
    assert "The page is incomplete." in lost
    assert [one.by for one in AuditEntry.objects.order_by("id")] == ["ann", "ann"]


@pytest.mark.soak
@pytest.mark.parametrize("whole", [False, True])
def test_release_warns_of_stops(whole: bool) -> None:
    letter = parked(dlq())
    ann = person("ann", *EVERYTHING)
    stops.stop(letter.dlq_id, by="ben", reason="it burns")
    stops.stop(None, by="eve", reason="\u202eall of it")
    given = {"scope": "all"} if whole else {"letters": pack_messages([letter])}
    first = post(ann, LOT + "release", **given)
    then = {name: hidden(first, name) for name in ("token", "opened")} if whole else given
    for page in (first, post(ann, LOT + "release", reason="mended", **then)):
        assert "shop-dlq is stopped by ben (&quot;it burns&quot;): released messages stay queued until" in page
        assert "Everything is stopped by eve (&quot;&lt;U+202E&gt;all of it&quot;)" in page
    assert "is stopped by" not in post(ann, LOT + "discard", letters=given.get("letters", "1@1@0"))


@pytest.mark.soak
def test_ticked_letters_are_assigned_and_noted() -> None:
    letter = parked(dlq())
    client = person("ann", *EVERYTHING)
    person("ben")
    seen = pack_messages([letter])
    first = post(client, LOT + "assign", letters=seen)
    assert "nobody</option>" in first
    was = hidden(first, "assigned")
    post(client, LOT + "assign", letters=seen, assigned=was, to="ben", reason="he knows the supplier")
    who = post(client, LOT + "assign", letters=seen, assigned=was, to="nemo", reason="who is that")
    assert "Select a valid choice" in who
    opened = hidden(post(client, LOT + "note", letters=seen), "opened")
    once, twice = (
        post(client, LOT + "note", letters=seen, opened=opened, reason="asked <b>them</b>") for _ in range(2)
    )
    told = "it has this note already" in once, "it has this note already" in twice
    assert told == (False, True)
    found = AuditEntry.objects.order_by("id").values_list("act", "by", "reason")
    assert list(found) == [("assigned", "ann", "he knows the supplier"), ("noted", "ann", "asked <b>them</b>")]
    assert listed(client, assigned="ben") == [letter.message_id]


def test_empty_selection_does_nothing() -> None:
    letter = parked(dlq())
    done = post(person("ann", *DECIDES), LOT + "discard", scope="ticked", query="reason=attempts_spent")
    assert messages(done) == ["Nothing was done: select messages, or choose all that match the filter."]
    assert states(letter) == ["parked"]


@pytest.mark.soak
def test_all_that_match_become_one_bulk_action() -> None:
    here, there = dlq("here"), dlq("there")
    meant, other = [parked(here), parked(here, reason="stale")], parked(there)
    client = person("ann", *EVERYTHING)
    page = post(client, LOT + "discard", scope="all", query=urlencode({"dlq": here.dlq_id}))
    assert "all 2</strong> parked messages of the DLQ here" in page
    assert re.findall(r"<li><b>1</b> <span>(here: [^<]*)</span>", page) == [
        "here: All attempts failed",
        "here: Later message of the ordering key already delivered",
    ]
    names = ("query", "token", "opened", "previewed")
    given = {name: hidden(page, name) for name in names} | {"reason": "test data"}
    assert states(*meant) == ["parked", "parked"]
    for _ in range(2):
        assert "No worker has started the bulk action yet" not in post(client, LOT + "discard", **given)
    operation = BulkAction.objects.get()
    assert (operation.asked, operation.by, operation.reason) == (2, "ann", "test data")
    run_bulk_actions.run_bulk_action(operation.pk, seconds=9)
    assert states(*meant, other) == ["discarded", "discarded", "parked"]


def test_filter_of_another_state_is_refused() -> None:
    parked(dlq())
    client = person("ann", *EVERYTHING)
    page = post(client, LOT + "discard", scope="all", query="state=discarded")
    assert "This is only for parked messages." in page
    given = OF_A_FILTER | {"opened": database_now().isoformat(), "reason": "because"}
    page = post(client, LOT + "restore", query="", **given)
    assert ("This is only for discarded messages." in page, BulkAction.objects.count()) == (True, False)


def test_body_search_is_limited_and_acts_only_if_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    source = dlq()
    letters = [parked(source, body=b"card", attributes={"n": Attribute("String", "1")}) for _ in range(3)]
    client = person("ann", *EVERYTHING)
    assert len(listed(client, text="card")) == 3
    monkeypatch.setattr(filter_conditions, "SEARCHED_LETTERS", 2)
    assert listed(client, text="card") == [letters[2].message_id, letters[1].message_id]
    page = post(client, LOT + "discard", scope="all", query="text=card")
    assert "A text is searched for only in the newest 2 messages, and there are more." in page
    given = OF_A_FILTER | {"query": "text=card", "opened": database_now().isoformat(), "reason": "because"}
    assert "there are more" in post(client, LOT + "discard", **given)
    assert BulkAction.objects.count() == 0


def test_slow_search_is_ended_and_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    parked(dlq())
    monkeypatch.setattr(filter_conditions, "_SEARCH_TIMEOUT_MS", 20)
    monkeypatch.setitem(filter_conditions._CONDITIONS, "key", "pg_sleep(1) IS NOT NULL")
    answer = person("ann", *LOOKS).get(LOT, {"key": "a"})
    assert (answer.status_code, "Narrow the filter by DLQ, group or dates." in answer.content.decode()) == (200, True)
