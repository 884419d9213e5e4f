"""A target dies in the middle of a drain by eight worker processes: what goes on being sent to it, and what not."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import psutil
import pytest
import redis

from redrive_service.sandbox.servers.process import free_port
from redrive_service.sandbox.servers.valkey import Valkey
from reprocessing.models import Attempt, Breaker, Letter
from reprocessing.store.ordering import lanes
from tests.conditions import eventually
from tests.faults import LONG, outage
from tests.faults.fleet import Beat, Worker
from tests.faults.outage import Sent, Unsettled
from tests.reprocessing.pipeline.bench import Workbench
from tests.stories.consumer import Consumer
from tests.stories.scene import Witness

pytestmark = [*LONG, pytest.mark.alone, pytest.mark.timeout(300)]

LETTERS, FEWER, KEYS, LATE = 10_000, 1_000, 1_000, 40
UNSETTLED = 10_000
WORKERS, SLICES = 4, 2  # eight processes
THRESHOLD, CLOSES_AFTER = 5, 3
COOLDOWN, CAP = 2.0, 4.0
IN_FLIGHT = timedelta(seconds=2)  # what was committed when the breaker opened is on the wire for so long at most
RATE = 2_000.0
ATTEMPTS = 10
POLICY: dict[str, Any] = {
    "ordering_key": "attribute:key", "sequence": "attribute:n", "max_attempts": ATTEMPTS, "waves": False,
}  # fmt: skip


@contextmanager
def _fleet(folder: Path, *, workers: int = WORKERS, **more: str) -> Iterator[list[Worker]]:
    """Workers, ready, with beat; those that were not killed end here."""
    with ExitStack() as stack:
        some = [Worker(folder, f"worker-{number}", concurrency=SLICES, **more) for number in range(workers)]
        for one in some:
            stack.callback(one.close)
        for one in some:
            one.await_ready()
        stack.enter_context(Beat(every=1.0))
        yield some


@pytest.mark.parametrize(
    ("fault", "letters"), [(outage.REFUSES, LETTERS), (outage.DROPS, FEWER)], ids=["refuses", "drops"]
)
def test_to_a_target_that_takes_nothing_goes_one_canary_a_cooldown_until_it_takes_letters_again(
    tmp_path: Path, fault: dict[str, Any], letters: int
) -> None:
    """Redis forgets everything meanwhile, and captures go on."""
    witness = Witness()
    valkey = Valkey(folder=tmp_path, port=free_port(), password="secret")
    bench = Workbench(fields=POLICY, target_fields={"rate": RATE})
    _brakes(bench, ramp_from=0.25, ramp=0.25, ramp_every=1.0)
    outage.bury(bench, range(letters), keys=KEYS)
    running = valkey.start(tmp_path / "valkey.log")
    with ExitStack() as stack:
        stack.callback(running.stop)
        stack.enter_context(_fleet(tmp_path, REDIS_URL=valkey.url))
        outage.give_to_beat(bench)
        outage.await_delivered(bench, letters // 4, within=150)
        with outage.dead(bench, fault):
            opened = outage.await_state(bench, "open", within=20)
            assert opened.epoch == 1
            with redis.Redis.from_url(valkey.url) as client:
                client.flushall()
            outage.bury(bench, range(letters, letters + LATE), keys=KEYS)
            eventually(lambda: Letter.objects.filter(dlq=bench.dlq).count() == letters + LATE, within=20)
            eventually(lambda: outage.breaker(bench).epoch >= opened.epoch + 6, within=30)  # three canaries have failed
            assert outage.breaker(bench).state != "closed"
        healed = time.time_ns() / 1e9
        outage.await_state(bench, "closed", within=30)
        outage.await_delivered(bench, letters + LATE, within=150)
    in_flight, canaries = _sends_to_the_dead(bench, witness, opened)
    assert THRESHOLD <= in_flight <= THRESHOLD + WORKERS * SLICES * bench.conf.intent_size
    judgement = witness.judges(
        bench, identity="event", ordering="key", sequence="n", advance="accepted", max_attempts=ATTEMPTS, rate=RATE,
        burst=RATE,
    )  # fmt: skip
    assert (judgement.findings, judgement.counts()["delivered"]) == ((), letters + LATE)
    print(  # noqa: T201
        f"{in_flight} letters were refused before the breaker was open to all, then {canaries} canaries in"
        f" {healed - opened.since.timestamp():.1f} s"
    )


def _sends_to_the_dead(bench: Workbench, witness: Witness, opened: Breaker) -> tuple[int, int]:
    """How many letters were refused that were committed before the breaker opened, and how many canaries."""
    found = outage.sends(bench, witness)
    attempts = outage.marks(bench)
    _sent_is_what_was_counted(found, attempts)
    refused = [one for one in found if not one.taken]
    in_flight = [one for one in refused if attempts[one.mark].breaker_epoch < opened.epoch]
    canaries = [one for one in refused if attempts[one.mark].breaker_epoch > opened.epoch]
    assert max(one.at for one in in_flight) < (opened.since + IN_FLIGHT).timestamp()
    _one_canary_a_cooldown(canaries, attempts, opened)
    trials = Counter(one.breaker_epoch for one in attempts.values() if one.breaker_epoch > opened.epoch)
    on_trial = len(canaries) + CLOSES_AFTER
    assert [trials[epoch] for epoch in sorted(trials)][:on_trial] == [1] * on_trial
    return len(in_flight), len(canaries)


def _brakes(bench: Workbench, **fields: object) -> None:
    values = {"threshold": THRESHOLD, "cooldown": COOLDOWN, "cooldown_cap": CAP, "canaries_to_close": CLOSES_AFTER}
    Breaker.objects.filter(target=bench.target).update(**values, **fields)


def _sent_is_what_was_counted(found: list[Sent], attempts: dict[str, Attempt]) -> None:
    """Every letter in a request is one attempt of its letter, and every counted attempt went out once."""
    counted = {mark for mark, one in attempts.items() if one.outcome != "not_sent"}
    assert Counter(one.mark for one in found) == Counter(counted)
    by_letter: dict[int, int] = defaultdict(int)
    for mark in counted:
        by_letter[attempts[mark].letter_id] += 1
    letters = {one.letter_id: one.letter.attempts for one in attempts.values()}
    assert by_letter == letters


def _one_canary_a_cooldown(canaries: list[Sent], attempts: dict[str, Attempt], opened: Breaker) -> None:
    """Each alone in its request and in its epoch; the rest before each is twice the one before it, up to the cap."""
    assert len({one.call for one in canaries}) == len({attempts[one.mark].breaker_epoch for one in canaries})
    assert len(canaries) == len({one.call for one in canaries}) >= 3
    moments = [opened.since.timestamp(), *(one.at for one in canaries)]
    rests = [min(COOLDOWN * 2**number, CAP) for number in range(len(canaries))]
    for (before, after), rest in zip(pairwise(moments), rests, strict=True):
        assert rest <= after - before < rest + 6, (moments, rests)


def test_no_more_letters_are_unsettled_than_may_be_and_none_is_new_while_what_was_sent_comes_back(
    tmp_path: Path,
) -> None:
    """The target takes everything, and its consumer fails everything, from some moment until another."""
    witness = Witness()
    bench = Workbench(fields=POLICY)
    most = bench.conf.max_unsettled
    _brakes(bench, ramp_from=1.0, ramp=1.0)
    _dies_back(bench)
    outage.bury(bench, range(UNSETTLED), keys=KEYS)
    fails = threading.Event()
    with ExitStack() as stack:
        for _ in range(2):
            stack.enter_context(Consumer(bench.source_url, lambda _: not fails.is_set()))
        stack.enter_context(_fleet(tmp_path))
        counted = stack.enter_context(Unsettled(bench))
        outage.give_to_beat(bench)
        outage.await_delivered(bench, 1, within=60)
        fails.set()
        opened = outage.await_state(bench, "open", within=60)
        eventually(lambda: outage.breaker(bench).epoch >= opened.epoch + 4, within=60)  # two canaries have failed
        fails.clear()
        mended = lanes.database_now()
        outage.await_state(bench, "closed", within=90)
        closed = outage.breaker(bench)
        outage.await_delivered(bench, UNSETTLED, within=250)
    attempts = outage.marks(bench)
    assert counted.most <= most
    spans = [(one.opened_at, one.closed_at) for one in attempts.values() if one.closed_at]
    assert most // 2 < outage.most_at_a_time(spans) <= most
    _sent_is_what_was_counted(outage.sends(bench, witness), attempts)
    earlier = [one.opened_at for one in attempts.values() if one.breaker_epoch < opened.epoch]
    assert max(earlier) <= opened.since + IN_FLIGHT
    trial = [one for one in attempts.values() if opened.epoch < one.breaker_epoch < closed.epoch]
    assert len({one.breaker_epoch for one in trial}) == len(trial) >= 2 + CLOSES_AFTER
    failed = [one for one in trial if one.returned_at]
    for before, after in pairwise(trial):
        rest = COOLDOWN if before in failed else 0
        assert (after.opened_at - (before.closed_at or after.opened_at)).total_seconds() >= rest
    judgement = witness.judges(
        bench, identity="event", ordering="key", sequence="n", advance="settled", max_attempts=ATTEMPTS
    )
    assert (judgement.findings, judgement.counts()["delivered"]) == ((), UNSETTLED)
    print(  # noqa: T201
        f"at most {outage.most_at_a_time(spans)} letters were unsettled ({counted.looks} counts); {len(failed)} of"
        f" {len(trial)} canaries came back; closed {(closed.since - mended).total_seconds():.1f} s after the consumer"
        " was mended"
    )


def test_the_slot_of_a_canary_whose_worker_was_killed_is_another_s_within_a_lease_and_fifteen_seconds(
    tmp_path: Path,
) -> None:
    bench = Workbench(fields=POLICY)
    _brakes(bench, ramp_from=1.0, ramp=1.0)
    outage.bury(bench, range(60), keys=60)
    with _fleet(tmp_path, workers=2) as workers:
        with outage.dead(bench, outage.REFUSES):
            outage.give_to_beat(bench)
            opened = outage.await_state(bench, "open", within=60)
            with outage.dead(bench, outage.HANGS):
                (canary,) = eventually(lambda: _canaries(after=opened.epoch, closed_at=None), within=20)
                owner = int(canary.lane.owner.split(":")[1])
                (killed,) = [one for one in workers if owner in _processes(one)]
                killed.kill()
        died = lanes.database_now()
        another = eventually(lambda: _canaries(after=canary.breaker_epoch), within=60)[0]
        outage.await_state(bench, "closed", within=30)
        outage.await_delivered(bench, 60, within=30)
    waited = (another.opened_at - died).total_seconds()
    canary.refresh_from_db()
    assert (canary.outcome, canary.counts_as_failure) == ("unknown", None)
    assert waited <= bench.conf.lease.total_seconds() + 15
    print(f"the slot was another's {waited:.1f} s after its worker was killed")  # noqa: T201


def _dies_back(bench: Workbench) -> None:
    """Judged by absence; what its consumer fails is in the dlq with the next receive."""
    policy = json.dumps({"deadLetterTargetArn": bench.dlq.arn, "maxReceiveCount": "1"})
    bench.sqs.set_queue_attributes(QueueUrl=bench.source_url, Attributes={"RedrivePolicy": policy})
    bench.judge_by_absence(window=1, visibility=1)


def _canaries(*, after: int, **which: object) -> list[Attempt]:
    return list(Attempt.objects.filter(breaker_epoch__gt=after, **which).order_by("id"))


def _processes(worker: Worker) -> set[int]:
    parent = psutil.Process(worker.process.pid)
    return {parent.pid, *(one.pid for one in parent.children(recursive=True))}
