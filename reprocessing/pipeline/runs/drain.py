"""Drain a DLQ in this process, without workers or beat: capture, plan, replay, and wait for outcomes."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from django.db import Error as DatabaseError
from django.db import connection
from django.db.models import Q

from reprocessing.conf import Conf
from reprocessing.domain.aws.metric_names import CAPTURE_ERRORS, CAPTURES
from reprocessing.domain.errors import (
    InvalidRunState,
    NativeRedriveConflict,
    PayloadUnreadable,
    QueueUnreachable,
    RunIdInUse,
)
from reprocessing.domain.runs.selection import ALL_LETTERS, Selection
from reprocessing.gateways.redis.send_rate import Rates
from reprocessing.gateways.sqs import QueueAddress, depth
from reprocessing.models import Attempt, DeadLetterQueue, Run, Target
from reprocessing.models.attempt import AWAITS_OUTCOME
from reprocessing.models.run import RunKind, RunState
from reprocessing.pipeline.aws import record_metrics
from reprocessing.pipeline.capture import capture
from reprocessing.pipeline.capture.capture import Captured
from reprocessing.pipeline.maintenance import recover
from reprocessing.pipeline.outcomes import resolve_outcomes
from reprocessing.pipeline.parking_lot import group_failures
from reprocessing.pipeline.replay import late_answers, replay_slice
from reprocessing.pipeline.routing.evaluate_rules import RuleBook
from reprocessing.pipeline.runs import feed_run, plan
from reprocessing.pipeline.safety import run_health_checks
from reprocessing.store.aws import aws_redrives
from reprocessing.store.runs import plans, progress, run_transitions
from reprocessing.store.runs.plans import RunRequest
from reprocessing.store.runs.progress import RunCounts
from reprocessing.store.safety.paused_runs import THE_SERVICE

logger = logging.getLogger(__name__)

LONG_POLL = 2  #: seconds of a long poll; short, because a person waits for the command
LATE_ANSWER_SECONDS = 10.0  #: most seconds to wait at the end for answers of slow targets
GROUP_BATCHES = 20  #: most batches of letters that are assigned to failure groups at the end
IDLE = 0.25  #: seconds until due lanes are searched again if there were none


@dataclass(frozen=True, slots=True)
class DrainContext:
    """The settings and connections of a drain.

    `stop`: returns whether to stop. `owner`: name of this process. `dice`: returns random numbers for backoffs.
    """

    conf: Conf
    rates: Rates
    dice: Callable[[], float]
    owner: str
    stop: Callable[[], bool]


def capture_dlq(
    dlq: DeadLetterQueue, context: DrainContext, *, on_progress: Callable[[Captured], None], seconds: float
) -> Captured:
    """Capture the DLQ until it has run dry or `seconds` are over, and place the letters in lanes; return the counts.

    `on_progress`: called after each poll, with the counts so far.

    Raises QueueUnreachable (the DLQ could not be read) or PayloadKeyUnavailable (new messages cannot be encrypted).
    """
    conf = _brisk(context.conf)
    with record_metrics.measured_work(CAPTURES, CAPTURE_ERRORS, dlq.pk) as counted:
        found = depth(QueueAddress(url=dlq.url, region=dlq.region, role=dlq.role_arn))
        captured = capture.letters(
            dlq, conf=conf, dice=context.dice, seconds=seconds, stop=context.stop, on_progress=on_progress,
            receivers=feed_run.receiver_count(found.visible, conf), alone=lambda: feed_run.is_ours_alone(dlq, conf),
        )  # fmt: skip
        counted.failed, counted.idle = bool(captured.error), captured.busy
    if captured.error and not captured.received:
        raise QueueUnreachable(captured.error)
    plan.place_captured(dlq, stop=context.stop)
    return captured


def plan_run(dlq: DeadLetterQueue, asked: RunRequest) -> Run:
    """Plan a run and select its letters, or return the run with this name if it exists. The letters stay captured.

    Raises:
        RunIdInUse: a run with another selection has this name.
    """
    run = plans.create_plan(dlq, asked)
    _compare(run, dlq, asked.selection)
    why = asked.reason or f"{asked.selection} of {dlq.name}"
    plans.select_letters(run.pk, by=asked.by, reason=why, through=asked.through)
    run.refresh_from_db()
    return run


def start_run(dlq: DeadLetterQueue, *, name: str, asked_by: str, selection: Selection = ALL_LETTERS) -> Run:
    """Plan and start a run, or continue the run with this name; return the run.

    Raises:
        RunIdInUse: a run with another selection has this name.
        InvalidRunState: the run is paused, or was aborted.
        NativeRedriveConflict: AWS is moving messages out of the DLQ.
    """
    return continue_run(plan_run(dlq, RunRequest(name, asked_by, selection)), by=asked_by)


def find_run(dlq: DeadLetterQueue, *, name: str, selection: Selection | None) -> Run | None:
    """Return the run with this name; None if there is none. `selection`: the selection that it must have; None: any.

    Raises:
        RunIdInUse: a run with another selection has this name.
    """
    run = Run.objects.filter(name=name).select_related("dlq").first()
    if run is not None:
        _compare(run, dlq, selection)
    return run


def continue_run(run: Run, *, by: str, reason: str = "It was asked for.") -> Run:
    """Start a planned run, or continue a finished run to which letters came back; return the running run.

    Raises:
        InvalidRunState: the run is paused, or was aborted.
        NativeRedriveConflict: AWS is moving messages out of the run's DLQ.
    """
    match run.state:
        case RunState.PLANNED:
            plan.place_captured(run.dlq)
            plans.select_letters(run.pk, by=by, reason=reason)  # if its letters are not selected yet
            run.refresh_from_db()
            run_transitions.start(run, by=by, reason=reason)
        case RunState.FINISHED:
            run_transitions.reopen(run.pk, by=by, reason=reason)
    run.refresh_from_db()
    if run.state in {RunState.PAUSED, RunState.ABORTED}:
        raise InvalidRunState(describe_stopped(run))
    if moved := aws_redrives.current(run.dlq_id):
        raise NativeRedriveConflict(f"{run.dlq.name}: {aws_redrives.describe(moved)}")
    return run


def describe_stopped(run: Run) -> str:
    """Return a text for people: who paused or aborted this run, why, and how to continue."""
    by_itself = run.stopped_by == THE_SERVICE
    said = f"{run.name}: {run.why}" if by_itself else f'{run.name} was {run.state} by {run.stopped_by} ("{run.why}").'
    if run.state == RunState.PAUSED:
        return f"{said} To continue: manage.py resume_run {run.name} --reason WHY --confirm"
    return f"{said} Its remaining messages are sent by the next run: manage.py drain_dlq {run.dlq.name}, a dry run."


def _compare(run: Run, dlq: DeadLetterQueue, selection: Selection | None) -> None:
    asked = f"{ALL_LETTERS if selection is None else selection} of {dlq.name}"
    is_drain = run.kind == RunKind.DRAIN and not run.is_for_released_letters
    same = is_drain and selection in {None, Selection.read(run.selection)}
    if run.dlq_id != dlq.pk or not same:
        raise RunIdInUse(
            f"The run {run.name} was asked for {_describe_request(run)}; now it is asked for {asked}. "
            "To continue the run, ask for the same messages as before. To begin another run, choose another id."
        )


def _describe_request(run: Run) -> str:
    if run.kind == RunKind.AUTOMATIC:
        return f"all messages of {run.dlq.name}, by beat"
    what = "released letters" if run.is_for_released_letters else Selection.read(run.selection)
    return f"{what} of {run.dlq.name}"


def replay_run(
    run: Run, context: DrainContext, *, on_progress: Callable[[RunCounts], None], along: Sequence[int] = ()
) -> RunCounts:
    """Replay a run until its letters are finished, or the run is paused or aborted; return its letter counts.

    The replay also ends when `context.stop()` returns True. It does not wait for letters behind a parked letter of
    their lane, or behind a letter of a run that has ended or is paused. The other running runs of the DLQ are replayed,
    too, since this run's letters may wait for their letters in the lanes. `along`: ids of other runs that must also be
    finished before the replay ends. `on_progress`: called every few seconds, with the run's unfinished letters.
    """
    threads: list[_RepeatedWork] = [_Watch(run, context), _Checks(run, context)]
    for thread in threads:
        thread.start()
    try:
        while not context.stop():
            replay = replay_slice.Slice(
                owner=context.owner, conf=context.conf, rates=context.rates, dice=context.dice,
                runs=progress.running_runs(run.dlq_id), stop=context.stop,
            )  # fmt: skip
            report = replay.run(seconds=context.conf.slice.total_seconds())
            unfinished = progress.count_unfinished(run.pk)
            on_progress(unfinished)
            if progress.run_state(run.pk) in {RunState.PAUSED, RunState.ABORTED}:
                break
            running = set(progress.running_runs(run.dlq_id)).intersection(along)
            if not unfinished.under_way and not any(progress.count_unfinished(other).under_way for other in running):
                break
            if not report.taken and not report.left:
                time.sleep(IDLE)
    finally:
        for thread in threads:
            thread.end()
        late_answers.wait_for_all(LATE_ANSWER_SECONDS)
    recover.sweep_dlq(run.dlq, conf=context.conf)
    group_failures.assign_groups(batches=GROUP_BATCHES)
    progress.finish_runs()
    return progress.count_letters(run.pk)


class _RepeatedWork(threading.Thread):
    """A thread that repeats some work until the replay ends: that of its subclass (`_Checks` or `_Watch`)."""

    def __init__(self, run: Run, context: DrainContext) -> None:
        super().__init__(name=f"{type(self).__name__} of {run.name}")
        self._context = replace(context, conf=_brisk(context.conf), stop=self._is_over)
        self._asked, self._run_name = context.stop, run.name
        self._over = threading.Event()

    def run(self) -> None:
        try:
            while not self._is_over():
                try:
                    self._look()
                except DatabaseError as error:
                    self._rest_after(error)
                self._over.wait(IDLE)
        finally:
            connection.close()

    def end(self) -> None:
        self._over.set()
        self.join()

    def _is_over(self) -> bool:
        return self._over.is_set() or self._asked()

    def _look(self) -> None:
        raise NotImplementedError

    def _rest_after(self, error: Exception) -> None:
        logger.warning("%s", error, extra={"run": self._run_name})
        connection.close_if_unusable_or_obsolete()
        self._over.wait(1.0)


class _Checks(_RepeatedWork):
    """Repeats quick work beside a replay: health checks, rules, breakers, waves, and putting letters onto lanes."""

    def __init__(self, run: Run, context: DrainContext) -> None:
        super().__init__(run, context)
        self._book: RuleBook | None = None
        self._dlq = run.dlq_id

    def _look(self) -> None:
        self._book = recover.sweep_service(self._book)
        for run in progress.running_runs(self._dlq):
            plan.enlist_started_plans(only=run, stop=self._is_over)
        # Targets of other DLQs are not checked: this process may lack permissions for them.
        run_health_checks.run_due(conf=self._context.conf, dlq=self._dlq)


class _Watch(_RepeatedWork):
    """Repeats slow work beside a replay: captures DLQs to see which letters came back, and resolves outcomes."""

    def __init__(self, run: Run, context: DrainContext) -> None:
        super().__init__(run, context)
        self._dlq = run.dlq_id

    def _look(self) -> None:
        for dlq in DeadLetterQueue.objects.filter(pk__in=self._watched(), stopped_at=None).exclude(mode="observe"):
            self._poll(dlq)
        resolve_outcomes.resolve_letters(conf=self._context.conf, dice=self._context.dice)

    def _watched(self) -> set[int]:
        """Return the ids of the DLQs to which letters may come back: the run's own DLQ, and those of other targets."""
        under_way = Attempt.objects.filter(AWAITS_OUTCOME, run__dlq=self._dlq).values("target")
        found = Target.objects.filter(Q(sources__dlq=self._dlq) | Q(pk__in=under_way), watched_by__isnull=False)
        return {self._dlq, *found.values_list("watched_by", flat=True)}

    def _poll(self, dlq: DeadLetterQueue) -> None:
        try:
            feed_run.poll_dlq(
                dlq, conf=self._context.conf, dice=self._context.dice, seconds=30, stop=self._context.stop
            )
            recover.sweep_dlq(dlq, conf=self._context.conf)
        except (QueueUnreachable, PayloadUnreadable) as error:
            self._rest_after(error)


def _brisk(conf: Conf) -> Conf:
    return replace(conf, long_poll=min(conf.long_poll, LONG_POLL))
