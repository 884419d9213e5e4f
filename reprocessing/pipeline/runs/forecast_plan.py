"""Forecast a plan: how many messages it sends, how fast, which messages cannot be sent, and what it waits for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from reprocessing.domain.aws import pricing
from reprocessing.domain.aws.pricing import Cost, Prices
from reprocessing.domain.lifecycle import LetterState
from reprocessing.domain.message.arn import resource_name
from reprocessing.domain.runs import plan_choice
from reprocessing.domain.runs.forecast import Forecast, duration_in_words, next_multiple
from reprocessing.domain.runs.plan_choice import Choice, ChoiceFigures, Expiring, Offer, TargetLoad
from reprocessing.domain.runs.selection import Selection
from reprocessing.domain.targets.target_kind import QUEUE_KINDS
from reprocessing.models import DeadLetterQueue, Run
from reprocessing.models.dlq import DeleteWhen, ParkedHead
from reprocessing.models.target import Advance, Proof
from reprocessing.pipeline.maintenance import check_s3_pointers
from reprocessing.pipeline.maintenance.check_s3_pointers import CheckedPointers
from reprocessing.pipeline.runs import other_runs, plan_obstacles
from reprocessing.store.dlqs import schedule
from reprocessing.store.maintenance import counters
from reprocessing.store.maintenance.counters import CountByState
from reprocessing.store.runs import plan_figures, selection
from reprocessing.store.runs.plan_figures import BlockedCount, ExpiringLetters, PlanFigures, TargetFigures
from reprocessing.store.runs.progress import MAX_EXACT

NAMED: Final = 10  #: most message ids in `PlanForecast.behind`
_PUBLIC: Final = Prices()


@dataclass(frozen=True, slots=True)
class PlanForecast:
    """What a planned run of a DLQ would do.

    Attributes:
        prospect: number of selected letters, of their lanes, and when they expire.
        objections: how many selected letters cannot be sent, by reason.
        shares: such figures for each target, with the limits that the run itself has.
        configured: such figures for each target, without the limits that the run itself has.
        expiring: when SQS deletes the copies of the selected letters.
        as_of: when the letters were counted; None: now.
        under_way: how many letters other running runs of the DLQ still have to send, by run name.
        parked, captured: number of the DLQ's letters in this state, also of letters in other plans.
        run: the planned run.
        behind: ids of requested messages (at most 10) that are left out, since earlier messages of their key were not
            requested.
        verified: which bodies are missing in S3.
        paused: paused runs of the DLQ with waiting letters.
        plans: other plans of the DLQ that have selected letters.
        prices: the prices of SQS requests.
        obstacles: sentences about what keeps messages from being sent now.
    """

    dlq: DeadLetterQueue
    prospect: PlanFigures
    objections: list[BlockedCount]
    shares: list[TargetFigures]
    under_way: dict[str, int]
    parked: int
    captured: int
    run: Run
    behind: list[str]
    verified: CheckedPointers
    paused: list[Run]
    plans: list[Run]
    prices: Prices
    configured: list[TargetFigures]
    expiring: list[ExpiringLetters]
    as_of: datetime | None
    obstacles: list[str]

    @property
    def is_empty(self) -> bool:
        """Return whether there is nothing to send."""
        ahead = self.prospect
        return not (ahead.letters or ahead.objected or ahead.returned or self.under_way)

    @property
    def seconds(self) -> float:
        """Return how many seconds the run takes if nothing fails; in fact it may take longer."""
        return max((self.forecast(share).seconds for share in self.shares), default=0.0)

    @property
    def waves(self) -> int:
        """Return how many waves must succeed before the last letter is sent; 0: the run has no waves."""
        return plan_choice.waves_before_last(self._loads(self.shares), waves=self.run.waves)

    @property
    def wave_wait(self) -> float:
        """Return how many seconds pass, at least, between the beginnings of two waves."""
        return plan_choice.wave_wait(self._loads(self.shares))

    @property
    def waves_wait_for(self) -> str:
        """Return a text that says what each wave waits for, and for how long; empty: waves do not wait."""
        if not (self.waves and self.wave_wait):
            return ""
        seen = " and ".join(f"a capture of {name}, one every {every:g} s" for name, every in self._captures)
        if not seen:
            return f"each waits {duration_in_words(self.wave_wait)} for its outcome"
        return f"each waits {duration_in_words(self.wave_wait)}, until {seen}, shows that nothing came back"

    @property
    def _captures(self) -> list[tuple[str, float]]:
        """Return the DLQs whose captures show which messages came back, each with the seconds between two captures."""
        return sorted({(share.watched_by, share.every) for share in self.shares if share.watched_by and share.every})

    def forecast(self, share: TargetFigures) -> Forecast:
        """Return the forecast for one target. It assumes that each wave raises the rate by one step of ramp-up."""
        return plan_choice.forecast_of(self._load(share), self._loads(self.shares), waves=self.run.waves)

    @property
    def choice(self) -> Choice:
        """Return the choice that is stored in the plan: rate, order and waves."""
        return choice_of(self.run)

    @property
    def may_overtake(self) -> bool:
        """Return whether the DLQ allows to send a key's later messages while an earlier message failed and waits."""
        return self.dlq.when_parked != ParkedHead.HOLD

    def offers(self, asked: Choice | None = None) -> list[Offer]:
        """Return ways to run the plan, for a person to compare. `asked`: a way that the person entered; None: none."""
        configured = Choice(rate=None, waits_for_outcomes=True, waves=self.dlq.waves)
        loads = self._loads(self.configured)
        return plan_choice.offers(loads, configured, self.choice, asked, may_overtake=self.may_overtake)

    def figures(self, choice: Choice) -> ChoiceFigures:
        """Return the duration and cost of the plan with this choice, if it is started now and nothing fails."""
        return plan_choice.figures(
            self._loads(self.configured), choice, now=self.prospect.now, deletes=self._deletes, prices=self.prices
        )

    def _loads(self, shares: Sequence[TargetFigures]) -> list[TargetLoad]:
        return [self._load(share) for share in shares]

    def _load(self, share: TargetFigures) -> TargetLoad:
        held = self.dlq.delete_when != DeleteWhen.CAPTURED
        expiring = [each for each in self.expiring if held and each.target_id == share.target_id]
        return TargetLoad(
            name=share.name, letters=share.letters, lanes=share.lanes, longest=share.longest, size=share.size,
            rate=share.rate, ramp=share.ramp, ramp_every=share.ramp_every, tail=share.tail, round_trip=share.round_trip,
            every=share.every, is_queue=share.kind in QUEUE_KINDS, fifo=share.name.endswith(".fifo"),
            late=share.late if held else 0, room=share.room, outcome_in=share.outcome_in,
            expiring=tuple(
                Expiring((each.expires_at - self.prospect.now).total_seconds(), each.letters) for each in expiring
            ),
        )  # fmt: skip

    @property
    def assumptions(self) -> list[str]:
        """Return the assumptions on which the forecast is based, as phrases for people."""
        told = ["no failures, and nothing else is sent to these targets"]
        told += ["the obstacles are gone: the time until then is not included"] if self.obstacles else []
        told += plan_obstacles.rules_notice(self.dlq)
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
        """Return texts about options that shorten the run; empty: the longest key queue is not what takes the time."""
        forecast = self.forecast(share)
        if not forecast.is_far_slower_by_lane:
            return []
        otherwise = duration_in_words(forecast.without_lanes)
        acknowledged = duration_in_words(max(forecast.by_rate, float(share.longest)))
        pace = max(math.floor(forecast.without_lanes / share.round_trip), 1)
        messages = f"{pace:,} message{'' if pace == 1 else 's'}"
        order = (
            "the next message of a key is sent when SQS took the one before, so it may be processed before a message "
            "of its key that fails again"
        )
        return [
            f"--advance accepted: {otherwise}. It gives up this order: {order}",
            f"--outcome acknowledged (docs/outcomes.md): {acknowledged}, if consumers report within a second",
            f"a finer --ordering-key: {otherwise}, if no key has over {messages}; the longest has {share.longest:,}",
        ]

    def order_given_up(self, share: TargetFigures) -> str:
        """Return a text that says how a key's order may be lost, and how to keep it; empty: the order is kept."""
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
        """Return what SQS charges if nothing fails: for sends, deletes, and one extension of each message's timeout.

        The requests that find out outcomes, about one per second, are not included.
        """
        queues = [share for share in self.shares if share.kind in QUEUE_KINDS]
        prices = [self.prices.of(fifo=queue.name.endswith(".fifo")) for queue in queues]
        sends = zip(queues, prices, strict=True)
        sent = sum(
            (pricing.cost_of_sends(x.letters, x.size, longest=x.longest, each=each) for x, each in sends), Cost()
        )
        return sent + self._deletes

    @property
    def _deletes(self) -> Cost:
        """Return what SQS charges for deleting the messages from the DLQ, and for extending their timeout once."""
        if self.dlq.delete_when == DeleteWhen.CAPTURED:
            return Cost()
        each, letters = self.prices.of(fifo=self.dlq.fifo), self.prospect.letters
        return pricing.cost_of_deletes(letters, each=each) + Cost.of(0, letters, each=each)

    @property
    def late_targets(self) -> list[TargetFigures]:
        """Return the targets to which some letters are sent only after SQS has deleted their messages from the DLQ."""
        if self.dlq.delete_when == DeleteWhen.CAPTURED:
            return []  # no copies are left in SQS
        return [share for share in self.shares if share.late]


def forecast_run(
    run: Run, *, count_lag: float, by_beat: bool = False, asks_s3: bool = True, prices: Prices = _PUBLIC
) -> PlanForecast:
    """Return a forecast of a planned run whose letters are selected.

    Args:
        run: the plan.
        count_lag: seconds after which SQS's message counts show a change, at most.
        by_beat: True: beat captures DLQs by their schedules; False: a drain captures the DLQs all the time.
        asks_s3: whether to check that bodies in S3 still exist.
        prices: the prices of SQS requests.
    """
    dlq, counted = run.dlq, plan_figures.letter_figures(run, count_lag=count_lag)
    kinds = counters.counts_by_state(dlq.pk)
    configured = _paced(counted.targets, by_beat=by_beat)
    return PlanForecast(
        dlq=dlq, run=run, prospect=counted.prospect, objections=counted.objections, behind=_behind(run, kinds),
        shares=[_limited(share, run) for share in configured],
        under_way={other.name: other_runs.quick_tally(other).under_way for other in other_runs.in_progress(dlq)},
        parked=_count(kinds, LetterState.PARKED), captured=_count(kinds, LetterState.CAPTURED),
        verified=check_s3_pointers.find_missing_bodies(run) if asks_s3 else CheckedPointers(0, []),
        paused=other_runs.paused_runs(dlq), plans=other_runs.other_plans(dlq, run), prices=prices,
        configured=configured, expiring=counted.expiring, as_of=counted.as_of,
        obstacles=plan_obstacles.plan_obstacles(dlq, {each.target_id for each in configured}, counted.prospect.now),
    )  # fmt: skip


def choice_of(run: Run) -> Choice:
    """Return the choice that is stored in a run: its own rate, order and waves."""
    return Choice(rate=run.rate, waits_for_outcomes=run.waits_for_outcomes, waves=run.waves)


def _behind(run: Run, kinds: Sequence[CountByState]) -> list[str]:
    """Return ids of requested messages that wait behind others; empty if more than `MAX_EXACT` are captured."""
    if not run.behind or _count(kinds, LetterState.CAPTURED) > MAX_EXACT:
        return []
    return selection.letters_behind(run.dlq_id, run.pk, Selection.read(run.selection), most=NAMED)


def _count(kinds: Sequence[CountByState], state: LetterState) -> int:
    return sum(kind.n for kind in kinds if kind.state == state)


def _limited(share: TargetFigures, run: Run) -> TargetFigures:
    """Return a target's figures, changed by the limits that the run itself has."""
    rate = share.rate if run.rate is None else min(run.rate, share.rate or run.rate)
    early: Any = {} if run.waits_for_outcomes else {"advance": Advance.ACCEPTED, "round_trip": 0.0, "late": 0}
    return replace(share, rate=rate, **early)


def _paced(shares: list[TargetFigures], *, by_beat: bool) -> list[TargetFigures]:
    """Return the targets' figures with the seconds between captures (`every`), which show what came back."""
    watching = [share.watched_by_id for share in shares if share.watched_by_id]
    cadences = schedule.poll_intervals(watching) if by_beat else {}
    every = [cadences.get(share.watched_by_id or 0, 0.0) for share in shares]
    return [
        replace(share, every=each, round_trip=share.round_trip and next_multiple(share.round_trip, each))
        for share, each in zip(shares, every, strict=True)
    ]
