"""Forecast a plan: how many messages it sends, how fast, which cannot be sent, and what the run waits for."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

from reprocessing.domain.aws import pricing
from reprocessing.domain.aws.pricing import Cost, Prices
from reprocessing.domain.lifecycle import LetterState
from reprocessing.domain.message.arn import resource_name
from reprocessing.domain.runs.forecast import Forecast, RateClimb, duration_in_words, next_multiple
from reprocessing.domain.runs.selection import Selection
from reprocessing.domain.safety import wave_progression
from reprocessing.models import DeadLetterQueue, Run
from reprocessing.models.dlq import DeleteWhen
from reprocessing.models.target import QUEUE_KINDS, Proof
from reprocessing.pipeline.maintenance import check_s3_pointers
from reprocessing.pipeline.maintenance.check_s3_pointers import CheckedPointers
from reprocessing.pipeline.runs import other_runs
from reprocessing.store.dlqs import schedule
from reprocessing.store.maintenance import counters
from reprocessing.store.runs import plan_figures, selection
from reprocessing.store.runs.plan_figures import BlockedCount, PlanFigures, TargetFigures

NAMED: Final = 10  #: most message ids in `PlanForecast.behind`
_PUBLIC: Final = Prices()


@dataclass(frozen=True, slots=True)
class PlanForecast:
    """What a planned run of a DLQ would do.

    Attributes:
        prospect: figures of the selected letters.
        objections: how many selected letters cannot be sent, by reason.
        shares: the same figures for each target.
        under_way: how many letters are in progress in the DLQ's running runs, by run name; these are sent, too.
        parked: number of the DLQ's parked letters.
        run: the planned run.
        behind: ids of requested messages (at most 10) that are left out, since earlier messages of their key were not
            requested.
        verified: which bodies in S3 are missing.
        paused: paused runs with waiting letters.
        plans: other plans that have selected letters.
        prices: the prices of SQS requests.
    """

    dlq: DeadLetterQueue
    prospect: PlanFigures
    objections: list[BlockedCount]
    shares: list[TargetFigures]
    under_way: dict[str, int]
    parked: int
    run: Run
    behind: list[str]
    verified: CheckedPointers
    paused: list[Run]
    plans: list[Run]
    prices: Prices

    @property
    def is_empty(self) -> bool:
        """Return whether the run would have no letters."""
        ahead = self.prospect
        return not (ahead.letters or ahead.objected or ahead.returned or self.under_way)

    @property
    def seconds(self) -> float:
        """Return the shortest duration of the run in seconds, which assumes that nothing fails."""
        return max((self.forecast(share).seconds for share in self.shares), default=0.0)

    @property
    def waves(self) -> int:
        """Return how many waves must succeed before the last letter is sent; 0: the run has no waves."""
        return wave_progression.waves_before_last(self.prospect.letters) if self.run.waves else 0

    @property
    def wave_wait(self) -> float:
        """Return the shortest time from one wave to the next, in seconds."""
        return min((next_multiple(share.tail, share.every) for share in self.shares), default=0.0)

    @property
    def waves_wait_for(self) -> str:
        """Return, as text for people, what each wave waits for, and how long; empty: waves do not wait."""
        if not (self.waves and self.wave_wait):
            return ""
        seen = " and ".join(f"a capture of {name}, one every {every:g} s" for name, every in self._captures)
        if not seen:
            return f"each waits {duration_in_words(self.wave_wait)} for its outcome"
        return f"each waits {duration_in_words(self.wave_wait)}, until {seen}, shows that nothing came back"

    @property
    def _captures(self) -> list[tuple[str, float]]:
        """Return the DLQs whose captures prove absence, each with the seconds between two captures."""
        return sorted({(share.watched_by, share.every) for share in self.shares if share.watched_by and share.every})

    def forecast(self, share: TargetFigures) -> Forecast:
        """Return the forecast for one target, if the rate rises by one step of the ramp-up with each wave."""
        climb = RateClimb(share=share.ramp, every=share.ramp_every, first=max(share.ramp_every, share.tail))
        first = min((each.tail for each in self.shares), default=0.0)
        return Forecast.of(
            letters=share.letters, rate=share.rate, longest_lane=share.longest, round_trip=share.round_trip,
            climb=climb.after(self.waves if self.wave_wait else 0), first=min(share.tail, share.round_trip),
            waits=first + (self.waves - 1) * self.wave_wait if self.waves else 0.0,
        )  # fmt: skip

    @property
    def assumptions(self) -> list[str]:
        """Return the assumptions on which the forecast is based, as phrases for people."""
        told = ["no failures, and nothing else is sent to these targets"]
        ramps = sorted({(share.ramp, share.ramp_every) for share in self.shares if share.rate and share.ramp < 1})
        told += [f"the rate ramps from {share:.0%} and doubles every {every:g} s" for share, every in ramps]
        if self.waves:
            known = f"after {duration_in_words(self.wave_wait)}" if self.wave_wait else "at once"
            told.append(f"every wave succeeds, and its outcome is known {known}")
        told += [
            f"{name} is captured every {every:g} s, as its schedule says, which shows whether messages came back"
            for name, every in self._captures
        ]
        told += [
            f"{resource_name(share.name)} is empty when it is checked; if others fill it, an outcome takes "
            f"{duration_in_words(share.tail_of_busy)}"
            for share in self.shares
            if share.tail < share.tail_of_busy
        ]
        return told

    def faster_options(self, share: TargetFigures) -> list[str]:
        """Return, for people, options that shorten the run; empty: the longest lane does not limit its duration."""
        forecast = self.forecast(share)
        if not forecast.is_far_slower_by_lane:
            return []
        by_rate = duration_in_words(forecast.by_rate)
        acknowledged = duration_in_words(max(forecast.by_rate, float(share.longest)))
        pace = max(math.floor(forecast.by_rate / share.round_trip), 1)
        messages = f"{pace:,} message{'' if pace == 1 else 's'}"
        order = (
            "the next message of a key is sent when SQS took the one before, so it may be processed before a message "
            "of its key that fails again"
        )
        return [
            f"--advance accepted: {by_rate}. It gives up this order: {order}",
            f"--outcome acknowledged (docs/outcomes.md): {acknowledged}, if consumers report within a second",
            f"a finer --ordering-key: {by_rate}, if no key has more than {messages}; one has {share.longest:,}",
        ]

    def order_given_up(self, share: TargetFigures) -> str:
        """Return, for people, how a key's order may be lost, and which options keep it; empty: the order is kept."""
        if not share.overtakes:
            return ""
        several = "s" if share.overtakes > 1 else ""
        given_up = (
            f"a message that fails again is sent anew after up to {share.overtakes:,} later message{several} of its "
            "key, since those do not wait for its outcome"
        )
        if share.proof == Proof.ACCEPTED:
            return f"{given_up}; the order is kept with --outcome absence or acknowledged, and --advance settled"
        lasts = f": the longest key then takes {duration_in_words(share.longest * share.tail)}" if share.tail else ""
        return f"{given_up}; the order is kept with --advance settled{lasts}"

    @property
    def cost(self) -> Cost:
        """Return what SQS charges if nothing fails: for sends, for deletes, and for hiding each copy longer once.

        The requests that find out outcomes, about one per second, are not included.
        """
        queues = [share for share in self.shares if share.kind in QUEUE_KINDS]
        prices = [self.prices.of(fifo=queue.name.endswith(".fifo")) for queue in queues]
        sends = zip(queues, prices, strict=True)
        sent = sum(
            (pricing.cost_of_sends(x.letters, x.size, longest=x.longest, each=each) for x, each in sends), Cost()
        )
        if self.dlq.delete_when == DeleteWhen.CAPTURED:
            return sent
        each = self.prices.of(fifo=self.dlq.fifo)
        return (
            sent
            + pricing.cost_of_deletes(self.prospect.letters, each=each)
            + Cost.of(0, self.prospect.letters, each=each)
        )

    @property
    def late_targets(self) -> list[TargetFigures]:
        """Return the targets for which some letters are sent only after SQS has deleted their copies (retention)."""
        if self.dlq.delete_when == DeleteWhen.CAPTURED:
            return []  # no copies are left in SQS
        return [share for share in self.shares if share.late]


def forecast_run(
    run: Run, *, count_lag: float, by_beat: bool = False, asks_s3: bool = True, prices: Prices = _PUBLIC
) -> PlanForecast:
    """Return a forecast of a planned run whose letters are selected.

    Args:
        run: the plan.
        count_lag: seconds by which SQS's counts may be late.
        by_beat: True: beat captures DLQs by their schedules; False: a drain captures the DLQs all the time.
        asks_s3: whether to check that bodies in S3 still exist.
        prices: the prices of SQS requests.
    """
    dlq = run.dlq
    wish = Selection.read(run.selection)
    return PlanForecast(
        dlq,
        plan_figures.plan_figures_of(dlq.pk, run=run.pk),
        plan_figures.blocked_counts(dlq.pk, run=run.pk),
        _paced(plan_figures.target_figures(dlq.pk, run=run.pk, count_lag=count_lag), by_beat=by_beat),
        {other.name: other_runs.quick_tally(other).under_way for other in other_runs.in_progress(dlq)},
        sum(kind.n for kind in counters.counts_by_state(dlq.pk) if kind.state == LetterState.PARKED),
        run,
        selection.letters_behind(dlq.pk, run.pk, wish, most=NAMED) if run.behind else [],
        check_s3_pointers.find_missing_bodies(run) if asks_s3 else CheckedPointers(0, []),
        other_runs.paused_runs(dlq),
        other_runs.other_plans(dlq, run),
        prices,
    )


def _paced(shares: list[TargetFigures], *, by_beat: bool) -> list[TargetFigures]:
    """Return the figures with `every` set: the seconds between two captures that show whether letters came back."""
    cadences = (
        schedule.poll_intervals([share.watched_by_id for share in shares if share.watched_by_id]) if by_beat else {}
    )
    every = [cadences.get(share.watched_by_id or 0, 0.0) for share in shares]
    return [
        replace(share, every=each, round_trip=share.round_trip and next_multiple(share.round_trip, each))
        for share, each in zip(shares, every, strict=True)
    ]
