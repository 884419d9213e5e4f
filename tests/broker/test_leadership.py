"""Who leads, on a real PostgreSQL."""

from __future__ import annotations

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


@pytest.fixture
def first() -> Iterator[Leadership]:
    leadership = Leadership(_connect)
    yield leadership
    leadership.release()


@pytest.fixture
def second() -> Iterator[Leadership]:
    leadership = Leadership(_connect)
    yield leadership
    leadership.release()


def test_one_of_two_leads(first: Leadership, second: Leadership) -> None:
    assert [first.is_held(), second.is_held(), first.is_held(), second.is_held()] == [True, False, True, False]


def test_a_standby_says_once_that_it_stands_by(
    first: Leadership, second: Leadership, caplog: pytest.LogCaptureFixture
) -> None:
    first.is_held()
    second.is_held()
    second.is_held()

    assert caplog.messages == ["redrive.beat.leads", "redrive.beat.stands_by"]


def test_the_second_leads_when_the_first_gives_up(first: Leadership, second: Leadership) -> None:
    assert [first.is_held(), second.is_held()] == [True, False]
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
    assert first.is_held()


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


def test_giving_up_twice_is_harmless(first: Leadership) -> None:
    assert first.is_held()
    first.release()
    first.release()
    assert first.is_held()


def test_a_dead_peer_is_noticed_by_both_ends(first: Leadership) -> None:
    assert first.is_held()
    assert first._session is not None
    idle = first._session.execute("SELECT current_setting('tcp_keepalives_idle')").fetchone()
    assert idle == ("4",)
    assert first._session.info.get_parameters()["keepalives_idle"] == "4"
