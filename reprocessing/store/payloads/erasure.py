"""Erase a value, such as a customer's number, from letters, key queues and all stored texts (history).

An erasure is stored with a digest of the value, not the value itself, so that an interrupted erasure can be continued.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, LiteralString

from psycopg.types.json import Jsonb

from reprocessing.models import Erasure
from reprocessing.models.audit import AuditAct
from reprocessing.store import rows
from reprocessing.store.payloads import installation_texts, removal
from reprocessing.store.payloads.removal import Removed

#: Replaces an erased value in stored texts.
ERASED: Final = "[erased]"
#: Erases a letter's digests, keys and details. The redrive id stays: it recognises the letter if it comes back.
_BLANK: Final[LiteralString] = """
UPDATE redrive_letter
   SET ordering_key = NULL, idempotency_key = NULL, detail = '',
       key_hash = CASE WHEN key_hash IS NULL THEN NULL ELSE sha256(convert_to('erased ' || public_id, 'UTF8')) END,
       sequence = CASE WHEN sequence IS NULL THEN NULL ELSE '' END,
       body_hash = sha256(convert_to('erased ' || public_id, 'UTF8'))
 WHERE id = ANY(%(letters)b::bigint[])
"""

_CLAIMS = "DELETE FROM redrive_claim WHERE letter_id = ANY(%(letters)b::bigint[])"

# Erases the keys of key queues without unfinished or parked letters. The rows stay, since letters refer to them.
_LANES = """
UPDATE redrive_lane n
   SET key = NULL, key_hash = sha256(convert_to('erased lane ' || n.id, 'UTF8')), highest_sent_sequence = NULL, why = ''
 WHERE n.id IN (SELECT lane_id FROM redrive_letter WHERE id = ANY(%(letters)b::bigint[]))
   AND NOT n.single
   AND NOT EXISTS (SELECT FROM redrive_letter l
                    WHERE l.lane_id = n.id AND l.state IN ('captured', 'waiting', 'sending', 'awaiting', 'parked'))
"""

_ALLOW: Final[LiteralString] = "SET LOCAL redrive.erases = 'on'"
_LETTERS_OF = "%(letters)b::bigint[]"

_ATTEMPTS = f"""
UPDATE redrive_attempt SET detail = '' WHERE letter_id = ANY({_LETTERS_OF}) AND detail <> ''
"""  # noqa: S608  # the inserted text is a constant

#: By table, the columns that may have the value in texts of people, filters or errors: `text` columns, then `jsonb`.
HISTORY: Final[Mapping[LiteralString, tuple[tuple[LiteralString, ...], tuple[LiteralString, ...]]]] = {
    "redrive_audit_entry": (("reason",), ("before", "after")),
    "redrive_bulk_action": (("reason", "why"), ("filter", "arguments", "refusals")),
    "redrive_run": (("reason", "why"), ("selection",)),
    "redrive_saved_filter": (("name",), ("filter",)),
    "redrive_approval": (("title", "reason", "decision_reason", "outcome"), ("arguments", "preview")),
    "redrive_revision": (("reason",), ()),
    "redrive_failure_group": (("name", "note", "title"), ()),
    "redrive_lane": (("why", "stop_reason"), ()),
    "redrive_dlq": (("stop_reason", "aws_redrive_reason"), ()),
    "redrive_global_stop": (("reason",), ()),
    "redrive_breaker": (("why",), ()),
    "redrive_incident": ((), ("facts",)),
    "redrive_attempt": (("detail",), ()),
    "redrive_letter": (("detail",), ()),
}

# True if the JSON column {0} has the value in a text. A value that is only a part of a number is not replaced.
_CHANGES: Final[LiteralString] = """(
    position(%(in_json)b::text IN {0}::text) > 0 AND {1}({0}, %(value)b::text, %(erased)b::text) <> {0})
"""

# If a request is repeated whose stored response was deleted, it acts again. Most changes are not made twice
# (`store.api.calls`).
_ANSWERS = """
DELETE FROM redrive_api_call
 WHERE position(convert_to(%(in_json)b, 'UTF8') IN answer) > 0
    OR position(convert_to(%(in_ascii)b, 'UTF8') IN answer) > 0
"""

_ADD = """
INSERT INTO redrive_erasure (digest, by, reason, started_at, counts)
VALUES (%(digest)b, %(by)b, %(reason)b, redrive_now(), '{}') ON CONFLICT DO NOTHING
"""

_PROGRESS = "UPDATE redrive_erasure SET counts = %(counts)b::jsonb WHERE id = %(id)b::bigint"

_FINISH = """
WITH ended AS (
    UPDATE redrive_erasure SET finished_at = redrive_now() WHERE id = %(id)b::bigint AND finished_at IS NULL
    RETURNING id, encode(digest, 'hex') AS digest, by, reason, started_at, finished_at, counts
)
INSERT INTO redrive_audit_entry (act, by, reason, at, before, after)
SELECT 'erased', by, reason, finished_at, '{}'::jsonb,
       jsonb_build_object('erasure', id, 'value_digest', digest, 'started', started_at, 'finished', finished_at,
                          'counts', counts)
       || CASE WHEN %(exactly)b::bool THEN '{"texts": "not searched, because the value is short"}'::jsonb
               ELSE '{}'::jsonb END
  FROM ended
"""


@dataclass(frozen=True, slots=True)
class Batch:
    """The result of one batch: ids of erased letters, and ids of letters in progress (`busy`), which are not erased."""

    erased: list[int]
    busy: list[int]


def open_erasure(digest: bytes, *, by: str, reason: str) -> Erasure:
    """Return the unfinished erasure of the value with this digest; if there is none, begin an erasure."""
    rows.execute(_ADD, {"digest": digest, "by": by, "reason": reason})
    return Erasure.objects.get(digest=digest, finished_at=None)


def erase_letters(of: Erasure, letters: Collection[int]) -> Batch:
    """Erase letters' content and keys, the details and claims of their attempts, and the keys of their key queues.

    One transaction does this, with an audit log entry for each letter. Letters in progress are not changed.
    """

    def work() -> Removed:
        found = removal.remove_content(letters, AuditAct.ERASED, by=of.by, reason=of.reason, after={"erasure": of.pk})
        values = {"letters": found.letters}
        rows.execute(_ALLOW, {})
        counts = Counter(found.counts)
        counts["claims"] = rows.execute(_CLAIMS, values)
        counts["attempts"] = rows.execute(_ATTEMPTS, values)
        counts["keys"] = rows.execute(_LANES, values)
        rows.execute(_BLANK, values)
        _add_counts(of, counts)
        return found

    done = rows.in_transaction(work)
    return Batch(done.letters, done.busy)


def erase_history(of: Erasure, value: str, *, exactly: bool) -> None:
    """Replace a value by `[erased]` in all columns named in `HISTORY`, and in the encrypted texts of filters.

    Stored responses of the HTTP API that have the value are deleted. Each table has a transaction of its own.
    `exactly`: for short values. Only members of JSON columns that are keys or values of messages, and have no other
    text than the value, are changed. Texts of people, such as reasons and notes, stay.

    Raises:
        PayloadUnreadable: the texts of filters are encrypted, and their key is not available.
    """
    _add_counts(of, Counter({"texts of filters": installation_texts.erase_filters(value, ERASED, exactly=exactly)}))
    for table, statement in _statements(exactly):

        def work(table: str = table, statement: LiteralString = statement) -> None:
            rows.execute(_ALLOW, {})
            _add_counts(
                of, Counter({f"history of {table.removeprefix('redrive_')}": rows.execute(statement, _values(value))})
            )

        rows.in_transaction(work)
    quotes = slice(None) if exactly else slice(1, -1)  # with its quotes, a short value matches only whole texts
    in_json, in_ascii = (json.dumps(value, ensure_ascii=ascii_only)[quotes] for ascii_only in (False, True))
    answers = rows.execute(_ANSWERS, {"in_json": in_json, "in_ascii": in_ascii})
    _add_counts(of, Counter({"responses of the API": answers}))


def count_history(value: str, *, exactly: bool) -> dict[str, int]:
    """Return, by table, how many rows `erase_history` would change, with the same value and `exactly`."""
    counts = {}
    for table, texts, objects in _columns(exactly):
        where = _contains(texts, objects, _FUNCTION[exactly])
        statement: LiteralString = "SELECT count(*) AS n FROM " + table + " WHERE " + where  # noqa: S608  # constants
        counts[table.removeprefix("redrive_")] = rows.value(int, statement, _values(value))
    return {table: n for table, n in counts.items() if n}


def finish(of: Erasure, *, exactly: bool) -> None:
    """End an erasure, and write its certificate to the audit log: counts, times, person, and the value's digest.

    `exactly`: texts of people were not searched, and the certificate says so.
    """
    rows.execute(_FINISH, {"id": of.pk, "exactly": exactly})


def _add_counts(of: Erasure, counts: Counter[str]) -> None:
    of.counts = dict(Counter(of.counts) + counts)
    rows.execute(_PROGRESS, {"id": of.pk, "counts": Jsonb(of.counts)})


def _values(value: str) -> dict[str, str]:
    return {"value": value, "in_json": json.dumps(value, ensure_ascii=False)[1:-1], "erased": ERASED}


#: The SQL function that replaces a value in a JSON column, by `exactly`.
_FUNCTION: Final[Mapping[bool, LiteralString]] = {False: "redrive_erased", True: "redrive_erased_exactly"}


def _columns(
    exactly: bool,  # noqa: FBT001  # private; the name tells
) -> Iterator[tuple[LiteralString, tuple[LiteralString, ...], tuple[LiteralString, ...]]]:
    """Yield the tables of `HISTORY`, with their text columns (`exactly`: none) and their JSON columns."""
    for table, (texts, objects) in HISTORY.items():
        if objects or not exactly:
            yield table, () if exactly else texts, objects


def _statements(exactly: bool) -> Iterator[tuple[str, LiteralString]]:  # noqa: FBT001  # as above
    function = _FUNCTION[exactly]
    for table, texts, objects in _columns(exactly):
        sets: list[LiteralString] = [
            name + " = replace(" + name + ", %(value)b::text, %(erased)b::text)" for name in texts
        ]
        sets += [name + " = " + function + "(" + name + ", %(value)b::text, %(erased)b::text)" for name in objects]
        yield table, "UPDATE " + table + " SET " + ", ".join(sets) + " WHERE " + _contains(texts, objects, function)  # noqa: S608


def _contains(
    texts: tuple[LiteralString, ...], objects: tuple[LiteralString, ...], function: LiteralString
) -> LiteralString:
    found: list[LiteralString] = ["position(%(value)b::text IN coalesce(" + name + ", '')) > 0" for name in texts]
    found += [_CHANGES.format(name, function) for name in objects]
    # Every statement has the same parameters.
    unused: LiteralString = "(%(value)b::text IS NULL OR %(in_json)b::text IS NULL OR %(erased)b::text IS NULL)"
    return "(" + " OR ".join(found) + " OR " + unused + ")"
