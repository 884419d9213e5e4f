"""The statements of operations: one act on all letters that a filter means, a batch at a time.

Who works on one holds it by the moment until which it is leased: every batch sets a new one, where the old one stands
as it was. So of two who work on it one finds nothing to do, and whoever is killed leaves it to the next.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, LiteralString
from uuid import UUID

from reprocessing.domain.parking_lot.message_filter import Sieve
from reprocessing.models.audit import Act
from reprocessing.models.parking_lot import OperationAct
from reprocessing.store import rows
from reprocessing.store.parking_lot import message_filters

#: Letters of one transaction.
BATCH: Final = 500
#: Letters of which it is kept why they were left alone.
KEPT: Final = 20
#: Seconds after which an operation that nobody works on any more is taken up by somebody else.
LEASE: Final = 20.0
#: Letters that came too late for an operation, as far as they are counted.
LATE: Final = 1_000


#: What the audit calls what somebody asked for.
_NOTED: Final = {
    OperationAct.RELEASE: Act.RELEASED, OperationAct.DISCARD: Act.DISCARDED, OperationAct.RESTORE: Act.RESTORED,
    OperationAct.ASSIGN: Act.ASSIGNED, OperationAct.NOTE: Act.NOTED,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Held:
    """A running operation that is the caller's until `leased_until`."""

    id: int
    act: str
    filter: dict[str, Any]
    arguments: dict[str, Any]
    by: str
    reason: str
    asked_at: datetime
    upto: int
    cursor: int
    leased_until: datetime


_BEGIN: Final[LiteralString] = """
WITH bound AS (
    SELECT coalesce(max(id), 0) AS upto, least(%(opened)b::timestamptz, redrive_now()) AS asked_at FROM redrive_letter
), begun AS (
    INSERT INTO redrive_operation (token, act, filter, arguments, by, reason, refusals, asked_at, upto, asked)
    SELECT %(token)b::uuid, %(act)b, %(filter)b::text::jsonb, %(arguments)b::text::jsonb, %(by)b, %(reason)b,
           '{{}}'::jsonb, asked_at, upto, (
                SELECT count(*) FROM redrive_letter l
                 WHERE l.id <= bound.upto AND coalesce(l.finished_at <= bound.asked_at, true) AND {where})
      FROM bound
    ON CONFLICT (token) DO NOTHING
    RETURNING id, asked, arguments
), noted AS (
    INSERT INTO redrive_review (act, operation_id, by, reason, at, before, after)
    SELECT %(noted)b, id, %(by)b, %(reason)b, redrive_now(), '{{}}'::jsonb,
           arguments || jsonb_build_object('filter', %(recorded)b::text::jsonb, 'letters', asked) FROM begun
)
SELECT id FROM begun
"""

_DUE = """
UPDATE redrive_operation
   SET leased_until = redrive_now() + make_interval(secs => %(lease)b::float8)
 WHERE id IN (SELECT id FROM redrive_operation
               WHERE state = 'running' AND (leased_until IS NULL OR leased_until <= redrive_now())
               ORDER BY id LIMIT %(limit)b FOR UPDATE SKIP LOCKED)
RETURNING id
"""

_TAKE = """
UPDATE redrive_operation
   SET leased_until = redrive_now() + make_interval(secs => %(lease)b::float8)
 WHERE id = %(id)b::bigint AND state = 'running'
RETURNING id, act, filter, arguments, by, reason, asked_at, upto, cursor, leased_until
"""

_STEP = """
UPDATE redrive_operation
   SET leased_until = redrive_now() + make_interval(secs => %(lease)b::float8)
 WHERE id = %(id)b::bigint AND state = 'running' AND leased_until = %(held)b
RETURNING id, act, filter, arguments, by, reason, asked_at, upto, cursor, leased_until
"""

_NEXT: Final[LiteralString] = """
SELECT l.id FROM redrive_letter l
 WHERE l.id > %(cursor)b::bigint AND l.id <= %(upto)b::bigint AND coalesce(l.finished_at <= %(asked_at)b, true)
   AND {where}
 ORDER BY l.id LIMIT %(limit)b
"""

_DONE = """
UPDATE redrive_operation o
   SET done = o.done + %(done)b::int, left_alone = o.left_alone + %(left)b::int, cursor = %(cursor)b::bigint,
       refusals = o.refusals || %(refusals)b::text::jsonb,
       state = CASE WHEN %(last)b::bool THEN 'done' ELSE o.state END,
       finished_at = CASE WHEN %(last)b::bool THEN redrive_now() END,
       leased_until = CASE WHEN %(last)b::bool THEN NULL ELSE o.leased_until END
 WHERE o.id = %(id)b::bigint
"""

_GIVE_BACK = """
UPDATE redrive_operation SET leased_until = NULL
 WHERE id = %(id)b::bigint AND state = 'running' AND leased_until = %(held)b
"""

_ABORT = """
WITH ended AS (
    UPDATE redrive_operation
       SET state = 'aborted', finished_at = redrive_now(), leased_until = NULL, ended_by = %(by)b, why = %(why)b
     WHERE id = %(id)b::bigint AND state = 'running'
    RETURNING id, asked, done, left_alone
), noted AS (
    INSERT INTO redrive_review (act, operation_id, by, reason, at, before, after)
    SELECT 'aborted', id, %(by)b, %(why)b, redrive_now(), '{}'::jsonb,
           jsonb_build_object('letters', asked, 'done', done, 'left_alone', left_alone) FROM ended
)
SELECT id FROM ended
"""

_LATER: Final[LiteralString] = """
SELECT count(*) AS n FROM (
    SELECT FROM redrive_letter l WHERE l.finished_at > %(asked_at)b AND {where} LIMIT %(limit)b) l
"""


def begin(  # noqa: PLR0913  # each by its name
    token: UUID, act: OperationAct, sieve: Sieve, arguments: Mapping[str, Any], *, by: str, reason: str,
    opened: datetime | None = None,
) -> bool:  # fmt: skip
    """Write down what somebody asks for, in the audit, too; whether it is new: of one token there is one operation.

    Args:
        token: of the page that asks.
        act: what is done to each letter.
        sieve: which letters it means.
        arguments: when, where to, to whom, as the act needs.
        by: who asks.
        reason: why.
        opened: when they looked at what it means; what was finished later is left alone. None: just now.

    Raises:
        FilterIsUnclear: not every letter that the filter could mean can be looked at.
    """
    message_filters.insist_on_all(sieve)
    asked = message_filters.values(sieve) | {
        "token": token, "act": act.value, "filter": json.dumps(sieve.stored()), "noted": _NOTED[act].value,
        "recorded": json.dumps(sieve.recorded()), "arguments": json.dumps(dict(arguments)), "by": by, "reason": reason,
        "opened": opened,
    }  # fmt: skip
    return bool(rows.execute(_BEGIN.format(where=message_filters.where(sieve, whole=True)), asked))


def due(*, limit: int) -> list[int]:
    """Running operations that nobody works on, kept for whoever is told of them for a while."""
    return rows.column(int, _DUE, {"lease": LEASE, "limit": limit})


def take(operation: int) -> Held | None:
    """Take up a running operation, from whoever has it: that one's next step finds it lost. None: it runs no more."""
    found = rows.fetch(Held, _TAKE, {"id": operation, "lease": LEASE})
    return found[0] if found else None


def step(held: Held) -> Held | None:
    """Lock the operation for one batch, and lengthen the lease; None: it is somebody else's by now, or runs no more."""
    found = rows.fetch(Held, _STEP, {"id": held.id, "held": held.leased_until, "lease": LEASE})
    return found[0] if found else None


def letters(held: Held) -> list[int]:
    """The next letters that it is about, in the order of their ids, `BATCH` at most."""
    sieve = Sieve.read(held.filter)
    asked = message_filters.values(sieve) | {
        "cursor": held.cursor, "upto": held.upto, "asked_at": held.asked_at, "limit": BATCH,
    }  # fmt: skip
    return rows.column(int, _NEXT.format(where=message_filters.where(sieve, whole=True)), asked)


def count(held: Held, found: list[int], *, done: int, refused: Mapping[int, str], kept: int) -> None:
    """Write down how far it is; fewer than a batch were the last. `kept`: refusals that are kept already."""
    some = dict(list(refused.items())[: max(0, KEPT - kept)])
    rows.execute(_DONE, {
        "id": held.id, "done": done, "left": len(refused), "cursor": found[-1] if found else held.upto,
        "refusals": json.dumps(some), "last": len(found) < BATCH,
    })  # fmt: skip


def give_back(held: Held) -> None:
    """Leave it to whoever comes next."""
    rows.execute(_GIVE_BACK, {"id": held.id, "held": held.leased_until})


def abort(operation: int, *, by: str, why: str) -> bool:
    """End it where it is, between two batches, and say so in the audit; whether it was running."""
    return bool(rows.execute(_ABORT, {"id": operation, "by": by, "why": why}))


def later(sieve: Sieve, *, asked_at: datetime) -> int:
    """How many finished letters its filter means that came too late for it; more than `LATE` stand for more."""
    asked = message_filters.values(sieve) | {"asked_at": asked_at, "limit": LATE + 1}
    return rows.value(int, _LATER.format(where=message_filters.where(sieve)), asked)
