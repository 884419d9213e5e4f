"""`once`: work that is done once under its key, whoever asks for it, and however often."""

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
    ClaimIsUnclear,
    ClaimWasLost,
    ClaimWouldNotBeSeen,
    InProgress,
    PayloadConflict,
    ResultIsNotJson,
)
from reprocessing.idempotency.naming import digest, evidence, named
from reprocessing.idempotency.table import Place

#: Bytes of JSON; a result is for telling again, not a store.
LARGEST_RESULT: Final = 1 << 20
_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 0.5  # seconds between two looks at a claim that somebody else has
_SOON: Final = 1.0  # seconds: when to ask again after a claim whose end nobody knows


@dataclass(frozen=True, slots=True)
class Found:
    """Somebody did the work before. `result` is what they kept of it, through JSON; None when they kept nothing."""

    result: Any


class Claim:
    """A key, and the right to do its work; or what became of it, in `found`."""

    def __init__(self, place: Place, lease: timedelta, token: UUID | None, found: Found | None = None) -> None:
        self.found = found
        self._place, self._lease, self._token = place, lease, token
        self._result: str | None = None
        self._unkept: str | None = None

    def result(self, value: object) -> None:
        """Keep this for whoever asks again. It must be JSON, of at most 1 MiB; that it is not is said at the end."""
        try:
            text = json.dumps(value, allow_nan=False)
        except (TypeError, ValueError, RecursionError):
            self._unkept = f"a {type(value).__name__} that is not JSON"
            return
        self._result, self._unkept = text, None
        if len(text) > LARGEST_RESULT:
            self._result, self._unkept = None, f"JSON of {len(text):,} bytes, of {LARGEST_RESULT:,} that there may be"

    def renew(self) -> None:
        """Let the lease begin anew: the work is not done yet, and goes on.

        Raises:
            ClaimWasLost: another has it. Stop: what follows would be done twice.
        """
        if self._token and not table.renew(self._place, self._token, lease=self._lease):
            raise _lost(self._place)

    def finish(self) -> None:
        """Say that the work is done. `once` does it.

        Raises:
            ClaimWasLost: another has the claim; theirs stands.
            ResultIsNotJson: the work is recorded as done, without a result.
        """
        token = self._token
        if token is None:
            return
        if not _surely(self._place, lambda: table.done(self._place, token, result=self._result)):
            raise _lost(self._place)
        if self._unkept:
            raise ResultIsNotJson(
                f"The work is done and will not be done again, but its result is {self._unkept}. In the space "
                f'"{self._place.space}" whoever asks again gets None. Return what JSON knows, or nothing.'
            )

    def release(self, error: BaseException) -> None:
        """Say that the work failed, and may be tried again. `once` does it, and raises the error in any case."""
        token = self._token
        if token is None:
            return
        why = evidence(error, messages=conf.current().error_messages)
        try:
            if not _surely(self._place, lambda: table.failed(self._place, token, error=why)):
                error.add_note(str(_lost(self._place)))
        except Error:
            error.add_note("Its claim could not be released, since the database is away. It ends with its lease.")


@contextmanager
def once(  # noqa: PLR0913  # one named argument for each thing that may be different
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
    """Claim a key for the work of the block. Leave the work out when `claim.found` says that it was done.

    The claim is committed before the block begins, and the outcome after it has ended; an exception releases it for
    another try. Between the end of the work and its record there is a gap: who dies in it leaves a claim that ends with
    its lease, and the work is done again. With `transactional` there is none: claim, outcome and whatever the block
    writes under the same alias are committed together, or not at all. No coroutines.

    Args:
        key: what is done once: a text of at most 500 characters, a number or a UUID. The same on every delivery.
        space: what is done with it, in at most 100 characters; the same key in another space is another claim.
        lease: how long the claim is taken for alive; longer than the work ever takes, or `claim.renew()` it.
        keep: how long it is remembered that the work was done.
        payload: bytes, a text, or what JSON knows. The same key with another payload is refused.
        wait: seconds to wait for whoever has the claim; for no longer than a request may take.
        transactional: claim in the transaction of the effect, which is in the database `using`.
        using: an alias of DATABASES. By default REDRIVE_IDEMPOTENCY["DATABASE"]; with `transactional`, "default".

    Raises:
        InProgress: somebody else has it, also after `wait`.
        PayloadConflict: the key was used for another payload.
        ClaimWasLost: the work outlived its lease, and another took the claim.
        ClaimWouldNotBeSeen: not `transactional`, and within a transaction.
        ClaimIsUnclear, ResultIsNotJson, SettingsAreUnclear: as they say.
    """
    if transactional and lease is not None:
        raise ClaimIsUnclear("A transactional claim ends with its transaction. Leave lease out.")
    view = conf.current()
    place = Place(
        using=using or ("default" if transactional else view.database),
        space=named(space, "space"),
        key=named(key, "key"),
        payload_hash=digest(payload),
        keep=view.keep if keep is None else conf.span(keep, "keep", most=conf.LONGEST_KEEP),
    )
    period = view.lease if lease is None else conf.span(lease, "lease", most=conf.LONGEST_LEASE)
    with (_with_the_effect if transactional else _committed)(place, period, wait) as claim:
        yield claim


@contextmanager
def _committed(place: Place, lease: timedelta, wait: float) -> Iterator[Claim]:
    _refuse_a_transaction(place.using)
    claim = _take(place, lease, wait, may_take=lambda: True)
    try:
        yield claim
    except BaseException as error:
        claim.release(error)
        raise
    claim.finish()


@contextmanager
def _with_the_effect(place: Place, lease: timedelta, wait: float) -> Iterator[Claim]:
    claim: Claim | None = None
    try:
        with transaction.atomic(using=place.using):
            claim = _take(place, lease, wait, may_take=lambda: table.lock(place))
            yield claim
            claim.finish()
    except BaseException as error:
        if claim is not None:
            _note_what_was_rolled_back(place, error)
        raise


def _note_what_was_rolled_back(place: Place, error: BaseException) -> None:
    why = evidence(error, messages=conf.current().error_messages)
    try:
        with transaction.atomic(using=place.using):
            if table.lock(place):  # else the next one is at work already, and the row is theirs for as long
                table.failed_anew(place, error=why)
    except Error:
        error.add_note("That it failed could not be recorded: the database is away.")


def _take(place: Place, lease: timedelta, wait: float, *, may_take: Callable[[], bool]) -> Claim:
    deadline, pause = time.monotonic() + wait, _FIRST_PAUSE
    while True:
        may = may_take()
        if may and (token := table.take(place, lease=lease)):
            return Claim(place, lease, token)
        seen = table.look(place)
        if seen and seen.other_payload:
            raise PayloadConflict(
                f'This key of the space "{place.space}" was used for another payload. One key stands for one piece of '
                "work: give the other work a key of its own."
            )
        if seen and seen.done:
            return Claim(place, lease, None, Found(None if seen.result is None else json.loads(seen.result)))
        rest = max(seen.rest, 0.0) if seen and seen.rest is not None else 0.0
        if may and not rest:
            continue  # it ended between the two statements
        left = deadline - time.monotonic()
        if left <= 0:
            raise InProgress(place.space, retry_after=rest or _SOON)
        time.sleep(min(pause, left))
        pause = min(2 * pause, _LONGEST_PAUSE)


def _refuse_a_transaction(using: str) -> None:
    connection = connections[using]
    blocks = connection.atomic_blocks if connection.in_atomic_block else []
    # Those of a TestCase are around every test, and hide nothing that the test does not hide itself.
    ours = [block for block in blocks if not getattr(block, "_from_testcase", False)]
    if ours or (not blocks and not connection.get_autocommit()):
        raise ClaimWouldNotBeSeen(
            f'A claim in a transaction of "{using}" is seen by nobody before it is committed. Claim outside of it '
            "(around atomic(), in a view that is non_atomic_requests), or say transactional=True to commit claim and "
            'effect together, or name an alias with a connection of its own in REDRIVE_IDEMPOTENCY["DATABASE"].'
        )


def _surely(place: Place, say: Callable[[], bool]) -> bool:
    """Say it, and once more on a new connection when this one broke meanwhile: the work may have taken long."""
    try:
        return say()
    except (OperationalError, InterfaceError):
        connection = connections[place.using]
        if connection.in_atomic_block:
            raise
        connection.close()
        return say()


def _lost(place: Place) -> ClaimWasLost:
    return ClaimWasLost(
        f'The work outlived its lease, and its claim in the space "{place.space}" was taken by another, whose outcome '
        "stands: the work may have been done twice. Make the lease longer than the work, or renew it on the way."
    )
