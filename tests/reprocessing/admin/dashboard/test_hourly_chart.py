from __future__ import annotations

from datetime import timedelta
from itertools import pairwise

import pytest
from django.test import Client

from reprocessing.admin.dashboard import hourly_chart
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
    """Return the counts of the table by kind, oldest first."""
    answer = client.get(f"/admin/hours{query}")
    assert answer.status_code == 200
    chart = answer.context["chart"]
    assert len(chart.hours) == 24
    assert [line.hour for line in chart.hours] == sorted((line.hour for line in chart.hours), reverse=True)
    counts = [line.counts for line in reversed(chart.hours)]
    return dict(zip(chart.kinds, [list(kind) for kind in zip(*counts, strict=True)], strict=True))


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
    shop, other = dlq("shop"), dlq("other")
    for hours, n in ((1, 7), (23, 5), (24, 100)):
        HourlyCount.objects.create(dlq_id=shop.dlq_id, hour=now - timedelta(hours=hours), what="parked", n=n)
    HourlyCountDelta.objects.create(dlq_id=other.dlq_id, hour=now - timedelta(hours=1), what="parked", n=2)
    counts = _told(ann)["parked"]
    assert (counts[-2], counts[0], sum(counts)) == (9, 5, 14)


def test_table_has_the_values_of_the_chart() -> None:
    ann, shop = person("ann", *SEES), dlq("shop")
    assert "No messages in the last 24 hours." in ann.get("/admin/").content.decode()
    parked(shop)
    page = ann.get("/admin/").content.decode()
    assert "No messages in the last" not in page
    assert page.count('<th scope="row">2') == 24
    hour = database_now().strftime("%Y-%m-%d %H:00")
    assert f'<tr><th scope="row">{hour}</th><td>1</td><td>0</td><td>0</td><td>0</td><td>0</td></tr>' in page


def test_chart_of_a_young_system_begins_with_its_first_hour_and_shows_counts() -> None:
    shop, now = dlq("shop"), database_now().replace(minute=0, second=0, microsecond=0)
    for hours, what, n in ((1, "captured", 2_000), (0, "captured", 500), (0, "delivered", 1_949)):
        hour = now - timedelta(hours=hours)
        HourlyCount.objects.create(dlq_id=shop.dlq_id, hour=hour, what=what, n=n)
    drawn = hourly_chart.chart(database_now())
    assert [label.text for label in drawn.x_labels] == [
        f"{hour:%H:%M}" if hour.hour else f"{hour:%b} {hour.day}" for hour in (now - timedelta(hours=1), now)
    ]
    assert [label.text for label in drawn.y_labels] == ["0", "500", "1,000", "1,500", "2,000"]
    assert [(bar.kind, bar.label, bar.height) for bar in drawn.bars] == [
        (0, "2,000", 160.0), (0, "500", 40.0), (1, "1,949", 155.9),
    ]  # fmt: skip
    assert (drawn.totals, drawn.is_young) == ([(0, "captured", 2_500), (1, "delivered", 1_949)], True)


def test_chart_of_a_whole_day_labels_every_other_hour() -> None:
    shop, now = dlq("shop"), database_now().replace(minute=0, second=0, microsecond=0)
    HourlyCount.objects.create(dlq_id=shop.dlq_id, hour=now - timedelta(hours=23), what="parked", n=1)
    drawn = hourly_chart.chart(database_now())
    assert (len(drawn.x_labels), drawn.is_young, drawn.bars[0].label) == (12, False, "")
    assert [label.text for label in drawn.y_labels] == ["0", "1"]


@pytest.mark.parametrize(
    ("largest", "step", "top"), [(0, 1, 1), (4, 1, 4), (5, 2, 6), (46, 20, 60), (1_100, 500, 1_500)]
)
def test_scale_has_round_steps(largest: int, step: int, top: int) -> None:
    assert hourly_chart._scale(largest) == (step, top)


def test_counts_above_the_bars_do_not_overlap() -> None:
    shop, now = dlq("shop"), database_now().replace(minute=0, second=0, microsecond=0)
    for hours in (0, 1):
        for what, n in (("captured", 12_006), ("delivered", 11_973), ("failed", 11_968), ("parked", 33)):
            HourlyCount.objects.create(dlq_id=shop.dlq_id, hour=now - timedelta(hours=hours), what=what, n=n)
    drawn = hourly_chart.chart(database_now())
    labels = [(bar.middle, bar.label) for bar in drawn.bars]
    gaps = [after - at - 7 * (len(one) + len(other)) / 2 for (at, one), (after, other) in pairwise(labels)]
    assert ([label for _, label in labels], min(gaps) > 0) == (["12,006", "11,973", "11,968", "33"] * 2, True)


@pytest.mark.parametrize("asked", ["x", "-1", "1e3", "9" * 19, "\u0661"])
def test_invalid_dlq_is_refused(asked: str) -> None:
    assert person("ann", *SEES).get("/admin/hours", {"dlq": asked}).status_code == 400


@pytest.mark.soak
def test_navigation_has_the_lists_of_the_permissions() -> None:
    def ways(name: str, *rights: str) -> list[str]:
        page = person(name, *rights).get("/admin/rights")
        return [one.words for one in page.context["navigation"]]

    assert ways("bob") == ["Dashboard"]
    assert ways("cid", "view_parkedletter", "view_auditentry") == ["Dashboard", "Parking lot", "Audit log"]
    ann = person("ann", *SEES).get("/admin/reprocessing/letter/")
    assert [one.words for one in ann.context["navigation"] if one.here] == ["Messages"]


def test_rare_lists_are_in_a_menu_that_names_the_current_one() -> None:
    page = person("ann", "view_policy", "view_lane", "view_letter").get("/admin/reprocessing/policy/")
    assert [one.words for one in page.context["more_pages"]] == ["Key queues", "Policies"]
    assert "<details><summary>More: Policies</summary><ul>" in page.content.decode()
    assert "<summary>More" not in person("bob", "view_letter").get("/admin/reprocessing/letter/").content.decode()
