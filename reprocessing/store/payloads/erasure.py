"""Erase a value, such as a customer's number, from letters, key queues and all stored texts (history).

Each erasure has a row, so that an interrupted erasure can be continued. The row has only a digest of the erased value.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, LiteralString

from psycopg.types.json import Jsonb

from reprocessing.models import Erasure
from reprocessing.models.audit import AuditAct
from reprocessing.store import rows
from reprocessing.store.payloads import installation_texts, removal
from reprocessing.store.payloads.installation_texts import WholeValues
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
_CHANGES: Final[LiteralString] = "(position(%(in_json)b::text IN {0}::text) > 0 AND {1} <> {0})"

#: SQL that replaces the value in the JSON column {0}: in all its texts, or only where it is a whole value.
_ERASED_IN_ALL: Final[LiteralString] = "redrive_erased({0}, %(value)b::text, %(erased)b::text)"
_ERASED_WHOLE: Final[LiteralString] = (
    "redrive_erased_whole_values({0}, %(value)b::text, %(erased)b::text, %(members)b::text[], %(conditions)b::text[], "
    "%(selectors)b::text[])"
)

# If a request is repeated whose stored response was deleted, it acts again. Most changes are not made twice
# (`store.api.calls`).
_ANSWERS: Final[LiteralString] = """
DELETE FROM redrive_api_call
 WHERE CASE WHEN position(convert_to(%(in_json)b, 'UTF8') IN answer) > 0
              OR position(convert_to(%(in_ascii)b, 'UTF8') IN answer) > 0
            THEN {0} ELSE false END
"""
_ANSWER: Final[LiteralString] = "convert_from(answer, 'UTF8')::jsonb"

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
       || CASE WHEN %(short)b::bool THEN '{"texts": "not searched, because the value is short"}'::jsonb
               ELSE '{}'::jsonb END
  FROM ended
"""


@dataclass(frozen=True, slots=True)
class Batch:
    """The ids of the letters that a batch erased, and of letters in progress (`busy`), which it could not erase."""

    erased: list[int]
    busy: list[int]


def open_erasure(digest: bytes, *, by: str, reason: str) -> Erasure:
    """Return the unfinished erasure of the value with this digest; if there is none, begin an erasure."""
    rows.execute(_ADD, {"digest": digest, "by": by, "reason": reason})
    return Erasure.objects.get(digest=digest, finished_at=None)


def erase_letters(of: Erasure, letters: Collection[int]) -> Batch:
    """Erase letters' content and keys, their attempts' error texts, their claims, and the keys of their key queues.

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


def erase_history(of: Erasure, value: str, *, whole_values_only: WholeValues | None) -> None:
    """Replace a value by `[erased]` in all columns named in `HISTORY`, and in the encrypted texts of filters.

    Stored responses of the HTTP API that have the value are deleted. Each table has a transaction of its own.
    `whole_values_only`: for a short value, the only places in JSON columns and filters where it is replaced. Texts that
    people wrote, such as reasons and notes, then stay unchanged. None: the value is replaced inside of all texts.

    Raises:
        PayloadUnreadable: the texts of filters are encrypted, and their key is not available.
    """
    in_filters = installation_texts.erase_filters(value, ERASED, whole_values_only=whole_values_only)
    _add_counts(of, Counter({"texts of filters": in_filters}))
    values = _values(value, whole_values_only)
    for table, statement in _statements(whole_values_only):

        def work(table: str = table, statement: LiteralString = statement) -> None:
            rows.execute(_ALLOW, {})
            _add_counts(of, Counter({f"history of {table.removeprefix('redrive_')}": rows.execute(statement, values)}))

        rows.in_transaction(work)
    is_found = "true" if whole_values_only is None else _erased_in(_ANSWER, whole_values_only) + " <> " + _ANSWER
    _add_counts(of, Counter({"responses of the API": rows.execute(_ANSWERS.format(is_found), values)}))


def count_history(value: str, *, whole_values_only: WholeValues | None) -> dict[str, int]:
    """Return, by table, how many rows `erase_history` would change, with the same value and `whole_values_only`."""
    counts = {}
    for table, texts, objects in _columns(whole_values_only):
        where = _contains(texts, objects, whole_values_only)
        statement: LiteralString = "SELECT count(*) AS n FROM " + table + " WHERE " + where  # noqa: S608  # constants
        counts[table.removeprefix("redrive_")] = rows.value(int, statement, _values(value, whole_values_only))
    return {table: n for table, n in counts.items() if n}


def finish(of: Erasure, *, whole_values_only: bool) -> None:
    """End an erasure, and write its certificate to the audit log: counts, times, person, and the value's digest.

    `whole_values_only`: only whole values of fields were erased. Texts that people wrote, such as notes, were not
    searched; the certificate says so.
    """
    rows.execute(_FINISH, {"id": of.pk, "short": whole_values_only})


def _add_counts(of: Erasure, counts: Counter[str]) -> None:
    of.counts = dict(Counter(of.counts) + counts)
    rows.execute(_PROGRESS, {"id": of.pk, "counts": Jsonb(of.counts)})


def _values(value: str, places: WholeValues | None) -> dict[str, Any]:
    in_json, in_ascii = (json.dumps(value, ensure_ascii=ascii_only)[1:-1] for ascii_only in (False, True))
    found = {"value": value, "in_json": in_json, "in_ascii": in_ascii, "erased": ERASED}
    some = places or WholeValues()
    lists = {"members": some.members, "conditions": some.conditions, "selectors": some.selectors}
    return found | {name: list(values) for name, values in lists.items()}


def _erased_in(document: LiteralString, places: WholeValues | None) -> LiteralString:
    """Return SQL that replaces the value in a JSON document: in all its texts or, if given, only in the `places`."""
    return (_ERASED_IN_ALL if places is None else _ERASED_WHOLE).format(document)


def _columns(
    places: WholeValues | None,
) -> Iterator[tuple[LiteralString, tuple[LiteralString, ...], tuple[LiteralString, ...]]]:
    """Yield each table of `HISTORY`, with its text columns (no columns if `places` is given) and its JSON columns."""
    for table, (texts, objects) in HISTORY.items():
        if objects or places is None:
            yield table, texts if places is None else (), objects


def _statements(places: WholeValues | None) -> Iterator[tuple[str, LiteralString]]:
    for table, texts, objects in _columns(places):
        sets: list[LiteralString] = [
            name + " = replace(" + name + ", %(value)b::text, %(erased)b::text)" for name in texts
        ]
        sets += [name + " = " + _erased_in(name, places) for name in objects]
        yield table, "UPDATE " + table + " SET " + ", ".join(sets) + " WHERE " + _contains(texts, objects, places)  # noqa: S608


def _contains(
    texts: tuple[LiteralString, ...], objects: tuple[LiteralString, ...], places: WholeValues | None
) -> LiteralString:
    found: list[LiteralString] = ["position(%(value)b::text IN coalesce(" + name + ", '')) > 0" for name in texts]
    found += [_CHANGES.format(name, _erased_in(name, places)) for name in objects]
    return "(" + " OR ".join(found) + ")"
