"""An open breaker, turn by turn; slow rate limits."""

from __future__ import annotations

import pytest
from django.conf import settings

from reprocessing.gateways.redis.send_rate import Rates
from reprocessing.store.ordering import lanes
from tests.reprocessing.pipeline.bench import enqueued

pytestmark = pytest.mark.django_db(transaction=True)


def test_one_turn_waits_for_slow_tokens_and_the_others_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = enqueued("0", target_fields={"rate": 0.5})
    rates = Rates.at(settings.REDIS_URL)
    assert rates.claim_wait(bench.target.pk, "another turn", 5)
    monkeypatch.setattr("reprocessing.pipeline.replay.replay_slice.time.sleep", lambda _: pytest.fail("it waits, too"))
    report = bench.replay(seconds=5)
    assert (report.taken, report.left) == (0, [])
    lane = bench.lane()
    assert (lane.phase, lane.why) == ("ready", "another turn waits for its target's rate")
    assert lanes.lease("at once", limit=9, lease=8) == []  # due again a little later
