"""Load letters, with their bodies and attributes, so that rules can be evaluated on them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final, LiteralString

from reprocessing.domain.payloads.sealing import key_id
from reprocessing.domain.routing.first_match import Action, Rule
from reprocessing.domain.routing.message_fields import BODY_LIMIT
from reprocessing.store import rows
from reprocessing.store.capture import capture_times
from reprocessing.store.payloads import content
from reprocessing.store.payloads.content import CONTENT_LENGTH

#: Bytes of letters, with attributes (which may be as large as bodies), that are loaded at a time.
CHUNK = 16 * 1024 * 1024
_EVER: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class RoutableLetter:
    """A letter with the values that rules can read."""

    letter_id: int
    lane_id: int | None
    dlq_id: int
    message_id: str
    state: str
    source: str  #: ARN of the letter's source queue; empty: not known
    home: int | None  #: the target of the letter's source queue, used if no rule matches
    target_id: int | None  #: the letter's current target; `claims`: the letter has an idempotency key
    claims: bool
    route: str
    rule_id: int | None
    rulebook_version: int
    blocked_reason: str  #: why the letter will be parked, whatever rules decide; empty: no reason
    released: bool  #: whether a person released the letter; `size`: bytes of the body
    size: int
    body: bytes  #: empty if the bodies were not requested, or if the body is larger than rules read
    attributes: bytes
    system: dict[str, Any]
    unreadable: str = ""  #: why the content cannot be decrypted, so that no rule can be evaluated; empty: it can

    def is_released_from(self, rule: Rule) -> bool:
        """Return whether a person released the letter after this rule parked it, and no other rule decided since."""
        return self.released and (self.rule_id, self.route) == (rule.id, Action.QUARANTINE)


_LENGTH: Final[LiteralString] = CONTENT_LENGTH.format("coalesce(v.body, p.body)")

# Rules read the bytes that will be sent. A chunk's size is limited, and bodies that rules do not read are not loaded.
_COLUMNS: Final[LiteralString] = f"""
SELECT l.id AS letter_id, l.lane_id, l.dlq_id, l.message_id, l.state, coalesce(o.arn, '') AS source,
       o.target_id AS home, l.target_id, l.idempotency_key IS NOT NULL AS claims, l.route, l.rule_id,
              l.rulebook_version,
       l.blocked_reason, l.released_by IS NOT NULL AS released, {_LENGTH} AS size,
       coalesce(v.attributes, p.attributes) AS attributes, p.system,
       CASE WHEN %(bodies)b::bool AND {_LENGTH} <= %(limit)b::int
            THEN coalesce(v.body, p.body) ELSE ''::bytea END AS body
"""

_JOINS: Final[LiteralString] = """
  JOIN redrive_payload p ON p.letter_id = l.id LEFT JOIN redrive_revision v ON v.id = l.revision_id
  LEFT JOIN redrive_source o ON o.id = l.source_id
 WHERE l.before < %(chunk)b::int
"""
_LOAD = f"""
{_COLUMNS}
  FROM (SELECT *, sum(least(size, %(limit)b::int)) OVER (ORDER BY id) - least(size, %(limit)b::int) AS before
          FROM redrive_letter WHERE id = ANY(%(letters)b::bigint[]) AND state = 'waiting') l {_JOINS} ORDER BY l.id
"""  # noqa: S608  # the inserted texts are constants

# Ordered from the newest letter to the oldest: ids rise with the time of capture. `first` ends the search.
_NEXT_CAPTURED: Final[LiteralString] = """
  FROM redrive_letter
 WHERE (%(below)b::bigint IS NULL OR id < %(below)b::bigint)
   AND id >= %(first)b::bigint AND captured_at >= %(since)b
   AND (%(dlq)b::bigint IS NULL OR dlq_id = %(dlq)b::bigint)
 ORDER BY id DESC LIMIT 1000
"""
_CAPTURED = f"""
{_COLUMNS}
  FROM (SELECT *, sum(least(size, %(limit)b::int)) OVER (ORDER BY id DESC) - least(size, %(limit)b::int) AS before
        {_NEXT_CAPTURED}) l {_JOINS} ORDER BY l.id DESC
"""  # as above
_LOWEST_CAPTURED = f"SELECT id FROM (SELECT id {_NEXT_CAPTURED}) l ORDER BY id LIMIT 1"  # noqa: S608  # as above

# No index has all letters of a DLQ by id. So about the newest `most` letters are read from three indexes: unfinished
# letters of each state by the time of their first send, parked and finished letters by the time of their end.
_NEWEST = """
SELECT id FROM (
    SELECT newest.id FROM unnest(ARRAY['captured', 'waiting', 'sending', 'awaiting']) AS s(state) CROSS JOIN LATERAL (
           SELECT id FROM redrive_letter
            WHERE dlq_id = %(dlq)b::bigint AND state = s.state AND (finished_at IS NULL OR state = 'parked')
            ORDER BY first_sent_at DESC LIMIT %(most)b::int) newest
    UNION
    (SELECT id FROM redrive_letter WHERE dlq_id = %(dlq)b::bigint AND state = 'parked'
      ORDER BY finished_at DESC, id DESC LIMIT %(most)b::int)
    UNION
    (SELECT id FROM redrive_letter WHERE dlq_id = %(dlq)b::bigint AND finished_at IS NOT NULL AND NOT state = 'parked'
      ORDER BY finished_at DESC, id DESC LIMIT %(most)b::int)
) l ORDER BY id DESC LIMIT %(most)b::int
"""
_NEWEST_OF_ALL = "SELECT id FROM redrive_letter ORDER BY id DESC LIMIT %(most)b::int"

_CHOSEN = f"""
{_COLUMNS}
  FROM (SELECT *, sum(least(size, %(limit)b::int)) OVER (ORDER BY id DESC) - least(size, %(limit)b::int) AS before
          FROM redrive_letter WHERE id = ANY(%(letters)b::bigint[])) l {_JOINS} AND l.captured_at >= %(since)b
 ORDER BY l.id DESC
"""  # noqa: S608  # as above

_SINCE = """
SELECT count(*) AS n FROM redrive_letter WHERE id = ANY(%(letters)b::bigint[]) AND captured_at >= %(since)b
"""

_OLDER = """
SELECT count(*) AS n FROM redrive_letter
 WHERE captured_at < %(since)b AND state IN ('captured', 'waiting', 'sending', 'awaiting') AND finished_at IS NULL
   AND (%(dlq)b::bigint IS NULL OR dlq_id = %(dlq)b::bigint)
"""


def load_waiting(letters: Collection[int], *, bodies: bool) -> list[RoutableLetter]:
    """Return those of the given letters that are queued (`waiting`), sorted by id, up to about 16 MiB.

    `bodies`: also load the bodies. A letter that cannot be decrypted has the reason in `unreadable`.
    """
    values = {"letters": list(letters), "bodies": bodies, "limit": BODY_LIMIT, "chunk": CHUNK}
    found = rows.fetch(RoutableLetter, _LOAD, values)
    readable, problems = content.opened_or_why(found)
    if not problems:
        return readable
    opened = {letter.letter_id: letter for letter in readable}
    return [opened.get(letter.letter_id) or replace(letter, unreadable=problems[letter.message_id]) for letter in found]


def captured_since(*, since: datetime, dlq: int | None, below: int | None, bodies: bool) -> list[RoutableLetter]:
    """Return letters captured at `since` or later, with ids below `below` (None: all), the newest first.

    A call reads up to 1,000 letters, or about 16 MiB, and returns those that have a payload. So if the result is empty,
    there may be more letters (see `lowest_captured`). `dlq`: only letters of this DLQ; None: of all DLQs. `bodies`:
    also load the bodies.
    """
    sizes = {"bodies": bodies, "limit": BODY_LIMIT, "chunk": CHUNK}
    return content.opened(rows.fetch(RoutableLetter, _CAPTURED, _next_captured(since, dlq, below) | sizes))


def lowest_captured(*, since: datetime, dlq: int | None, below: int | None) -> int | None:
    """Return the lowest id of the letters that `captured_since` reads with the same arguments; None: it reads none."""
    return next(iter(rows.column(int, _LOWEST_CAPTURED, _next_captured(since, dlq, below))), None)


def _next_captured(since: datetime, dlq: int | None, below: int | None) -> dict[str, Any]:
    return {"since": since, "first": capture_times.first_id(since), "dlq": dlq, "below": below}


def newest_ids(dlq: int | None, most: int) -> list[int]:
    """Return the ids of about the newest `most` letters of this DLQ (None: of all DLQs), the newest first.

    The query does not take longer if there are more letters.
    """
    statement = _NEWEST_OF_ALL if dlq is None else _NEWEST
    return rows.column(int, statement, {"dlq": dlq, "most": most})


def load_chosen(
    letters: Collection[int], *, since: datetime = _EVER, chunk: int | None = None, sealed: bool = True
) -> list[RoutableLetter]:
    """Return those of the given letters that were captured at `since` or later, with bodies, the newest first.

    Up to about `chunk` bytes are loaded; None: 16 MiB. Letters that cannot be decrypted are left out. `sealed`: whether
    letters with encrypted content are returned.
    """
    values = {"letters": list(letters), "since": since, "bodies": True, "limit": BODY_LIMIT, "chunk": chunk or CHUNK}
    found = rows.fetch(RoutableLetter, _CHOSEN, values)
    if not sealed:
        found = [one for one in found if key_id(one.body) is None and key_id(one.attributes) is None]
    return content.opened_or_why(found)[0]


def count_captured(letters: Collection[int], *, since: datetime) -> int:
    """Return how many of these letters were captured at `since` or later."""
    return rows.value(int, _SINCE, {"letters": list(letters), "since": since})


def count_older(*, since: datetime, dlq: int | None) -> int:
    """Return how many unfinished letters of this DLQ (None: of all) were captured before `since`."""
    return rows.value(int, _OLDER, {"since": since, "dlq": dlq})
