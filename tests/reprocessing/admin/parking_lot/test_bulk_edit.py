"""A person edits all messages of a filter, or selected ones, after a preview; who may not see payloads may not."""

from __future__ import annotations

import re
from html import unescape

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.test import Client

from reprocessing.admin.parking_lot import edit_examples
from reprocessing.models import Approval, AuditEntry, BulkAction, DeadLetterQueue, Letter, Revision
from reprocessing.pipeline.parking_lot import act_on_parked, run_bulk_actions
from tests.reprocessing.admin.parking_lot.parked_messages import LOOKS, dlq, parked, person, post, token
from tests.reprocessing.admin.parking_lot.test_parking_lot import messages
from tests.reprocessing.payload_rings import Rings, encrypted, rings

__all__ = ["encrypted", "rings"]

pytestmark = pytest.mark.django_db

ADDRESS = "/admin/reprocessing/parkedletter/edit-all"
EDITS = (*LOOKS, "view_payload", "edit_parkedletter", "view_bulkaction")
PATCH = '[{"op": "replace", "path": "/country", "value": "DE"}]'
BODY = b'{"country": "FR", "card": "4111"}'


@pytest.fixture
def ann() -> Client:
    return person("ann", *EDITS)


def _previewed(page: str) -> str:
    return unescape(re.findall(r'name="previewed" value="([^"]*)"', page)[0])


def _look(client: Client, patch: str = PATCH, **given: object) -> str:
    return post(client, ADDRESS, **{"scope": "all", "query": "", "patch": patch, "look": "1", **given})


def _do(client: Client, page: str, **given: object) -> str:
    said = {"previewed": _previewed(page), "do": "1", "reason": "wrong country", "then": "keep"}
    return post(client, ADDRESS, **{**said, **given})


def _lines(page: str) -> list[str]:
    found = re.findall(
        r'<div class="(?:put-in|taken-out)"><span class="mark">(.)</span><span class="text">(.*?)</span>', page
    )
    return [mark + unescape(text).strip() for mark, text in found]


def _text(page: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", page)).split())


def _run() -> BulkAction:
    operation = BulkAction.objects.latest("id")
    run_bulk_actions.run_bulk_action(operation.pk, seconds=9)
    operation.refresh_from_db()
    return operation


def test_all_messages_of_a_filter_are_previewed_and_then_edited_by_a_bulk_action(ann: Client) -> None:
    source, other = dlq(), dlq("other")
    letters = [parked(source, body=BODY) for _ in range(2)]
    parked(source, body=b"<xml/>")
    parked(other, body=BODY)
    form = post(ann, ADDRESS, scope="all", query=f"dlq={source.dlq_id}")
    assert "Edit the JSON body of all 3 parked messages of the DLQ shop-dlq" in _text(form)
    page = _look(ann, query=f"dlq={source.dlq_id}")
    assert "The patch applies to 2 of 3 checked messages" in _text(page)
    assert "1 it is not JSON for example" in _text(page)
    assert _lines(page)[:2] == ['-"country": "FR",', '+"country": "DE",']
    assert not BulkAction.objects.exists()
    done = _do(ann, page)
    assert "Edit messages" in done
    assert "replace /country" in done
    operation = _run()
    assert (operation.done, operation.letters_skipped, operation.by) == (2, 1, "ann")
    edited = Revision.objects.order_by("letter").values_list("letter", flat=True)
    assert list(edited) == [letter.pk for letter in letters]


def test_nothing_is_edited_if_somebody_changed_a_message_after_the_preview(ann: Client) -> None:
    source = dlq()
    one, _ = (parked(source, body=BODY) for _ in range(2))
    page = _look(ann)
    act_on_parked.discard([one.pk], by="bob", reason="obsolete")
    again = _do(ann, page)
    assert "Nothing was done: 2 were previewed, only 1 is unchanged and parked: bob discarded 1 at" in _text(again)
    assert not BulkAction.objects.exists()
    _do(ann, again)
    assert (_run().asked, Revision.objects.count()) == (1, 1)


@pytest.mark.soak
def test_nothing_is_edited_if_more_messages_match_than_the_preview_showed(ann: Client) -> None:
    source = dlq()
    shown, other = (parked(source, body=BODY) for _ in range(2))
    Letter.objects.filter(pk=shown.pk).update(assigned_to="cleo")
    page = _look(ann, query="assigned=cleo")
    Letter.objects.filter(pk=other.pk).update(assigned_to="cleo")
    again = _do(ann, page)
    assert "Nothing was done: 1 was previewed, but 2 match now: messages were added to the filter" in _text(again)
    assert not BulkAction.objects.exists()
    _do(ann, again)
    assert (_run().asked, Revision.objects.count()) == (2, 2)


@pytest.mark.soak
def test_only_selected_messages_are_edited(ann: Client) -> None:
    source = dlq()
    one, two, _ = (parked(source, body=BODY) for _ in range(3))
    picked = [f"{letter.pk}@0@0" for letter in (one, two)]
    form = post(ann, ADDRESS, scope="ticked", pick=picked, query="")
    assert "all 2 parked messages that were selected" in _text(form)
    (letters,) = re.findall(r'name="letters" value="([^"]*)"', form)
    page = post(ann, ADDRESS, letters=letters, query="", patch=PATCH, look="1")
    _do(ann, page)
    assert (_run().asked, set(Revision.objects.values_list("letter", flat=True))) == (2, {one.pk, two.pk})


def test_one_field_is_changed_without_writing_a_patch(ann: Client) -> None:
    parked(dlq(), body=b'{"price": 1, "country": "FR"}')
    page = _look(ann, patch="", op="replace", path="/price", value="100000000000000000000.10")
    assert _lines(page) == ['-"price": 1,', '+"price": 100000000000000000000.10,']


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"patch": ""}, "Enter a path, or a JSON Patch."), ({"path": "/a"}, "not both"),
        ({"patch": "{"}, "The patch cannot be read"), ({"patch": "", "path": "a"}, "does not begin with /"),
        ({"patch": '[{"op": "test", "path": "/a", "value": 1}]'}, "only has tests"),
    ],
    ids=["nothing", "both", "broken", "path", "tests"],
)  # fmt: skip
def test_a_form_that_is_no_edit_says_why_and_keeps_what_was_written(
    ann: Client, given: dict[str, str], why: str
) -> None:
    parked(dlq(), body=BODY)
    page = _look(ann, **{"patch": PATCH, **given})
    assert why in unescape(page)
    assert 'name="previewed"' not in page


def test_a_patch_that_fits_nothing_cannot_be_confirmed(ann: Client) -> None:
    parked(dlq(), body=b"{}")
    page = _look(ann)
    assert ("The patch applies to none of 1 checked message" in _text(page), 'name="do"' in page) == (True, False)
    assert _field_text(post(ann, ADDRESS, previewed=_previewed(page), back="1")) == PATCH


def _field_text(page: str) -> str:
    return unescape(re.findall(r'<textarea name="patch"[^>]*>\s*(.*?)</textarea>', page, re.DOTALL)[0])


@pytest.mark.soak
def test_a_preview_is_for_one_person_and_starts_one_bulk_action(ann: Client) -> None:
    parked(dlq(), body=BODY)
    page = _look(ann)
    assert "belongs to somebody else" in _do(person("ben", *EDITS), page)
    assert not BulkAction.objects.exists()
    _do(ann, page)
    again = _do(ann, page)
    assert ("this page was submitted before" in again, BulkAction.objects.count()) == (True, 1)


@pytest.mark.soak
def test_who_may_not_release_keeps_the_messages_parked(ann: Client) -> None:
    parked(dlq(), body=BODY)
    page = _look(ann)
    assert 'value="replay"' not in page
    _do(ann, page, then="replay")
    assert not BulkAction.objects.exists()
    ben = person("ben", *EDITS, "release_parkedletter")
    _do(ben, _look(ben), then="replay")
    _run()
    assert Letter.objects.get().state == "waiting"


@pytest.mark.parametrize("missing", ["view_payload", "edit_parkedletter", "view_parkedletter"])
def test_it_takes_the_permissions_to_edit_and_to_see_payloads(missing: str) -> None:
    parked(dlq(), body=BODY)
    client = person("zoe", *(set(EDITS) - {missing}))
    given = {"csrfmiddlewaretoken": token(client, "/admin/password_change/"), "scope": "all", "query": ""}
    assert client.post(ADDRESS, given).status_code == 403


def test_masked_fields_take_the_permission_to_reveal_and_stay_masked_in_the_preview(ann: Client) -> None:
    source = dlq()
    DeadLetterQueue.objects.update(masked_fields=["card"])
    parked(source, body=BODY)
    move = '[{"op": "move", "from": "/card", "path": "/note"}]'
    refused = _look(ann, patch=move)
    assert ("could reveal masked values" in _text(refused), "4111" in refused) == (True, False)
    zoe = person("zoe", *EDITS, "reveal_payload")
    page = _look(zoe, patch='[{"op": "replace", "path": "/card", "value": "4222"}]')
    assert ("[masked]" in page or "The changed value is masked" in page, "4111" in page) == (True, False)
    assert _do(zoe, page)
    assert _run().done == 1


def test_whose_payload_the_preview_shows_is_recorded(ann: Client) -> None:
    source = dlq()
    for _ in range(edit_examples.EXAMPLES + 2):
        parked(source, body=BODY)
    _look(ann)
    entries = AuditEntry.objects.filter(act="revealed").values_list("by", "reason")
    assert list(entries) == [("ann", "Previewed an edit of many messages.")] * edit_examples.EXAMPLES


def test_of_many_messages_the_newest_are_checked_and_the_page_says_so(
    ann: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(edit_examples, "CHECKED", 2)
    source = dlq()
    for _ in range(3):
        parked(source, body=BODY)
    page = _look(ann)
    assert "The patch applies to 2 of 2 checked messages" in _text(page)
    assert "Only the newest 2 messages were checked. The others are checked while the bulk action runs." in _text(page)


def test_a_changed_key_is_confirmed_apart(ann: Client) -> None:
    source = dlq()
    DeadLetterQueue.objects.update(ordering_key="body:country")
    parked(source, key="FR", body=BODY)
    page = _look(ann)
    assert "1 message: This changes body:country, from which the ordering key is read." in _text(page)
    assert "Tick this box" in _do(ann, page)
    _do(ann, page, knowing="on")
    assert _run().done == 1


@pytest.mark.soak
def test_messages_of_another_team_are_not_found() -> None:
    source, theirs = dlq(), dlq("theirs")
    team = Group.objects.create(name="payments")
    source.dlq.teams.add(team)
    mine, other = parked(source, body=BODY), parked(theirs, body=BODY)
    user = User.objects.create_user("tom", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=EDITS))
    user.groups.add(team)
    client = Client(enforce_csrf_checks=True)
    client.force_login(user)
    assert "The patch applies to 1 of 1 checked message" in _text(_look(client))
    given = {"csrfmiddlewaretoken": token(client, "/admin/password_change/"), "pick": f"{other.pk}@0@0", "query": ""}
    assert client.post(ADDRESS, given).status_code == 404
    _do(client, _look(client))
    assert (_run().asked, list(Revision.objects.values_list("letter", flat=True))) == (1, [mine.pk])


@pytest.mark.soak
def test_above_the_limit_it_is_requested_and_the_second_person_sees_the_patch_and_what_it_changes(
    ann: Client, encrypted: Rings
) -> None:
    source = dlq()
    DeadLetterQueue.objects.update(approval_above=0)
    letter = parked(source, body=BODY)
    page = _look(ann)
    assert "Request approval" in _text(page)
    told = _do(ann, page)
    assert "approval" in told
    row = Approval.objects.get()
    assert '"DE"' not in row.arguments["patch"]  # sealed, and base64 has no quotes
    assert ["Changes in each body", "replace /country"] in row.preview
    bob = person("bob", *EDITS, "view_approval", "release_parkedletter")
    shown = post(bob, f"/admin/reprocessing/approval/{row.pk}/difference")
    assert PATCH in unescape(shown)
    assert _lines(shown)[:2] == ['-"country": "FR",', '+"country": "DE",']
    address = f"/admin/reprocessing/approval/{row.pk}/approve"
    seen = str(bob.get(address).context["form"]["seen"].value())
    post(bob, address, seen=seen, reason="checked")
    operation = _run()
    assert (operation.by, operation.done) == ("ann, approved by bob", 1)
    row.refresh_from_db()
    assert ("patch" in row.arguments, row.state) == (False, "approved")
    assert Revision.objects.get().letter == letter


def test_the_difference_of_a_requested_edit_shows_no_message_of_another_team(ann: Client) -> None:
    ours = dlq("ours")
    DeadLetterQueue.objects.update(approval_above=0)
    parked(ours, body=BODY)
    _do(ann, _look(ann))
    row = Approval.objects.get()
    theirs = parked(dlq("theirs"), body=b'{"country": "IT"}')
    team = Group.objects.create(name="team")
    ours.dlq.teams.add(team)
    codes = (*EDITS, "view_approval")
    member = User.objects.create_user("bob", is_staff=True)
    member.user_permissions.set(Permission.objects.filter(codename__in=codes))
    member.groups.set([team])
    bob = Client(enforce_csrf_checks=True)
    bob.force_login(member)
    shown = post(bob, f"/admin/reprocessing/approval/{row.pk}/difference")
    assert _lines(shown)[:2] == ['-"country": "FR",', '+"country": "DE",']
    assert ("IT" in "".join(_lines(shown)), theirs.message_id in shown) == (False, False)
    assert not AuditEntry.objects.filter(act="revealed", letter=theirs).exists()


def test_the_list_offers_it_and_says_what_it_takes() -> None:
    parked(dlq())
    page = person("ann", *EDITS).get("/admin/reprocessing/parkedletter/").content.decode()
    assert f'formaction="{ADDRESS}"' in page
    page = person("ben", *LOOKS).get("/admin/reprocessing/parkedletter/").content.decode()
    assert f'formaction="{ADDRESS}"' not in page
    assert "it needs the permissions to edit messages and to see payloads" in page


def test_nothing_selected_is_no_edit(ann: Client) -> None:
    parked(dlq())
    assert messages(post(ann, ADDRESS, scope="ticked", query="")) == [
        "Nothing was done: select messages, or choose all that match the filter."
    ]
