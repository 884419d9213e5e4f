"""Read the state of a run: its progress, its waves, when it will end, and which outcomes it waits for."""

from __future__ import annotations

from dataclasses import dataclass

from reprocessing.domain.aws.pricing import Cost, Prices
from reprocessing.models import BreakerState, Run, Wave
from reprocessing.models.run import RunKind, RunState
from reprocessing.pipeline.runs import other_runs
from reprocessing.store.outcomes import pending_outcomes
from reprocessing.store.outcomes.pending_outcomes import PendingOutcome
from reprocessing.store.runs import arrived_since, progress, remaining_letters, run_cost
from reprocessing.store.runs.arrived_since import Arrived
from reprocessing.store.runs.progress import RunCounts
from reprocessing.store.runs.remaining_letters import TargetRemainder
from reprocessing.store.safety import failed_answers
from reprocessing.store.safety.failed_answers import CommonFailure

#: Most waves that are read, the last ones, because an automatic run has many.
_WAVES = 8


def letter_counts(run: Run) -> RunCounts:
    """Return a run's letter counts. An automatic run never ends: finished letters are counted up to a limit.

    The limit is 20,000 letters of each state, in an automatic run with more than 20,000 attempts or letters.
    """
    if run.kind == RunKind.AUTOMATIC and run_cost.has_more_than(run.pk, run_cost.MAX_COUNTED):
        return progress.count_capped(run.pk)
    return progress.count_letters(run.pk)


@dataclass(frozen=True, slots=True)
class RunStatus:
    """The state of a run.

    Attributes:
        run: the run.
        tally: letter counts of the run.
        waves: the run's last waves, oldest first.
        left: number of unfinished messages, by target.
        awaited: number of sent messages whose outcome is not known, by target.
        in_other_runs: how many messages this run sent that another run has now; these are not counted in `tally`.
            None: not counted, because the automatic run is large.
        cost: cost of sending and deleting the run's messages, without the cost of captures. None: as `in_other_runs`.
        arrived: how many messages were captured since the run began; None: the run is the DLQ's automatic run, which
            takes these messages.
        failing: the most frequent answer of the run's recent failed attempts; None: there is none.
        blocking: texts about other runs that send nothing, although messages of this run wait behind their messages.
    """

    run: Run
    tally: RunCounts
    waves: list[Wave]
    left: list[TargetRemainder]
    awaited: list[PendingOutcome]
    in_other_runs: int | None
    cost: Cost | None
    arrived: Arrived | None
    failing: CommonFailure | None
    blocking: list[str]

    @classmethod
    def read(cls, run: Run, *, count_lag: float, prices: Prices) -> RunStatus:
        """Read the state of a run from PostgreSQL.

        `count_lag`: seconds after which SQS's message counts show a change, at most.
        """
        awaited = pending_outcomes.of_run(run.pk, run.dlq_id, count_lag=count_lag)
        known = pending_outcomes.seconds_until_known(awaited)
        tally = letter_counts(run)
        is_large = tally.failed_attempts is None
        return cls(
            run=run,
            tally=tally,
            awaited=awaited,
            in_other_runs=None if is_large else progress.count_in_other_runs(run.pk),
            waves=list(Wave.objects.filter(run=run).order_by("-no")[:_WAVES])[::-1],
            left=remaining_letters.remaining_by_target(run.pk, count_lag=count_lag, known_in=known),
            cost=None if is_large else run_cost.cost_of_run(run.pk, prices),
            arrived=None if run.kind == RunKind.AUTOMATIC else arrived_since.arrived_since_start(run.pk),
            failing=failed_answers.of_run(run.pk, run.dlq_id),
            blocking=other_runs.describe_blocking(run) if tally.blocked else [],
        )

    @property
    def done(self) -> float:
        """The share of the run's messages that are finished, from 0 to 1."""
        return 1 - self.tally.open / self.tally.letters if self.tally.letters else 1.0

    @property
    def seconds(self) -> float | None:
        """How many seconds the run still takes if nothing fails.

        None: this is not known, since the run is neither running nor planned, a circuit breaker is not closed, or the
        outcome of some messages will never be known.
        """
        cannot_end = any(
            remainder.known_in is None or (remainder.letters and remainder.breaker != BreakerState.CLOSED)
            for remainder in self.left
        )
        if cannot_end or self.run.state not in {RunState.RUNNING, RunState.PLANNED}:
            return None
        return max((remainder.seconds for remainder in self.left), default=0.0)
