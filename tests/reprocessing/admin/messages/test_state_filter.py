from __future__ import annotations

import re
from html import unescape

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from reprocessing.models import Letter
from tests.reprocessing.admin.parking_lot.parked_messages import LOOKS, dlq, failure_group, parked, person

pytestmark = pytest.mark.django_db

LIST = "/admin/reprocessing/letter/"


def page_of(client: Client, query: str) -> str:
    answer = client.get(f"{LIST}{query}")
    assert answer.status_code == 200
    return answer.content.decode()


def selected(page: str) -> list[str]:
    """The entries of the sidebar that are highlighted."""
    return re.findall(r'<li class="selected">\s*<a href="[^"]*">([^<]*)</a>', page)


def chips(page: str) -> dict[str, str]:
    """The active filters, each with the query that its removal leaves."""
    found = re.findall(r'<a class="chip" href="([^"]*)"><span [^>]*>[^<]*</span>(.*?) <span', page)
    return {unescape(words): unescape(without) for without, words in found}


@pytest.mark.parametrize("query", ["?state=parked", "?state__exact=parked"])
def test_a_state_in_the_address_is_selected_and_can_be_removed_under_either_name(query: str) -> None:
    parked(dlq())
    page = page_of(person("ann", *LOOKS), query)
    assert (selected(page), chips(page)) == (["parked"], {"State: parked": "?"})


def test_the_links_of_a_failure_group_lead_to_lists_that_show_the_group_and_the_state() -> None:
    source = dlq()
    letter = parked(source)
    group = failure_group(source)
    Letter.objects.filter(pk=letter.pk).update(group=group)
    page = page_of(person("ann", *LOOKS), f"?group={group.pk}&state__exact=waiting")
    assert chips(page) == {
        f"Failure group: {group}": "?state__exact=waiting", "State: queued": f"?group={group.pk}",
    }  # fmt: skip


def test_a_filter_does_not_name_the_dlq_of_another_team() -> None:
    source = dlq("secret-dlq")
    ann = person("ann", "view_letter")
    User.objects.get(username="ann").user_permissions.remove(Permission.objects.get(codename="view_all_dlqs"))
    page = page_of(ann, f"?dlq={source.dlq_id}")
    assert "secret-dlq" not in page


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", ["All"]), ("?state__exact=delivered&presumed__exact=1", ["presumed delivered"]),
        ("?state__exact=delivered&presumed__exact=0", ["delivered"]),
        ("?state__exact=delivered", ["delivered", "presumed delivered"]), ("?presumed=1", ["presumed delivered"]),
        ("?state=waiting", ["queued"]), ("?state=awaiting", ["awaiting outcome"]),
    ],
)  # fmt: skip
def test_states_have_the_names_of_the_glossary_and_presumed_deliveries_are_told_apart(
    query: str, expected: list[str]
) -> None:
    page = page_of(person("ann", *LOOKS), query)
    assert selected(page) == expected


def test_the_list_says_presumed_delivered_for_a_delivery_that_nobody_confirmed() -> None:
    letter = parked(dlq())
    Letter.objects.filter(pk=letter.pk).update(state="delivered", reason="", presumed=True)
    page = page_of(person("ann", *LOOKS), "?state__exact=delivered&presumed__exact=1")
    assert '<td class="field-state_text">presumed delivered</td>' in page
    assert chips(page) == {"State: presumed delivered": "?"}
