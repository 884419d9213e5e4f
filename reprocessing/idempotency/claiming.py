"""Define `once`, a context manager for work that is done once for each key.

A claim is the right of one worker to do the work that a key identifies. A claim has a lease: if the worker dies,
another worker can claim the key when the lease has ended.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from django.db import Error, InterfaceError, OperationalError, connections, transaction

from reprocessing.idempotency import conf, table
from reprocessing.idempotency.errors import (
    ClaimInsideTransaction,
    ClaimLost,
    InProgress,
    InvalidClaim,
    PayloadConflict,
    ResultIsNotJson,
)
from reprocessing.idempotency.naming import error_text, key_text, payload_digest
from reprocessing.idempotency.table import ClaimKey

#: Most bytes of a stored result, as JSON.
LARGEST_RESULT: Final = 1 << 20
_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 0.5  # seconds between two reads of another worker's claim; doubled each time
_SOON: Final = 1.0  # `retry_after` of InProgress, in seconds, if the end of the other worker's claim is not known


@dataclass(frozen=True, slots=True)
class EarlierResult:
    """The result of work that was done before, decoded from JSON. `result` None: no result was stored."""

    result: Any


class Claim:
    """The right of one worker to do the work of a key. `found`: the result, if the work was done before; else None."""

    def __init__(
        self, place: ClaimKey, lease: timedelta, token: UUID | None, found: EarlierResult | None = None
    ) -> None:
        self.found = found
        self._place, self._lease, self._token = place, lease, token
        self._result: str | None = None
        self._unkept: str | None = None

    def result(self, value: object) -> None:
        """Set the result that later callers get.

        If the result is not JSON of at most 1 MiB, `finish` raises ResultIsNotJson.
        """
        try:
            text = json.dumps(value, allow_nan=False)
        except (TypeError, ValueError, RecursionError):
            self._unkept = f"a {type(value).__name__} that is not JSON"
            return
        self._result, self._unkept = text, None
        if len(text) > LARGEST_RESULT:
            self._result, self._unkept = None, f"JSON of {len(text):,} bytes, more than {LARGEST_RESULT:,}"

    def renew(self) -> None:
        """Extend the lease to its full length from now. Call this in time, if the work takes longer than the lease.

        Raises:
            ClaimLost: another worker has the claim, so stop the work.
        """
        if self._token and not table.renew_lease(self._place, self._token, lease=self._lease):
            raise _lost(self._place)

    def finish(self) -> None:
        """Record that the work is done, with its result. `once` calls this when the block ends.

        Raises:
            ClaimLost: another worker has the claim now, so the other worker's result will be stored.
            ResultIsNotJson: the result cannot be stored. The work is recorded as done, without a result.
        """
        token = self._token
        if token is None:
            return
        if not _surely(self._place, lambda: table.record_done(self._place, token, result=self._result)):
            raise _lost(self._place)
        if self._unkept:
            raise ResultIsNotJson(
                f"The work is done and will not be done again, but its result is {self._unkept}. Later callers of the "
                f'space "{self._place.space}" get None. Return JSON, or nothing.'
            )

    def release(self, error: BaseException) -> None:
        """Record that the work failed with `error`, so that it may be tried again.

        `once` calls this, then raises `error`.
        """
        token = self._token
        if token is None:
            return
        why = error_text(error, messages=conf.current_settings().error_messages)
        try:
            if not _surely(self._place, lambda: table.record_failed(self._place, token, error=why)):
                error.add_note(str(_lost(self._place)))
        except Error:
            error.add_note("The claim could not be released (database not reachable). It ends with its lease.")


@contextmanager
def once(  # noqa: PLR0913  # keyword arguments
    key: object,
    *,
    space: str,
    lease: timedelta | float | None = None,
    keep: timedelta | float | None = None,
    payload: object = None,
    wait: float = 0.0,
    transactional: bool = False,
    using: str | None = None,
) -> Iterator[Claim]:
    """Claim a key for the work of the block. If `claim.found` is not None, the work was done: skip it in the block.

    The claim is committed before the block begins, and the result after the block has ended. An exception in the block
    releases the claim. If the process dies in the block, the claim ends with its lease, and another worker does the
    work again. With `transactional`, the claim, the result and the block's own changes are committed together. The work
    must not be a coroutine.

    Args:
        key: identifies the work: a text of at most 500 characters, a number or a UUID, the same in every delivery.
        space: the kind of work, in at most 100 characters. Equal keys in different spaces are different work.
        lease: how long the claim is valid; a number means seconds. It must be longer than the work, unless you call
            `claim.renew()`. Default: REDRIVE_IDEMPOTENCY["LEASE"], 5 minutes.
        keep: how long the result is kept; a number means seconds. Default: REDRIVE_IDEMPOTENCY["KEEP"], 30 days.
        payload: what the work is about (bytes, a text, or JSON), to detect that a key is used for different work.
        wait: most seconds to wait while another worker has the claim; after them, InProgress is raised.
        transactional: make the claim in the transaction of the work, in the database `using`.
        using: the database, an alias of DATABASES. Default: REDRIVE_IDEMPOTENCY["DATABASE"]; if `transactional`,
            "default".

    Raises:
        InProgress: another worker still has the claim after `wait`.
        PayloadConflict: the key was used for another payload.
        ClaimLost: the work outlived its lease, and another worker took the claim.
        ClaimInsideTransaction: the caller is inside a transaction, and `transactional` is false.
        InvalidClaim, ResultIsNotJson, InvalidIdempotencySettings: an argument or the result is not valid.
    """
    if transactional and lease is not None:
        raise InvalidClaim("A transactional claim ends with its transaction. Leave lease out.")
    view = conf.current_settings()
    place = ClaimKey(
        using=using or ("default" if transactional else view.database),
        space=key_text(space, "space"),
        key=key_text(key, "key"),
        payload_hash=payload_digest(payload),
        keep=view.keep if keep is None else conf.read_duration(keep, "keep", most=conf.LONGEST_KEEP),
    )
    period = view.lease if lease is None else conf.read_duration(lease, "lease", most=conf.LONGEST_LEASE)
    with (_with_the_effect if transactional else _committed)(place, period, wait) as claim:
        yield claim


@contextmanager
def _committed(place: ClaimKey, lease: timedelta, wait: float) -> Iterator[Claim]:
    _refuse_a_transaction(place.using)
    claim = _take(place, lease, wait, may_take=lambda: True)
    try:
        yield claim
    except BaseException as error:
        claim.release(error)
        raise
    claim.finish()


@contextmanager
def _with_the_effect(place: ClaimKey, lease: timedelta, wait: float) -> Iterator[Claim]:
    claim: Claim | None = None
    try:
        with transaction.atomic(using=place.using):
            claim = _take(place, lease, wait, may_take=lambda: table.lock_key(place))
            yield claim
            claim.finish()
    except BaseException as error:
        if claim is not None:
            _note_what_was_rolled_back(place, error)
        raise


def _note_what_was_rolled_back(place: ClaimKey, error: BaseException) -> None:
    why = error_text(error, messages=conf.current_settings().error_messages)
    try:
        with transaction.atomic(using=place.using):
            if table.lock_key(place):  # False: another worker has begun the work, and will record its result
                table.record_rolled_back_failure(place, error=why)
    except Error:
        error.add_note("The failure could not be recorded, because the database is not reachable.")


def _take(place: ClaimKey, lease: timedelta, wait: float, *, may_take: Callable[[], bool]) -> Claim:
    deadline, pause = time.monotonic() + wait, _FIRST_PAUSE
    while True:
        may = may_take()
        if may and (token := table.take_claim(place, lease=lease)):
            return Claim(place, lease, token)
        seen = table.read_claim(place)
        if seen and seen.other_payload:
            raise PayloadConflict(
                f'This key of the space "{place.space}" was used for another payload. Use another key for other work.'
            )
        if seen and seen.state == "done":
            return Claim(place, lease, None, EarlierResult(None if seen.result is None else json.loads(seen.result)))
        rest = max(seen.rest, 0.0) if seen and seen.rest is not None else 0.0
        if may and not rest:
            continue  # the other worker's claim ended between the two statements
        left = deadline - time.monotonic()
        if left <= 0:
            raise InProgress(place.space, retry_after=rest or _SOON)
        time.sleep(min(pause, left))
        pause = min(2 * pause, _LONGEST_PAUSE)


def _refuse_a_transaction(using: str) -> None:
    connection = connections[using]
    blocks = connection.atomic_blocks if connection.in_atomic_block else []
    # The atomic blocks of Django's TestCase surround every test, and do not count as transactions of the caller.
    ours = [block for block in blocks if not getattr(block, "_from_testcase", False)]
    if ours or (not blocks and not connection.get_autocommit()):
        raise ClaimInsideTransaction(
            f'A claim inside a transaction of "{using}" is invisible until the commit. Claim outside of atomic() '
            "(views: non_atomic_requests), or pass transactional=True to commit claim and work together, or set "
            'REDRIVE_IDEMPOTENCY["DATABASE"] to an alias with its own connection.'
        )


def _surely(place: ClaimKey, say: Callable[[], bool]) -> bool:
    """Run a statement, and return its result (True or False). If the connection is broken, run it on a new one.

    Inside a transaction, the error is raised, because a new connection would not continue the transaction.
    """
    try:
        return say()
    except (OperationalError, InterfaceError):
        connection = connections[place.using]
        if connection.in_atomic_block:
            raise
        connection.close()
        return say()


def _lost(place: ClaimKey) -> ClaimLost:
    return ClaimLost(
        f'The work outlived its lease, and another worker took its claim (space "{place.space}"): the work may have '
        "been done twice. Make the lease longer than the work, or renew it."
    )
