"""Foresee what a plan would do, before anything is sent: how much, how fast, what cannot go, and what it waits for."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

from reprocessing.domain.aws import pricing
from reprocessing.domain.aws.pricing import Cost, Prices
from reprocessing.domain.lifecycle import LetterState
from reprocessing.domain.message.arn import name_of
from reprocessing.domain.runs.forecast import Climb, Forecast, in_words, next_turn
from reprocessing.domain.runs.selection import Selection
from reprocessing.domain.safety import wave_progression
from reprocessing.models import DeadLetterQueue, Run
from reprocessing.models.dlq import DeleteWhen, Mode
from reprocessing.models.run import RunKind, RunState
from reprocessing.models.target import QUEUES, Proof
from reprocessing.pipeline.maintenance import check_s3_pointers
from reprocessing.pipeline.maintenance.check_s3_pointers import Verified
from reprocessing.store.dlqs import schedule
from reprocessing.store.maintenance import counters
from reprocessing.store.runs import plan_figures, progress, selection
from reprocessing.store.runs.plan_figures import Objection, Prospect, Share
from reprocessing.store.runs.progress import Tally

#: Letters behind others that are named.
NAMED: Final = 10
_PUBLIC: Final = Prices()


@dataclass(frozen=True, slots=True)
class Outlook:
    """What a drain of a dlq would do.

    Attributes:
        under_way: letters of the dlq's running runs, by the run's name; they would go along.
        parked: letters that wait for a person.
        run: the plan that its letters are selected for.
        behind: message ids of letters that were asked for and stand behind others that were not; the first of them.
        verified: whether what letters point to is still there.
        paused: runs that are paused and have letters waiting.
        plans: other plans that hold letters, which this one cannot have.
        prices: what SQS charges.
    """

    dlq: DeadLetterQueue
    prospect: Prospect
    objections: list[Objection]
    shares: list[Share]
    under_way: dict[str, int]
    parked: int
    run: Run
    behind: list[str]
    verified: Verified
    paused: list[Run]
    plans: list[Run]
    prices: Prices

    @property
    def nothing(self) -> bool:
        """Whether a run would find nothing to do."""
        ahead = self.prospect
        return not (ahead.letters or ahead.objected or ahead.returned or self.under_way)

    @property
    def seconds(self) -> float:
        """The least time that it takes, if nothing fails."""
        return max((self.forecast(share).seconds for share in self.shares), default=0.0)

    @property
    def waves(self) -> int:
        """Waves that have to go well before the last letter goes."""
        return wave_progression.before_last(self.prospect.letters) if self.run.waves else 0

    @property
    def wave_wait(self) -> float:
        """The least seconds from one of them to the next: its letters may go to whichever target."""
        return min((next_turn(share.tail, share.every) for share in self.shares), default=0.0)

    @property
    def waves_wait_for(self) -> str:
        """What each wave waits for, and how long; empty: for nothing."""
        if not (self.waves and self.wave_wait):
            return ""
        seen = " and ".join(f"a capture of {name}, one every {every:g} s" for name, every in self._captures)
        if not seen:
            return f"each waits {in_words(self.wave_wait)} for its outcome"
        return f"each waits {in_words(self.wave_wait)}, until {seen}, shows that nothing came back"

    @property
    def _captures(self) -> list[tuple[str, float]]:
        """The dlqs whose captures show that nothing came back, and seconds from one capture of each to its next."""
        return sorted({(share.watched_by, share.every) for share in self.shares if share.watched_by and share.every})

    def forecast(self, share: Share) -> Forecast:
        """How long the letters of one target take, at the least: the ramp may climb once with each wave."""
        climb = Climb(share=share.ramp, every=share.ramp_every, first=max(share.ramp_every, share.tail))
        first = min((each.tail for each in self.shares), default=0.0)
        return Forecast.of(
            letters=share.letters, rate=share.rate, longest_lane=share.longest, round_trip=share.round_trip,
            climb=climb.after(self.waves if self.wave_wait else 0), first=min(share.tail, share.round_trip),
            waits=first + (self.waves - 1) * self.wave_wait if self.waves else 0.0,
        )  # fmt: skip

    @property
    def assumed(self) -> list[str]:
        """What the forecasts take for granted."""
        told = ["nothing fails, and nothing else goes to these targets"]
        ramps = sorted({(one.ramp, one.ramp_every) for one in self.shares if one.rate and one.ramp < 1})
        told += [f"a rate that begins with {share:.0%} is doubled every {every:g} s" for share, every in ramps]
        if self.waves:
            known = f"after {in_words(self.wave_wait)}" if self.wave_wait else "at once"
            told.append(f"waves go well, and each is known {known}")
        told += [
            f"{name} is captured every {every:g} s, as its schedule says: that shows whether letters came back"
            for name, every in self._captures
        ]
        told += [
            f"{name_of(one.name)} has no message left when it is looked at; where others fill it, an outcome takes "
            f"{in_words(one.tail_of_busy)}"
            for one in self.shares
            if one.tail < one.tail_of_busy
        ]
        return told

    def faster(self, share: Share) -> list[str]:
        """What would be faster, where the longest lane takes far longer than the rate asks for; else nothing."""
        forecast = self.forecast(share)
        if not forecast.is_held_up:
            return []
        by_rate = in_words(forecast.by_rate)
        acknowledged = in_words(max(forecast.by_rate, float(share.longest)))
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

    def order(self, share: Share) -> str:
        """Which order of a key is given up, and what keeping it takes; empty: none is."""
        if not share.overtakes:
            return ""
        several = "s" if share.overtakes > 1 else ""
        given_up = (
            f"a message that fails again is sent anew after up to {share.overtakes:,} later message{several} of its "
            "key, since those do not wait for its outcome"
        )
        if share.proof == Proof.ACCEPTED:
            return f"{given_up}; the order is kept with --outcome absence or acknowledged, and --advance settled"
        lasts = f": the longest key then takes {in_words(share.longest * share.tail)}" if share.tail else ""
        return f"{given_up}; the order is kept with --advance settled{lasts}"

    @property
    def cost(self) -> Cost:
        """What SQS charges if each letter goes once and nothing fails: sends, and where copies lie in the dlq deletes.

        At the most, each copy is also hidden for longer once. Looks for outcomes come on top, one a second or so.
        """
        queues = [share for share in self.shares if share.kind in QUEUES]
        prices = [self.prices.of(fifo=queue.name.endswith(".fifo")) for queue in queues]
        sends = zip(queues, prices, strict=True)
        sent = sum((pricing.sends(x.letters, x.size, longest=x.longest, each=each) for x, each in sends), Cost())
        if self.dlq.delete_when == DeleteWhen.CAPTURED:
            return sent
        each = self.prices.of(fifo=self.dlq.fifo)
        return sent + pricing.deletes(self.prospect.letters, each=each) + Cost.of(0, self.prospect.letters, each=each)

    @property
    def late(self) -> list[Share]:
        """The targets to which letters would go too slowly: SQS expires them before it is their turn."""
        if self.dlq.delete_when == DeleteWhen.CAPTURED:
            return []  # SQS has nothing left to expire
        return [share for share in self.shares if share.late]


def plan(
    run: Run, *, count_lag: float, by_beat: bool = False, asks_s3: bool = True, prices: Prices = _PUBLIC
) -> Outlook:
    """What a plan has before it.

    Args:
        run: its letters are selected.
        count_lag: seconds by which SQS's counts may lag behind.
        by_beat: dlqs are captured when beat says so, as their schedules have it; else all the time, by a drain.
        prices: what SQS charges.
        asks_s3: whether S3 is asked for the bodies that letters point to; it takes its time.
    """
    dlq = run.dlq
    wish = Selection.read(run.selection)
    return Outlook(
        dlq,
        plan_figures.prospect(dlq.pk, run=run.pk),
        plan_figures.objections(dlq.pk, run=run.pk),
        _paced(plan_figures.shares(dlq.pk, run=run.pk, count_lag=count_lag), by_beat=by_beat),
        {other.name: glance(other).under_way for other in others(dlq)},
        sum(kind.n for kind in counters.kinds(dlq.pk) if kind.state == LetterState.PARKED),
        run,
        selection.behind(dlq.pk, run.pk, wish, most=NAMED) if run.behind else [],
        check_s3_pointers.pointers(run) if asks_s3 else Verified(0, []),
        paused(dlq),
        _plans(dlq, run),
        prices,
    )


def _paced(shares: list[Share], *, by_beat: bool) -> list[Share]:
    """The same, with how often it is seen whether letters came back."""
    cadences = schedule.cadences([share.watched_by_id for share in shares if share.watched_by_id]) if by_beat else {}
    every = [cadences.get(share.watched_by_id or 0, 0.0) for share in shares]
    return [
        replace(one, every=each, round_trip=one.round_trip and next_turn(one.round_trip, each))
        for one, each in zip(shares, every, strict=True)
    ]


def others(dlq: DeadLetterQueue, *but: Run) -> list[Run]:
    """The dlq's running runs, but for these, that have letters under way; where beat feeds one, not that one."""
    found = Run.objects.filter(dlq=dlq, state=RunState.RUNNING).exclude(pk__in=[one.pk for one in but]).order_by("pk")
    if dlq.mode == Mode.AUTOMATIC:
        found = found.exclude(kind=RunKind.STANDING)
    return [one for one in found if glance(one).under_way]


def paused(dlq: DeadLetterQueue) -> list[Run]:
    """The dlq's paused runs that have letters waiting: others' letters may stand behind those."""
    found = Run.objects.filter(dlq=dlq, state=RunState.PAUSED).order_by("pk")
    return [one for one in found if glance(one).waiting]


def _plans(dlq: DeadLetterQueue, but: Run) -> list[Run]:
    """Other plans of the dlq that nobody has started, and that hold letters."""
    found = Run.objects.filter(dlq=dlq, state=RunState.PLANNED, selected__gt=0).exclude(pk=but.pk)
    return list(found.order_by("pk"))


def held_by(plan: Run) -> str:
    """Whose a plan is that holds letters."""
    return f"in the plan {plan.name}, which {plan.asked_by} made and nobody has started"


def glance(run: Run) -> Tally:
    """What a run's letters have come to, at a cost that has an end."""
    return progress.at_a_glance(run.pk, selected=run.selected)
