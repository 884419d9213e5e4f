"""`once`: what a claim promises whoever takes it, and whoever comes after."""

# ruff: noqa: PT012  # a claim is a block, and what breaks it stands inside
from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import IntegrityError, OperationalError, connection, transaction

from reprocessing.idempotency import (
    ClaimIsUnclear,
    ClaimWasLost,
    ClaimWouldNotBeSeen,
    InProgress,
    PayloadConflict,
    ResultIsNotJson,
    SettingsAreUnclear,
    once,
)
from reprocessing.idempotency.models import Claim
from tests.race.abreast import elsewhere
from tests.reprocessing.idempotency.stock import SPACE, lapse, row

pytestmark = pytest.mark.django_db(transaction=True)


class Broke(Exception):
    """The work failed."""


def do(result: object = None, key: object = "key", **options: Any) -> object:  # noqa: ANN401
    """Work that is done, or what it gave when it was done before, in a tuple."""
    with once(key, space=SPACE, **options) as claim:
        if claim.found:
            return (claim.found.result,)
        claim.result(result)
        return result


def fail(words: str = "no stock", **options: Any) -> None:  # noqa: ANN401
    with pytest.raises(Broke), once("key", space=SPACE, **options):
        raise Broke(words)


@contextmanager
def somebody_else(**options: Any) -> Iterator[None]:  # noqa: ANN401
    """Another holds the claim during the block."""
    with once("key", space=SPACE, **options):
        yield


def test_work_is_done_once_and_its_result_is_told_again() -> None:
    assert do({"charge": "ch_1", "cents": 1250}) == {"charge": "ch_1", "cents": 1250}
    assert do("something else") == ({"charge": "ch_1", "cents": 1250},)
    assert row().attempts == 1


def test_work_without_a_result_is_done_once_too() -> None:
    assert [do(), do(), do()] == [None, (None,), (None,)]


def test_the_same_key_in_another_space_is_other_work() -> None:
    with once("key", space="orders") as ours, once("key", space="letters") as theirs:
        assert [ours.found, theirs.found] == [None, None]


@pytest.mark.parametrize("key", [17, UUID(int=17), "ключ 🗝", "k" * 500])
def test_a_key_is_a_text_a_number_or_a_uuid(key: object) -> None:
    do(key=key)

    assert list(Claim.objects.values_list("key", flat=True)) == [str(key)]


@pytest.mark.parametrize("key", ["", "  ", None, True, 1.5, b"key", "k" * 501, "a\0b", "\ud800"])
def test_a_key_that_says_nothing_or_cannot_be_kept_is_refused(key: object) -> None:
    with pytest.raises(ClaimIsUnclear):
        do(key=key)


def test_a_refused_key_is_not_quoted() -> None:
    with pytest.raises(ClaimIsUnclear) as refused:
        do(key="4111-1111\0")

    assert "4111" not in str(refused.value)


def test_whoever_comes_meanwhile_is_told_when_to_come_again() -> None:
    with somebody_else(lease=90), pytest.raises(InProgress) as told:
        do()

    assert 80 < told.value.retry_after <= 90


def test_whoever_waits_long_enough_gets_the_result() -> None:
    with elsewhere() as begin:
        with once("key", space=SPACE) as claim:
            waiting = begin(lambda: do(wait=10))
            claim.result("done")

        assert waiting.result(10) == ("done",)


def test_whoever_does_not_wait_long_enough_is_told_so() -> None:
    with somebody_else(), pytest.raises(InProgress):
        do(wait=0.05)


def test_failed_work_may_be_tried_again_at_once() -> None:
    fail()

    assert do("done") == "done"


def test_what_is_known_of_a_failure_outlives_the_success() -> None:
    fail("first")
    fail("second")
    do()

    known = row()
    assert (known.state, known.attempts, known.failures) == ("done", 3, 2)
    assert (known.error_type, known.error_message) == (f"{__name__}.Broke", "second")
    assert known.failed_at is not None


def test_the_text_of_a_failure_is_left_out_where_the_settings_say_so(settings: Any) -> None:  # noqa: ANN401
    settings.REDRIVE_IDEMPOTENCY = {"ERROR_MESSAGES": False}
    fail("card 4111-1111")

    assert (row().error_type, row().error_message) == (f"{__name__}.Broke", "")


def test_a_failure_is_kept_whatever_its_text_is() -> None:
    fail("zero\0 half \ud800" + "x" * 3_000)

    assert row().error_message == ("zero half ?" + "x" * 3_000)[: len(row().error_message)]
    assert 1_990 < len(row().error_message) <= 2_000


def test_even_what_is_no_exception_releases_the_claim() -> None:
    with pytest.raises(KeyboardInterrupt), once("key", space=SPACE):
        raise KeyboardInterrupt

    assert (row().state, row().error_type) == ("failed", "KeyboardInterrupt")


def test_a_claim_whose_lease_is_over_is_taken_by_the_next() -> None:
    with pytest.raises(ClaimWasLost), somebody_else():
        lapse()
        assert do("theirs") == "theirs"

    assert row().attempts == 2


def test_whoever_lost_the_claim_overwrites_nothing() -> None:
    with pytest.raises(ClaimWasLost), once("key", space=SPACE) as claim:
        lapse()
        do("theirs")
        claim.result("ours, too late")

    assert do() == ("theirs",)


def test_whoever_lost_the_claim_does_not_end_the_work_of_who_has_it() -> None:
    with ExitStack() as theirs:
        with pytest.raises(ClaimWasLost), once("key", space=SPACE):
            lapse()
            theirs.enter_context(once("key", space=SPACE))
        assert row().state == "in_progress"

    assert row().state == "done"


def test_whoever_fails_after_losing_the_claim_does_not_release_who_has_it() -> None:
    with ExitStack() as theirs:
        with pytest.raises(Broke), once("key", space=SPACE):
            lapse()
            theirs.enter_context(once("key", space=SPACE))
            raise Broke
        assert row().state == "in_progress"


def test_failing_after_the_claim_was_lost_keeps_the_error_and_releases_nothing() -> None:
    with pytest.raises(Broke) as raised, once("key", space=SPACE):
        lapse()
        do("theirs")
        raise Broke

    assert ["outlived its lease" in note for note in raised.value.__notes__] == [True]
    assert (row().state, row().failures) == ("done", 0)


def test_whoever_outlived_the_lease_and_was_not_replaced_is_done() -> None:
    with once("key", space=SPACE) as claim:
        lapse()
        claim.result("late, and alone")

    assert do() == ("late, and alone",)


def test_a_renewed_lease_begins_anew() -> None:
    with once("key", space=SPACE, lease=60) as claim:
        lapse()
        claim.renew()
        with pytest.raises(InProgress) as told:
            do()

    assert 50 < told.value.retry_after <= 60


def test_a_lost_claim_is_not_renewed() -> None:
    with pytest.raises(ClaimWasLost), once("key", space=SPACE) as claim:
        lapse()
        do()
        claim.renew()


@pytest.mark.parametrize(
    ("first", "second"),
    [(b"a", b"b"), ("a", "b"), ({"cents": 1}, {"cents": 2}), ([1, 2], [2, 1])],
)
def test_the_same_key_for_another_payload_is_a_conflict(first: object, second: object) -> None:
    do("one", payload=first)

    with pytest.raises(PayloadConflict):
        do("two", payload=second)


def test_a_conflict_is_one_while_the_first_is_at_work_and_after_it_failed() -> None:
    with pytest.raises(PayloadConflict), somebody_else(payload="a"):
        do(payload="b")
    with pytest.raises(PayloadConflict):
        do(payload="b")


@pytest.mark.parametrize(
    ("first", "second"),
    [({"a": 1, "b": 2}, {"b": 2, "a": 1}), ("a", b"a"), ("a", None), (None, "a"), ([1], (1,))],
)
def test_the_same_payload_or_none_is_no_conflict(first: object, second: object) -> None:
    do("one", payload=first)

    assert do("two", payload=second) == ("one",)


def test_a_payload_that_is_learnt_later_counts_from_then_on() -> None:
    fail()
    fail(payload="a")

    with pytest.raises(PayloadConflict):
        do(payload="b")


def test_a_payload_that_is_no_json_is_refused_before_anything_is_claimed() -> None:
    with pytest.raises(ClaimIsUnclear):
        do(payload=object())

    assert Claim.objects.count() == 0


@pytest.mark.parametrize("result", [object(), {1, 2}, float("nan"), "x" * (1 << 20)])
def test_a_result_that_cannot_be_kept_is_said_and_the_work_is_done_all_the_same(result: object) -> None:
    with pytest.raises(ResultIsNotJson):
        do(result)

    assert do("again") == (None,)


@pytest.mark.parametrize("result", ["zero \0 and half \ud800", [1, None, {"": []}], 0, "", False, 1 << 70])
def test_a_result_comes_back_as_json_has_it(result: object) -> None:
    do(result)

    assert do() == (json.loads(json.dumps(result)),)


def test_a_claim_is_committed_before_the_work_begins() -> None:
    with elsewhere() as begin, somebody_else():
        assert begin(lambda: row().state).result(10) == "in_progress"


def test_a_claim_that_nobody_could_see_is_refused() -> None:
    with pytest.raises(ClaimWouldNotBeSeen), transaction.atomic():
        do()
    with transaction.atomic(), pytest.raises(ClaimWouldNotBeSeen):
        do()


def test_a_claim_without_autocommit_is_refused() -> None:
    transaction.set_autocommit(False)
    try:
        with pytest.raises(ClaimWouldNotBeSeen):
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

    monkeypatch.setattr("reprocessing.idempotency.table.failed", gone)
    with pytest.raises(Broke) as raised, once("key", space=SPACE):
        raise Broke

    assert raised.value.__notes__ == [
        "Its claim could not be released, since the database is away. It ends with its lease."
    ]


@pytest.mark.parametrize("lease", [0, -1, True, "60", timedelta(), timedelta(hours=13), float("nan"), float("inf")])
def test_a_lease_that_is_none_is_refused(lease: Any) -> None:  # noqa: ANN401
    with pytest.raises(SettingsAreUnclear):
        do(lease=lease)


def test_a_claim_is_kept_for_as_long_as_was_asked() -> None:
    do(keep=timedelta(days=40))

    done = row()
    assert done.done_at is not None
    assert abs(done.keep_until - done.done_at - timedelta(days=40)) < timedelta(seconds=1)


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
    with somebody_else(), pytest.raises(IntegrityError, match=constraint), connection.cursor() as cursor:
        cursor.execute(f"UPDATE redrive_idempotency_claim SET {changes}")
