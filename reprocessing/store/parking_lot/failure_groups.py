"""Put letters into failure groups by the cause of their failure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, LiteralString

from reprocessing.domain.parking_lot.failure_fingerprint import FailureCause
from reprocessing.domain.routing.message_fields import BODY_LIMIT
from reprocessing.store import rows
from reprocessing.store.notifications.group_events import MovedGroup, announce_groups
from reprocessing.store.parking_lot import similar_groups
from reprocessing.store.payloads import content
from reprocessing.store.safety.paused_runs import THE_SERVICE

#: SQL: the latest failure report about a letter l. The report names the letter's message id, its redrive id, or the
#: message id of an attempt.
_REPORT: Final[LiteralString] = """
SELECT r.type, r.fingerprint
  FROM (SELECT * FROM redrive_report WHERE message_id = l.message_id
        UNION ALL SELECT * FROM redrive_report WHERE public_id = l.public_id
        UNION ALL SELECT q.* FROM redrive_attempt t JOIN redrive_report q ON q.message_id = t.sent_message_id
                   WHERE t.letter_id = l.id) r
 WHERE r.verdict <> 'delivered' AND (r.type <> '' OR r.fingerprint <> '')
   AND (r.reporter_id IS NULL OR EXISTS (
        SELECT FROM redrive_reporter_target x WHERE x.reporter_id = r.reporter_id
           AND (x.target_id IN (l.target_id, o.target_id)
                OR x.target_id IN (SELECT target_id FROM redrive_attempt WHERE letter_id = l.id))))
 ORDER BY r.received_at DESC, r.id DESC LIMIT 1
"""

# About 16 MiB of bodies at most. `version` changes with every write of the row.
_UNSORTED = f"""
SELECT l.id, l.dlq_id, l.message_id, l.version, l.first_sent_at, l.size, l.reason, l.detail, d.message_type,
       CASE WHEN l.weight > 0 THEN p.body END AS body, p.attributes, p.system, a.outcome,
       a.detail AS answer, r.type, r.fingerprint
  FROM (SELECT *, sum(weight) OVER (ORDER BY id) - weight AS before
          FROM (SELECT w.id, w.dlq_id, w.message_id, w.public_id, w.source_id, w.target_id, w.first_sent_at,
                       w.size, w.reason, w.detail, w.xmin::text AS version,
                       CASE WHEN w.size <= %(most)b::int THEN w.size ELSE 0 END AS weight
                  FROM redrive_letter w
                 WHERE w.state IN ('captured', 'waiting', 'parked') AND w.planned
                   AND (w.grouped_at IS NULL OR w.grouped_at < w.finished_at)
                 ORDER BY w.id LIMIT %(limit)b) first) l
  JOIN redrive_dlq d ON d.id = l.dlq_id
  LEFT JOIN redrive_payload p ON p.letter_id = l.id
  LEFT JOIN redrive_source o ON o.id = l.source_id
  LEFT JOIN LATERAL (
        SELECT outcome, detail FROM redrive_attempt
         WHERE letter_id = l.id AND outcome IS DISTINCT FROM 'not_sent' ORDER BY no DESC LIMIT 1) a ON true
  LEFT JOIN LATERAL ({_REPORT}) r ON true
 WHERE l.before < 16777216
 ORDER BY l.id
"""  # noqa: S608  # the inserted text is a constant

# Letters that are locked, or changed since they were read, are skipped.
_LOCK = """
SELECT l.id FROM unnest(%(letters)b::bigint[], %(versions)b::text[]) AS s(id, version)
  JOIN redrive_letter l ON l.id = s.id
 WHERE l.xmin::text = s.version ORDER BY l.id FOR UPDATE OF l SKIP LOCKED
"""

# Sorted, so that concurrent statements do not deadlock.
_PUT = """
INSERT INTO redrive_failure_group AS g (dlq_id, fingerprint, cause, title, keys, first_at, last_at)
SELECT dlq_id, fingerprint, min(cause), min(title), min(string_to_array(keys, E'\\n')), min(first_sent_at),
       max(first_sent_at)
  FROM unnest(%(dlqs)b::bigint[], %(digests)b::bytea[], %(causes)b::text[], %(titles)b::text[], %(keys)b::text[],
              %(deaths)b::timestamptz[]) AS s(dlq_id, fingerprint, cause, title, keys, first_sent_at)
 GROUP BY dlq_id, fingerprint ORDER BY dlq_id, fingerprint
ON CONFLICT (dlq_id, fingerprint) DO UPDATE
   SET first_at = least(g.first_at, excluded.first_at), last_at = greatest(g.last_at, excluded.last_at)
RETURNING g.id AS group_id, g.dlq_id, xmax = 0 AS new, g.fingerprint
"""

# Letters of both groups are counted by the hour in which they were sent: a letter that gets another group is counted
# there.
_SORT = """
WITH chosen AS (
    SELECT l.id, l.group_id AS was, g.id AS group_id, date_trunc('hour', l.first_sent_at) AS hour
      FROM unnest(%(letters)b::bigint[], %(dlqs)b::bigint[], %(digests)b::bytea[]) AS s(id, dlq_id, fingerprint)
      JOIN redrive_failure_group g ON g.dlq_id = s.dlq_id AND g.fingerprint = s.fingerprint
      JOIN redrive_letter l ON l.id = s.id
), counted AS (
    INSERT INTO redrive_group_hour AS h (group_id, hour, n)
    SELECT group_id, hour, sum(n) FROM (
           SELECT group_id, hour, 1 AS n FROM chosen UNION ALL SELECT was, hour, -1 FROM chosen WHERE was IS NOT NULL) c
     GROUP BY 1, 2 HAVING sum(n) <> 0 ORDER BY 1, 2
    ON CONFLICT (group_id, hour) DO UPDATE SET n = h.n + excluded.n
)
UPDATE redrive_letter l SET group_id = c.group_id, grouped_at = redrive_now() FROM chosen c WHERE l.id = c.id
"""

# _PUT has locked the groups. A group is also reopened by a letter that failed again after the group was resolved.
_REOPEN = """
WITH recurred AS (
    UPDATE redrive_failure_group g SET status = 'open', settled_at = redrive_now(), status_by = %(by)b::text
     WHERE g.status = 'resolved' AND g.id IN (
            SELECT coalesce(m.merged_into_id, m.id)
              FROM redrive_letter l JOIN redrive_failure_group m ON m.id = l.group_id
             WHERE l.id = ANY(%(letters)b::bigint[]) AND greatest(l.captured_at, l.finished_at) > g.settled_at)
    RETURNING g.id, g.dlq_id
), noted AS (
    INSERT INTO redrive_audit_entry (act, group_id, dlq_id, by, reason, at, before, after)
    SELECT 'changed', id, dlq_id, %(by)b, 'A message failed for this reason after the group was resolved.',
           redrive_now(), '{"status": "resolved"}', '{"status": "open"}'
      FROM recurred
)
SELECT id AS group_id, dlq_id, false AS new FROM recurred
"""

# The letters are locked; groups are locked in the order of _PUT.
_REPLAYED = """
WITH mine AS (
    SELECT id FROM redrive_failure_group
     WHERE id IN (SELECT group_id FROM redrive_letter WHERE id = ANY(%(letters)b::bigint[]))
     ORDER BY dlq_id, fingerprint FOR UPDATE
)
UPDATE redrive_failure_group g SET released_at = redrive_now() FROM mine WHERE g.id = mine.id
"""

# Letters that the given failure reports are about, and letters of the given attempts, are put into groups again.
_DOUBT = """
WITH said AS (
    SELECT message_id, public_id FROM redrive_report
     WHERE digest = ANY(%(digests)b::bytea[]) AND verdict <> 'delivered'
), meant AS (
    SELECT l.id FROM said JOIN redrive_letter l ON l.public_id = said.public_id
    UNION SELECT l.id FROM said CROSS JOIN redrive_dlq d
            JOIN redrive_letter l ON l.dlq_id = d.id AND l.message_id = said.message_id
    UNION SELECT a.letter_id FROM said JOIN redrive_attempt a ON a.sent_message_id = said.message_id
    UNION SELECT letter_id FROM redrive_attempt WHERE id = ANY(%(attempts)b::bigint[])
), unsure AS (
    SELECT l.id FROM redrive_letter l
     WHERE l.id IN (SELECT id FROM meant) AND l.state IN ('captured', 'waiting', 'sending', 'awaiting', 'parked')
     ORDER BY l.id FOR UPDATE
)
UPDATE redrive_letter l SET grouped_at = NULL FROM unsure WHERE l.id = unsure.id
"""


@dataclass(frozen=True, slots=True)
class UngroupedLetter:
    """A letter that needs a failure group, and what is known about its failure.

    `body`: None if the body is too large, or deleted. `version`: a text that changes whenever the letter's row changes.
    """

    id: int
    dlq_id: int
    message_id: str
    version: str
    first_sent_at: datetime
    size: int
    reason: str
    detail: str
    message_type: str
    body: bytes | None
    attributes: bytes | None
    system: dict[str, Any] | None
    outcome: str | None
    answer: str | None
    type: str | None
    fingerprint: str | None


@dataclass(frozen=True, slots=True)
class _PutGroup:
    group_id: int
    dlq_id: int
    new: bool
    fingerprint: bytes


def ungrouped_letters(*, limit: int) -> list[UngroupedLetter]:
    """Return up to `limit` letters, sorted by id, that need a failure group.

    Such letters have no group, or were parked or reported as failed after they got their group. A letter whose payload
    cannot be decrypted has no body and no attributes.
    """
    found = rows.fetch(UngroupedLetter, _UNSORTED, {"limit": limit, "most": BODY_LIMIT})
    readable, problems = content.opened_or_why(found)
    if not problems:
        return readable
    opened = {letter.id: letter for letter in readable}
    nothing: dict[str, Any] = {"body": None, "attributes": None, "system": None}
    return [opened.get(letter.id) or replace(letter, **nothing) for letter in found]


def group_letters(letters: Sequence[UngroupedLetter], causes: Mapping[int, FailureCause]) -> int:
    """Put each letter into the failure group of its cause, in the caller's transaction; return the number of letters.

    `causes`: the cause of each letter's failure, by letter id. Letters that are locked, or that changed since they were
    read, are skipped. A resolved group is reopened if one of these letters was captured or parked after the group was
    resolved.
    """
    values = {"letters": [letter.id for letter in letters], "versions": [letter.version for letter in letters]}
    mine = set(rows.column(int, _LOCK, values))
    held = [letter for letter in letters if letter.id in mine]
    if not held:
        return 0
    joined = similar_groups.similar_to((letter.dlq_id, causes[letter.id]) for letter in held)
    found = {
        "by": THE_SERVICE, "letters": [letter.id for letter in held], "dlqs": [letter.dlq_id for letter in held],
        "digests": [causes[letter.id].digest for letter in held], "deaths": [letter.first_sent_at for letter in held],
        "titles": [causes[letter.id].title for letter in held],
        "keys": ["\n".join(causes[letter.id].keys) for letter in held],
        "causes": [causes[letter.id].kind.value for letter in held],
    }  # fmt: skip
    put = rows.fetch(_PutGroup, _PUT, found)
    similar_groups.merge_similar(joined)
    rows.execute(_SORT, found)
    reopened = rows.fetch(MovedGroup, _REOPEN, found)
    new = [group for group in put if group.new and (group.dlq_id, bytes(group.fingerprint)) not in joined]
    announce_groups([MovedGroup(group.group_id, group.dlq_id, new=True) for group in new] + reopened)
    return len(held)


def mark_for_regrouping(*, digests: Collection[bytes] = (), attempts: Collection[int] = ()) -> None:
    """Mark letters whose failure group must be found again, because more is known about their failure.

    `digests`: digests of consumers' failure reports about the letters. `attempts`: ids of the letters' attempts.
    """
    rows.execute(_DOUBT, {"digests": list(digests), "attempts": list(attempts)})


def record_release(letters: Collection[int]) -> None:
    """Set the time of the last release in the failure groups of these letters to now.

    The caller has locked the letters.
    """
    rows.execute(_REPLAYED, {"letters": list(letters)})
