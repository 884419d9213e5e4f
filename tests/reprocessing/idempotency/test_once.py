"""`once`: the promises to the worker that takes a claim, and to later ones."""

# ruff: noqa: PT012  # a claim is a block, and what breaks it stands inside
from __future__ import annotations

import json
from contextlib import ExitStack
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import IntegrityError, OperationalError, connection, transaction

from reprocessing.idempotency import (
    ClaimInsideTransaction,
    ClaimLost,
    InProgress,
    InvalidClaim,
    InvalidIdempotencySettings,
    PayloadConflict,
    ResultIsNotJson,
    once,
)
from reprocessing.idempotency.models import Claim
from tests.race.abreast import elsewhere
from tests.reprocessing.idempotency.stock import SPACE, lapse, row

pytestmark = pytest.mark.django_db(transaction=True)


class Broke(Exception):
    """The work failed."""


def do(result: object = None, key: object = "key", **options: Any) -> object:  # noqa: ANN401
    """Do the work and return its result; return a tuple if it was done before."""
    with once(key, space=SPACE, **options) as claim:
        if claim.found:
            return (claim.found.result,)
        claim.result(result)
        return result


def fail(words: str = "no stock", **options: Any) -> None:  # noqa: ANN401
    with pytest.raises(Broke), once("key", space=SPACE, **options):
        raise Broke(words)


def test_work_is_done_once_and_later_callers_get_its_result() -> None:
    assert do({"charge": "ch_1", "cents": 1250}) == {"charge": "ch_1", "cents": 1250}
    assert do("something else") == ({"charge": "ch_1", "cents": 1250},)
    assert row().attempts == 1


def test_one_key_in_two_spaces_is_different_work() -> None:
    with once("key", space="orders") as ours, once("key", space="letters") as theirs:
        assert [ours.found, theirs.found] == [None, None]


@pytest.mark.parametrize("key", [17, UUID(int=17), "ключ 🗝", "k" * 500])
def test_a_key_is_a_text_a_number_or_a_uuid(key: object) -> None:
    do(key=key)
    assert list(Claim.objects.values_list("key", flat=True)) == [str(key)]


@pytest.mark.parametrize("key", ["", "  ", None, True, 1.5, b"key", "k" * 501, "4111-1111\0", "\ud800"])
def test_an_empty_or_unstorable_key_is_refused_and_not_quoted(key: object) -> None:
    with pytest.raises(InvalidClaim) as refused:
        do(key=key)
    assert "4111" not in str(refused.value)


@pytest.mark.parametrize("wait", [0, 0.05])
def test_a_second_worker_is_told_when_to_retry(wait: float) -> None:
    with once("key", space=SPACE, lease=90), pytest.raises(InProgress) as told:
        do(wait=wait)
    assert 80 < told.value.retry_after <= 90


def test_a_worker_that_waits_long_enough_gets_the_result() -> None:
    with elsewhere() as begin:
        with once("key", space=SPACE) as claim:
            waiting = begin(lambda: do(wait=10))
            claim.result("done")
        assert waiting.result(10) == ("done",)


def test_failed_work_may_be_retried_at_once_and_its_last_failure_stays_recorded_for_the_given_time() -> None:
    fail("first")
    fail("zero\0 half \ud800" + "x" * 3_000)
    assert do("done", keep=timedelta(days=40)) == "done"
    known = row()
    assert (known.state, known.attempts, known.failures) == ("done", 3, 2)
    assert known.error_type == f"{__name__}.Broke"
    assert known.error_message == ("zero half ?" + "x" * 3_000)[: len(known.error_message)]
    assert 1_990 < len(known.error_message) <= 2_000
    assert known.failed_at is not None
    assert known.done_at is not None
    assert abs(known.keep_until - known.done_at - timedelta(days=40)) < timedelta(seconds=1)


def test_the_text_of_a_failure_is_not_kept_if_the_settings_say_so(settings: Any) -> None:  # noqa: ANN401
    settings.REDRIVE_IDEMPOTENCY = {"ERROR_MESSAGES": False}
    fail("card 4111-1111")
    assert (row().error_type, row().error_message) == (f"{__name__}.Broke", "")


def test_a_keyboard_interrupt_releases_the_claim() -> None:
    with pytest.raises(KeyboardInterrupt), once("key", space=SPACE):
        raise KeyboardInterrupt
    assert (row().state, row().error_type) == ("failed", "KeyboardInterrupt")


def test_a_claim_whose_lease_has_ended_is_taken_by_another_worker_whose_result_counts() -> None:
    with pytest.raises(ClaimLost), once("key", space=SPACE) as claim:
        lapse()
        assert do("theirs") == "theirs"
        with pytest.raises(ClaimLost):
            claim.renew()
        claim.result("ours, too late")
    assert (do(), row().attempts) == (("theirs",), 2)


@pytest.mark.parametrize("fails", [False, True])
def test_a_worker_that_lost_the_claim_does_not_end_the_others_work_and_keeps_its_error(fails: bool) -> None:
    with ExitStack() as theirs:
        with pytest.raises(Broke if fails else ClaimLost) as raised, once("key", space=SPACE):
            lapse()
            theirs.enter_context(once("key", space=SPACE))
            if fails:
                raise Broke
        assert row().state == "in_progress"
    assert (row().state, row().failures) == ("done", 0)
    assert ["outlived its lease" in note for note in getattr(raised.value, "__notes__", [])] == [True] * fails


def test_work_that_outlived_its_lease_alone_is_done() -> None:
    with once("key", space=SPACE) as claim:
        lapse()
        claim.result("late, and alone")
    assert do() == ("late, and alone",)


def test_a_renewed_lease_has_its_whole_duration() -> None:
    with once("key", space=SPACE, lease=60) as claim:
        lapse()
        claim.renew()
        with pytest.raises(InProgress) as told:
            do()
    assert 50 < told.value.retry_after <= 60


@pytest.mark.parametrize(
    ("first", "second"), [(b"a", b"b"), ("a", "b"), ({"cents": 1}, {"cents": 2}), ([1, 2], [2, 1])]
)
def test_one_key_with_two_payloads_is_a_conflict(first: object, second: object) -> None:
    do("one", payload=first)
    with pytest.raises(PayloadConflict):
        do("two", payload=second)


def test_a_payload_counts_from_when_it_is_given_also_during_the_first_work_and_after_its_failure() -> None:
    fail()
    with pytest.raises(PayloadConflict), once("key", space=SPACE, payload="a"):
        do(payload="b")
    with pytest.raises(PayloadConflict):
        do(payload="b")


@pytest.mark.parametrize(
    ("first", "second"), [({"a": 1, "b": 2}, {"b": 2, "a": 1}), ("a", b"a"), ("a", None), (None, "a"), ([1], (1,))]
)
def test_equal_payloads_or_none_are_no_conflict(first: object, second: object) -> None:
    do("one", payload=first)
    assert do("two", payload=second) == ("one",)


@pytest.mark.parametrize("result", [object(), {1, 2}, float("nan"), "x" * (1 << 20)])
def test_work_with_an_invalid_result_is_done_without_it(result: object) -> None:
    with pytest.raises(ResultIsNotJson):
        do(result)
    assert do("again") == (None,)


@pytest.mark.parametrize("result", ["zero \0 and half \ud800", [1, None, {"": []}], 0, "", False, None, 1 << 70])
def test_a_result_is_returned_through_json(result: object) -> None:
    do(result)
    assert do() == (json.loads(json.dumps(result)),)


def test_a_claim_inside_a_transaction_is_refused() -> None:
    with pytest.raises(ClaimInsideTransaction), transaction.atomic():
        do()
    with transaction.atomic(), pytest.raises(ClaimInsideTransaction):
        do()


def test_a_claim_without_autocommit_is_refused() -> None:
    transaction.set_autocommit(False)
    try:
        with pytest.raises(ClaimInsideTransaction):
            do()
    finally:
        transaction.rollback()
        transaction.set_autocommit(True)


def test_a_connection_that_broke_during_the_work_is_replaced() -> None:
    with once("key", space=SPACE) as claim:
        connection.connection.close()
        claim.result("done")
    assert do() == ("done",)


def test_work_whose_failure_cannot_be_recorded_raises_its_own_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(*_: object, **__: object) -> None:
        raise OperationalError("the server went away")

    monkeypatch.setattr("reprocessing.idempotency.table.record_failed", gone)
    with pytest.raises(Broke) as raised, once("key", space=SPACE):
        raise Broke
    note = "The claim could not be released (database not reachable). It ends with its lease."
    assert raised.value.__notes__ == [note]


@pytest.mark.parametrize(
    ("options", "error"),
    [
        *(({"lease": lease}, InvalidIdempotencySettings)
          for lease in (0, -1, True, "60", timedelta(), timedelta(hours=13), float("nan"), float("inf"))),
        ({"lease": 5, "transactional": True}, InvalidClaim),
        ({"payload": object()}, InvalidClaim),
    ],
)  # fmt: skip
def test_an_invalid_lease_or_payload_is_refused_before_the_claim(
    options: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        do(**options)
    assert Claim.objects.count() == 0


@pytest.mark.parametrize(
    ("changes", "constraint"),
    [
        ("lease_until = NULL", "work_in_progress_alone_has_a_lease"),
        ("state = 'open', lease_until = NULL", "work_is_in_progress_or_done_or_failed"),
        ("done_at = now()", "work_that_is_done_alone_says_since_when"),
        ("result = '1'", "only_work_that_is_done_has_a_result"),
        ("failures = 1", "a_failure_says_when_and_of_what_type"),
        ("state = 'failed', lease_until = NULL", "failed_work_counts_a_failure"),
        ("attempts = 0", "every_failure_was_an_attempt"),
        ("payload_hash = 'x'", "a_payload_hash_is_a_sha256"),
        ("key = ''", "a_space_and_a_key_say_something"),
        ("key = repeat('k', 501)", "a_space_and_a_key_are_short_enough"),
    ],
)
def test_the_schema_refuses(changes: str, constraint: str) -> None:
    with once("key", space=SPACE), pytest.raises(IntegrityError, match=constraint), connection.cursor() as cursor:
        cursor.execute(f"UPDATE redrive_idempotency_claim SET {changes}")
