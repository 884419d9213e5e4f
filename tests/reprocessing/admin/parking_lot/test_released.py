from __future__ import annotations

import re
from uuid import uuid4

import pytest

from reprocessing.admin.parking_lot.decision import pack_messages
from reprocessing.domain.parking_lot.message_filter import MessageFilter
from reprocessing.models import BulkAction, BulkActionKind, Letter, Run
from reprocessing.pipeline.parking_lot import act_on_parked, run_bulk_actions
from reprocessing.store.parking_lot import bulk_actions
from tests.reprocessing.admin.parking_lot.parked_messages import DECIDES, LOOKS, dlq, parked, person, post

pytestmark = pytest.mark.django_db
LOT = "/admin/reprocessing/parkedletter/"
MAY = (*LOOKS, "view_run", "view_bulkaction")


def _text(page: bytes) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", "", page.decode()))


def test_run_shows_who_released_how_many_and_why() -> None:
    source, ann = dlq(), person("ann", *MAY)
    letters = [parked(source).pk for _ in range(3)]
    act_on_parked.release(letters[:1], by="ben", reason="the shop is mended")
    act_on_parked.release(letters[1:], by="zoe", reason="the bank, too")
    run = Run.objects.get()
    page = ann.get(f"/admin/reprocessing/run/{run.pk}/change/").content.decode()
    assert (run.reason, run.asked_by) == ("the shop is mended", "ben")
    assert re.findall(r"<b>(\w+)</b> released (\d+ messages?) .*?<span>(.*?)</span>", page) == [
        ("zoe", "2 messages", "the bank, too"), ("ben", "1 message", "the shop is mended"),
    ]  # fmt: skip
    assert (page.count("No other entries."), "No entries yet" in page) == (1, False)
    listed = ann.get("/admin/reprocessing/run/").content.decode()
    assert re.findall(r'<td data-what="Messages" class="n">(.*?)</td>', listed) == ["released"]


@pytest.mark.parametrize(("state", "but"), [("running", ""), ("paused", " (paused: nothing is sent until somebody")])
def test_release_links_to_the_runs_that_send_the_messages(state: str, but: str) -> None:
    sources, first, second = (dlq("shop-dlq"), dlq("bank-dlq")), *(person(one, *DECIDES, "view_run") for one in "ab")
    letters = [parked(source) for source in sources]
    stop = {"stopped_by": "zoe", "why": "a test"} if state == "paused" else {}
    runs = [Run.objects.create(name=f"r-{one.dlq.name}", dlq=one.dlq, state=state, **stop) for one in letters]
    for letter, run in zip(letters, runs, strict=True):
        Letter.objects.filter(pk=letter.pk).update(run=run)
    page = post(first, f"{LOT}release", letters=pack_messages(letters), reason="it is mended")
    links = [f'<a href="/admin/reprocessing/run/{run.pk}/change/">Show the run {run}</a>{but}' for run in runs]
    assert ("2 messages released. " in page, [link in page for link in links]) == (True, [True, True])
    again = post(second, f"{LOT}release", letters=pack_messages(letters), reason="once more")
    assert ("Nothing was done." in again, "Show the run" in again) == (True, False)


def test_release_links_to_no_run_without_the_permission_to_see_runs() -> None:
    page = post(person("ann", *DECIDES), f"{LOT}release", letters=pack_messages([parked(dlq())]), reason="mended")
    assert ("1 message released." in page, "Show the run" in page) == (True, False)


def test_bulk_action_and_its_runs_link_to_each_other() -> None:
    for name in ("shop-dlq", "bank-dlq"):
        source = dlq(name)
        for _ in range(2):
            parked(source)
    bulk_actions.create(uuid4(), BulkActionKind.RELEASE, MessageFilter(), {}, by="ben", reason="both are mended")
    operation = BulkAction.objects.get()
    run_bulk_actions.run_bulk_action(operation.pk, seconds=9)
    ann, runs = person("ann", *MAY), list(Run.objects.order_by("pk"))
    page = ann.get(f"/admin/reprocessing/bulkaction/{operation.pk}/change/").content
    links = " and ".join(f'<a href="/admin/reprocessing/run/{run.pk}/change/">{run.name}</a>' for run in runs)
    assert [one in page.decode() for one in links.split(" and ")] == [True, True]
    assert re.findall(r"2 messages in the run (\S+)\.", _text(page)) == [run.name for run in runs]
    for run in runs:
        told = ann.get(f"/admin/reprocessing/run/{run.pk}/change/").content.decode()
        assert f'<a href="/admin/reprocessing/bulkaction/{operation.pk}/change/">' in told


def test_run_outlives_its_bulk_action() -> None:
    parked(dlq())
    bulk_actions.create(uuid4(), BulkActionKind.RELEASE, MessageFilter(), {}, by="ben", reason="it is mended")
    run_bulk_actions.run_bulk_action(BulkAction.objects.get().pk, seconds=9)
    run = Run.objects.get()
    told = {"letters": 1, "operation": BulkAction.objects.get().pk, "from_other_runs": 1}
    assert run.reviews.get().after == told
    assert run.reviews.get().operation is None
