"""Leases, tokens and visibility timeouts end while the machine sleeps."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import timedelta

import pytest

from reprocessing.gateways.redis.send_rate import Granted, Rates
from reprocessing.models import DlqCopy
from reprocessing.pipeline.aws.native_redrive import ASK_WITHIN, Refusal
from reprocessing.pipeline.replay import lease_keeper, replay_slice
from reprocessing.store.aws import aws_redrive_handover
from reprocessing.store.capture import capture_lease
from tests.race.native import is_aws_s, mine, start, tasks
from tests.reprocessing.pipeline.bench import Clock, Workbench, fake_time
from tests.reprocessing.pipeline.interposed import happens_after, happens_before

pytestmark = pytest.mark.django_db(transaction=True)

LEASE = 60.0
TOKEN = 30.0


class _Tokens(Rates):
    """As many tokens as wanted."""

    def __init__(self) -> None:
        pass

    def take(self, key: int | str, wanted: int, rate: float, burst: float | None = None) -> Granted:
        return Granted(wanted, 0.0, time.monotonic() + TOKEN)


class _Sleep:
    """The clocks of a machine that sleeps."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.slept = 0.0
        monkeypatch.setattr(lease_keeper, "time", fake_time(time.monotonic, lambda: time.monotonic() + self.slept))


@pytest.mark.parametrize(("rate", "asleep"), [(None, LEASE), (100.0, TOKEN + 10)], ids=["its lease", "its token"])
def test_letters_of_before_the_sleep_are_not_sent_and_later_ones_are(
    rate: float | None, asleep: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Workbench(target_fields={"rate": rate})
    bench.conf = replace(bench.conf, lease=timedelta(seconds=LEASE))
    bench.enqueue("letter")
    sleep = _Sleep(monkeypatch)
    happens_after(monkeypatch, replay_slice, "intend", lambda: setattr(sleep, "slept", asleep))
    bench.replay(seconds=60, rates=_Tokens(), stop=lambda: bench.letter().state == "delivered")
    assert [outcome for _, outcome, _ in bench.history()] == ["not_sent", "accepted"]


def test_a_copy_that_became_visible_during_the_sleep_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    bench, sleep = Workbench(), _Sleep(monkeypatch)
    bench.bury("letter")
    asleep = float(bench.conf.receive_visibility)
    happens_before(monkeypatch, capture_lease, "renew", lambda: setattr(sleep, "slept", asleep))
    assert not bench.capture().captured.drained
    assert (DlqCopy.objects.count(), bench.left()) == (0, 1)


def test_a_native_redrive_claimed_before_the_sleep_is_not_started(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = mine()
    happens_after(monkeypatch, aws_redrive_handover, "hand_to_aws", lambda: clock.advance(ASK_WITHIN + 1))
    assert start(bench) == Refusal("AWS was not asked, because the hand-over took too long; run the command again")
    assert (tasks(bench), is_aws_s(bench)) == ([], False)
