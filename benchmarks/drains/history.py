"""Put finished letters into the tables, with a few SQL statements, as if a DLQ had been drained for a month."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, Final

import psycopg

CHUNK: Final = 100_000  #: letters of one transaction
BYTES: Final = 4_000  #: bytes of disk that a letter needs, with its indexes and its WAL

# Ten letters of each key, delivered at their first attempt, their copies deleted. They belong to the automatic run.
_LANES: Final = """
INSERT INTO redrive_lane (dlq_id, source_id, key_hash, key, phase, fence, highest_sent_sequence)
SELECT %(dlq)s, s.id, sha256(convert_to('history-' || n, 'UTF8')), 'history-' || n, 'idle', 1, '9'
  FROM generate_series(%(first)s::bigint / 10, %(last)s::bigint / 10) n
  JOIN redrive_source s ON s.dlq_id = %(dlq)s
ON CONFLICT DO NOTHING
"""
_LETTERS: Final = """
WITH n AS (
    SELECT n, sha256(convert_to('history-' || n / 10, 'UTF8')) AS hash,
           redrive_now() - interval '30 days' + (n / %(all)s::float8) * interval '29 days' AS at
      FROM generate_series(%(first)s::bigint, %(last)s::bigint) n
), letters AS (
    INSERT INTO redrive_letter (public_id, dlq_id, message_id, source_id, target_id, lane_id, run_id, state, attempts,
                                planned, ordering_key, key_hash, single, sequence, body_hash, size, first_sent_at,
                                captured_at, expires_at, finished_at)
    SELECT redrive_new_uuid(), %(dlq)s, gen_random_uuid()::text, s.id, s.target_id, l.id, r.id, 'delivered', 1,
           true, l.key, l.key_hash, false, lpad(n.n::text, 20, '0'), sha256(convert_to(n.n::text, 'UTF8')), 510,
           n.at - interval '1 h', n.at, n.at + interval '4 days', n.at + interval '1 s'
      FROM n JOIN redrive_source s ON s.dlq_id = %(dlq)s
      JOIN redrive_lane l ON l.dlq_id = %(dlq)s AND l.source_id = s.id AND l.key_hash = n.hash
      JOIN redrive_run r ON r.dlq_id = %(dlq)s AND r.kind = 'automatic'
     ORDER BY n.n
    RETURNING id, lane_id, target_id, run_id, message_id, captured_at
), payloads AS (
    INSERT INTO redrive_payload (letter_id, body, attributes, system)
    SELECT id, convert_to('{"key": "' || lane_id || '", "n": ' || id || ', "rest": "' ||
                          (SELECT string_agg(md5(id::text || i), '') FROM generate_series(1, 14) i) || '"}', 'UTF8'),
           convert_to('{"account": {"DataType": "String", "StringValue": "' || lane_id || '"}}', 'UTF8'),
           jsonb_build_object('SentTimestamp', '1700000000000', 'ApproximateReceiveCount', '1')
      FROM letters
), copies AS (
    INSERT INTO redrive_dlq_copy (dlq_id, message_id, letter_id, state, handle, visible_until, gone_at, expires_at)
    SELECT %(dlq)s, message_id, id, 'gone', '', captured_at + interval '15 min', captured_at + interval '2 s',
           captured_at + interval '4 days'
      FROM letters
)
INSERT INTO redrive_attempt (letter_id, lane_id, target_id, run_id, no, epoch, fence, opened_at, holds_lane, breaker_id,
                             breaker_epoch)
SELECT l.id, l.lane_id, l.target_id, l.run_id, 1, 0, 1, l.captured_at, false, b.id, b.epoch
  FROM letters l JOIN redrive_breaker b ON b.target_id = l.target_id AND b.rate_class_id IS NULL
 ORDER BY l.id
"""
# As the service does, first open attempts are written, which are shorter. If attempts were written closed, each page
# would have room for one more open attempt, so that each letter of a round would use another old page.
_OUTCOMES: Final = """
UPDATE redrive_attempt
   SET taken_at = opened_at, deadline = opened_at, sent_message_id = gen_random_uuid()::text, outcome = 'accepted',
       closed_at = opened_at + interval '1 s', counts_as_failure = false
 WHERE closed_at IS NULL
"""


def remember(url: str, dlq: int, letters: int, folder: Path) -> None:
    """Write this many finished letters of a DLQ, then vacuum and analyze, as autovacuum would have done long ago.

    Then read all indexes, so that they are in the memory of the machine: a service that has written so many letters
    has used each page of them again and again.
    """
    free = shutil.disk_usage(folder).free
    if free < letters * BYTES:
        raise SystemExit(
            f"A history of {letters:,} letters needs {letters * BYTES / 1e9:.0f} GB in {folder},"
            f" and {free / 1e9:.0f} GB are free. Set TMPDIR to a folder with more room, or name a smaller --history."
        )
    with psycopg.connect(url, autocommit=True) as database:
        for first in range(1, letters + 1, CHUNK):
            values = {"dlq": dlq, "first": first, "last": min(first + CHUNK - 1, letters), "all": letters}
            _write(database, values)
        if letters:
            database.execute("VACUUM ANALYZE")
            database.execute("CHECKPOINT")
            database.execute("CREATE EXTENSION IF NOT EXISTS pg_prewarm")
            database.execute("SELECT sum(pg_prewarm(indexrelid::regclass, 'read')) FROM pg_index")
            _check(database, letters)


def _write(database: psycopg.Connection[Any], values: dict[str, int]) -> None:
    with database.transaction():
        database.execute("SET LOCAL session_replication_role = replica")  # without triggers and foreign key checks
        database.execute(_LANES, values)
        database.execute(_LETTERS, values)
        database.execute(_OUTCOMES)


def _check(database: psycopg.Connection[Any], letters: int) -> None:
    for table in ("redrive_letter", "redrive_payload", "redrive_attempt", "redrive_dlq_copy"):
        row = database.execute(f"SELECT count(*) FROM {table}").fetchone()
        if row != (letters,):
            raise SystemExit(f"{table} has {row} rows for a history of {letters:,} letters.")
