"""Write the million letters of the benchmark `admin_pages`, with a few SQL statements.

`DLQS`: the usual number of DLQs.
"""

from __future__ import annotations

from itertools import chain
from typing import Final

DLQS, GROUPS, CHUNK = 20, 200, 100_000

#: Write letters a to b. A letter's number decides its dlq, state, lane and failure group. Letters after `live`, up to
#: `live` + `history`, are all delivered, before the letters after them.
_LETTERS: Final = """
INSERT INTO redrive_letter (id, public_id, message_id, dlq_id, source_id, target_id, lane_id, run_id, state, attempts,
       planned, ordering_key, key_hash, single, sequence, idempotency_key, body_hash, size, reason, detail, presumed,
       first_sent_at, expires_at, captured_at, finished_at, duplicate_of_id, group_id, grouped_at, due_at, assigned_to)
SELECT n, gen_random_uuid(), gen_random_uuid()::text, d.dlq, d.source, d.target, CASE WHEN p.state <> 'captured' THEN
       1 + n %% 100000 END, CASE WHEN p.state <> 'captured' THEN 1 + n %% 2000 END, p.state,
       CASE p.state WHEN 'parked' THEN 3 WHEN 'captured' THEN 0 WHEN 'waiting' THEN 0 ELSE 1 END, true,
       'account-' || n %% 100000, int8send(n %% 100000), false, lpad(n::text, 20, '0'), NULL, int8send(n), 300,
       p.reason,
       CASE WHEN p.state = 'parked' THEN 'Busy: not now' ELSE '' END, p.state = 'delivered' AND n %% 3 = 0,
       t.at, t.at + interval '14 days', t.at + interval '1 hour',
       CASE WHEN p.state NOT IN ('captured', 'waiting') THEN t.at + interval '2 hours' END,
       CASE WHEN p.state = 'duplicate' THEN n / 100 * 100 + 1 END,
       CASE WHEN p.state <> 'delivered' THEN 1 + n %% %(groups)s END, t.at + interval '3 hours', NULL,
       CASE WHEN n %% 500 = 85 THEN 'ann' ELSE '' END
  FROM generate_series(%(a)s::bigint, %(b)s) n
  JOIN (SELECT row_number() OVER (ORDER BY o.id) - 1 AS no, o.dlq_id AS dlq, o.id AS source, o.target_id AS target
          FROM redrive_source o) d ON d.no = (n + n / 300 * %(skew)s) %% %(dlqs)s
 CROSS JOIN LATERAL (
       SELECT CASE WHEN n > %(live)s AND n <= %(live)s + %(history)s OR n %% 100 < 60 THEN 'delivered'
                   WHEN n %% 100 BETWEEN 85 AND 94 THEN 'parked'
                   WHEN n %% 100 < 72 THEN 'captured' WHEN n %% 100 < 85 THEN 'waiting'
                   WHEN n %% 100 < 98 THEN 'discarded' ELSE 'duplicate' END AS state,
              CASE WHEN NOT (n > %(live)s AND n <= %(live)s + %(history)s) AND n %% 100 BETWEEN 85 AND 94
                   THEN (ARRAY['attempts_spent', 'refused', 'stale'])[1 + n / 100 %% 3] ELSE '' END AS reason) p
 CROSS JOIN LATERAL (SELECT redrive_now() - interval '10 days' + interval '0.1 seconds' * CASE
              WHEN n <= %(live)s THEN 8 * n
              WHEN n <= %(live)s + %(history)s THEN n - %(live)s - %(history)s
              ELSE 8 * (n - %(history)s) END AS at) t
"""

_LANES: Final = """
INSERT INTO redrive_lane (id, key, key_hash, dlq_id, source_id, single, phase, due_at, run_id)
SELECT n + 1, 'account-' || n, sha256(convert_to('account-' || n, 'UTF8')), d.dlq, d.source, false,
       CASE WHEN n %% 100 BETWEEN 72 AND 84 THEN 'ready' ELSE 'idle' END,
       CASE WHEN n %% 100 BETWEEN 72 AND 84 THEN redrive_now() + interval '1 hour' END, 1 + n %% 2000
  FROM generate_series(0, 99999) n
  JOIN (SELECT row_number() OVER (ORDER BY o.id) - 1 AS no, o.dlq_id AS dlq, o.id AS source FROM redrive_source o) d
    ON d.no = n %% %(dlqs)s
"""

_RUNS: Final = """
INSERT INTO redrive_run (id, name, kind, state, selection, asked_by, created_at, dlq_id, reason, started_at,
       finished_at)
SELECT n, 'run-' || n, 'drain', CASE WHEN n > 1995 THEN 'running' ELSE 'finished' END, '{}', 'ann',
       redrive_now() - n * interval '1 minute', d.id, 'mended', redrive_now() - n * interval '1 minute',
       CASE WHEN n <= 1995 THEN redrive_now() END
  FROM generate_series(1, 2000) n
  JOIN (SELECT row_number() OVER (ORDER BY id) - 1 AS no, id FROM redrive_dlq) d ON d.no = n %% %(dlqs)s
"""

_GROUPS: Final = """
INSERT INTO redrive_failure_group (id, fingerprint, cause, title, first_at, last_at, dlq_id)
SELECT n, int8send(n), 'reported', 'KeyError in handler ' || n, redrive_now() - interval '10 days',
       redrive_now() - n * interval '1 minute', d.id
  FROM generate_series(1, %(groups)s) n
  JOIN (SELECT row_number() OVER (ORDER BY id) - 1 AS no, id FROM redrive_dlq) d ON d.no = (n - 1) %% %(dlqs)s
"""

#: Write the rows that belong to letters a to b.
_REST: Final = (
    """
INSERT INTO redrive_payload (letter_id, body, attributes, system)
SELECT id, convert_to('{"order": ' || id || ', "customer": "account-' || id %% 100000 || '", "note": "' ||
       repeat('x', 200) || '"}', 'UTF8'), '{}', '{}' FROM redrive_letter
 WHERE id BETWEEN %(a)s AND %(b)s AND state IN ('captured', 'waiting', 'parked')
""",
    """
INSERT INTO redrive_attempt (letter_id, no, epoch, fence, opened_at, holds_lane, lane_id, target_id, run_id, outcome,
       detail, closed_at, taken_at, sent_message_id, breaker_id)
SELECT l.id, k, 0, l.id, l.captured_at, false, l.lane_id, l.target_id, l.run_id,
       CASE WHEN l.state = 'delivered' THEN 'accepted' ELSE 'refused' END, 'Busy: not now', l.finished_at,
       l.captured_at, gen_random_uuid()::text, b.id
  FROM redrive_letter l JOIN redrive_breaker b ON b.target_id = l.target_id AND b.rate_class_id IS NULL
 CROSS JOIN LATERAL generate_series(1, l.attempts) k
 WHERE l.id BETWEEN %(a)s AND %(b)s AND (l.state = 'parked' OR l.id %% 4 = 0)
""",
    """
INSERT INTO redrive_search_entry (letter_id, dlq_id, name, value, masked)
SELECT l.id, l.dlq_id, f.name, CASE f.name WHEN 'order' THEN l.id::text ELSE 'account-' || l.id %% 300 END, false
  FROM redrive_letter l CROSS JOIN (VALUES ('order'), ('customer')) f(name) WHERE l.id BETWEEN %(a)s AND %(b)s
""",
    """
INSERT INTO redrive_dlq_copy (message_id, state, handle, visible_until, expires_at, letter_id, dlq_id)
SELECT message_id, 'held', 'h', redrive_now() + interval '1 hour', expires_at, id, dlq_id FROM redrive_letter
 WHERE id BETWEEN %(a)s AND %(b)s AND state IN ('captured', 'waiting') AND id %% 5 = 0
""",
    """
INSERT INTO redrive_audit_entry (act, by, reason, before, after, letter_id, dlq_id, at)
SELECT 'discarded', 'ann', 'of no use', '{"state": "parked"}', '{"state": "discarded"}', id, dlq_id, finished_at
  FROM redrive_letter WHERE id BETWEEN %(a)s AND %(b)s AND state = 'discarded'
""",
    """
INSERT INTO redrive_report (verdict, type, message, fingerprint, happened_at, received_at, digest, message_id)
SELECT 'failed', 'KeyError', 'a message', 'f' || id %% 200, first_sent_at, captured_at, int8send(id), message_id
  FROM redrive_letter WHERE id BETWEEN %(a)s AND %(b)s AND state = 'parked'
""",
    """
INSERT INTO redrive_parking_queue_message (parking_event, letter_id, dlq_id, sent_at)
SELECT 'parked', id, dlq_id, finished_at FROM redrive_letter WHERE id BETWEEN %(a)s AND %(b)s AND state = 'parked'
""",
)

#: The counts that triggers keep while letters are written one statement at a time.
_COUNTS: Final = (
    "TRUNCATE redrive_letter_count, redrive_letter_count_delta, redrive_hourly_count, redrive_hourly_count_delta",
    """
INSERT INTO redrive_letter_count (dlq_id, group_id, state, reason, presumed, n)
SELECT dlq_id, coalesce(group_id, 0), state, reason, presumed, count(*) FROM redrive_letter GROUP BY 1, 2, 3, 4, 5
""",
    """
INSERT INTO redrive_hourly_count (dlq_id, hour, what, n)
SELECT dlq_id, date_trunc('hour', captured_at), 'captured', count(*) FROM redrive_letter GROUP BY 1, 2
UNION ALL SELECT dlq_id, date_trunc('hour', finished_at), state, count(*) FROM redrive_letter
 WHERE finished_at IS NOT NULL GROUP BY 1, 2, 3
""",
)


#: Every tenth queued letter is being sent, now and until the measurement ends.
_SENDING: Final = (
    """
INSERT INTO redrive_attempt (letter_id, no, epoch, fence, opened_at, holds_lane, lane_id, target_id, run_id, detail,
       breaker_id)
SELECT l.id, 1, 1, l.id, redrive_now() + interval '1 hour', false, l.lane_id, l.target_id, l.run_id, '', b.id
  FROM redrive_letter l JOIN redrive_breaker b ON b.target_id = l.target_id AND b.rate_class_id IS NULL
 WHERE l.id BETWEEN %(a)s AND %(b)s AND l.state = 'waiting' AND l.id %% 40 IN (3, 14)
""",
    """
UPDATE redrive_letter SET state = 'sending'
 WHERE id BETWEEN %(a)s AND %(b)s AND state = 'waiting' AND id %% 40 IN (3, 14)
""",
)

#: SQS's message count of each dlq is higher than the number of captured letters, so that the pages count copies.
_DEPTHS: Final = "UPDATE redrive_dlq SET depth_visible = 100000, depth_in_flight = 7, depth_at = redrive_now()"


def create_dlqs(dlqs: int = DLQS) -> None:
    """Create the DLQs, their targets and sources, and all other rows that do not depend on letters."""
    from django.db import connection  # noqa: PLC0415  its settings are known by now

    from reprocessing.models import DeadLetterQueue, Source, Target  # noqa: PLC0415  as above
    from reprocessing.store.search import search_settings  # noqa: PLC0415  as above

    for number in range(dlqs):
        arn, url = f"arn:aws:sqs:us-east-1:0:shop-{number:02}", f"http://127.0.0.1:9/0/shop-{number:02}"
        dlq = DeadLetterQueue.objects.create(
            name=f"shop-{number:02}-dlq", url=f"{url}-dlq", arn=f"{arn}-dlq", region="r",
            search_fields=["order=body:order", "customer=body:customer"],
        )  # fmt: skip
        DeadLetterQueue.objects.filter(pk=dlq.pk).update(search_indexed_for=search_settings.of_dlq(dlq).digest)
        target = Target.objects.create(arn=arn, url=url, region="us-east-1")
        Source.objects.create(dlq=dlq, arn=arn, target=target)
    with connection.cursor() as cursor:
        for statement in (_RUNS, _LANES, _GROUPS):
            cursor.execute(statement, {"dlqs": dlqs, "groups": GROUPS})
        if dlqs > DLQS:
            cursor.execute(_DEPTHS)


def move_to_newest_run() -> int:
    """Move all letters of runs into the newest run; return the id of this run."""
    from django.db import connection, transaction  # noqa: PLC0415  its settings are known by now

    from reprocessing.models import Run  # noqa: PLC0415  as above

    run = Run.objects.latest("id").pk
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        cursor.execute("UPDATE redrive_letter SET run_id = %s WHERE run_id <> %s", [run, run])
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE redrive_letter")  # autovacuum does it within a minute
    return run


def write(first: int, last: int, dlqs: int = DLQS, *, history: int = 0) -> None:
    """Write letters `first` to `last` (by number), and their other rows, without the triggers that count letters.

    With more DLQs than `DLQS`, each DLQ has letters in all states, and letters that are being sent. `history`: number
    of letters that are written before them, and are all delivered.
    """
    from django.db import connection, transaction  # noqa: PLC0415  its settings are known by now

    begin = first + history
    for a in chain(range(first, begin, CHUNK), range(begin, last + history + 1, CHUNK)):
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET LOCAL session_replication_role = replica")
            is_crowded = dlqs > DLQS
            for statement in (_LETTERS, *_REST, *(_SENDING if is_crowded else ())):
                b = min(a + CHUNK - 1, begin - 1 if a < begin else last + history)
                asked = {
                    "a": a, "b": b, "live": first - 1, "history": history, "dlqs": dlqs, "groups": GROUPS,
                    "skew": +is_crowded,
                }  # fmt: skip
                cursor.execute(statement, asked)
    with connection.cursor() as cursor:
        for statement in _COUNTS:
            cursor.execute(statement)
        cursor.execute("SELECT setval(pg_get_serial_sequence('redrive_letter', 'id'), %s)", [last + history])
        cursor.execute("VACUUM ANALYZE")
