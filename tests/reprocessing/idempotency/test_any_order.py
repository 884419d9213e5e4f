"""Whatever holders of claims do, in any order, one of them has the claim, and the work is done once."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID, uuid4

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from reprocessing.idempotency import table
from reprocessing.idempotency.table import ClaimKey
from tests.reprocessing.idempotency.stock import lapse, row

HOLDERS = st.integers(0, 2)
LEASE = timedelta(minutes=1)


class Holders(RuleBasedStateMachine):
    """Three workers that want the same key, and a model of who has it."""

    def __init__(self) -> None:
        super().__init__()
        self.place = ClaimKey(using="default", space="any", key=str(uuid4()), payload_hash=None, keep=LEASE)
        self.tokens: dict[int, UUID] = {}
        self.has: UUID | None = None
        self.lapsed = False
        self.result: str | None = None
        self.taken = self.failures = 0

    @rule(who=HOLDERS)
    def take(self, who: int) -> None:
        token = table.take_claim(self.place, lease=LEASE)
        assert (token is not None) == (self.result is None and (self.has is None or self.lapsed))
        if token:
            self.tokens[who] = self.has = token
            self.lapsed = False
            self.taken += 1

    @rule(who=HOLDERS)
    def finish(self, who: int) -> None:
        token = self.tokens.get(who, uuid4())
        done = table.record_done(self.place, token, result=f'"{token}"')
        assert done == (token == self.has)
        if done:
            self.result = f'"{token}"'

    @rule(who=HOLDERS)
    def fail(self, who: int) -> None:
        token = self.tokens.get(who, uuid4())
        released = table.record_failed(self.place, token, error=("Broke", ""))
        assert released == (token == self.has and self.result is None)
        if released:
            self.has = None
            self.failures += 1

    @rule(who=HOLDERS)
    def renew(self, who: int) -> None:
        token = self.tokens.get(who, uuid4())
        renewed = table.renew_lease(self.place, token, lease=LEASE)
        assert renewed == (token == self.has and self.result is None)
        self.lapsed = self.lapsed and not renewed

    @rule()
    def the_lease_ends(self) -> None:
        if self.has and self.result is None:
            lapse(self.place.key, "any")
            self.lapsed = True

    @invariant()
    def the_row_says_so(self) -> None:
        seen = table.read_claim(self.place)
        assert (seen is None) == (self.taken == 0)
        if seen:
            state = "done" if self.result else "in_progress" if self.has else "failed"
            known = row(self.place.key, "any")
            assert (seen.state, seen.result, known.attempts, known.failures) == (
                state, self.result, self.taken, self.failures,
            )  # fmt: skip


@pytest.mark.soak
@pytest.mark.django_db
def test_in_any_order_one_worker_holds_the_claim_and_finished_work_stays_finished() -> None:
    run_state_machine_as_test(Holders, settings=settings(max_examples=15, stateful_step_count=15, deadline=None))
