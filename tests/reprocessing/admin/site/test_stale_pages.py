"""Decisions apply to what the page showed; later and changed messages are skipped."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.test import Client

from reprocessing.admin.parking_lot.decision import pack_messages
from reprocessing.models import AuditEntry, BulkAction, Letter
from reprocessing.pipeline.parking_lot import act_on_parked, run_bulk_actions
from reprocessing.store.ordering.lanes import database_now
from reprocessing.store.parking_lot import merged_groups
from tests.reprocessing.admin.parking_lot.parked_messages import DECIDES, dlq, failure_group, parked, person, post
from tests.reprocessing.admin.parking_lot.test_export_page import edited
from tests.reprocessing.admin.parking_lot.test_message_list import EVERYTHING, LOT, OF_A_FILTER, hidden
from tests.reprocessing.admin.parking_lot.test_parking_lot import carried, messages, states

pytestmark = pytest.mark.django_db


def all_that_match(client: Client, action: str = "discard") -> dict[str, str]:
    """What the page of a decision about a filter carries."""
    return _of_a_filter(post(client, LOT + action, scope="all", query="reason=attempts_spent"))


def _of_a_filter(page: str) -> dict[str, str]:
    return {name: hidden(page, name) for name in ("query", "token", "opened", "previewed")}


def begun() -> BulkAction:
    operation = BulkAction.objects.latest("id")
    run_bulk_actions.run_bulk_action(operation.pk, seconds=9)
    operation.refresh_from_db()
    return operation


@pytest.mark.parametrize("action", ["release", "discard"])
def test_later_messages_are_not_in_a_bulk_action(action: str) -> None:
    source = dlq()
    shown, anew = parked(source), parked(source)
    client = person("ann", *EVERYTHING)
    given = all_that_match(client, action) | {"previewed": "1"}  # else it is refused: fewer match than were previewed
    late = parked(source)
    Letter.objects.filter(pk=anew.pk).update(finished_at=database_now())
    post(client, LOT + action, **given, reason="test data")
    operation = begun()
    assert (operation.asked, operation.done, operation.letters_skipped) == (1, 1, 0)
    assert states(anew, late) == ["parked", "parked"]
    assert states(shown) != ["parked"]


def test_bulk_action_is_refused_if_another_person_acted_first() -> None:
    source = dlq()
    letters = [parked(source) for _ in range(3)]
    client = person("ann", *EVERYTHING)
    given = all_that_match(client)
    act_on_parked.release([letter.pk for letter in letters[:2]], by="ben", reason="mended")
    some = post(client, LOT + "discard", **given, reason="test data")
    told = re.search(r"</strong> (3 were previewed, .*?) UTC\. The messages that match now are below", some)
    assert told
    assert re.sub(r"[\d:]{8}$", "T", told[1]) == (
        "3 were previewed, only 1 is unchanged and parked: ben released 2 at T"
    )
    act_on_parked.release([letters[2].pk], by="cleo", reason="mended")
    none = post(client, LOT + "discard", **_of_a_filter(some), reason="test data")
    assert re.search(r"1 was previewed, none is parked any more: cleo released 1 at [\d:]{8} UTC\.", none)
    assert ('type="submit" class="default' in none, BulkAction.objects.count()) == (False, 0)
    empty = post(client, LOT + "release", scope="all", query="reason=attempts_spent")
    assert ("No message matches now: parked messages" in empty, 'class="actions"' in empty) == (True, False)


def test_bulk_action_is_refused_if_a_message_was_edited_after_the_preview() -> None:
    letter = parked(dlq())
    client = person("ann", *EVERYTHING)
    given = all_that_match(client)
    edited(letter, b"{}", "new")
    assert "1 was previewed, none is" in post(client, LOT + "discard", **given, reason="test data")
    assert (BulkAction.objects.count(), states(letter)) == (0, ["parked"])


def test_a_group_merged_after_the_page_was_opened_is_not_discarded_with_it() -> None:
    source = dlq()
    group, other = failure_group(source, "a"), failure_group(source, "b")
    letters = [parked(source) for _ in range(3)]
    at = database_now()
    Letter.objects.filter(pk=letters[0].pk).update(group=group, grouped_at=at)
    Letter.objects.filter(pk__in=[letter.pk for letter in letters[1:]]).update(group=other, grouped_at=at)
    client = person("ann", *EVERYTHING)
    given = _of_a_filter(post(client, LOT + "discard", scope="all", query=f"group={group.pk}"))
    assert merged_groups.merge_groups([other.pk], into=group.pk, by="ben", reason="one cause") == ""
    post(client, LOT + "discard", **given, reason="test data")
    assert (begun().asked, states(*letters)) == (1, ["discarded", "parked", "parked"])


def test_more_messages_than_are_counted_match_a_bulk_action(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reprocessing.store.parking_lot.filtered_letters.MAX_COUNT", 1)
    monkeypatch.setattr("reprocessing.store.parking_lot.bulk_actions.MAX_COUNT", 1)
    source = dlq()
    letters = [parked(source) for _ in range(3)]
    client = person("ann", *EVERYTHING)
    given = all_that_match(client)
    post(client, LOT + "discard", **given, reason="test data")
    assert (given["previewed"], begun().asked, states(*letters)) == ("2", 3, ["discarded"] * 3)


def test_redisplayed_page_counts_again() -> None:
    source = dlq()
    letters = [parked(source)]
    client = person("ann", *EVERYTHING)
    given = all_that_match(client)
    letters.append(parked(source))
    again = post(client, LOT + "discard", **given, reason=" ")
    assert ("This field is required." in again, "all 2</strong> parked messages" in again) == (True, True)
    post(client, LOT + "discard", **_of_a_filter(again), reason="test data")
    assert (begun().asked, states(*letters)) == (2, ["discarded", "discarded"])


@pytest.mark.parametrize("opened", [None, "", "yesterday", "2026-03-01T08:00", "0001-01-01T00:00+14:00", "\0"])
def test_bulk_action_without_time_is_shown_again(opened: str | None) -> None:
    letter = parked(dlq())
    client = person("ann", *DECIDES)
    said = {} if opened is None else {"opened": opened}
    page = post(client, LOT + "discard", **OF_A_FILTER, **said, query="", reason="test data")
    assert ('class="errorlist"' in page, BulkAction.objects.count(), states(letter)) == (True, 0, ["parked"])
    assert hidden(page, "opened") > (database_now() - timedelta(minutes=5)).isoformat()


def test_future_time_means_now() -> None:
    source = dlq()
    parked(source)
    client = person("ann", *EVERYTHING)
    to_come = (database_now() + timedelta(days=1)).isoformat()
    post(client, LOT + "discard", **OF_A_FILTER, opened=to_come, previewed=1, query="", reason="test data")
    late = parked(source)
    assert (begun().asked, states(late)) == (1, ["parked"])


@pytest.mark.soak
@pytest.mark.parametrize("action", ["release", "discard"])
@pytest.mark.parametrize("desk", ["list", "letter"])
def test_edited_message_is_skipped(action: str, desk: str) -> None:
    letter = parked(dlq(), body=b"captured")
    client = person("ben", *DECIDES)

    def seen() -> str:
        if desk == "letter":
            return carried(client.get(f"{LOT}{letter.pk}/change/").content.decode())
        return hidden(client.get(LOT).content.decode(), "pick")

    before = seen()
    edited(letter, b"made", "new")
    told = messages(post(client, LOT + action, letters=before, reason="mended"))
    assert (told[0], states(letter)) == ("Nothing was done.", ["parked"])
    assert re.sub(r"[\d:]{8}", "TIME", told[1]) == (
        f"Message {letter.message_id} was skipped: it was edited after you opened the page; check it again. "
        "Last action: edited by bob, TIME UTC (a typo)."
    )
    post(client, LOT + action, letters=seen(), reason="mended")
    assert states(letter) != ["parked"]


def test_skip_reason_names_who_moved_the_message() -> None:
    letter = parked(dlq())
    seen = pack_messages([letter])
    act_on_parked.discard([letter.pk], by="ann", reason="test data")
    for act in ("revealed", "noted", "assigned"):
        AuditEntry.objects.create(act=act, letter=letter, dlq=letter.dlq, by="carol", reason="a look")
    for action in ("release", "discard"):
        told = messages(post(person(f"ben-{action}", *DECIDES), LOT + action, letters=seen, reason="mended"))
        assert re.findall(r"Last action: (\w+) by (\w+)", told[1]) == [("discarded", "ann")]
