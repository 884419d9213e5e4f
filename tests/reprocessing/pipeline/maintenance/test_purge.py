"""Finished letters are purged with their history, and what consumers reported about them."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from reprocessing.conf import current
from reprocessing.models import Attempt, DlqCopy, Lane, Letter, Payload, Report, Reporter
from reprocessing.pipeline.maintenance import purge
from reprocessing.store.ordering.lanes import database_now as now
from tests.reprocessing.pipeline.bench import KEYED, Clock, Workbench, redriven
from tests.reprocessing.pipeline.benches import bury_keyed
from tests.reprocessing.store.stock import NOW, Stock

pytestmark = pytest.mark.django_db(transaction=True)

DAY = timedelta(days=1)


@pytest.mark.soak
def test_a_delivered_letter_is_purged_after_its_history_and_its_lane_still_knows_what_is_stale(clock: Clock) -> None:
    bench = Workbench(fields=KEYED)
    bury_keyed(bench, "a2")
    bench.ready()
    bench.replay()
    clock.advance(bench.conf.history.total_seconds() - 60)
    assert purge.purge_expired(conf=bench.conf) == 0
    clock.advance(61)
    assert purge.purge_expired(conf=bench.conf) == 1
    left = [model.__name__ for model in (Letter, Payload, Attempt, DlqCopy) if model.objects.exists()]
    assert (left, Lane.objects.count(), bench.lane().highest_sent_sequence is None) == ([], 1, False)
    bury_keyed(bench, "a1")
    bench.ready()
    bench.replay()
    assert (bench.letter().state, bench.letter().reason) == ("parked", "stale")


def test_a_purge_goes_group_by_group_until_none_is_left(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = redriven(*"abcde")
    monkeypatch.setattr(purge, "_GROUP", 2)
    clock.advance(bench.conf.history.total_seconds() + 1)
    assert (purge.purge_expired(conf=bench.conf), Letter.objects.count()) == (5, 0)


def test_reports_are_purged_when_no_letter_they_are_about_is_left() -> None:
    stock = Stock()
    Attempt.objects.create(
        letter=stock.letter, lane=stock.lane, target=stock.target, no=1, epoch=0, fence=1, opened_at=NOW,
        sent_message_id="sent", holds_lane=True,
    )  # fmt: skip
    reporter = Reporter.objects.create(name="shop", token_hash=b"1", added_by="ann")
    about: dict[str, dict[str, object]] = {
        "death": {"message_id": stock.letter.message_id},
        "attempt": {"message_id": "sent"},
        "letter": {"public_id": stock.letter.public_id},
        "nothing, lately": {"message_id": "m", "received_at": now() - DAY / 2},
        "nothing": {"message_id": "n"},
    }
    for name, named in about.items():
        values = {"verdict": "retrying", "happened_at": now(), "received_at": now() - 2 * DAY, "digest": name.encode()}
        Report.objects.create(reporter=reporter, type=name, **{**values, **named})
    purge.purge_expired(conf=replace(current(), history=DAY))
    assert list(Report.objects.order_by("id").values_list("type", flat=True)) == list(about)[:-1]
    assert Reporter.objects.count() == 1
