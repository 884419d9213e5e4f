"""An open breaker, turn by turn; slow rate limits."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from django.conf import settings

from reprocessing.gateways.redis.send_rate import Rates
from reprocessing.models import Attempt, Breaker, Letter
from reprocessing.store.ordering import lanes
from tests.reprocessing.pipeline.bench import BRISK, Clock, Workbench, enqueued

pytestmark = pytest.mark.django_db(transaction=True)

POLICY: dict[str, Any] = {"threshold": 3, "cooldown": 30, "cooldown_cap": 100, "canaries_to_close": 2}


def test_an_open_breaker_sends_one_canary_a_cooldown(clock: Clock) -> None:
    bench = _bench(25, intent_size=10)
    with bench.refusing("letter"):
        bench.replay()
        assert _sent() == {0: 10}
        for rest, canaries in ((30, 1), (60, 2), (100, 3)):
            clock.advance(rest - 10)
            bench.replay()
            assert Attempt.objects.count() == 10 + canaries - 1
            clock.advance(10.5)
            bench.replay()
            assert Attempt.objects.count() == 10 + canaries
            assert Breaker.objects.get().state == "open"
        assert Breaker.objects.get().why == "the canary failed after a rest of 100 s"
    clock.advance(100.5)
    bench.replay()
    assert _sent() == {0: 10, 2: 1, 4: 1, 6: 1, 8: 1, 9: 1, 10: 23}
    assert _states() == {"delivered": 25}
    assert Breaker.objects.get().state == "closed"
    assert sum(Letter.objects.values_list("attempts", flat=True)) == 25 + 13


def _bench(letters: int, **conf: Any) -> Workbench:  # noqa: ANN401  # those of Conf
    bench = Workbench(conf=replace(BRISK, **conf), fields={"max_attempts": 9})
    Breaker.objects.update(**POLICY)
    for _ in range(letters):
        bench.bury("letter")
    bench.ready()
    return bench


def _states() -> dict[str, int]:
    return Counter(Letter.objects.values_list("state", flat=True))


def _sent() -> dict[int, int]:
    """The number of attempts by breaker epoch."""
    return dict(sorted(Counter(Attempt.objects.values_list("breaker_epoch", flat=True)).items()))


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
