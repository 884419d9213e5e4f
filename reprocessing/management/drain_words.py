"""A drain in words and in JSON: what it would do, how far it is, what it came to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from reprocessing.domain.arn import name_of
from reprocessing.domain.forecast import Forecast, in_words
from reprocessing.domain.lifecycle import ParkedReason
from reprocessing.domain.selection import ALL, Selection
from reprocessing.models.dead_letter_queue import DeadLetterQueue, DeleteWhen
from reprocessing.models.progress import Tally
from reprocessing.models.prospect import Objection, Prospect, Share
from reprocessing.models.run import Run
from reprocessing.pipeline.verify import Verified

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


@dataclass(frozen=True, slots=True)
class Outlook:
    """What a drain of a dlq would do.

    Attributes:
        under_way: letters of the dlq's running runs, by the run's name; they would go along.
        parked: letters that wait for a person.
        run: the plan that its letters are selected for.
        behind: message ids of letters that were asked for and stand behind others that were not; the first of them.
        verified: whether what letters point to is still there.
        paused: of runs that are paused and have letters waiting.
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
    paused: list[str]

    @property
    def nothing(self) -> bool:
        """Whether a run would find nothing to do."""
        ahead = self.prospect
        return not (ahead.letters or ahead.objected or ahead.returned or self.under_way)

    @property
    def seconds(self) -> float:
        """The least time that it takes, if nothing fails."""
        return max((_forecast(one).seconds for one in self.shares), default=0.0)

    @property
    def late(self) -> list[Share]:
        """The targets to which letters would go too slowly: SQS expires them before it is their turn."""
        if self.dlq.delete_when == DeleteWhen.CAPTURED:
            return []  # SQS has nothing left to expire
        return [one for one in self.shares if one.late]


def _forecast(one: Share) -> Forecast:
    return Forecast.of(letters=one.letters, rate=one.rate, longest_lane=one.longest, round_trip=one.round_trip)


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
    for one in outlook.paused:
        yield f"  paused          {one}"
    if gone := outlook.verified.gone:
        ids = ", ".join(gone[:_NAMED])
        some = f"{len(gone):,} of {outlook.verified.asked:,} that lie in S3"
        yield f"  bodies gone     {some}: their consumer will fail. Put the objects back, or discard them. {ids}"
    if outlook.parked:
        decide = "manage.py release_parked, discard_parked, or the parking lot in the admin"
        yield f"  parked          {counted(outlook.parked, 'letter')} {_verb(outlook.parked)} for a person: {decide}"


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
        yield from _target(share)
    if ahead.expires_at and outlook.dlq.delete_when == DeleteWhen.TERMINAL:
        yield f"  the dlq drops the oldest message {_until(ahead)}; PostgreSQL keeps its letter"
    if outlook.run.waves:
        yield "  waves           one letter first, then 10, then 100, then all; a wave that fails stops the run"
    for name, letters in outlook.under_way.items():
        yield f"  under way       {counted(letters, 'letter')} of the run {name} (replayed along, to its end)"


def _target(one: Share) -> Iterable[str]:
    rate = "no limit of rate" if one.rate is None else f"{one.rate:g} letters/s"
    window = f", a window of {one.window:g} s" if one.proof == "absence" else ""
    yield f"  to {name_of(one.name)}: {counted(one.letters, 'letter')}, {rate}"
    if one.refires is not None:
        yield f"      {refired(one.refires)}"
    yield f"      outcome {one.proof}{window}; a lane's next letter goes when the one before is {one.advance}"
    yield f"      {forecasts(one)}"


def refired(others: int) -> str:
    """Who gets a letter again that is published again."""
    return f"each letter goes to {counted(others, 'subscriber')} again that had it already"


def forecasts(one: Share) -> str:
    """Both forecasts of a target."""
    by_rate = f"by rate {in_words(one.letters / one.rate)}" if one.rate else "by rate no time"
    if not one.round_trip:
        return f"{by_rate}; by the longest lane no time: none waits for an outcome"
    trip = f"{one.longest:,} x {one.round_trip:g} s"
    return f"{by_rate}; by the longest lane {in_words(one.longest * one.round_trip)} ({trip})"


def too_slow(outlook: Outlook) -> str:
    """Why it is refused, and the cures."""
    told = "; ".join(f"{counted(one.late, 'letter')} to {name_of(one.name)} ({forecasts(one)})" for one in outlook.late)
    name = outlook.dlq.name
    return (
        f"{name}: its lanes are too long for their window. Before it is their turn, SQS drops {told}; "
        f"it drops the oldest {_until(outlook.prospect)}. Let a lane go on as soon as the target took its letter "
        f"(add_dlq {name} --advance accepted), shorten the window (--window), or keep the letters in PostgreSQL alone "
        f"(--delete-when captured)."
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
        "targets": [_target_in_json(one) for one in outlook.shares],
        "behind": outlook.run.behind or 0,
        "behind_ids": outlook.behind,
        "bodies_in_s3": {"asked": outlook.verified.asked, "gone": outlook.verified.gone},
        "waves": outlook.run.waves,
        "refused": refused or None,
    }


def _target_in_json(one: Share) -> dict[str, Any]:
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
        "seconds_by_rate": one.letters / one.rate if one.rate else 0.0,
        "seconds_by_lane": one.longest * one.round_trip,
        "late": one.late,
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
        yield f"{held} behind a parked one or a rule, until a person decides about that: see redrive_status {dlq}."
    if tally.parked:
        yield f"Parked letters wait for a person: release_parked {dlq}, discard_parked {dlq}, or the parking lot."


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
