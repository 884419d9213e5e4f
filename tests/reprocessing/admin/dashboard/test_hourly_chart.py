from __future__ import annotations

import json
from datetime import timedelta

import pytest
from django.test import Client

from reprocessing.models import HourlyCount, HourlyCountDelta, Letter
from reprocessing.store.ordering.lanes import database_now
from tests.conditions import eventually
from tests.reprocessing.admin.parking_lot.parked_messages import LOOKS, dlq, parked, person

pytestmark = pytest.mark.django_db

SEES = (*LOOKS, "view_deadletterqueue")


@pytest.fixture(autouse=True)
def _no_hour_ends_meanwhile() -> None:
    eventually(lambda: (now := database_now()).minute < 59 or now.second < 40, within=60, every=0.5)


def _told(client: Client, query: str = "") -> dict[str, list[int]]:
    answer = client.get(f"/admin/hours{query}")
    assert answer.status_code == 200
    told = json.loads(answer.content)
    assert len(told["hours"]) == 24
    assert told["hours"] == sorted(told["hours"])
    return dict(zip(told["kinds"], told["counts"], strict=True))


def _release(letter: Letter) -> None:
    Letter.objects.filter(pk=letter.pk).update(state="delivered", reason="", finished_at=database_now())


def test_last_hour_counts_captured_and_delivered() -> None:
    ann, shop = person("ann", *SEES), dlq("shop")
    letters = [parked(shop) for _ in range(3)]
    parked(dlq("other"))
    _release(letters[0])
    told = _told(ann)
    assert {kind: (counts[-1], sum(counts)) for kind, counts in told.items()} == {
        "captured": (4, 4), "delivered": (1, 1), "failed again": (0, 0), "parked": (0, 0), "discarded": (0, 0),
    }  # fmt: skip
    assert sum(_told(ann, f"?dlq={shop.dlq_id}")["captured"]) == 3


def test_older_hours_are_left_out() -> None:
    ann, now = person("ann", *SEES), database_now().replace(minute=0, second=0, microsecond=0)
    for hours, n in ((1, 7), (23, 5), (24, 100)):
        HourlyCount.objects.create(dlq_id=1, hour=now - timedelta(hours=hours), what="parked", n=n)
    HourlyCountDelta.objects.create(dlq_id=2, hour=now - timedelta(hours=1), what="parked", n=2)
    counts = _told(ann)["parked"]
    assert (counts[-2], counts[0], sum(counts)) == (9, 5, 14)


def test_table_has_the_values_of_the_chart() -> None:
    ann = person("ann", *SEES)
    assert "No messages in the last 24 hours." in ann.get("/admin/").content.decode()
    parked(dlq("shop"))
    page = ann.get("/admin/").content.decode()
    assert "No messages in the last" not in page
    assert page.count('<th scope="row">') >= 24
    hour = database_now().strftime("%Y-%m-%d %H:00")
    assert f'<tr><th scope="row">{hour}</th><td>1</td><td>0</td><td>0</td><td>0</td><td>0</td></tr>' in page


@pytest.mark.parametrize("asked", ["x", "-1", "1e3", "9" * 19, "\u0661"])
def test_invalid_dlq_is_refused(asked: str) -> None:
    assert person("ann", *SEES).get("/admin/hours", {"dlq": asked}).status_code == 400


def test_navigation_has_the_lists_of_the_permissions() -> None:
    def ways(name: str, *rights: str) -> list[str]:
        page = person(name, *rights).get("/admin/rights")
        return [one.words for one in page.context["navigation"]]

    assert ways("bob") == ["Dashboard"]
    assert ways("cid", "view_parkedletter", "view_auditentry") == ["Dashboard", "Parking lot", "Audit log"]
    ann = person("ann", *SEES).get("/admin/reprocessing/letter/")
    assert [one.words for one in ann.context["navigation"] if one.here] == ["Messages"]
