"""Read the progress of a run for its page: states of messages and key queues, the rate, and when the run can end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from urllib.parse import urlencode

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.urls import reverse

from reprocessing import conf
from reprocessing.admin.messages.readable_bytes import visible
from reprocessing.admin.runs import run_chart, run_failures, run_waves
from reprocessing.admin.site import visible_rows
from reprocessing.domain.lifecycle import LanePhase, LetterState
from reprocessing.domain.message.arn import resource_name
from reprocessing.domain.runs import forecast
from reprocessing.domain.runs.expected_end import expected_end
from reprocessing.domain.runs.forecast import duration_in_words
from reprocessing.domain.safety.failure_cause import WAITS_FOR_CAUSE
from reprocessing.models import BreakerState, Run, Wave
from reprocessing.models.run import RunKind, RunState
from reprocessing.pipeline.runs import why_run_waits
from reprocessing.pipeline.runs.why_run_waits import Observed
from reprocessing.store.ordering import lane_counts
from reprocessing.store.ordering.lane_counts import LaneCount
from reprocessing.store.outcomes import pending_outcomes
from reprocessing.store.outcomes.pending_outcomes import PendingOutcome
from reprocessing.store.replay import send_rates
from reprocessing.store.rights.visible_dlqs import VisibleDlqs
from reprocessing.store.runs import progress, remaining_letters, run_minutes
from reprocessing.store.runs.progress import MAX_EXACT, RoughRunCounts, RunCounts
from reprocessing.store.runs.remaining_letters import TargetRemainder
from reprocessing.store.safety.breaker_status import BreakerStatus

#: Max key queues of a run whose state is read.
_LANES: Final = 10_000
#: What a page shows instead of the progress of an automatic run that has no unfinished message.
WAITS_FOR_NEW: Final = "waiting for new messages"
#: The beginning of `WAITS_FOR_CAUSE`, for places where the page has the whole text elsewhere.
_CAUSE: Final = "the first message has used up its attempts"
_TRIAL: Final = "end unknown: a circuit breaker is not closed, so only canaries are sent"


def progress_context(
    run: Run, now: datetime, user: AbstractBaseUser | AnonymousUser, *, sentence: str
) -> dict[str, Any]:  # fmt: skip
    """Return the template values about the progress of a started run.

    `sentence`: a sentence about the state of the run, such as who paused it; empty: the state needs no sentence.
    """
    seen, count_lag = visible_rows.of_user(user), conf.current().count_lag.total_seconds()
    tally = progress.estimate_counts(run.pk, selected=run.selected)
    awaited = pending_outcomes.of_run(run.pk, run.dlq_id, count_lag=count_lag, seen=seen) if tally.awaiting else []
    known = pending_outcomes.seconds_until_known(awaited) if awaited else {}
    left = (
        remaining_letters.remaining_by_target(run.pk, count_lag=count_lag, known_in=known)
        if 0 < tally.open <= MAX_EXACT
        else []
    )
    lane_states = lane_counts.lane_counts_of_run(run.pk, most=_LANES) if tally.open else []
    wave = Wave.objects.filter(run=run, settled_at=None).exclude(size=None).first()
    pace = _pace(run, now, [share.target_id for share in left])
    observed = Observed(
        tally=tally, lanes=lane_states, breakers=pace.breakers, wave=wave.size if wave else None,
        awaited=next((text for _, text in _awaited(awaited)), ""), measured=pace.measured, allowed=pace.allowed,
    )  # fmt: skip
    unknown = _unknown(run, tally, lane_states, wave, known, seen=seen).replace(WAITS_FOR_CAUSE, _CAUSE)
    waits = why_run_waits.why_waits(run, now, state_text=sentence, observed=observed)
    moves = run.state == RunState.RUNNING
    return {
        "tally": tally,
        "percent": tally.percent,
        "idle": WAITS_FOR_NEW if run.kind == RunKind.AUTOMATIC and not tally.open else "",
        "at_least": tally.is_lower_bound,
        "is_rough": isinstance(tally, RoughRunCounts),
        "pieces": list(_pieces(run, tally)),
        "rate": pace.words if moves and tally.open else "",
        "ends": _ends(run, tally, left, pace, unknown=unknown, known=_latest(known), now=now),
        "waits": waits,
        "chart": run_chart.rate_chart(
            run_minutes.minutes_of_run(run.pk), now=now if moves else None, allowed=pace.allowed if moves else None
        ),
        "ways": [_open_target(share) for share in left if share.letters],
        "lane_sentences": _lane_sentences(lane_states, short=WAITS_FOR_CAUSE in waits.text),
        "awaited": [] if tally.sending or _moves(lane_states) else _awaited(awaited),
        "not_all": sum(lanes.n for lanes in lane_states) == _LANES,
        "steps": run_waves.wave_steps(run, left=tally.waiting),
        "failures": run_failures.failures(run, user, parked=tally.parked),
    }


@dataclass(frozen=True, slots=True)
class _Pace:
    """The measured and the allowed rate of a run, in messages per second.

    Attributes:
        allowed: the allowed rate; None: the rate is not limited.
        breakers: the circuit breakers of the run's targets.
        is_young: whether the run started so recently that the measured rate is not reliable.
    """

    measured: float
    allowed: float | None
    breakers: list[BreakerStatus]
    is_young: bool

    @property
    def words(self) -> str:
        """Return the measured and the allowed rate as text. If the allowed rate is 0, return why nothing is sent."""
        if self.allowed == 0:
            state = next((one.state for one in self.breakers if one.state != BreakerState.CLOSED), BreakerState.OPEN)
            return f"0 messages/s (circuit breaker {state.replace('_', ' ')})"
        limit = "" if self.allowed is None else f", of {forecast.rate_in_words(self.allowed)} allowed"
        return f"{forecast.measured_rate_in_words(self.measured)} now{limit}"


def _pace(run: Run, now: datetime, targets: list[int]) -> _Pace:
    every = why_run_waits.targets_of(run, targets)
    breakers = why_run_waits.read_breakers(every)
    since = (now - run.started_at).total_seconds() if run.started_at else 0.0
    moves = run.state == RunState.RUNNING
    measured = send_rates.rate_of_run(run.pk, every, since=since) if moves else 0.0
    return _Pace(measured, why_run_waits.allowed_rate(run, breakers), breakers, since < send_rates.RUN_WINDOW)


def _lane_sentences(found: list[LaneCount], *, short: bool) -> list[tuple[int, str]]:
    """Return what the run's key queues do or wait for: for each such text the number of key queues, largest first.

    `short`: shorten the text about a first message that has used up its attempts, because another sentence of the page
    already says what it waits for.
    """
    counts = Counter[str]()
    for lanes in found:
        text = lane_counts.describe_lanes(lanes)
        counts[visible(text.replace(WAITS_FOR_CAUSE, _CAUSE) if short else text)] += lanes.n
    return [(n, why) for why, n in counts.most_common()]


def _moves(found: list[LaneCount]) -> bool:
    """Return whether a message of one of these key queues is being sent, or may be sent now."""
    return any(lanes.phase == LanePhase.LEASED or (lanes.due and not lanes.is_barred) for lanes in found)


def _awaited(found: list[PendingOutcome]) -> list[tuple[int, str]]:
    """Return, for each target, the number of sent messages with unknown outcome, and what these outcomes wait for."""
    texts = ((wait.unsettled, resource_name(wait.target), pending_outcomes.describe(wait)) for wait in found)
    return [(n, visible(f"sent to {name} and waiting for {why}")) for n, name, why in texts]


def _latest(known: Mapping[int, float | None]) -> float | None:
    """Return the least number of seconds until all outcomes are known.

    None: it cannot be predicted, or no outcomes are awaited. `known`: the least number of seconds for each target, by
    target id.
    """
    found = [seconds for seconds in known.values() if seconds is not None]
    return max(found) if found and len(found) == len(known) else None


def _unknown(  # noqa: PLR0913  # each of another kind
    run: Run, tally: RunCounts, lane_states: list[LaneCount], wave: Wave | None, known: Mapping[int, float | None],
    *, seen: VisibleDlqs,
) -> str:  # fmt: skip
    """Return why it is not known when the run will end, as text; empty: this can be predicted."""
    ready = [lanes for lanes in lane_states if lanes.phase == LanePhase.READY]
    barred = [lanes for lanes in ready if lanes.is_barred or lanes.why == WAITS_FOR_CAUSE]
    if barred and tally.under_way:
        return max(barred, key=lambda lanes: lanes.n).why
    if wave and tally.waiting:
        seconds = _latest(known)
        when = "" if seconds is None else f", known in {duration_in_words(seconds)} at the earliest"
        return f"the next wave depends on the outcome of the wave of {wave.size:,}{when}"
    if not tally.awaiting:
        return ""
    lag = conf.current().count_lag.total_seconds()
    waits = filter(pending_outcomes.is_endless, pending_outcomes.of_targets(run.dlq_id, count_lag=lag, seen=seen))
    endless = [f"{resource_name(wait.target)}: {pending_outcomes.describe(wait)}" for wait in waits]
    return f"waiting for outcomes: {endless[0]}" if endless else ""


def _pieces(run: Run, tally: RunCounts) -> Iterator[dict[str, Any]]:
    """Yield the parts of the progress bar as template values, one for each state, finished messages first.

    `start` and `length` are in thousandths of the bar's length. `more` is "+" if there may be more messages, because
    they are counted only up to a limit.
    """
    on_lanes = tally.waiting - tally.captured - tally.sending
    certain = {} if isinstance(tally, RoughRunCounts) else {"presumed__exact": 0}
    parts = (
        ("done", "delivered", "delivered", tally.delivered, {"state__exact": "delivered", **certain}),
        ("presumed", "presumed delivered", "", tally.presumed, {"state__exact": "delivered", "presumed__exact": 1}),
        ("closed", "duplicate", "closed_as_duplicate", tally.closed_as_duplicate,
         {"state__exact": "duplicate"}),
        ("closed", "discarded", "discarded", tally.discarded, {"state__exact": "discarded"}),
        ("parked", "parked", "parked", tally.parked, {"state__exact": "parked"}),
        ("sent", "awaiting outcome", "awaiting", tally.awaiting, {"state__exact": "awaiting"}),
        ("sent", "sending", "", tally.sending, {"state__exact": "sending"}),
        ("left", "queued", "waiting", on_lanes, {"state__exact": "waiting"}),
        ("left", "captured, not queued yet", "waiting", tally.captured, {"state__exact": "captured"}),
    )  # fmt: skip
    start = 0.0
    for kind, what, counted, n, asked in parts:
        length = 1000 * n / tally.letters if tally.letters else 0.0
        more = "+" if counted in tally.capped and n >= progress.MAX_COUNT else ""
        place = {"start": round(start, 2), "length": round(length, 2), "address": letters_of(run, asked)}
        yield {"kind": kind, "what": what, "n": n, "more": more, **place}
        start += length


def letters_of(run: Run, asked: Mapping[str, object]) -> str:
    """Return the URL of the list that shows messages of a run. `asked`: further filters of the list, by name.

    If `asked` selects parked messages, the list is that of the parking lot.
    """
    model = "parkedletter" if asked.get("state__exact") == LetterState.PARKED else "letter"
    query = urlencode({"run__id__exact": run.pk, **asked})
    return f"{reverse(f'admin:reprocessing_{model}_changelist')}?{query}"


def _ends(  # noqa: PLR0913  # all are passed by name
    run: Run, tally: RunCounts, left: list[TargetRemainder], pace: _Pace, *, unknown: str, known: float | None,
    now: datetime,
) -> str:  # fmt: skip
    if run.state in {RunState.FINISHED, RunState.ABORTED} or not tally.open:
        return ""
    if run.state == RunState.PAUSED:
        return "paused: the run ends after somebody resumes it"
    if not tally.under_way:
        decided = "a person decides about the messages that hold their keys"
        return f"the run ends after {'earlier messages of other runs' if tally.blocked else decided}"
    if unknown:
        return f"end unknown: {visible(unknown)}"
    if not tally.waiting and known is not None:
        return f"all sent; the last outcome is known at {_at(now, known)} at the earliest"
    return _ends_at(tally, left, pace, now)


def _ends_at(tally: RunCounts, left: list[TargetRemainder], pace: _Pace, now: datetime) -> str:
    if any(breaker.state != BreakerState.CLOSED for breaker in pace.breakers):
        return _TRIAL
    measured = 0.0 if pace.is_young else pace.measured
    least = max((share.seconds for share in left), default=0.0) if tally.open <= MAX_EXACT else None
    found = expected_end(tally.waiting, allowed=pace.allowed, measured=measured, forecast=least)
    return found.sentence(now) if found else "end unknown: the targets have no rate limit"


def _at(now: datetime, seconds: float) -> str:
    return f"{now + timedelta(seconds=seconds):%H:%M:%S} UTC, in {duration_in_words(seconds)},"


def rate_in_words(rate: float | None) -> str:
    """Return a rate as text, such as "10 messages/s"; None: "no rate limit"."""
    return "no rate limit" if rate is None else forecast.rate_in_words(rate, digits=12)


def _open_target(share: TargetRemainder) -> dict[str, Any]:
    not_closed = share.breaker != BreakerState.CLOSED
    now = (
        rate_in_words(share.rate)
        if share.rate is None
        else f"{share.rate * share.ramp:.3g} now of {forecast.rate_in_words(share.rate)}"
    )
    state = f"circuit breaker {share.breaker.replace('_', ' ')}"
    return {
        "name": resource_name(share.name),
        "letters": share.letters,
        "pace": state if not_closed else now,
        "alarming": not_closed,
    }
