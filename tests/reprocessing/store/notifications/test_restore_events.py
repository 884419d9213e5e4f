from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from reprocessing.models import RestoreDoubt
from reprocessing.store.maintenance import restore_hold
from reprocessing.store.ordering import lanes
from tests.race.abreast import together
from tests.reprocessing.incidents import is_open, told
from tests.reprocessing.store.stock import Stock

pytestmark = pytest.mark.django_db(transaction=True)

WHO: dict[str, Any] = {"by": "the service", "reason": "restored"}


def test_a_hold_is_announced_once_with_its_doubted_messages_and_concluded_at_its_end() -> None:
    stock = Stock()
    stock.more_letters(99)
    backup = lanes.database_now() - timedelta(hours=1)
    together([lambda: restore_hold.begin_hold(backup, **WHO)] * 3)
    assert is_open("restore_detected") == {
        "restore": {"backup_time": f"{backup:%Y-%m-%d %H:%M:%S} UTC", "messages": 100}
    }
    assert told("restore_detected") == [("restore", 1, True)]
    RestoreDoubt.objects.update(word="replay", decided_at=lanes.database_now())
    restore_hold.end_hold(by="ann", reason="decided", early=True)
    assert told("restore_detected") == [("restore", 1, False)]


def test_a_second_restore_is_a_new_incident() -> None:
    restore_hold.begin_hold(lanes.database_now(), **WHO)
    restore_hold.begin_hold(lanes.database_now(), **WHO, anew=True)
    assert told("restore_detected") == [("restore", 1, False), ("restore", 1, True)]
