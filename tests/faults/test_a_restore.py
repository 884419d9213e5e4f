"""A restore drill on real servers: backup in the middle of a drain, drain on, restore; then what after_restore says.

Nothing is sent before a person says so, though workers and beat run; afterwards the source's log shows duplicates among
the letters alone that the report had named, nothing is lost, and every key's letters are in order.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections import Counter, defaultdict
from contextlib import closing
from io import StringIO
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from redrive_service.sandbox.servers.binaries import postgres_programs
from reprocessing.models import DeadLetterQueue, Letter, Target
from reprocessing.store.maintenance import restore_hold
from reprocessing.store.ordering import lanes
from tests.conditions import eventually
from tests.faults import LONG
from tests.faults.fleet import Beat, Worker, environment
from tests.reprocessing.pipeline.bench import Clock, Workbench

pytestmark = [*LONG, pytest.mark.alone, pytest.mark.timeout(900)]

LETTERS, KEYS, RATE = 240, 24, 20.0
SAID = ("--reason", "the drill", "--by", "ann")


def test_after_a_restore_only_what_the_report_named_is_sent_twice(tmp_path: Path, clock: Clock) -> None:
    bench = Workbench(fields={"ordering_key": "attribute:key", "sequence": "attribute:n"})
    Target.objects.filter(pk=bench.target.pk).update(rate=RATE)
    _bury(bench)
    with Beat(), closing(Worker(tmp_path, "before")) as worker:
        _await_arrivals(bench, LETTERS // 6)
        since = lanes.database_now()
        _postgres("pg_dump", "--format=custom", f"--file={tmp_path / 'backup'}")
        _await_arrivals(bench, LETTERS // 2)
        worker.kill()
    before = bench.arrivals()
    _postgres("pg_restore", "--clean", "--if-exists", "--single-transaction", str(tmp_path / "backup"))
    known = Letter.objects.filter(state="delivered").count()
    assert known < len(before) < LETTERS

    with Beat(), Worker(tmp_path, "unaware"):  # nobody has told of the restore
        eventually(lambda: restore_hold.current_hold() is not None, within=30)
        with pytest.raises(CommandError, match=r"Everything is held since .* by the service"):
            _ask("hold", "--since", since.isoformat(), *SAID, "--confirm")  # it stands already
        eventually(lambda: _beats(5), within=60)
    assert len(bench.arrivals()) == len(before)

    eventually(lambda: _hidden(bench) == 0, within=240, every=1)
    clock.advance(restore_hold.MAX_VISIBILITY.total_seconds() + 60)  # SQS would have shown the last of them by then
    DeadLetterQueue.objects.update(next_poll_at=None)
    with Beat(), Worker(tmp_path, "after"):
        eventually(lambda: _told()["not_in_sight"] == [], within=180, every=1)
        told = _told()
        assert len(bench.arrivals()) == len(before)
        named = {one["message_id"] for one in told["messages"] if one["class"] != "finished"}
        _ask("resolve", "--finished", "delivered", "--unfinished", "replay", "--unknown", "replay", *SAID, "--confirm")
        assert len(bench.arrivals()) == len(before)
        _ask("release", *SAID, "--confirm")
        eventually(lambda: _delivered() == LETTERS, within=120, every=0.5)
    _judge(bench, len(before), named)
    classes = Counter(one["finding"] for one in told["messages"])
    print(f"{known} known as delivered, {len(before)} sent before the restore; {dict(classes)}")  # noqa: T201


def _judge(bench: Workbench, before: int, named: set[str]) -> None:
    arrived = bench.arrivals()
    bodies = {bytes(body).decode(): sent for sent, body in Letter.objects.values_list("message_id", "payload__body")}
    times = Counter(one["attributes"]["event"] for one in arrived)
    assert set(times) == set(bodies) == {str(n) for n in range(LETTERS)}
    twice = {bodies[event] for event, n in times.items() if n > 1}
    assert twice - named == set()
    for some in (arrived[:before], arrived[before:]):
        by_key: dict[str, list[int]] = defaultdict(list)
        for one in some:
            by_key[one["attributes"]["key"]].append(int(one["attributes"]["n"]))
        assert [key for key, numbers in by_key.items() if numbers != sorted(numbers)] == []
    print(f"{len(twice)} of {len(named)} named letters were sent twice")  # noqa: T201


def _bury(bench: Workbench) -> None:
    for number in range(LETTERS):
        bench.bury(f"{number}", key=f"account-{number % KEYS}", n=str(number // KEYS), event=str(number))
    DeadLetterQueue.objects.filter(pk=bench.dlq.pk).update(mode="automatic", next_poll_at=None)


def _await_arrivals(bench: Workbench, n: int) -> None:
    eventually(lambda: len(bench.arrivals()) >= n, within=180, every=0.2)


def _beats(n: int) -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT ticks FROM redrive_tick_count")
        (ticks,) = cursor.fetchone() or (0,)
    first = _seen.setdefault("ticks", ticks)
    return bool(ticks >= first + n)


_seen: dict[str, int] = {}


def _hidden(bench: Workbench) -> int:
    asked = bench.sqs.get_queue_attributes(QueueUrl=bench.dlq_url, AttributeNames=["All"])["Attributes"]
    return int(asked["ApproximateNumberOfMessagesNotVisible"])


def _delivered() -> int:
    return Letter.objects.filter(state="delivered").count()


def _ask(*arguments: str) -> str:
    out = StringIO()
    call_command("after_restore", *arguments, stdout=out)
    return out.getvalue()


def _told() -> Any:  # noqa: ANN401  the report's own shape
    return json.loads(_ask("report", "--json"))


def _postgres(program: str, *arguments: str) -> None:
    there = postgres_programs()
    where = urlsplit(environment()["DATABASE_URL"])
    to = {"PGHOST": where.hostname, "PGPORT": str(where.port), "PGUSER": where.username}
    secret = {"PGPASSWORD": unquote(where.password or "")}
    name = where.path.lstrip("/")
    subprocess.run(
        [there / program, f"--dbname={name}", *arguments], check=True, timeout=120,
        env={**os.environ, **{key: value or "" for key, value in to.items()}, **secret},
    )  # fmt: skip
