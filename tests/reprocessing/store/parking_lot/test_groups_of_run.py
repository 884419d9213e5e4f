"""The parked messages of a run by failure group."""

from __future__ import annotations

import pytest

from reprocessing.models import FailureGroup, Letter, Run, Source
from reprocessing.store.parking_lot import groups_of_run
from reprocessing.store.parking_lot.groups_of_run import GroupOfRun
from tests.reprocessing.admin.parking_lot.parked_messages import dlq, failure_group, parked

pytestmark = pytest.mark.django_db


def _parked(source: Source, run: Run, n: int, group: FailureGroup | None = None, reason: str = "refused") -> None:
    for _ in range(n):
        letter = parked(source, reason=reason)
        Letter.objects.filter(pk=letter.pk).update(run=run, group=group)


def test_groups_are_counted_in_the_run_alone_and_merged_groups_together() -> None:
    source = dlq()
    run, other = (Run.objects.create(name=name, dlq=source.dlq) for name in ("monday", "tuesday"))
    whole, slow = failure_group(source, "KeyError"), failure_group(source, "Timeout", name="slow shop")
    part = failure_group(source, "KeyError 'id'", merged_into=whole)
    _parked(source, run, 2, whole)
    _parked(source, run, 2, part)
    _parked(source, run, 1, slow)
    _parked(source, run, 2, None)
    _parked(source, run, 1, None, "stale")
    _parked(source, other, 5, slow)
    assert groups_of_run.groups_of_run(run.pk) == [
        GroupOfRun(whole.pk, "KeyError", "", 4), GroupOfRun(None, "", "refused", 2),
        GroupOfRun(slow.pk, "slow shop", "", 1), GroupOfRun(None, "", "stale", 1),
    ]  # fmt: skip


def test_a_limited_number_of_messages_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups_of_run, "MAX_READ", 3)
    source = dlq()
    run = Run.objects.create(name="monday", dlq=source.dlq)
    _parked(source, run, 5)
    assert groups_of_run.groups_of_run(run.pk) == [GroupOfRun(None, "", "refused", 3)]
