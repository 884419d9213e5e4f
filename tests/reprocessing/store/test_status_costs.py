"""What redrive_status, show_runs and the API read of a DLQ and a run does not grow with the finished history."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, Final, LiteralString

import pytest
from django.db import connection

from reprocessing.domain.aws.pricing import Prices
from reprocessing.management.shared import drain_command
from reprocessing.models import Lane, Letter, Rule
from reprocessing.pipeline.dlqs.examine import other_targets
from reprocessing.pipeline.runs.run_status import RunStatus
from reprocessing.store.maintenance import restore_hold
from reprocessing.store.ordering import lane_counts
from reprocessing.store.ordering.lanes import database_now
from reprocessing.store.outcomes import delivery_status
from reprocessing.store.routing import rules
from reprocessing.store.runs import progress, run_cost
from tests.reprocessing.store.explained import Explained, explained
from tests.reprocessing.store.seeded_letters import nothing_is_vacuumed, with_statistics, without_statistics
from tests.reprocessing.store.stock import Stock

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.soak]

#: Finished letters with an attempt, and idle lanes, each in about 100 pages; and buffers that a statement may read.
ROWS: Final = 4_000
MOST: Final = 80
#: Letters of each state that status commands read.
FEW: Final = 10

_LETTERS: Final[LiteralString] = """
WITH letters AS (
    INSERT INTO redrive_letter (public_id, dlq_id, message_id, source_id, target_id, run_id, state, planned, sequence,
                                body_hash, size, first_sent_at, finished_at, rulebook_version, attempts)
    SELECT gen_random_uuid(), %(dlq)s, 'done-' || n, %(source)s, %(target)s, %(run)s, 'delivered', true,
           lpad(n::text, 9, '0'), sha256(int8send(n)), 9, redrive_now() - interval '1 day',
           redrive_now() - interval '2 hours', 1, 1
      FROM generate_series(1, %(rows)s::bigint) n
    RETURNING id
)
INSERT INTO redrive_attempt (letter_id, lane_id, target_id, run_id, no, epoch, fence, opened_at, taken_at,
                             sent_message_id, outcome, closed_at, holds_lane)
SELECT id, %(lane)s, %(target)s, %(run)s, 1, 0, 1, redrive_now() - interval '2 hours',
       redrive_now() - interval '2 hours', 'sent-' || id, 'accepted', redrive_now() - interval '2 hours', false
  FROM letters
"""
_LANES: Final[LiteralString] = """
INSERT INTO redrive_lane (dlq_id, source_id, key_hash, phase)
SELECT %(dlq)s, %(source)s, sha256(int8send(n)), 'idle' FROM generate_series(1, %(rows)s::bigint) n
"""


_WITH_AND_WITHOUT = pytest.mark.parametrize("stock", [True, False], ids=["with statistics", "without"], indirect=True)


@pytest.fixture
def stock(request: pytest.FixtureRequest) -> Iterator[Stock]:
    """A DLQ with a long history; its automatic run has one queued letter."""
    with nothing_is_vacuumed():
        stock = Stock()
        stock.run.kind = "automatic"
        stock.run.save()
        Lane.objects.filter(pk=stock.lane.pk).update(phase="ready", due_at=database_now())
        values = {
            "dlq": stock.dlq.pk, "source": stock.source.pk, "target": stock.target.pk, "run": stock.run.pk,
            "lane": stock.lane.pk, "rows": ROWS,
        }  # fmt: skip
        with connection.cursor() as cursor:
            cursor.execute(_LETTERS, values)
            cursor.execute(_LANES, values)
        (with_statistics if getattr(request, "param", True) else without_statistics)()
        yield stock


def _answer(read: Callable[[], Any]) -> Any:  # noqa: ANN401  of each function
    """Return what a function returns, if it reads little."""
    with explained() as found:
        answer = read()
    assert found
    assert [_named(one) for one in found if one.buffers > MOST] == []
    return answer


def _named(one: Explained) -> tuple[str, int, frozenset[str], str]:
    return one.name, one.buffers, one.scanned, one.text[:80]


@_WITH_AND_WITHOUT
@pytest.mark.parametrize("of_all", [False, True])
def test_lanes_are_counted_without_the_idle_ones(stock: Stock, *, of_all: bool) -> None:
    phases = {"ready": database_now(), "leased": database_now(), "held": None, "awaiting": None}
    for n, (phase, due_at) in enumerate(phases.items()):
        values = {"dlq": stock.dlq, "source": stock.source, "phase": phase, "due_at": due_at}
        Lane.objects.create(key_hash=b"of the run %d" % n, run=stock.run, **values)
        if phase != "awaiting":
            Lane.objects.create(key_hash=b"of no run %d" % n, **values)
    Stock()  # its lane is idle
    counts = _answer(lambda: lane_counts.lane_counts(None if of_all else stock.dlq.pk))
    found: dict[str, int] = {}
    for one in counts:
        found[one.phase] = found.get(one.phase, 0) + one.n
    assert found == {"ready": 3, "leased": 2, "held": 2, "awaiting": 1}


@pytest.mark.parametrize("of_all", [False, True])
def test_the_evidence_of_recent_letters_is_read_without_the_older_ones(
    stock: Stock, monkeypatch: pytest.MonkeyPatch, *, of_all: bool
) -> None:
    monkeypatch.setattr(delivery_status, "MAX_OF_PART", FEW)
    stock.attempt(outcome="refused", closed_at=database_now())
    counts = _answer(lambda: delivery_status.count_by_status(None if of_all else stock.dlq.pk))
    assert {one.how: one.n for one in counts} == {"accepted": FEW, "failed": 1}


@pytest.mark.parametrize("of_all", [False, True])
def test_a_failing_rule_is_judged_by_all_messages_and_reads_the_recent_ones(
    stock: Stock, monkeypatch: pytest.MonkeyPatch, *, of_all: bool
) -> None:
    monkeypatch.setattr(rules, "MAX_OF_PART", FEW)
    _failing_rule(dlq=None if of_all else stock.dlq)
    (found,) = _answer(lambda: rules.rule_statuses(None if of_all else stock.dlq.pk))
    assert (found.asked, found.asked_is_estimate, found.errs_too_often) == (ROWS, True, False)
    Rule.objects.update(error_count=ROWS // 100 - 1)
    assert not rules.rule_statuses()[0].errs_too_often
    Rule.objects.update(error_count=ROWS // 100 + 1)
    assert rules.rule_statuses()[0].errs_too_often


def test_messages_of_a_failing_rule_are_known_after_others_were_discarded(
    stock: Stock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rules, "MAX_OF_PART", FEW)
    earlier = Rule.objects.create(name="first", position=1, action="discard", created_by="ann")
    ended = {"state": "discarded", "lane": None, "finished_at": database_now()}
    stock.more_letters(FEW, **ended)
    stock.more_letters(FEW, **ended, rulebook_version=1, rule=earlier)
    _failing_rule(dlq=stock.dlq)
    (found,) = _answer(rules.rule_statuses)
    assert (found.asked, found.asked_is_estimate, found.errs_too_often) == (ROWS, True, False)


def _failing_rule(**fields: object) -> None:
    values = {"name": "odd", "action": "hold", "enabled": True, "error_count": 1, "last_error": "odd"}
    Rule.objects.create(**values, created_by="ann", **fields)


@_WITH_AND_WITHOUT
def test_the_progress_of_an_automatic_run_is_read_without_its_history(
    stock: Stock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_cost, "MAX_COUNTED", FEW)
    monkeypatch.setattr(progress, "MAX_COUNT", FEW)
    found = _answer(lambda: RunStatus.read(stock.run, count_lag=60, prices=Prices()))
    assert (found.tally.letters, found.tally.delivered, found.tally.waiting) == (FEW + 1, FEW, 1)
    assert found.tally.capped == {"delivered", "presumed"}
    assert (found.tally.failed_attempts, found.in_other_runs, found.cost) == (None, None, None)


@_WITH_AND_WITHOUT
def test_a_drain_that_also_sends_an_automatic_run_does_not_read_its_history(
    stock: Stock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_cost, "MAX_COUNTED", FEW)
    monkeypatch.setattr(progress, "MAX_COUNT", FEW)
    (tally,) = _answer(lambda: drain_command.tallies([stock.run])).values()
    assert (tally.letters, tally.under_way) == (FEW + 1, 1)


@_WITH_AND_WITHOUT
def test_a_target_is_changed_without_reading_finished_letters(stock: Stock) -> None:
    stock.another_letter(state="parked", reason="refused", finished_at=database_now(), lane=None)
    changed = {stock.source.arn: "arn:aws:sqs:us-east-1:0:another"}
    case: Any = SimpleNamespace(observed=SimpleNamespace(row=stock.dlq, targets_by_source=changed))
    (told,) = _answer(lambda: list(other_targets.changed_targets(case)))
    assert "Messages in progress (1) and parked messages (1) keep" in str(told)


@_WITH_AND_WITHOUT
def test_attempts_after_a_backup_are_counted_without_those_before(stock: Stock) -> None:
    backup = database_now() - timedelta(hours=1)
    assert _answer(lambda: restore_hold.count_attempts_since(backup)) == 0
    stock.attempt(opened_at=database_now())
    assert _answer(lambda: restore_hold.count_attempts_since(backup)) == 1
    assert restore_hold.count_attempts_since(backup - timedelta(days=1)) == ROWS + 1


@_WITH_AND_WITHOUT
def test_task_hints_are_deleted_without_reading_idle_lanes(stock: Stock) -> None:
    hinted = database_now() + timedelta(minutes=1)
    Lane.objects.filter(pk=stock.lane.pk).update(hinted_until=hinted)
    leased = Lane.objects.create(
        dlq=stock.dlq, source=stock.source, key_hash=b"leased", run=stock.run, phase="leased", due_at=hinted,
        hinted_until=hinted,
    )  # fmt: skip
    Letter.objects.filter(pk=stock.letter.pk).update(state="delivered", finished_at=database_now())
    restore_hold.begin_hold(database_now(), by="ann", reason="a restore")
    with explained() as found:
        restore_hold.end_hold(by="ann", reason="decided", early=True)
    (hints,) = [one for one in found if "SET hinted_until" in one.text]
    assert (hints.buffers <= MOST, hints.scanned) == (True, frozenset())
    assert not Lane.objects.filter(pk__in=[stock.lane.pk, leased.pk], hinted_until__isnull=False).exists()
