"""AWS's own redrive beside a drain, beside itself, after a death, and a cancel beside its end."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
from django.db import connection, transaction

from reprocessing.gateways.sqs import Begun
from reprocessing.models import DeadLetterQueue
from reprocessing.pipeline.aws import follow_redrives, native_redrive
from reprocessing.pipeline.aws.native_redrive import NothingToCancel
from reprocessing.pipeline.runs.drain import plan_run
from reprocessing.store.aws import aws_redrives
from reprocessing.store.aws.aws_redrive_handover import HandoverBlockers
from reprocessing.store.capture import capture_lease
from reprocessing.store.runs import run_transitions
from reprocessing.store.runs.plans import RunRequest
from tests.race.abreast import behind, elsewhere, together, waits_for_us
from tests.race.letters import bury
from tests.race.native import is_aws_s, let_it_end, let_it_end_unseen, mine, start, tasks
from tests.reprocessing.pipeline.bench import Clock, Workbench
from tests.reprocessing.pipeline.interposed import happens_after, happens_before

pytestmark = pytest.mark.django_db(transaction=True)


def in_sight(bench: Workbench) -> None:
    bench.bury("letter")
    bench.capture()
    with connection.cursor() as cursor:
        cursor.execute("UPDATE redrive_dlq_copy SET visible_until = redrive_now() - interval '1 s'")


@pytest.fixture
def bench() -> Workbench:
    return mine()


def test_simultaneous_requests_to_aws_begin_one_task(bench: Workbench) -> None:
    bury(bench, 30)
    found = together([partial(start, bench, per_second=1)] * 4)
    assert sum(isinstance(one, Begun) for one in found) == 1
    assert (tasks(bench), is_aws_s(bench)) == (["RUNNING"], True)


def test_a_drain_that_starts_first_keeps_aws_out(bench: Workbench) -> None:
    in_sight(bench)
    run = plan_run(bench.dlq, RunRequest("run", "anna", named=False))
    _, found = behind(partial(run_transitions.start, run, by="bob", reason="now"), partial(start, bench))
    assert isinstance(found, HandoverBlockers)
    assert (found.under_way, tasks(bench), bench.states()) == (True, [], {"letter": "waiting"})


def test_a_drain_that_starts_second_starts_nothing(bench: Workbench) -> None:
    in_sight(bench)
    run = plan_run(bench.dlq, RunRequest("run", "anna", named=False))
    with elsewhere() as begin, transaction.atomic():
        DeadLetterQueue.objects.select_for_update().get(pk=bench.dlq.pk)
        started = begin(partial(run_transitions.start, run, by="bob", reason="now"))
        waits_for_us()
        DeadLetterQueue.objects.update(
            aws_redrive_since="2026-01-01T00:00:00Z", aws_redrive_by="anna", aws_redrive_reason="a bulk"
        )
    assert started.result(30) is None
    run.refresh_from_db()
    assert (run.state, bench.states()) == ("planned", {"letter": "captured"})


def test_of_a_native_redrive_and_a_simultaneous_capture_one_has_the_dlq(bench: Workbench) -> None:
    works: list[Callable[[], object]] = [
        partial(start, bench), partial(capture_lease.lease, bench.dlq.pk, lease=60, dirty=1),
    ]  # fmt: skip
    asked, leased = together(works)
    assert isinstance(asked, Begun) == (leased is None)


def test_a_capture_that_lost_its_lease_neither_renews_nor_ends_it(bench: Workbench) -> None:
    capturing = capture_lease.lease(bench.dlq.pk, lease=0, dirty=0)
    assert capturing is not None
    assert isinstance(start(bench), Begun)
    assert capture_lease.renew(capturing, lease=60, dirty=1) is None
    assert capture_lease.end(capturing, clean=True, drained=True) is None


def test_an_end_that_several_see_is_recorded_once(bench: Workbench) -> None:
    start(bench)
    together([partial(let_it_end, bench)] * 3)
    assert bench.dlq.reviews.filter(act="changed").count() == 1
    assert aws_redrives.current(bench.dlq.pk) is None


def freezes_with_the_list(monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[], object]) -> None:
    """The next worker that asks AWS has its answer, and freezes while somebody else does something."""

    def act() -> None:
        with elsewhere() as begin:
            begin(meanwhile).result(30)

    happens_after(monkeypatch, follow_redrives, "move_tasks", act, once=True)


ASKS: dict[str, Callable[[Workbench], object]] = {
    "who begins another": start,
    "who looks": lambda bench: follow_redrives.read_redrives(bench.dlq),
    "a capture": lambda bench: bench.capture().captured.busy or pytest.fail("it captures beside AWS"),
    "who looks at many": lambda bench: follow_redrives._look_at([bench.dlq.pk]),
}


@pytest.mark.parametrize("asks", ASKS)
def test_an_answer_that_is_older_than_the_claim_ends_nothing(
    asks: str, monkeypatch: pytest.MonkeyPatch, bench: Workbench
) -> None:
    bury(bench, 30)  # at one a second, it runs for as long
    freezes_with_the_list(monkeypatch, partial(start, bench, per_second=1))
    ASKS[asks](bench)
    found = aws_redrives.current(bench.dlq.pk)
    assert found is not None
    assert (found.by, bool(found.handle), tasks(bench)) == ("anna", True, ["RUNNING"])


def test_an_answer_about_an_ended_redrive_ends_no_later_one(monkeypatch: pytest.MonkeyPatch, bench: Workbench) -> None:
    start(bench)
    let_it_end_unseen(bench)
    bury(bench, 30)

    def meanwhile() -> None:
        follow_redrives.read_redrives(bench.dlq)
        start(bench, per_second=1)

    freezes_with_the_list(monkeypatch, meanwhile)
    follow_redrives.sweep()
    assert (is_aws_s(bench), tasks(bench)) == (True, ["RUNNING", "COMPLETED"])


def test_a_redrive_that_had_not_begun_when_aws_was_asked_is_not_given_up(
    monkeypatch: pytest.MonkeyPatch, clock: Clock, bench: Workbench
) -> None:
    bench.bury("letter")

    def looks() -> None:
        freezes_with_the_list(monkeypatch, lambda: clock.advance(follow_redrives.LISTED_WITHIN + 1))
        follow_redrives.read_redrives(bench.dlq)

    happens_before(monkeypatch, native_redrive, "begin_move", looks)
    assert isinstance(start(bench), Begun)
    assert is_aws_s(bench)


def test_a_cancel_after_the_end_says_that_it_was_over(monkeypatch: pytest.MonkeyPatch, bench: Workbench) -> None:
    bury(bench, 3)
    start(bench)
    happens_before(monkeypatch, native_redrive, "cancel_move", partial(let_it_end, bench))
    done = native_redrive.cancel(bench.dlq, by="bob", reason="too much")
    assert done == NothingToCancel("AWS says COMPLETED: 3 messages moved.")
    assert (is_aws_s(bench), bench.left(bench.source_url)) == (False, 3)
