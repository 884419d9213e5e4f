"""Fill the tables with the letters of one run, fast, and with the dead index entries that the run has left behind."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, LiteralString

from django.db import connection, transaction

from reprocessing.models import Breaker, Run, Wave
from reprocessing.pipeline.runs import feed_run
from tests.reprocessing.pipeline.bench import Workbench

TABLES: Final = (
    "redrive_letter", "redrive_payload", "redrive_attempt", "redrive_lane", "redrive_dlq_copy", "redrive_claim",
    "redrive_target_check",
)  # fmt: skip

#: Runs of the dlq that have ended, and left nothing.
ENDED_RUNS: Final = 20

# Letters n, in pairs of one key, but for every tenth: those have one key in common. The lanes were leased.
_KEY: Final[LiteralString] = "CASE WHEN n %% 10 = 0 THEN 'hot' ELSE 'k' || n / 2 END"
_LANES: Final[LiteralString] = f"""
INSERT INTO redrive_lane (dlq_id, source_id, key_hash, key, run_id, phase, due_at, fence)
SELECT %(dlq)s, %(source)s, sha256(convert_to(key, 'UTF8')), key, %(run)s, 'leased', redrive_now(), 1
  FROM (SELECT DISTINCT {_KEY} AS key FROM generate_series(%(first)s::int, %(last)s::int) n) keys
ON CONFLICT DO NOTHING
"""

# Each was sent; what it was sent as is closed below, and leaves its entries in the indexes of what is open.
_LETTERS: Final[LiteralString] = f"""
WITH n AS (
    SELECT n, {_KEY} AS key, %(prefix)s || n AS name FROM generate_series(%(first)s::int, %(last)s::int) n
), letters AS (
    INSERT INTO redrive_letter (public_id, dlq_id, message_id, source_id, target_id, lane_id, run_id, state, attempts,
                                planned, ordering_key, key_hash, single, sequence, idempotency_key, body_hash, size,
                                first_sent_at, captured_at, expires_at, grouped_at)
    SELECT gen_random_uuid(), %(dlq)s, n.name, %(source)s, %(target)s, l.id, %(run)s, 'awaiting', 1,
           true, l.key, l.key_hash, false, lpad(n.n::text, 9, '0'), n.name, sha256(convert_to(n.name, 'UTF8')), 100,
           redrive_now() - interval '1 day', redrive_now() - interval '1 h', redrive_now() + interval '3 days',
           redrive_now()
      FROM n JOIN redrive_lane l ON l.dlq_id = %(dlq)s AND l.key = n.key
     ORDER BY n.n
    RETURNING id, lane_id, message_id, body_hash, sequence
), payloads AS (
    INSERT INTO redrive_payload (letter_id, body, attributes, system)
    SELECT id, convert_to(message_id, 'UTF8'), convert_to('{{}}', 'UTF8'), '{{}}' FROM letters
), copies AS (
    INSERT INTO redrive_dlq_copy (dlq_id, message_id, letter_id, state, handle, visible_until, expires_at)
    SELECT %(dlq)s, message_id, id, 'held', 'none', redrive_now() + interval '1 h', redrive_now() + interval '3 days'
      FROM letters
), claims AS (
    INSERT INTO redrive_claim (target_id, key_space, key_hash, letter_id, state, body_hash, until)
    SELECT %(target)s, %(dlq)s::text, body_hash, id, 'held', body_hash, redrive_now() FROM letters
)
INSERT INTO redrive_attempt (letter_id, lane_id, target_id, run_id, no, epoch, fence, opened_at, taken_at, deadline,
                             sent_message_id, holds_lane, breaker_id, breaker_epoch, wave_id)
SELECT id, lane_id, %(target)s, %(run)s, 1, 0, 1, redrive_now(), redrive_now(), redrive_now(), 'sent-' || message_id,
       row_number() OVER (PARTITION BY lane_id ORDER BY id) = 1, %(breaker)s, %(epoch)s, %(wave)s
  FROM letters ORDER BY sequence >= lpad(%(waits)s::text, 9, '0') DESC, id
"""

# Those before `waits` were delivered; the rest failed, each in an earlier epoch of its breaker, and waits.
_ENDS: Final[LiteralString] = """
UPDATE redrive_attempt a
   SET closed_at = redrive_now(), holds_lane = false,
       outcome = CASE WHEN l.sequence < %(at)s THEN 'absent' ELSE 'refused' END,
              counts_as_failure = l.sequence >= %(at)s,
       breaker_epoch = CASE WHEN l.sequence < %(at)s THEN a.breaker_epoch ELSE 0 END
  FROM redrive_letter l
 WHERE l.id = a.letter_id AND a.run_id = %(run)s AND a.closed_at IS NULL;
UPDATE redrive_dlq_copy c
   SET state = CASE WHEN l.sequence < %(at)s THEN 'gone' ELSE 'held' END,
       visible_until = c.visible_until + interval '1 h',
       gone_at = CASE WHEN l.sequence < %(at)s THEN redrive_now() - interval '1 h' END
  FROM redrive_letter l
 WHERE l.id = c.letter_id AND l.run_id = %(run)s AND l.state = 'awaiting';
UPDATE redrive_claim c SET state = CASE WHEN l.sequence < %(at)s THEN 'delivered' ELSE 'free' END, until = NULL
  FROM redrive_letter l
 WHERE l.id = c.letter_id AND l.run_id = %(run)s AND l.state = 'awaiting';
UPDATE redrive_letter
   SET state = CASE WHEN sequence < %(at)s THEN 'delivered' ELSE 'waiting' END, presumed = sequence < %(at)s,
       finished_at = CASE WHEN sequence < %(at)s THEN redrive_now() END
 WHERE run_id = %(run)s AND state = 'awaiting';
UPDATE redrive_lane n
   SET phase = CASE WHEN h.waits THEN 'ready' ELSE 'idle' END, breaker_id = %(breaker)s,
       run_id = CASE WHEN h.waits THEN n.run_id END,
       due_at = CASE WHEN h.waits THEN redrive_now() - interval '1 s' END
  FROM (SELECT lane_id, bool_or(state = 'waiting') AS waits FROM redrive_letter WHERE run_id = %(run)s GROUP BY 1) h
 WHERE n.id = h.lane_id AND n.phase = 'leased'
"""

# Every hundredth of what was delivered belongs to runs that have ended.
_HISTORY: Final[LiteralString] = """
UPDATE redrive_letter SET run_id = (%(ended)s::bigint[])[1 + sequence::int / 100 %% cardinality(%(ended)s::bigint[])]
 WHERE run_id = %(run)s AND state = 'delivered' AND sequence::int %% 100 = 0;
UPDATE redrive_attempt a SET run_id = l.run_id
  FROM redrive_letter l WHERE l.id = a.letter_id AND l.run_id = ANY (%(ended)s::bigint[])
"""

_LOOKS: Final[LiteralString] = """
INSERT INTO redrive_target_check (target_id, seen_at, empty, idle_since)
SELECT %(target)s, redrive_now() - (%(last)s - n) * interval '100 ms' - interval '1 s', true,
       CASE WHEN n %% 3 > 0 THEN redrive_now() - interval '1 day' END
  FROM generate_series(%(first)s::int, %(last)s::int) n
"""


@contextmanager
def nothing_is_vacuumed() -> Iterator[None]:
    """Keep PostgreSQL from cleaning up tables and gathering statistics.

    Begin with an empty database. Its tables get new files, so that none keeps dead rows of earlier tests.
    """
    _of_all("ALTER TABLE {} SET (autovacuum_enabled = false)")
    empty = [table for table in _tables() if _is_empty(table)]
    with connection.cursor() as cursor:
        cursor.execute(f"TRUNCATE {', '.join(empty)}")
    try:
        yield
    finally:
        _of_all("ALTER TABLE {} RESET (autovacuum_enabled)")


def without_statistics() -> None:
    """Remove all statistics that earlier tests left, of tables and indexes: ANALYZE's, and VACUUM's rows per page."""
    _of_all("DELETE FROM pg_statistic WHERE starelid = '{}'::regclass")
    _of_all("UPDATE pg_class SET reltuples = -1, relpages = 0, relallvisible = 0 WHERE oid = '{}'::regclass")
    indexes = "SELECT indexrelid FROM pg_index WHERE indrelid = '{}'::regclass"
    _of_all(f"UPDATE pg_class SET reltuples = -1, relpages = 0 WHERE oid IN ({indexes})")


def with_statistics() -> None:
    """Gather statistics of all tables."""
    _of_all("ANALYZE {}")


def _tables() -> list[str]:
    return sorted(connection.introspection.django_table_names(only_existing=True, include_views=False))


def _is_empty(table: str) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(f'SELECT NOT EXISTS (SELECT FROM "{table}")')
        return bool(cursor.fetchone()[0])


def _of_all(statement: str) -> None:
    with connection.cursor() as cursor:
        for table in _tables():
            cursor.execute(statement.format(table))


def seed(bench: Workbench, run: Run, first: int, last: int) -> None:
    """Create letters `first` to `last` of a run: half delivered, half waiting, each sent once."""
    wave = Wave.objects.filter(run=run, settled_at=None).first()
    breaker = Breaker.objects.get(target=bench.target)
    waits = first + (last - first) // 2
    ended = [
        Run.objects.create(name=f"ended-{first}-{no}", dlq=bench.dlq, state="finished", asked_by="a test").pk
        for no in range(ENDED_RUNS)
    ]
    values: dict[str, Any] = {
        "dlq": bench.dlq.pk, "source": bench.source.pk, "target": bench.target.pk, "run": run.pk, "first": first,
        "last": last, "prefix": f"{run.pk}-", "breaker": breaker.pk, "epoch": breaker.epoch,
        "wave": wave.pk if wave else None, "waits": waits, "at": f"{waits:09}", "ended": ended,
    }  # fmt: skip
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")  # no trigger and no foreign key is asked
        cursor.execute("SET LOCAL enable_nestloop = off")  # nothing is known of the tables yet
        for statement in (_LANES, _LETTERS, *_ENDS.split(";"), *_HISTORY.split(";"), _LOOKS):
            cursor.execute(statement, values)


def automatic_run(bench: Workbench) -> Run:
    """Return the bench's automatic run, in its last wave."""
    run = feed_run.automatic_run(bench.dlq)
    Wave.objects.filter(run=run).update(size=None)
    return run
