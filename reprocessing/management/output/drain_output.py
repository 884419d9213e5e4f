"""A drain in words and in JSON: what it would do, how far it is, what it came to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields
from typing import Any

from reprocessing.domain.aws.pricing import in_words as cost_in_words
from reprocessing.domain.lifecycle import ParkedReason
from reprocessing.domain.message.arn import name_of
from reprocessing.domain.runs.forecast import Forecast, in_words
from reprocessing.domain.runs.selection import ALL, Selection
from reprocessing.models.dlq import DeadLetterQueue, DeleteWhen
from reprocessing.models.run import Run
from reprocessing.pipeline.runs.forecast_plan import Outlook, held_by
from reprocessing.store.runs.plan_figures import Prospect, Share
from reprocessing.store.runs.progress import Tally

#: Letters that are named where many are told of.
_NAMED = 10
#: What a run has come to, in the order of telling; together they are its letters.
_ENDS = {
    "delivered": "delivered",
    "presumed": "presumed delivered",
    "parked": "parked",
    "closed_as_duplicate": "closed as duplicate",
    "discarded": "discarded",
}


def hiding(dlq: DeadLetterQueue) -> str:
    """What a capture does to those who look into the dlq."""
    if dlq.delete_when == DeleteWhen.CAPTURED:
        return f"Capturing {dlq.name}: its messages move to PostgreSQL, and are gone from SQS."
    return f"Capturing {dlq.name}: its messages are out of sight of its other readers for a while, and stay in it."


def plan(outlook: Outlook, new: int) -> Iterable[str]:
    """The plan for people; `new` of its letters were captured just now."""
    asked = Selection.read(outlook.run.selection)
    waits = "no letter waits but those of paused runs" if outlook.paused else "no letter waits"
    if outlook.nothing and asked == ALL and not outlook.behind:
        yield f"{outlook.dlq.name}: there is nothing to replay. No message was found in the dlq, and {waits}."
    elif outlook.nothing:
        yield f"{outlook.dlq.name}: there is nothing to replay: {asked} were asked for, and none can go."
    else:
        yield from _ahead(outlook, new)
    if outlook.behind:
        ids = ", ".join(outlook.behind)
        number = outlook.run.behind or len(outlook.behind)
        yield f"  behind          {number:,}: letters before them in their lanes are not part of this run. {ids}"
    for one in outlook.plans:
        many = counted(one.selected or 0, "letter")
        yield f"  planned         {many}: {held_by(one)} (manage.py show_runs {outlook.dlq.name})"
    for one in outlook.paused:
        yield f"  paused          {waits_for(one)}"
    if gone := outlook.verified.gone:
        ids = ", ".join(gone[:_NAMED])
        some = f"{len(gone):,} of {outlook.verified.asked:,} that lie in S3"
        yield f"  bodies gone     {some}: their consumer will fail. Put the objects back, or discard them. {ids}"
    if outlook.parked:
        decide = f"manage.py release_parked {outlook.dlq.name} --reason WHY shows them; or the parking lot"
        yield f"  parked          {counted(outlook.parked, 'letter')} {_verb(outlook.parked)} for a person: {decide}"


def waits_for(run: Run) -> str:
    """What a paused run holds up."""
    return f"{run.name} is paused, and letters behind its own wait for it (manage.py show_runs {run.dlq.name})."


def _ahead(outlook: Outlook, new: int) -> Iterable[str]:
    ahead = outlook.prospect
    total = ahead.letters + ahead.objected
    yield f"{outlook.dlq.name}: {counted(total, 'letter')} captured, {new:,} of them just now"
    lanes = f"{counted(ahead.lanes, 'lane')}; the longest lane has {ahead.longest:,}"
    yield f"  to be replayed  {ahead.letters:,}, on {lanes}"
    if ahead.returned:
        yield f"  along with them {counted(ahead.returned, 'letter')} left by runs that have ended"
    for one in outlook.objections:
        yield f"  not eligible    {one.letters:,}: {_why(one.reason)} A run parks them at once."
    for share in outlook.shares:
        yield from _target(share, outlook.forecast(share))
        if order := outlook.order(share):
            yield f"      order: {order} (add_dlq {outlook.dlq.name} ...)"
        yield from _faster(outlook.faster(share), outlook.dlq.name)
    if outlook.shares:
        yield f"  reckoned with   {'; '.join(outlook.assumed)}"
        yield f"  costs           {cost_in_words(outlook.cost)}; looks for outcomes come on top, one a second or so"
    if ahead.expires_at and outlook.dlq.delete_when == DeleteWhen.TERMINAL:
        yield f"  the dlq drops the oldest message {_until(ahead)}; PostgreSQL keeps its letter"
    if outlook.run.waves:
        wait = f"; {outlook.waves_wait_for}" if outlook.waves_wait_for else ""
        yield f"  waves           one letter first, then 10, then 100, then all{wait}; a wave that fails stops the run"
    for name, letters in outlook.under_way.items():
        yield f"  under way       {counted(letters, 'letter')} of the run {name} (replayed along, to its end)"


def _target(one: Share, forecast: Forecast) -> Iterable[str]:
    rate = "no limit of rate" if one.rate is None else f"{one.rate:g} letters/s"
    window = f", a window of {one.window:g} s" if one.proof == "absence" else ""
    yield f"  to {name_of(one.name)}: {counted(one.letters, 'letter')}, {rate}"
    if one.refires is not None:
        yield f"      {refired(one.refires)}"
    yield f"      outcome {one.proof}{window}; a lane's next letter goes when the one before is {one.advance}"
    yield f"      {forecasts(one, forecast)}"


def _faster(ways: list[str], dlq: str) -> Iterable[str]:
    """What would be faster, and with which command; nothing where nothing is told of it."""
    if ways:
        said = f"Faster would be (options of manage.py add_dlq {dlq}):"
        yield f"      Most of that is waiting for outcomes, one after another. {said}"
        yield from (f"      - {way}" for way in ways)


def refired(others: int) -> str:
    """Who gets a letter again that is published again."""
    return f"each letter goes to {counted(others, 'subscriber')} again that had it already"


def forecasts(one: Share, forecast: Forecast) -> str:
    """Both forecasts of a target."""
    by_rate = f"by rate {in_words(forecast.by_rate) if forecast.by_rate else 'no time'}"
    if not one.round_trip:
        return f"{by_rate}; by the longest lane no time: none waits for an outcome"
    trip = f"{one.longest:,} x {one.round_trip:g} s{', the first one sooner' if one.tail < one.round_trip else ''}"
    return f"{by_rate}; by the longest lane {in_words(forecast.by_lane)} ({trip})"


def too_slow(outlook: Outlook) -> str:
    """Why it is refused, and the cures."""
    told = "; ".join(
        f"{counted(one.late, 'letter')} to {name_of(one.name)} ({forecasts(one, outlook.forecast(one))})"
        for one in outlook.late
    )
    name = outlook.dlq.name
    return (
        f"{name}: its lanes are too long for their window. Before it is their turn, SQS drops {told}; "
        f"it drops the oldest {_until(outlook.prospect)}. Let a lane go on as soon as the target took its letter "
        f"(manage.py add_dlq {name} --advance accepted --confirm), have its consumers acknowledge "
        f"(--outcome acknowledged), or keep the messages in PostgreSQL alone (--delete-when captured)."
    )


def _until(ahead: Prospect) -> str:
    if ahead.expires_at is None:
        return "never"
    left = (ahead.expires_at - ahead.now).total_seconds()
    return f"in {in_words(left)}" if left > 0 else "now: its time is over"


def _why(reason: str) -> str:
    return ParkedReason(reason).sentence


def plan_in_json(outlook: Outlook, new: int, refused: str) -> dict[str, Any]:
    """The plan for programs; `run` is null where there is nothing to start."""
    run = None if refused or outlook.nothing else outlook.run.name
    ahead = outlook.prospect
    total = ahead.letters + ahead.objected
    return {
        **_ends(run, total, waiting=total),
        "dry_run": True,
        "dlq": outlook.dlq.name,
        "new": new,
        "letters": ahead.letters,
        "lanes": ahead.lanes,
        "longest_lane": ahead.longest,
        "not_eligible": ahead.objected,
        "objections": {one.reason: one.letters for one in outlook.objections},
        "returned": ahead.returned,
        "forecast_seconds": outlook.seconds,
        "expires": ahead.expires_at,
        "forecast_assumes": outlook.assumed,
        "aws_requests": asdict(outlook.cost),
        "targets": [_target_in_json(one, outlook.forecast(one), outlook) for one in outlook.shares],
        "in_other_plans": {one.name: one.selected for one in outlook.plans},
        "behind": outlook.run.behind or 0,
        "behind_ids": outlook.behind,
        "bodies_in_s3": {"asked": outlook.verified.asked, "gone": outlook.verified.gone},
        "waves": outlook.run.waves,
        "refused": refused or None,
    }


def _target_in_json(one: Share, forecast: Forecast, outlook: Outlook) -> dict[str, Any]:
    return {
        "target": one.name,
        "letters": one.letters,
        "longest_lane": one.longest,
        "rate": one.rate,
        "kind": one.kind,
        "refires": one.refires,
        "outcome": one.proof,
        "advance": one.advance,
        "window": one.window,
        "captured_every": one.every or None,
        "seconds_by_rate": forecast.by_rate,
        "seconds_by_lane": forecast.by_lane,
        "late": one.late,
        "faster": outlook.faster(one),
        "order_given_up": outlook.order(one) or None,
    }


def came_to(run: str, dlq: DeadLetterQueue, tally: Tally, along: Mapping[str, Tally]) -> dict[str, Any]:
    """What a run has come to, for programs: `captured` is the sum of what follows, failed attempts aside.

    `along` has the same of each other run of the dlq that went along, by its name.
    """
    ends = {name: getattr(tally, name) for name in _ENDS}
    return {
        **_ends(run, tally.letters, waiting=tally.open),
        **ends,
        "failed_attempts": tally.failed_attempts,
        "dry_run": False,
        "dlq": dlq.name,
        "held": tally.held,
        "along": {name: _figures(other) for name, other in along.items()},
    }


def _figures(tally: Tally) -> dict[str, int]:
    ends = {name: getattr(tally, name) for name in _ENDS}
    return {"captured": tally.letters, **ends, "waiting": tally.open, "held": tally.held}


def _ends(run: str | None, captured: int, *, waiting: int) -> dict[str, Any]:
    nothing = dict.fromkeys([*_ENDS], 0)
    return {"run": run, "captured": captured, **nothing, "waiting": waiting, "failed_attempts": 0}


def progress(tally: Tally) -> str:
    """What a run has come to, in one line."""
    ends = [f"{getattr(tally, name):,} {words}" for name, words in _ENDS.items() if getattr(tally, name)]
    if tally.waiting:
        ends.append(f"{tally.waiting:,} waiting")
    if tally.awaiting:
        ends.append(f"{tally.awaiting:,} sent, outcome not known yet")
    if tally.failed_attempts:
        ends.append(f"{counted(tally.failed_attempts, 'failed attempt')}")
    return f"{counted(tally.letters, 'letter')}: {', '.join(ends)}" if tally.letters else "no letter"


def end(run: str, dlq: str, own: Tally, along: Mapping[str, Tally]) -> Iterable[str]:
    """What a run and those that went along came to, and what is left for a person."""
    yield f"{run}: {progress(own)}."
    for name, other in along.items():
        yield f"Along with it went {name}: {progress(other)}."
    tally = together([own, *along.values()])
    if tally.held:
        held = f"{counted(tally.held, 'letter')} of them {_verb(tally.held)}"
        shown = f"manage.py redrive_status {dlq} shows it."
        yield f"{held} behind a parked one or a rule, until a person decides about that: {shown}"
    if tally.parked:
        shown = f"manage.py release_parked {dlq} --reason WHY shows them; or the parking lot."
        yield f"Parked letters wait for a person: {shown}"


def together(tallies: Iterable[Tally]) -> Tally:
    """What several runs have come to."""
    every = list(tallies)
    return Tally(**{one.name: sum(getattr(tally, one.name) for tally in every) for one in fields(Tally)})


def unfinished(tally: Tally) -> str:
    """What has not come to an end: unsent, or sent and not known."""
    parts = [(tally.waiting, "still to be sent"), (tally.awaiting, "sent, outcome not known yet")]
    told = ", ".join(f"{count:,} {what}" for count, what in parts if count)
    return f"{counted(tally.open, 'letter')} {'is' if tally.open == 1 else 'are'} unfinished ({told})"


def _verb(count: int) -> str:
    return "waits" if count == 1 else "wait"


def counted(count: int, what: str) -> str:
    """So many of something."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"
