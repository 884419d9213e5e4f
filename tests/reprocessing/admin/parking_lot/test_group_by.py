"""Messages of a filter are grouped by a field, for who may see payloads; masked values stay masked."""

from __future__ import annotations

import re
from html import unescape
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.test import Client

from reprocessing.admin.parking_lot import group_by
from reprocessing.domain.message.envelope import Attribute
from reprocessing.domain.parking_lot.message_filter import MessageFilter
from reprocessing.models import AuditEntry, BulkAction, BulkActionKind, DeadLetterQueue, Letter
from reprocessing.pipeline.parking_lot import run_bulk_actions
from reprocessing.store.parking_lot import bulk_actions, filtered_letters
from reprocessing.store.search import stored_filters
from tests.reprocessing.admin.parking_lot.parked_messages import HOUR, LOOKS, dlq, parked, person, post, token
from tests.reprocessing.payload_rings import Rings, encrypted, rings

__all__ = ["encrypted", "rings"]

pytestmark = pytest.mark.django_db

ADDRESS = "/admin/reprocessing/parkedletter/group-by"
LIST = "/admin/reprocessing/parkedletter/"
READS = (*LOOKS, "view_payload")


@pytest.fixture
def ann() -> Client:
    return person("ann", *READS)


def _rows(page: str) -> list[tuple[str, str, str]]:
    """Each value, the number of its messages, and its link."""
    found = re.findall(
        r'<td class="lot-id"[^>]*>(?:<a href="([^"]*)">)?(?:<em>)?([^<]*).*?</td>\s*'
        r'<td data-label="Messages"[^>]*>([^<]*)',
        page,
    )
    return [(unescape(value), n, unescape(link)) for link, value, n in found]


def _counts(page: str) -> dict[str, str]:
    return {value: n for value, n, _ in _rows(page)}


def _listed(client: Client, link: str) -> int:
    page = client.get(link).content.decode()
    return page.count('name="pick"')


def _mixed() -> None:
    source = dlq()
    for body in (b'{"c": "FR"}', b'{"c": "FR"}', b'{"c": "DE"}', b'{"c": 7}', b'{"c": "7"}', b"{}", b'{"c": null}',
                 b'{"c": [1]}', b"<xml/>", b'{"c": "\\u0046R"}', b'{"c": ""}', b'{"c": "a b&c"}'):  # fmt: skip
        parked(source, body=body)


@pytest.mark.soak
def test_each_value_has_its_number_and_a_link_to_exactly_its_messages(ann: Client) -> None:
    _mixed()
    page = post(ann, ADDRESS, query="", by="body:c")
    assert _counts(page) == {
        "FR": "3", "7": "2", "no value": "2", "DE": "1", "an object or a list": "1", "cannot be read": "1",
        "(empty text)": "1", "a b&c": "1",
    }  # fmt: skip
    links = {value: link for value, _, link in _rows(page)}
    assert {value for value, link in links.items() if not link} == {
        "an object or a list", "cannot be read", "(empty text)",
    }  # fmt: skip
    assert {value: _listed(ann, link) for value, link in links.items() if link} == {
        "FR": 3, "7": 2, "no value": 2, "DE": 1, "a b&c": 1,
    }  # fmt: skip


def test_a_number_is_found_however_it_is_written(ann: Client) -> None:
    source = dlq()
    for body in (b'{"c": 42}', b'{"c":"42"}', b'{"c": 42.0}', b'{"c":4.2e1}', b'{"c": 420E-1}', b'{"c": 43}'):
        parked(source, body=body)
    values = ("42", "43", "4", "42.0")
    assert [_listed(ann, f"{LIST}?selector=body:c&value={value}") for value in values] == [5, 1, 0, 0]


def test_a_group_has_its_oldest_message_as_example(ann: Client) -> None:
    source = dlq()
    _, old = (parked(source, body=b'{"c": 1}') for _ in range(2))
    Letter.objects.filter(pk=old.pk).update(first_sent_at=old.first_sent_at - HOUR)
    page = post(ann, ADDRESS, query="", by="body:c")
    assert f'href="/admin/reprocessing/letter/{old.pk}/change/">Open' in page
    assert f"{old.first_sent_at - HOUR:%Y-%m-%d %H:%M:%S}" in page


def test_messages_are_grouped_by_an_attribute_within_the_filter(ann: Client) -> None:
    source, other = dlq(), dlq("other")
    for where, tenant in ((source, "acme"), (source, "zeta"), (other, "acme")):
        parked(where, attributes={"Tenant": Attribute("String", tenant)})
    page = post(ann, ADDRESS, query=f"dlq={source.dlq_id}", by="attribute:Tenant")
    assert _counts(page) == {"acme": "1", "zeta": "1"}
    assert [_listed(ann, link) for _, _, link in _rows(page)] == [1, 1]


def test_masked_values_are_grouped_as_masked_and_have_no_link(ann: Client) -> None:
    source = dlq()
    DeadLetterQueue.objects.update(masked_fields=["card"])
    for body in (b'{"card": "4111", "c": "FR"}', b'{"card": "4222", "c": "FR"}'):
        parked(source, body=body)
    assert _rows(post(ann, ADDRESS, query="", by="body:card")) == [("[masked]", "2", "")]
    assert _rows(post(ann, ADDRESS, query="", by="body:c")) == [("FR", "2", "")]
    refused = ann.get(f"{LIST}?selector=body:card&value=4111").content.decode()
    assert ("could reveal masked values" in refused, 'name="pick"' in refused) == (True, False)


@pytest.mark.parametrize("missing", ["view_payload", "view_parkedletter"])
def test_it_takes_the_permission_to_see_payloads(missing: str) -> None:
    _mixed()
    client = person("zoe", *(set(READS) - {missing}))
    given = {"csrfmiddlewaretoken": token(client, "/admin/password_change/"), "query": "", "by": "body:c"}
    assert client.post(ADDRESS, given).status_code == 403
    assert client.get(f"{LIST}?selector=body:c&value=FR").status_code == 403
    assert ADDRESS not in client.get(LIST).content.decode()


def test_who_grouped_by_what_is_recorded_without_values(ann: Client) -> None:
    _mixed()
    post(ann, ADDRESS, query="selector=body:c&value=FR", by="body:c")
    entry = AuditEntry.objects.get()
    assert (entry.act, entry.by, entry.reason, entry.after["letters"]) == (
        "revealed", "ann", "Grouped messages by body:c.", 3,
    )  # fmt: skip
    assert "FR" not in str(entry.after)


def test_of_many_messages_a_part_is_read_and_the_page_says_so(ann: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_by, "READ", 2)
    monkeypatch.setattr(group_by, "SHOWN", 1)
    source = dlq()
    for number in range(3):
        parked(source, body=b'{"c": %d}' % number)
    page = post(ann, ADDRESS, query="", by="body:c")
    assert "the newest 2 of 3" in page
    assert "This is a part" in page
    assert "1 more value with fewer messages is not shown." in page


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"by": "body:a["}, "is not a selector"),
        ({"by": "message-id"}, "is not a field"),
        ({"by": ""}, "required"),
        ({"by": "body:c", "query": "nonsense=1"}, "There is no filter"),
    ],
    ids=["broken", "no-field", "empty", "filter"],
)
def test_what_is_no_field_says_why(ann: Client, given: dict[str, str], why: str) -> None:
    assert why in unescape(post(ann, ADDRESS, **{"query": "", **given}))


def test_messages_of_another_team_are_not_counted() -> None:
    client = person("ann", *READS)
    source = dlq()
    parked(source, body=b'{"c": "FR"}')
    User.objects.get().user_permissions.remove(*User.objects.get().user_permissions.filter(codename="view_all_dlqs"))
    assert _rows(post(client, ADDRESS, query="", by="body:c")) == []


def test_a_bulk_action_on_a_value_changes_exactly_its_messages(encrypted: Rings) -> None:
    _mixed()
    criteria = MessageFilter(selector="body:c", value="FR")
    bulk_actions.create(uuid4(), BulkActionKind.NOTE, criteria, {}, by="ann", reason="a note")
    operation = BulkAction.objects.get()
    assert "FR" not in str(operation.filter)
    assert stored_filters.read_filter(operation.filter) == criteria
    run_bulk_actions.run_bulk_action(operation.pk, seconds=9)
    operation.refresh_from_db()
    assert (operation.asked, operation.done) == (3, 3)
    assert filtered_letters.count_letters(criteria) == 3


def test_a_value_without_a_field_is_no_filter(ann: Client) -> None:
    assert "needs the filter selector" in ann.get(f"{LIST}?value=FR").content.decode()
