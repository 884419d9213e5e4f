"""What befalls Postgres and Redis. Each strikes, heals, and says how often what it armed was felt."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime

import psycopg
import redis

from tests.conditions import eventually
from tests.proof.dependencies.own_servers import CONNECTIONS, ROLE
from tests.proof.dependencies.verdict import sends_between
from tests.proof.dependencies.world import World, pass_seconds

Fired = dict[str, int]
Strike = Callable[[World], Fired]

RESTARTS, SECONDS = 3, 8.0
TERMINATED_EVERY = 0.05
HELD = 15.0  # seconds: longer than a lease
_WAITING = "SELECT count(*) FROM pg_stat_activity WHERE %s = ANY(pg_blocking_pids(pid))"
_AT_WORK = "SELECT id FROM redrive_lane WHERE phase = 'leased' ORDER BY id LIMIT 12 FOR UPDATE"
ON_THE_WIRE = 0.75  # seconds: the life of a token, and what a request takes to be counted


def is_felt(seen: Fired) -> bool:
    """Whether all that was armed was felt; of what reports nothing nobody knows."""
    return bool(seen) and all(seen.values())


def postgres_is_restarted(world: World) -> Fired:
    """Immediately: no connection is closed, and the log is replayed at the start."""
    lost = 0
    for _ in range(RESTARTS):
        lost += len(list(world.servers.backends()))
        world.servers.kill("postgres", signal.SIGQUIT)
        world.servers.start_again("postgres")
        pass_seconds(3)
    return {"connections lost": lost}


def connections_are_killed(world: World) -> Fired:
    """One of those that the service has, every 50 ms: some live long enough to be in the middle of something."""
    killed = 0
    with closing(world.servers.connect()) as connection:
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            found = connection.execute(
                "SELECT pg_terminate_backend(pid) FROM (SELECT pid FROM pg_stat_activity WHERE usename = %s "
                "AND application_name <> 'the proof' ORDER BY random() LIMIT 1) one", [ROLE],
            )  # fmt: skip
            killed += sum(bool(done) for (done,) in found.fetchall())
            pass_seconds(TERMINATED_EVERY)
    return {"connections killed": killed}


def connections_are_exhausted(world: World) -> Fired:
    """Somebody else has every connection that the service's role may have."""
    refusal = "too many connections for role"
    before = world.servers.count_in_log("postgres", refusal)
    held: list[psycopg.Connection[tuple[object, ...]]] = []
    try:
        held += [world.servers.connect(ours=True) for _ in range(10)]
        world.servers.limit_connections(len(held))
        for pid in world.servers.backends():
            world.servers.ask("SELECT pg_terminate_backend(%s)", pid)
        pass_seconds(SECONDS)
        refused = world.servers.count_in_log("postgres", refusal) - before
    finally:
        world.servers.limit_connections(CONNECTIONS)
        for one in held:
            one.close()
    return {"connections refused": refused}


def lanes_are_locked(world: World) -> Fired:
    """A transaction that is left open has rows of lanes in its hands, of such as a slice is at work on."""
    waiting = 0
    with closing(world.servers.connect()) as connection, connection.transaction():
        eventually(lambda: connection.execute(_AT_WORK).fetchall(), within=10)
        pid = connection.info.backend_pid
        end = time.monotonic() + HELD
        while time.monotonic() < end:
            ((now,),) = world.servers.ask(_WAITING, pid)
            waiting = max(waiting, now)
            pass_seconds(0.25)
    return {"connections that waited for it": waiting}


def a_snapshot_is_held(world: World) -> Fired:
    """A transaction that is left open looks at the database as it was: nothing dead since then can be cleaned up."""
    with closing(world.servers.connect()) as connection, connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        connection.execute("SELECT 1")
        pid = connection.info.backend_pid
        pass_seconds(2 * HELD)
        found = world.servers.ask("SELECT age(backend_xmin) FROM pg_stat_activity WHERE pid = %s", pid)
    return {"transactions behind the snapshot": found[0][0]}


def redis_is_flushed(world: World) -> Fired:
    """Again and again: each time every bucket is forgotten."""
    forgotten = 0
    with redis.Redis.from_url(world.servers.stack.valkey.url) as client:
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            forgotten += client.dbsize() > 0
            client.flushall()
            pass_seconds(0.02)
    return {"flushes": forgotten}


def redis_is_stopped(world: World) -> Fired:
    process, missed = world.servers.process("redis"), _missed(world)
    began = _now()
    process.send_signal(signal.SIGSTOP)
    try:
        pass_seconds(SECONDS)
    finally:
        ended = _now()
        process.send_signal(signal.SIGCONT)
    return _rest_of_replay(world, began, ended, missed)


def redis_is_killed(world: World) -> Fired:
    """It is gone for some seconds, and comes back."""
    began, missed = _now(), _missed(world)
    world.servers.kill("redis", signal.SIGKILL)
    pass_seconds(SECONDS)
    ended = _now()
    world.servers.start_again("redis")
    return _rest_of_replay(world, began, ended, missed)


def _rest_of_replay(world: World, began: float, ended: float, missed: int) -> Fired:
    """Without Redis nothing is sent; `missed`: the answers that had been missed before."""
    sent = {flow.name: sends_between(flow, world.since, began + ON_THE_WIRE, ended) for flow in world.flows}
    assert not any(sent.values()), f"sent while Redis did not answer: {sent}"
    return {"answers missed": eventually(lambda: _missed(world) - missed, within=10)}


def _missed(world: World) -> int:
    return world.servers.count_in_log("worker", "Redis did not say whether messages may go")


def _now() -> float:
    return datetime.now(UTC).timestamp()  # noqa: TID251  the clock of the call log


OUTAGES: dict[str, Strike] = {
    "postgres is restarted": postgres_is_restarted,
    "connections are killed": connections_are_killed,
    "connections are exhausted": connections_are_exhausted,
    "lanes are locked": lanes_are_locked,
    "a snapshot is held": a_snapshot_is_held,
    "redis is flushed": redis_is_flushed,
    "redis is stopped": redis_is_stopped,
    "redis is killed": redis_is_killed,
}
