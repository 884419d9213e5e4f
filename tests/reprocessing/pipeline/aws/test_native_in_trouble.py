"""AWS at work on a dlq is no error; AWS's redrive that failed, stands or cannot be looked at is."""

from __future__ import annotations

from datetime import timedelta
from unittest.mock import Mock

import pytest

from reprocessing.domain.aws import metric_names
from reprocessing.domain.errors import QueueUnreachable
from reprocessing.domain.maintenance.findings import FindingSeverity
from reprocessing.gateways.sqs import Move
from reprocessing.models import DeadLetterQueue
from reprocessing.pipeline.aws import collect_metrics, follow_redrives
from reprocessing.pipeline.maintenance.doctor import poll_history
from reprocessing.store.aws import aws_redrives
from reprocessing.store.capture import capture_lease
from reprocessing.store.dlqs import dlq_status
from reprocessing.store.dlqs.dlq_status import DlqStatus
from reprocessing.store.ordering import lanes
from tests.race.native import is_aws_s, mine, start
from tests.reprocessing.pipeline.bench import Workbench

pytestmark = pytest.mark.django_db(transaction=True)


def claimed(**values: object) -> Workbench:
    """A dlq that AWS was asked to empty, and of which nobody knows more."""
    bench = mine()
    aws_redrive_since = {
        "aws_redrive_since": lanes.database_now(),
        "aws_redrive_by": "anna",
        "aws_redrive_reason": "a bulk",
        "aws_redrive_task": "h",
    }
    DeadLetterQueue.objects.filter(pk=bench.dlq.pk).update(**{**aws_redrive_since, **values})
    return bench


def watch(bench: Workbench) -> DlqStatus:
    (found,) = dlq_status.dlq_statuses(bench.dlq.pk)
    return found


def has_error(bench: Workbench) -> float:
    found = {
        sample.labels: sample.value
        for sample in collect_metrics.samples(count_lag=0)
        if sample.metric == metric_names.LAST_ERROR
    }
    return found[bench.name,]


def ills(bench: Workbench) -> list[str]:
    row = DeadLetterQueue.objects.get(pk=bench.dlq.pk)
    return [
        finding.what for finding in poll_history.findings(row, bench.conf) if finding.severity is FindingSeverity.ERROR
    ]


def answer(monkeypatch: pytest.MonkeyPatch, *moves: Move) -> None:
    monkeypatch.setattr(follow_redrives, "move_tasks", lambda _arn, _role: list(moves))


unheard = Mock(side_effect=QueueUnreachable("SQS refused: AccessDenied."))


def test_while_aws_moves_its_messages_nothing_ails_a_dlq() -> None:
    bench = claimed()
    seen = watch(bench)
    assert seen.native.startswith("A redrive by AWS has run since ")
    assert (seen.last_error, has_error(bench), ills(bench)) == ("", 0.0, [])


@pytest.mark.soak
def test_one_that_failed_is_trouble_until_somebody_captures(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = claimed()
    bench.bury("left")
    answer(monkeypatch, Move("FAILED", None, 3, 9, lanes.database_now(), failure="CouldNotDetermineMessageSource"))
    follow_redrives.sweep()
    said = (
        "AWS's own redrive failed. AWS says FAILED (CouldNotDetermineMessageSource): 3 messages moved. "
        "Messages that it did not move are still in the DLQ."
    )
    capture_lease.note_depth(bench.dlq.pk, visible=6, in_flight=0)
    capture_lease.note_error(bench.dlq.pk, "SQS did not answer.")
    capture_lease.note_depth(bench.dlq.pk, visible=6, in_flight=0)
    assert (watch(bench).native, watch(bench).last_error, has_error(bench), ills(bench)) == ("", said, 1.0, [said])
    bench.capture()
    assert (watch(bench).last_error, has_error(bench)) == ("", 0.0)


def test_another_one_takes_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = claimed()
    with monkeypatch.context() as patch:
        answer(patch, Move("FAILED", None, 3, 9, lanes.database_now(), failure="AccessDenied"))
        follow_redrives.sweep()
    start(bench)
    assert (is_aws_s(bench), watch(bench).last_error) == (True, "")


def test_one_that_ended_as_it_should_leaves_what_a_capture_said(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = claimed(last_error="SQS did not answer.")
    answer(monkeypatch, Move("COMPLETED", None, 3, 3, lanes.database_now()))
    follow_redrives.sweep()
    assert (watch(bench).native, watch(bench).last_error) == ("", "SQS did not answer.")


def test_one_that_cannot_be_looked_at_is_trouble_until_it_can(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = claimed()
    with monkeypatch.context() as patch:
        patch.setattr(follow_redrives, "move_tasks", unheard)
        follow_redrives.sweep()
        told = watch(bench).last_error
    assert told.startswith("AWS's own redrive cannot be checked, so the DLQ stays with AWS: SQS refused")
    assert has_error(bench) == 1.0
    answer(monkeypatch, Move("RUNNING", None, 3, 9, lanes.database_now(), handle="h"))
    follow_redrives.sweep()
    assert (is_aws_s(bench), watch(bench).last_error) == (True, "")


def test_one_that_outlasts_what_aws_allows_is_trouble() -> None:
    bench = claimed(aws_redrive_since=lanes.database_now() - aws_redrives.MAX_DURATION - timedelta(seconds=1))
    assert watch(bench).last_error.startswith("AWS's own redrive has run for more than 36 hours")
    assert (has_error(bench), len(ills(bench))) == (1.0, 1)
