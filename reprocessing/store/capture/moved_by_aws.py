"""The statements that let letters go whose messages AWS moves, and know them again: in sight as before, or come back.

AWS sends a message it moves: the copy has another message id and another time of sending, and the same bytes. So what
comes back is known by its body, its attributes and the queue it died in, where it was sent after its letter had been
captured. Two such messages are told apart by nothing; each letter goes on once.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final, LiteralString

from reprocessing.store import rows
from reprocessing.store.capture.received_copies import NewLetter

# What runs have to send, and a copy in sight: by indexes alone, whatever a dlq holds.
_EXPOSED = """
SELECT d.id FROM redrive_dlq d
 WHERE (%(dlq)b::bigint IS NULL OR d.id = %(dlq)b::bigint) AND d.native_at IS NULL
   AND EXISTS (SELECT FROM redrive_run r
                WHERE r.dlq_id = d.id AND r.state IN ('running', 'paused')
                  AND (SELECT l.id FROM redrive_letter l
                        WHERE l.run_id = r.id AND l.state IN ('captured', 'waiting')
                        ORDER BY l.run_id, l.state LIMIT 1) IS NOT NULL)
   AND (SELECT c.visible_until FROM redrive_custody c
         WHERE c.dlq_id = d.id AND c.state = 'held' ORDER BY c.dlq_id, c.visible_until LIMIT 1)
       <= (SELECT redrive_now())
 ORDER BY d.id
"""

# Letters that wait on their lanes until somebody has looked whether AWS moved their messages.
_SOUGHT = """
SELECT EXISTS (SELECT FROM redrive_dlq d JOIN redrive_letter l ON l.dlq_id = d.id
                WHERE d.id = %(dlq)b AND d.let_go_at IS NOT NULL AND coalesce(d.drained_through < d.let_go_at, true)
                  AND l.objection = 'moved_by_aws' AND l.state IN ('waiting', 'sending', 'awaiting')) AS is_so
"""

# In the words of the index that holds these alone.
_MOVED: Final[LiteralString] = "(l.objection = 'moved_by_aws' OR l.reason = 'moved_by_aws')"
# What is on its lane goes on there, as it was.
_AS_IT_WAS: Final[LiteralString] = """
state = CASE WHEN l.state = 'parked' THEN 'captured' ELSE l.state END, reason = '', objection = '', detail = '',
planned = l.state NOT IN ('captured', 'parked'), finished_at = NULL,
run_id = CASE WHEN l.state NOT IN ('captured', 'parked') THEN l.run_id END,
lane_id = CASE WHEN l.state NOT IN ('captured', 'parked') THEN l.lane_id END
"""
# What was parked for another reason, a person decides about.
_OPEN: Final[LiteralString] = """
(l.state IN ('captured', 'waiting', 'sending', 'awaiting') OR (l.state = 'parked' AND l.reason = 'moved_by_aws'))
"""

# Their messages are AWS's from here on: should a run take these letters, or be about to send them, a person decides;
# see `arrival` for those that come back. A copy that is out of sight AWS cannot have moved. What is on the wire, or
# awaited, would be sent again only should it fail.
_LET_GO = """
WITH let_go AS (
    UPDATE redrive_letter l SET planned = true, objection = 'moved_by_aws', detail = ''
      FROM redrive_custody c
     WHERE c.dlq_id = %(dlq)b AND c.state = 'held' AND c.visible_until <= (SELECT redrive_now())
       AND (%(until)b::timestamptz IS NULL OR c.visible_until < %(until)b::timestamptz)
       AND l.id = c.letter_id AND l.state IN ('captured', 'waiting', 'sending', 'awaiting')
    RETURNING l.id
), noted AS (
    UPDATE redrive_dlq SET let_go_at = redrive_now() WHERE id = %(dlq)b AND EXISTS (SELECT FROM let_go)
)
SELECT count(*) AS n FROM let_go
"""

_EXPECTED = f"SELECT EXISTS (SELECT FROM redrive_letter l WHERE l.dlq_id = %(dlq)b AND {_MOVED}) AS is_so"  # noqa: S608

_STAYED = f"""
UPDATE redrive_letter l SET {_AS_IT_WAS}
  FROM redrive_custody c
 WHERE c.dlq_id = %(dlq)b AND c.message_id = ANY(%(ids)b::text[]) AND l.id = c.letter_id AND l.dlq_id = %(dlq)b
   AND {_MOVED} AND {_OPEN} AND redrive_now() < %(until)b::timestamptz
"""  # noqa: S608  # the inserted texts are constants

_CAME_BACK = f"""
WITH seen AS (
    SELECT *, row_number() OVER (PARTITION BY body_hash, attributes, origin_id ORDER BY died_at, message_id) AS n
      FROM unnest(%(ids)b::text[], %(handles)b::text[], %(hashes)b::bytea[], %(attributes)b::bytea[],
                  %(origins)b::bigint[], %(died)b::timestamptz[], %(expires)b::timestamptz[])
           AS s(message_id, handle, body_hash, attributes, origin_id, died_at, expires_at)
     WHERE redrive_now() < %(until)b::timestamptz
), moved AS (
    SELECT l.id, l.body_hash, p.attributes, l.origin_id, l.captured_at,
           row_number() OVER (PARTITION BY l.body_hash, p.attributes, l.origin_id ORDER BY l.died_at, l.id) AS n
      FROM redrive_letter l JOIN redrive_payload p ON p.letter_id = l.id
     WHERE l.dlq_id = %(dlq)b AND {_MOVED} AND l.body_hash = ANY(%(hashes)b::bytea[])
       AND {_OPEN}
), met AS (
    SELECT s.message_id, s.handle, s.expires_at, m.id AS letter_id
      FROM seen s JOIN moved m USING (body_hash, attributes, n)
     WHERE m.origin_id IS NOT DISTINCT FROM s.origin_id AND s.died_at > m.captured_at
), back AS (
    UPDATE redrive_letter l SET {_AS_IT_WAS}, expires_at = m.expires_at
      FROM met m WHERE l.id = m.letter_id AND {_MOVED} AND {_OPEN}
    RETURNING l.id
), former AS (
    UPDATE redrive_custody c SET state = 'gone', gone_at = redrive_now()
      FROM back b WHERE c.letter_id = b.id AND c.attempt_id IS NULL AND c.state <> 'gone'
), kept AS (
    INSERT INTO redrive_custody (dlq_id, message_id, letter_id, state, handle, visible_until)
    SELECT %(dlq)b, m.message_id, b.id, %(state)b, m.handle, %(until)b::timestamptz
      FROM back b JOIN met m ON m.letter_id = b.id
    ON CONFLICT (dlq_id, message_id) DO NOTHING
)
SELECT m.message_id FROM back b JOIN met m ON m.letter_id = b.id
"""  # noqa: S608  # the inserted texts are constants


def exposed(dlq: int | None = None) -> list[int]:
    """The dlqs, or this one, that are ours, and whose letters' copies AWS could move while these wait to be sent."""
    return rows.column(int, _EXPOSED, {"dlq": dlq})


def are_sought(dlq: int) -> bool:
    """Whether letters wait for a capture of this dlq, which tells whether AWS has moved their messages."""
    return rows.value(bool, _SOUGHT, {"dlq": dlq})


def let_go(dlq: int, *, until: datetime | None = None) -> int:
    """Letters that are not finished, whose copies are in sight, are AWS's to move, or moved; how many.

    `until`: but for copies that were hidden until then or longer, since AWS was done by that time.
    """
    return rows.value(int, _LET_GO, {"dlq": dlq, "until": until})


def are_expected(dlq: int) -> bool:
    """Whether AWS was told to move messages of letters of this dlq that have not been seen since."""
    return rows.value(bool, _EXPECTED, {"dlq": dlq})


def stayed(dlq: int, ids: Sequence[str], *, until: datetime) -> int:
    """Messages that AWS did not move after all: their letters stand as they were captured, or enlisted; how many.

    `until`: when they come to sight. By then AWS may move them, and nothing is said of them.
    """
    return rows.execute(_STAYED, {"dlq": dlq, "ids": list(ids), "until": until})


def came_back(dlq: int, copies: Sequence[NewLetter], *, until: datetime, at_capture: bool) -> set[str]:
    """The message ids of those copies that are letters which AWS moved: these go on, with the new copy.

    `until`: when that comes to sight, and is anybody's: none by then.
    """
    values = {
        "dlq": dlq,
        "ids": [copy.message_id for copy in copies],
        "handles": [copy.handle for copy in copies],
        "hashes": [copy.body_hash for copy in copies],
        "attributes": [copy.attributes for copy in copies],
        "origins": [copy.origin for copy in copies],
        "died": [copy.died_at for copy in copies],
        "expires": [copy.expires_at for copy in copies],
        "state": "delete" if at_capture else "held",
        "until": until,
    }
    return set(rows.column(str, _CAME_BACK, values))
