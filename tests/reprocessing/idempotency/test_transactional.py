"""`once(..., transactional=True)`: claim and work are committed together, or not at all."""

# ruff: noqa: PT012  # a claim is a block, and what breaks it stands inside
from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import Group
from django.db import connection, transaction

from reprocessing.idempotency import InProgress, ResultIsNotJson, claiming, once
from reprocessing.idempotency.models import Claim
from reprocessing.idempotency.table import ClaimKey
from tests.race.abreast import elsewhere
from tests.reprocessing.idempotency.stock import SPACE, row

pytestmark = pytest.mark.django_db(transaction=True)


PLACE = ClaimKey(using="default", space=SPACE, key="key", payload_hash=None, keep=timedelta(days=1))


class Broke(Exception):
    """The work failed."""


def enrol(name: str = "ours") -> str:
    with once("key", space=SPACE, transactional=True) as claim:
        if claim.found:
            return f"found {claim.found.result}"
        Group.objects.create(name=name)
        claim.renew()
        claim.result(name)
        return name


def effects() -> list[str]:
    return sorted(Group.objects.values_list("name", flat=True))


def test_the_work_and_its_claim_are_committed_together() -> None:
    assert enrol() == "ours"
    assert enrol("again") == "found ours"
    assert effects() == ["ours"]


def test_rolled_back_work_takes_its_claim_along() -> None:
    with pytest.raises(Broke), transaction.atomic():
        enrol()
        raise Broke
    assert (effects(), Claim.objects.count()) == ([], 0)
    assert enrol("another try") == "another try"


def test_failed_work_leaves_only_the_record_of_its_failure() -> None:
    with pytest.raises(Broke), once("key", space=SPACE, transactional=True):
        Group.objects.create(name="ours")
        raise Broke("no stock")
    known = row()
    assert (effects(), known.state, known.failures, known.error_message) == ([], "failed", 1, "no stock")
    enrol()
    assert (row().attempts, row().failures) == (2, 1)


def test_a_failure_of_a_later_caller_is_not_the_works() -> None:
    enrol()
    with pytest.raises(Broke) as raised, once("key", space=SPACE, transactional=True):
        raise Broke
    assert (row().state, row().failures) == ("done", 0)
    assert not hasattr(raised.value, "__notes__")


@pytest.mark.parametrize("transactional", [False, True])
def test_a_rolled_back_failure_neither_ends_nor_waits_for_another_workers_claim(transactional: bool) -> None:
    with elsewhere() as begin, once("key", space=SPACE, transactional=transactional):
        begin(lambda: claiming._note_what_was_rolled_back(PLACE, Broke())).result(5)
    assert (row().state, row().failures) == ("done", 0)


def test_an_invalid_result_rolls_the_work_back() -> None:
    with pytest.raises(ResultIsNotJson), once("key", space=SPACE, transactional=True) as claim:
        Group.objects.create(name="ours")
        claim.result(object())
    assert (effects(), row().state) == ([], "failed")


def test_a_transaction_that_the_caller_rolls_back_takes_the_failure_along() -> None:
    with pytest.raises(Broke) as raised, transaction.atomic(), once("key", space=SPACE, transactional=True):
        transaction.set_rollback(True)
        raise Broke
    assert Claim.objects.count() == 0
    assert not hasattr(raised.value, "__notes__")


def test_a_second_worker_is_told_to_retry_and_does_not_wait_for_a_lock() -> None:
    with elsewhere() as begin, once("key", space=SPACE, transactional=True), pytest.raises(InProgress) as told:
        begin(enrol).result(5)
    assert told.value.retry_after == 1.0


def test_a_claim_in_the_callers_transaction_is_committed_by_the_caller() -> None:
    with elsewhere() as begin:
        with transaction.atomic():
            enrol()
            assert begin(effects).result(5) == []
        assert begin(effects).result(5) == ["ours"]


@pytest.mark.django_db(transaction=False)
def test_claims_work_in_a_test_case_that_is_a_transaction(db: None) -> None:
    with once("key", space=SPACE) as claim:
        claim.result(1)
    assert connection.in_atomic_block
    with once("key", space=SPACE) as claim:
        assert claim.found
