"""People merge groups, split them again, and rename them."""

from __future__ import annotations

import pytest
from django.test import Client

from reprocessing.admin.parking_lot import failure_group_merging
from reprocessing.domain.lifecycle import LetterState
from reprocessing.domain.parking_lot.message_filter import MessageFilter
from reprocessing.models import AuditEntry, FailureGroup, Letter, Source
from reprocessing.store.parking_lot import export, failure_group_pages, failure_group_review
from reprocessing.store.search import open_messages
from tests.reprocessing.admin.parking_lot.parked_messages import LOOKS, dlq, parked, person, post
from tests.reprocessing.admin.parking_lot.parked_messages import failure_group as group

pytestmark = pytest.mark.django_db

LIST = "/admin/reprocessing/failuregroup/"
CAPTURED = {"state": "captured", "reason": "", "finished_at": None}
MERGES = (*LOOKS, "view_failuregroup", "change_failuregroup")


@pytest.fixture
def ann() -> Client:
    return person("ann", *MERGES)


@pytest.fixture
def shop() -> Source:
    return dlq("shop")


def merge(client: Client, into: FailureGroup, *others: FailureGroup, reason: str = "one webhook") -> str:
    picks = "&".join(f"pick={one.pk}" for one in (into, *others))
    return post(client, f"{LIST}merge?{picks}", into=into.pk, seen="x", reason=reason)


def listed() -> list[tuple[str, int, int]]:
    return [(row.title, row.parked, row.merged) for row in failure_group_pages.group_page(limit=9, order="title")]


def member(of: FailureGroup, source: Source) -> Letter:
    letter = parked(source)
    Letter.objects.filter(pk=letter.pk).update(group=of)
    return letter


@pytest.mark.soak
def test_merged_groups_are_one_row_with_the_messages_of_all_and_a_record_of_who_and_why(
    ann: Client, shop: Source
) -> None:
    a, b, c = (group(shop, title) for title in "abc")
    letters = [member(one, shop) for one in (a, b, b)]
    assert "Merged: 2 groups are one group." in merge(ann, a, b)
    assert listed() == [("a", 3, 1), ("c", 0, 0)]
    told = {entry.group_id: (entry.by, entry.reason, entry.after) for entry in AuditEntry.objects.all()}
    assert told == {
        a.pk: ("ann", "one webhook", {"merged groups": str(b.pk)}),
        b.pk: ("ann", "one webhook", {"merged into group": str(a.pk)}),
    }
    page = ann.get(f"{LIST}{a.pk}/change/").content.decode()
    assert [letter.message_id in page for letter in letters] == [True, True, True]
    lot = ann.get(f"/admin/reprocessing/parkedletter/?group={a.pk}").content.decode()
    assert lot.count('class="lot-id"') == 3
    everything = ann.get(f"/admin/reprocessing/letter/?group__in={a.pk},{b.pk}")
    assert everything.context["cl"].result_count == 3
    assert ann.get(f"{LIST}{b.pk}/change/").headers["Location"] == f"{LIST}{a.pk}/change/"
    merge(ann, c, a)  # and what is merged into it comes along
    assert listed() == [("c", 3, 2)]
    assert [(row.title, row.n) for row in failure_group_review.largest_groups(5)] == [("c", 3)]


@pytest.mark.soak
def test_numbers_of_a_group_with_more_parts_than_its_page_names_lead_to_the_messages_of_all_parts(
    ann: Client, shop: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(failure_group_merging, "MOST", 2)
    root, *parts = (group(shop, title) for title in "abcde")
    letters = [member(one, shop) for one in (root, *parts)]
    Letter.objects.filter(pk__in=[letter.pk for letter in letters]).update(**CAPTURED)
    FailureGroup.objects.filter(pk__in=[part.pk for part in parts]).update(merged_into=root)
    page = ann.get(f"{LIST}{root.pk}/change/")
    assert [letter.pk for letter, _, _ in page.context["letters"]] == sorted((one.pk for one in letters), reverse=True)
    card = page.context["card"]
    for address in (card["captured_address"], card["letters_address"]):
        assert ann.get(address).context["cl"].result_count == card["numbers"].captured == 5
    after = ann.get(f"{LIST}{root.pk}/change/?after={letters[2].pk}")
    assert [letter.pk for letter, _, _ in after.context["letters"]] == [letters[1].pk, letters[0].pk]
    for odd, found in ((f"group={parts[0].pk}", 1), (f"group={10**17}", 0)):
        assert ann.get(f"/admin/reprocessing/letter/?{odd}", follow=True).context["cl"].result_count == found


def test_a_message_is_shown_with_the_name_of_the_group_that_its_group_is_merged_into(ann: Client, shop: Source) -> None:
    root, part = group(shop, "JSON with a", name="Orders"), group(shop, "JSON with b")
    letter = member(part, shop)
    merge(ann, root, part)
    assert 'change/">Orders</a>' in ann.get(f"/admin/reprocessing/letter/{letter.pk}/change/").content.decode()
    bound = export.current_bound()
    assert [one.group for one in export.export_letters(MessageFilter(group=root.pk), bound, bodies=False)] == ["Orders"]
    Letter.objects.filter(pk=letter.pk).update(**CAPTURED)
    found = open_messages.open_page(MessageFilter(states=(LetterState.CAPTURED,)), below=None, limit=9).letters
    assert [(one.group_id, one.cause) for one in found] == [(root.pk, "Orders")]


@pytest.mark.soak
def test_a_group_is_split_again_as_it_was(ann: Client, shop: Source) -> None:
    a, b, c = (group(shop, title) for title in "abc")
    for one in (a, b, b, c):
        member(one, shop)
    before = listed()
    merge(ann, a, b, c)
    there = f"{LIST}{a.pk}/split"
    assert "Split off: 1 group." in post(ann, there, parts=[b.pk], seen="2", reason="two webhooks")
    assert listed() == [("a", 2, 1), ("b", 2, 0)]
    assert "Split off: 1 group." in post(ann, there, parts=[c.pk], seen="1", reason="three")
    assert listed() == before
    assert "Nothing is merged into this group." in ann.get(there).content.decode()
    assert AuditEntry.objects.filter(group=a, reason="two webhooks").get().before == {"merged groups": str(b.pk)}


def test_groups_of_two_dlqs_or_a_single_one_are_not_merged(ann: Client, shop: Source) -> None:
    a, far = group(shop, "a"), group(dlq("mail"), "far")
    assert "belong to several DLQs" in merge(ann, a, far)
    assert "Select two or more groups" in merge(ann, a)
    assert "Select two or more groups" in ann.get(f"{LIST}merge?pick=x&pick=-1").content.decode()
    assert ann.get(f"{LIST}merge?pick={a.pk}&pick=999999").status_code == 404
    assert not FailureGroup.objects.exclude(merged_into=None).exists()


def test_a_group_that_was_merged_meanwhile_is_not_merged_again(ann: Client, shop: Source) -> None:
    a, b, c = (group(shop, title) for title in "abc")
    merge(ann, a, b)
    assert "Another person merged or deleted one of the groups." in merge(ann, c, b)
    assert listed() == [("a", 0, 1), ("c", 0, 0)]


def test_a_new_title_is_shown_and_recorded_and_can_be_taken_back(ann: Client, shop: Source) -> None:
    ours = group(shop, "JSON with a")
    there = f"{LIST}{ours.pk}/rename"

    def rename(name: str, seen: str = "-") -> str:
        return post(ann, there, name=name, seen=seen, reason="plain words")

    assert "control characters" in rename("a\u202eb")
    assert "Renamed." in rename("Orders without a city")
    assert [row[0] for row in listed()] == ["Orders without a city"]
    entry = AuditEntry.objects.get()
    assert (entry.by, entry.reason) == ("ann", "plain words")
    assert (entry.before, entry.after) == ({"title": "JSON with a"}, {"title": "Orders without a city"})
    assert "Another person renamed the group" in rename("Cities")
    assert "Renamed." in rename("", seen="-Orders without a city")
    assert FailureGroup.objects.get().name == ""


@pytest.mark.parametrize("page", ["merge", "{}/split", "{}/rename"])
def test_it_takes_the_permission_to_change_groups(shop: Source, page: str) -> None:
    ben = person("ben", *MERGES[:-1])
    there = f"{LIST}{page.format(group(shop).pk)}"
    assert ben.get(there).status_code == 403
