"""What consumers said is kept for as long as the letters it is about, and their tokens for longer."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from reprocessing.conf import current
from reprocessing.models import Attempt, Report, Reporter
from reprocessing.pipeline.maintenance import purge
from reprocessing.store.ordering.lanes import clock as now
from tests.reprocessing.store.stock import NOW, Stock

pytestmark = pytest.mark.django_db

DAY = timedelta(days=1)


def test_reports_go_when_nothing_is_left_of_what_they_are_about() -> None:
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
    purge.letters(conf=replace(current(), history=DAY))
    assert list(Report.objects.order_by("id").values_list("type", flat=True)) == list(about)[:-1]
    assert Reporter.objects.count() == 1
