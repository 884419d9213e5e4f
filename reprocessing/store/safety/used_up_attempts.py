"""What the attempts of a message, and those of others beside it, say once it has none left."""

from __future__ import annotations

from typing import Final, LiteralString

from reprocessing.store.safety.spared_attempts import SEEMED_WELL, TARGET_OF_HEAD_IS_SAID_TO_BE_WELL

#: Joins for a head h of DLQ d with circuit breaker b. `used`: the first and the last of the attempts that used up its
#: limit, and when the last failed; `well`: the newest attempt of another message, sent to the same target after the
#: first of them, that went well. The time of the last failure is null, and the head is parked, unless the run is
#: automatic, nobody said that its target is well, and every one of the attempts was known to fail when it was closed.
USED_UP: Final[LiteralString] = f"""
LEFT JOIN LATERAL (
            SELECT min(a.id) AS first, max(a.id) AS last,
                   CASE WHEN NOT bool_or({SEEMED_WELL}) THEN max(coalesce(a.returned_at, a.closed_at)) END AS failed_at
              FROM (SELECT * FROM redrive_attempt t
                     WHERE t.letter_id = h.id AND NOT t.spared AND t.outcome <> 'not_sent'
                     ORDER BY t.no DESC LIMIT d.max_attempts) a
             WHERE h.attempts >= d.max_attempts AND (SELECT r.kind FROM redrive_run r WHERE r.id = h.run_id) = 'standing'
               AND NOT {TARGET_OF_HEAD_IS_SAID_TO_BE_WELL}
           ) used ON true
      LEFT JOIN LATERAL (
            SELECT max(a.id) AS id
              FROM (SELECT * FROM redrive_attempt t WHERE t.breaker_id = b.id AND t.id > used.first
                     ORDER BY t.id DESC LIMIT 2000) a
             WHERE a.letter_id <> h.id AND a.ill IS FALSE AND a.returned_at IS NULL) well ON used.first IS NOT NULL
"""  # noqa: S608  # the inserted text is a constant
