"""`once(..., transactional=True)`: claim and effect are committed together, or not at all."""

# ruff: noqa: PT012  # a claim is a block, and what breaks it stands inside
from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import Group
from django.db import connection, transaction

from reprocessing.idempotency import ClaimIsUnclear, InProgress, ResultIsNotJson, claiming, once
from reprocessing.idempotency.models import Claim
from reprocessing.idempotency.table import Place
from tests.race.abreast import elsewhere, together
from tests.reprocessing.idempotency.stock import SPACE, row

pytestmark = pytest.mark.django_db(transaction=True)


class Broke(Exception):
    """The work failed."""


def enrol(name: str = "ours", *, wait: float = 0.0) -> str:
    with once("key", space=SPACE, transactional=True, wait=wait) as claim:
        if claim.found:
            return f"found {claim.found.result}"
        Group.objects.create(name=name)
        claim.result(name)
        return name


def effects() -> list[str]:
    return sorted(Group.objects.values_list("name", flat=True))


def test_the_effect_and_its_claim_are_committed_together() -> None:
    assert enrol() == "ours"
    assert enrol("again") == "found ours"
    assert effects() == ["ours"]


def test_an_effect_that_is_rolled_back_takes_its_claim_along() -> None:
    with pytest.raises(Broke), transaction.atomic():
        enrol()
        raise Broke

    assert (effects(), Claim.objects.count()) == ([], 0)
    assert enrol("another try") == "another try"


def test_work_that_fails_leaves_nothing_but_what_is_known_of_it() -> None:
    with pytest.raises(Broke), once("key", space=SPACE, transactional=True):
        Group.objects.create(name="ours")
        raise Broke("no stock")

    known = row()
    assert (effects(), known.state, known.failures, known.error_message) == ([], "failed", 1, "no stock")
    enrol()
    assert (row().attempts, row().failures) == (2, 1)


def test_the_failure_of_whoever_asks_again_is_not_the_works() -> None:
    enrol()

    with pytest.raises(Broke) as raised, once("key", space=SPACE, transactional=True):
        raise Broke

    assert (row().state, row().failures) == ("done", 0)
    assert not hasattr(raised.value, "__notes__")


def test_a_failure_ends_no_claim_that_somebody_else_has_committed() -> None:
    place = Place(using="default", space=SPACE, key="key", payload_hash=None, keep=timedelta(days=1))
    with once("key", space=SPACE):
        claiming._note_what_was_rolled_back(place, Broke())

    assert (row().state, row().failures) == ("done", 0)


def test_a_result_that_cannot_be_kept_takes_the_effect_back() -> None:
    with pytest.raises(ResultIsNotJson), once("key", space=SPACE, transactional=True) as claim:
        Group.objects.create(name="ours")
        claim.result(object())

    assert (effects(), row().state) == ([], "failed")


def test_whoever_failed_does_not_wait_for_the_next_who_is_at_work() -> None:
    place = Place(using="default", space=SPACE, key="key", payload_hash=None, keep=timedelta(days=1))
    with elsewhere() as begin, once("key", space=SPACE, transactional=True):
        begin(lambda: claiming._note_what_was_rolled_back(place, Broke())).result(5)

    assert (row().state, row().failures) == ("done", 0)


def test_a_transaction_that_the_caller_takes_back_takes_along_what_is_known_of_the_failure() -> None:
    with pytest.raises(Broke) as raised, transaction.atomic(), once("key", space=SPACE, transactional=True):
        transaction.set_rollback(True)
        raise Broke

    assert Claim.objects.count() == 0
    assert not hasattr(raised.value, "__notes__")


def test_whoever_comes_meanwhile_is_told_so_and_does_not_stand_before_a_lock() -> None:
    with elsewhere() as begin, once("key", space=SPACE, transactional=True), pytest.raises(InProgress) as told:
        begin(enrol).result(5)

    assert told.value.retry_after == 1.0


def test_sixteen_at_once_have_one_effect_and_one_result() -> None:
    said = together([lambda: enrol(wait=20)] * 16)

    assert sorted(said) == ["found ours"] * 15 + ["ours"]
    assert effects() == ["ours"]


def test_a_claim_within_the_callers_transaction_is_the_callers() -> None:
    with elsewhere() as begin:
        with transaction.atomic():
            enrol()
            assert begin(effects).result(5) == []
        assert begin(effects).result(5) == ["ours"]


def test_a_lease_says_nothing_where_the_transaction_is_the_lease() -> None:
    with pytest.raises(ClaimIsUnclear), once("key", space=SPACE, transactional=True, lease=5):
        pass


def test_whoever_renews_a_transactional_claim_still_has_it() -> None:
    with once("key", space=SPACE, transactional=True) as claim:
        claim.renew()

    assert row().state == "done"


@pytest.mark.django_db(transaction=False)
def test_in_a_test_case_that_is_a_transaction_itself_claims_work(db: None) -> None:
    with once("key", space=SPACE) as claim:
        claim.result(1)
    assert connection.in_atomic_block
    with once("key", space=SPACE) as claim:
        assert claim.found
