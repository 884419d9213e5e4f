"""Mark letters whose messages AWS's own redrive may move, and recognise these messages if they come back to the DLQ.

A marked letter is not sent, because AWS may deliver its message. A message that AWS moves gets a new message id and a
new SentTimestamp, and keeps its bytes. So it is recognised by body, attributes and source queue, and by a send time
after the letter's capture. Equal messages cannot be distinguished, so each received message is matched with one letter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, LiteralString

from reprocessing.domain.message.identity import body_hash
from reprocessing.store import rows
from reprocessing.store.capture.received_copies import NewLetter
from reprocessing.store.payloads import content

# A run's letters and a visible copy are found by index, so the cost does not depend on the size of the DLQ.
_EXPOSED = """
SELECT d.id FROM redrive_dlq d
 WHERE (%(dlq)b::bigint IS NULL OR d.id = %(dlq)b::bigint) AND d.aws_redrive_since IS NULL
   AND EXISTS (SELECT FROM redrive_run r
                WHERE r.dlq_id = d.id AND r.state IN ('running', 'paused')
                  AND (SELECT l.id FROM redrive_letter l
                        WHERE l.run_id = r.id AND l.state IN ('captured', 'waiting')
                        ORDER BY l.run_id, l.state LIMIT 1) IS NOT NULL)
   AND (SELECT c.visible_until FROM redrive_dlq_copy c
         WHERE c.dlq_id = d.id AND c.state = 'held' ORDER BY c.dlq_id, c.visible_until LIMIT 1)
       <= (SELECT redrive_now())
 ORDER BY d.id
"""

# Whether letters wait on their lanes until a capture shows whether AWS moved their messages.
_SOUGHT = """
SELECT EXISTS (SELECT FROM redrive_dlq d JOIN redrive_letter l ON l.dlq_id = d.id
                WHERE d.id = %(dlq)b AND d.aws_may_have_moved_at IS NOT NULL
                       AND coalesce(d.drained_through < d.aws_may_have_moved_at, true)
                  AND l.blocked_reason = 'moved_by_aws' AND l.state IN ('waiting', 'sending', 'awaiting')) AS is_so
"""

# Letters that are marked as moved by AWS. The partial index has the same condition, so that the planner uses it.
_MOVED: Final[LiteralString] = "(l.blocked_reason = 'moved_by_aws' OR l.reason = 'moved_by_aws')"
# Removes the mark: a letter on a lane keeps its state, run and lane; a parked letter becomes captured.
_AS_IT_WAS: Final[LiteralString] = """
state = CASE WHEN l.state = 'parked' THEN 'captured' ELSE l.state END, reason = '', blocked_reason = '', detail = '',
planned = l.state NOT IN ('captured', 'parked'), finished_at = NULL,
run_id = CASE WHEN l.state NOT IN ('captured', 'parked') THEN l.run_id END,
lane_id = CASE WHEN l.state NOT IN ('captured', 'parked') THEN l.lane_id END
"""
# Letters whose mark may be removed. A person decides about other letters, which were parked for another reason.
_OPEN: Final[LiteralString] = """
(l.state IN ('captured', 'waiting', 'sending', 'awaiting') OR (l.state = 'parked' AND l.reason = 'moved_by_aws'))
"""

# Marks the letters whose visible copies AWS may move from now on; AWS cannot move invisible copies. A marked letter is
# not sent: a run parks it, or it waits on its lane for a capture. A letter that was sent is affected only if it fails.
_LET_GO = """
WITH let_go AS (
    UPDATE redrive_letter l SET planned = true, blocked_reason = 'moved_by_aws', detail = ''
      FROM redrive_dlq_copy c
     WHERE c.dlq_id = %(dlq)b AND c.state = 'held' AND c.visible_until <= (SELECT redrive_now())
       AND (%(until)b::timestamptz IS NULL OR c.visible_until < %(until)b::timestamptz)
       AND l.id = c.letter_id AND l.state IN ('captured', 'waiting', 'sending', 'awaiting')
    RETURNING l.id
), noted AS (
    UPDATE redrive_dlq SET aws_may_have_moved_at = redrive_now() WHERE id = %(dlq)b AND EXISTS (SELECT FROM let_go)
)
SELECT count(*) AS n FROM let_go
"""

_EXPECTED = f"SELECT EXISTS (SELECT FROM redrive_letter l WHERE l.dlq_id = %(dlq)b AND {_MOVED}) AS is_so"  # noqa: S608

_STAYED = f"""
UPDATE redrive_letter l SET {_AS_IT_WAS}
  FROM redrive_dlq_copy c
 WHERE c.dlq_id = %(dlq)b AND c.message_id = ANY(%(ids)b::text[]) AND l.id = c.letter_id AND l.dlq_id = %(dlq)b
   AND {_MOVED} AND {_OPEN} AND redrive_now() < %(until)b::timestamptz
"""  # noqa: S608  # the inserted texts are constants

# Marked letters whose body is equal to a received body. Their attributes may be encrypted, and are compared later. A
# letter that was captured before payloads were encrypted has a plain digest, so `hashes` has both digests of each body.
_CANDIDATES = f"""
SELECT l.id, l.message_id, l.body_hash, p.attributes
  FROM redrive_letter l JOIN redrive_payload p ON p.letter_id = l.id
 WHERE l.dlq_id = %(dlq)b AND {_MOVED} AND l.body_hash = ANY(%(hashes)b::bytea[]) AND {_OPEN}
"""  # noqa: S608  # the inserted texts are constants

_CAME_BACK = f"""
WITH seen AS (
    SELECT *, row_number() OVER (PARTITION BY body_hash, attributes, source_id ORDER BY first_sent_at, message_id) AS n
      FROM unnest(%(message_id)b::text[], %(handle)b::text[], %(body_hash)b::bytea[], %(attributes)b::bytea[],
                  %(source)b::bigint[], %(first_sent_at)b::timestamptz[], %(expires_at)b::timestamptz[])
           AS s(message_id, handle, body_hash, attributes, source_id, first_sent_at, expires_at)
     WHERE redrive_now() < %(until)b::timestamptz
), moved AS (
    SELECT l.id, p.body_hash, p.attributes, l.source_id, l.captured_at,
           row_number() OVER (PARTITION BY p.body_hash, p.attributes, l.source_id ORDER BY l.first_sent_at, l.id) AS n
      FROM unnest(%(moved)b::bigint[], %(moved_hashes)b::bytea[], %(moved_attributes)b::bytea[])
           AS p(letter_id, body_hash, attributes)
      JOIN redrive_letter l ON l.id = p.letter_id
     WHERE l.dlq_id = %(dlq)b AND {_MOVED} AND {_OPEN}
), met AS (
    SELECT s.message_id, s.handle, s.expires_at, m.id AS letter_id
      FROM seen s JOIN moved m USING (body_hash, attributes, n)
     WHERE m.source_id IS NOT DISTINCT FROM s.source_id AND s.first_sent_at > m.captured_at
), back AS (
    UPDATE redrive_letter l SET {_AS_IT_WAS}, expires_at = m.expires_at
      FROM met m WHERE l.id = m.letter_id AND {_MOVED} AND {_OPEN} RETURNING l.id
), former AS (
    UPDATE redrive_dlq_copy c SET state = 'gone', gone_at = redrive_now()
      FROM back b WHERE c.letter_id = b.id AND c.attempt_id IS NULL AND c.state <> 'gone'
), kept AS (
    INSERT INTO redrive_dlq_copy (dlq_id, message_id, letter_id, state, handle, visible_until, expires_at)
    SELECT %(dlq)b, m.message_id, b.id, %(state)b, m.handle, %(until)b::timestamptz, m.expires_at
      FROM back b JOIN met m ON m.letter_id = b.id ON CONFLICT (dlq_id, message_id) DO NOTHING
)
SELECT m.message_id FROM back b JOIN met m ON m.letter_id = b.id
"""  # noqa: S608  # the inserted texts are constants


@dataclass(frozen=True, slots=True)
class _MovedLetter:
    id: int
    message_id: str
    body_hash: bytes
    attributes: bytes


def exposed_dlqs(dlq: int | None = None) -> list[int]:
    """Return the ids of DLQs whose runs have letters to send, and whose messages AWS's own redrive could move now.

    AWS moves only visible messages. `dlq`: check only this DLQ; None: all DLQs.
    """
    return rows.column(int, _EXPOSED, {"dlq": dlq})


def letters_wait_for_capture(dlq: int) -> bool:
    """Return whether letters of this DLQ wait for its next capture, which shows whether AWS moved their messages."""
    return rows.value(bool, _SOUGHT, {"dlq": dlq})


def mark_moved(dlq: int, *, until: datetime | None = None) -> int:
    """Mark the unfinished letters whose messages are visible as possibly moved by AWS; return how many.

    `until`: the latest time at which AWS's redrive may have ended. Letters whose messages were invisible until then are
    left out. None: AWS's redrive may still run.
    """
    return rows.value(int, _LET_GO, {"dlq": dlq, "until": until})


def has_moved_letters(dlq: int) -> bool:
    """Return whether letters of this DLQ are marked as moved by AWS and have not been received since."""
    return rows.value(bool, _EXPECTED, {"dlq": dlq})


def unmark_not_moved(dlq: int, ids: Sequence[str], *, until: datetime) -> int:
    """Remove the mark "moved by AWS" from letters whose messages were received from the DLQ again; return how many.

    `ids`: ids of the received messages. `until`: when these messages become visible again. After this time, nothing is
    recorded, because another reader may have received them.
    """
    return rows.execute(_STAYED, {"dlq": dlq, "ids": list(ids), "until": until})


def continue_moved(dlq: int, copies: Sequence[NewLetter], *, until: datetime, at_capture: bool) -> set[str]:
    """Find which new messages are letters' messages that AWS moved, and remove these letters' mark "moved by AWS".

    Return the message ids of the recognised messages. `copies`: the new messages. `until`: when they become visible
    again; after this time, nothing is recorded. `at_capture`: messages in this DLQ are deleted when they are captured.
    """
    state = "delete" if at_capture else "held"
    digests = {body_hash(copy.body): copy.body_hash for copy in copies} | {
        copy.body_hash: copy.body_hash for copy in copies
    }
    moved = content.opened(rows.fetch(_MovedLetter, _CANDIDATES, {"dlq": dlq, "hashes": list(digests)}))
    values = {
        **rows.arrays(NewLetter, copies), "dlq": dlq, "state": state, "until": until,
        "moved": [letter.id for letter in moved], "moved_hashes": [digests[letter.body_hash] for letter in moved],
        "moved_attributes": [letter.attributes for letter in moved],
    }  # fmt: skip
    return set(rows.column(str, _CAME_BACK, values))
