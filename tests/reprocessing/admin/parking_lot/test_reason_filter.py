"""The filter of the parking lot offers the reasons that messages have, with their numbers."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from reprocessing.store.maintenance import counters
from tests.reprocessing.admin.parking_lot.parked_messages import LOOKS, dlq, parked, person

pytestmark = pytest.mark.django_db
LOT = "/admin/reprocessing/parkedletter/"


def offered(client: Client, query: str = "") -> list[tuple[str, str]]:
    """The values of the reasons that the filter offers, each with its number."""
    found = client.get(f"{LOT}{query}").context["reasons"]
    return sorted((value, n) for value, _, n in found)


def test_only_reasons_with_messages_and_selected_reasons_are_offered() -> None:
    shop, mail, ann = dlq("shop"), dlq("mail"), person("ann", *LOOKS)
    for reason, source in (("stale", shop), ("stale", shop), ("attempts_spent", mail)):
        parked(source, reason=reason)
    counters.fold_deltas()
    assert offered(ann) == [("attempts_spent", "1"), ("stale", "2")]
    assert offered(ann, f"?dlq={mail.dlq.pk}") == [("attempts_spent", "1")]
    assert offered(ann, "?reason=quarantined") == [("attempts_spent", "1"), ("quarantined", "0"), ("stale", "2")]
    assert offered(ann, "?assigned=ben") == [("attempts_spent", ""), ("stale", "")]
    page = ann.get(LOT).content.decode()
    shown = re.findall(r'name="reason" value="(\w+)"> [^<]+<small>\((\d)\)', page)
    assert sorted(shown) == [("attempts_spent", "1"), ("stale", "2")]


def test_reasons_of_dlqs_that_a_person_does_not_see_are_not_offered() -> None:
    parked(dlq(), reason="stale")
    counters.fold_deltas()
    ann = person("ann", *LOOKS)
    assert offered(ann) == [("stale", "1")]
    User.objects.get().user_permissions.remove(Permission.objects.get(codename="view_all_dlqs"))
    assert offered(ann) == []
