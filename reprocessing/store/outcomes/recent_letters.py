"""SQL that reads a limited number of a DLQ's letters, so that status pages do not read its whole history."""

from __future__ import annotations

from typing import Final, LiteralString

#: Highest number of letters of each `part` that a status command reads, of each DLQ.
MAX_OF_PART: Final = 1_000

#: For a DLQ d: up to `most` letters of each `part`, each read in the order of an index. The newest letters that ended
#: (delivered, duplicate or discarded), the newest that are parked, and the oldest of each state after `captured`: these
#: are the first of their lanes, and have attempts.
RECENT_LETTERS: Final[LiteralString] = """(
    (SELECT 'ended' AS part, * FROM redrive_letter
      WHERE dlq_id = d.id AND finished_at IS NOT NULL AND NOT state = 'parked'
      ORDER BY finished_at DESC, id DESC LIMIT %(most)b::bigint)
     UNION ALL
    (SELECT 'parked' AS part, * FROM redrive_letter WHERE dlq_id = d.id AND state = 'parked'
      ORDER BY finished_at DESC, id DESC LIMIT %(most)b::bigint)
     UNION ALL
    SELECT oldest.* FROM unnest(ARRAY['waiting', 'sending', 'awaiting']) AS s(part) CROSS JOIN LATERAL (
           SELECT s.part, * FROM redrive_letter
            WHERE dlq_id = d.id AND state = s.part AND (finished_at IS NULL OR state = 'parked')
            ORDER BY first_sent_at LIMIT %(most)b::bigint) oldest)"""
