"""Two beats on one schedule: every tick is sent once, and the second takes over from the first."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.broker.local_sqs import LocalSqs
from tests.conditions import eventually
from tests.redrive_service.beat.beats import LEADS, START, Schedule, throw_away_database

TAKEN_OVER = 15.0  # seconds after the leader's end


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The name of a database that has all tables and nobody in it."""
    with throw_away_database(os.environ["DATABASE_URL"]) as url:
        with LocalSqs() as sqs:
            Schedule(sqs=sqs, database_url=url, folder=tmp_path_factory.mktemp("tables")).migrate()
        yield urlsplit(url).path.removeprefix("/")


@pytest.fixture
def schedule(tmp_path: Path, tables: str) -> Iterator[Schedule]:
    with LocalSqs() as sqs, throw_away_database(os.environ["DATABASE_URL"], like=tables) as url:
        yield Schedule(sqs=sqs, database_url=url, folder=tmp_path)


@pytest.mark.soak
@pytest.mark.parametrize("ticks", [5, pytest.param(60, marks=pytest.mark.long)])
def test_two_beats_send_every_tick_once(schedule: Schedule, ticks: int) -> None:
    with schedule.beat("first"), schedule.beat("second"):
        eventually(lambda: schedule.runs() >= ticks, within=START + 2 * ticks)
        schedule.end()
        assert schedule.sends() == schedule.runs()


@pytest.mark.soak
@pytest.mark.parametrize("told_to_end", [True, False])
def test_the_second_beat_takes_over_from_one_that_was_told_to_end_or_killed(
    schedule: Schedule, told_to_end: bool
) -> None:
    with schedule.beat("first") as first:
        eventually(lambda: first.says(LEADS) and schedule.sends(), within=START)
        with schedule.beat("second") as second:
            eventually(lambda: second.says("beat: Starting"), within=START)
            if told_to_end:
                assert first.stop() == 0
            else:
                first.kill()
            sent = schedule.sends()
            eventually(lambda: second.says(LEADS) and schedule.sends() > sent, within=TAKEN_OVER)
