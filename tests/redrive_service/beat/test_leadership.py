"""Who leads, on a real PostgreSQL."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from django.db import connections

from redrive_service.leadership import Leadership, dedicated_connection
from tests.conditions import eventually

pytestmark = pytest.mark.django_db


def _connect() -> psycopg.Connection[Any]:
    return dedicated_connection(connections["default"].get_connection_params())


def _end_session_of(leader: Leadership) -> None:
    assert leader._session is not None
    with _connect() as other:
        other.execute("SELECT pg_terminate_backend(%s)", [leader._session.info.backend_pid])


def _standing() -> Iterator[Leadership]:
    made = Leadership(_connect)
    yield made
    made.release()


first, second = pytest.fixture(_standing), pytest.fixture(_standing)


def test_one_of_two_leads_and_the_other_says_once_that_it_stands_by_until_the_first_gives_up(
    first: Leadership, second: Leadership, caplog: pytest.LogCaptureFixture
) -> None:
    assert [first.is_held(), second.is_held(), first.is_held(), second.is_held()] == [True, False, True, False]
    assert caplog.messages == ["redrive.beat.leads", "redrive.beat.stands_by"]
    first.release()
    assert eventually(second.is_held, within=5)
    assert not first.is_held()


def test_a_leader_whose_session_was_ended_no_longer_leads_though_nobody_told_it(
    first: Leadership, second: Leadership
) -> None:
    assert first.is_held()
    _end_session_of(first)
    assert eventually(second.is_held, within=5)
    assert not first.is_held()


def test_a_leader_whose_session_was_ended_asks_for_the_lead_again(first: Leadership) -> None:
    assert first.is_held()
    _end_session_of(first)
    assert not first.is_held()
    assert eventually(first.is_held, within=10)


def test_a_leader_whose_session_no_longer_has_the_lock_does_not_lead(first: Leadership, second: Leadership) -> None:
    assert first.is_held()
    assert first._session is not None
    first._session.execute("SELECT pg_advisory_unlock_all()")  # as a pooler that hands on another session
    assert second.is_held()
    assert not first.is_held()


def test_nobody_leads_without_a_database_and_nothing_is_raised() -> None:
    def refuse() -> psycopg.Connection[Any]:
        raise psycopg.OperationalError("the database is away")

    assert not Leadership(refuse).is_held()


PROBING = {"idle": "4", "interval": "2", "count": "3"}


def test_a_dead_leader_is_noticed_by_the_server_in_ten_seconds(first: Leadership) -> None:
    assert first.is_held()
    assert first._session is not None
    told = first._session.execute("SELECT name, setting FROM pg_settings WHERE name LIKE 'tcp_keepalives_%'").fetchall()
    assert {name.removeprefix("tcp_keepalives_"): value for name, value in told} == PROBING


def test_a_dead_server_is_noticed_by_the_leader_in_ten_seconds() -> None:
    parameters = {**connections["default"].get_connection_params(), "keepalives": 0, "connect_timeout": 60}
    with dedicated_connection(parameters) as session:
        told = session.info.get_parameters()
        probes = socket.socket(fileno=os.dup(session.fileno()))
    with probes:
        assert {name: told[f"keepalives_{name}"] for name in PROBING} == PROBING
        assert (told["tcp_user_timeout"], told["connect_timeout"]) == ("10000", "3")
        assert probes.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        assert probes.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 10000


def test_what_the_database_url_tells_the_server_is_told_to_it_too() -> None:
    parameters = {**connections["default"].get_connection_params(), "options": "-c work_mem=5MB"}
    with dedicated_connection(parameters) as session:
        assert session.execute("SELECT current_setting('work_mem')").fetchone() == ("5MB",)
        assert session.execute("SELECT current_setting('tcp_keepalives_count')").fetchone() == ("3",)
