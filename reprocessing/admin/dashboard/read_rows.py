"""Read the values that the dashboard's table shows about the DLQs that a person sees.

The number of SQL statements does not depend on the number of DLQs.
"""

from __future__ import annotations

from collections import defaultdict

from reprocessing import conf
from reprocessing.admin.dashboard import dlq_row
from reprocessing.admin.dashboard.dlq_row import DlqRow
from reprocessing.admin.dashboard.sparkline import HOURS
from reprocessing.models import Breaker, DeadLetterQueue, Source
from reprocessing.store.dlqs import dlq_status, message_counts
from reprocessing.store.dlqs.message_counts import MessageCounts, Trend
from reprocessing.store.ordering import lanes
from reprocessing.store.replay import send_rates
from reprocessing.store.rights.visible_dlqs import VisibleDlqs
from reprocessing.store.runs import open_runs
from reprocessing.store.runs.open_runs import StartedRun
from reprocessing.store.safety import breaker_status
from reprocessing.store.safety.breaker_status import BreakerStatus


def read_rows(seen: VisibleDlqs) -> list[DlqRow]:
    """Return the values of each DLQ that the person sees, in the order of the DLQs' names."""
    now, settings = lanes.database_now(), conf.current()
    copies = dlq_status.visible_copies(
        visibility=settings.receive_visibility, count_lag=settings.count_lag.total_seconds()
    )
    counts, trends = message_counts.message_counts(seen=seen), message_counts.trends(HOURS, seen=seen)
    oldest, expiries = dlq_status.oldest_of_dlqs(), dlq_status.expiries()
    runs, breakers, teams = _runs(seen), _breakers(seen), _teams(seen)
    rates = send_rates.send_rates([dlq for dlq, found in counts.items() if found.sent])
    return [
        DlqRow(
            status=status, now=now, counts=counts.get(status.id) or MessageCounts(status.id, 0, 0, 0, 0),
            trend=trends.get(status.id) or Trend(status.id, [], [], [], 0, 0, 0), oldest=oldest.get(status.id),
            expires_at=expiries.get(status.id), uncaptured=dlq_status.uncaptured(status, copies.get(status.id, 0)),
            runs=tuple(runs[status.id]), breakers=tuple(breakers[status.id]), rate=rates.get(status.id, 0.0),
            teams=frozenset(teams[status.id]),
        )
        for status in dlq_status.dlq_statuses(copies=False, seen=seen)
    ]  # fmt: skip


def _runs(seen: VisibleDlqs) -> defaultdict[int, list[StartedRun]]:
    of_dlq: defaultdict[int, list[StartedRun]] = defaultdict(list)
    for run in open_runs.started_runs(most=dlq_row.MAX_COUNTED + 1, seen=seen):
        of_dlq[run.dlq_id].append(run)
    return of_dlq


def _breakers(seen: VisibleDlqs) -> defaultdict[int, list[BreakerStatus]]:
    pairs = set(seen.rows(Source.with_removed.all()).values_list("dlq_id", "target_id"))
    of_target: defaultdict[int, list[BreakerStatus]] = defaultdict(list)
    for breaker in visible_breakers(seen, [target for _, target in pairs]):
        of_target[breaker.target_id].append(breaker)
    of_dlq: defaultdict[int, list[BreakerStatus]] = defaultdict(list)
    for dlq, target in sorted(pairs):
        of_dlq[dlq] += of_target[target]
    return of_dlq


def visible_breakers(seen: VisibleDlqs, targets: list[int]) -> list[BreakerStatus]:
    """Return the circuit breakers of these targets, except those of rate classes that only other teams' DLQs use."""
    found = breaker_status.breaker_statuses(targets)
    if seen.are_all:
        return found
    mine = set(seen.rows(Breaker.objects.filter(target__in=targets)).values_list("pk", flat=True))
    return [breaker for breaker in found if breaker.breaker_id in mine]


def _teams(seen: VisibleDlqs) -> defaultdict[int, list[int]]:
    of_dlq: defaultdict[int, list[int]] = defaultdict(list)
    links = DeadLetterQueue.teams.through.objects
    for dlq, team in links.values_list("deadletterqueue_id", "group_id"):
        if seen.includes(dlq):
            of_dlq[dlq].append(team)
    return of_dlq
