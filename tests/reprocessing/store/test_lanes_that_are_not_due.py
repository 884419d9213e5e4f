"""Statements that look for due lanes do not read other lanes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, LiteralString

import pytest
from django.db import connection

from reprocessing.models import DeadLetterQueue
from reprocessing.store.aws import aws_redrive_checks
from reprocessing.store.notifications import stalled_runs
from reprocessing.store.ordering import stalled_lanes
from tests.reprocessing.pipeline.bench import Workbench
from tests.reprocessing.store.explained import explained
from tests.reprocessing.store.seeded_letters import automatic_run, nothing_is_vacuumed, with_statistics

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.soak]

#: Lanes that wait, and buffers that a statement may read: a few small tables and indexes.
LANES: Final = 3_000
MOST: Final = 40

# AWS may have moved the copy, which is visible.
_COPY: Final[LiteralString] = """
WITH letter AS (
    INSERT INTO redrive_letter (public_id, dlq_id, message_id, state, body_hash, size, first_sent_at)
    SELECT gen_random_uuid(), %s, 'visible', 'captured', 'hash', 9, redrive_now()
    RETURNING id, dlq_id, message_id
)
INSERT INTO redrive_dlq_copy (dlq_id, message_id, letter_id, state, handle, visible_until)
SELECT dlq_id, message_id, id, 'held', 'handle', redrive_now() - interval '1 hour' FROM letter
"""
_LANES: Final[LiteralString] = """
INSERT INTO redrive_lane (dlq_id, source_id, key_hash, run_id, phase, due_at)
SELECT %s, %s, int8send(n), %s, CASE n %% 2 WHEN 0 THEN 'ready' ELSE 'awaiting' END,
       CASE n %% 2 WHEN 0 THEN redrive_now() + interval '1 hour' END
  FROM generate_series(1, %s::int) n
"""


@pytest.mark.parametrize(
    "look",
    [
        lambda: aws_redrive_checks.dlqs_to_ask_about(None),
        lambda: stalled_lanes.find_stalled(None, long=60.0, lost=60.0),
        lambda: stalled_runs.runs_that_send_nothing(long=60.0),
    ],
    ids=["whether AWS moves them", "stalled lanes", "runs that wait"],
)
def test_lanes_that_are_not_due_are_not_read(look: Callable[[], list[object]]) -> None:
    with nothing_is_vacuumed():
        bench = Workbench(fields={"mode": "automatic"})
        run = automatic_run(bench)
        with connection.cursor() as cursor:
            cursor.execute(_COPY, [bench.dlq.pk])
            cursor.execute(_LANES, [bench.dlq.pk, bench.source.pk, run.pk, LANES])
        DeadLetterQueue.objects.update(aws_redrive_answered_at=None, aws_redrive_asked_at=None)  # AWS is to be asked
        with_statistics()
        with explained() as found:
            assert look() == []
    assert {one.name: one.buffers for one in found if one.buffers > MOST or one.scanned} == {}
