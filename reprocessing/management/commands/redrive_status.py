"""`manage.py redrive_status`: every dlq on one screen."""

from __future__ import annotations

import time
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.db.models import Min

from reprocessing import conf
from reprocessing.domain.forecast import in_words
from reprocessing.domain.lifecycle import FINISHED, LetterState, ParkedReason
from reprocessing.management import brake_words, rule_words
from reprocessing.management.console import Console, add_json, find, number, when
from reprocessing.management.drain_words import counted
from reprocessing.models import Custody, bearings, checks, rules, standing, stops
from reprocessing.models import lanes as lanes_of
from reprocessing.models.bearings import Bearing
from reprocessing.models.custody import CustodyState
from reprocessing.models.run import RunKind
from reprocessing.models.standing import Evidence, Lanes, Letters, Watch, Working

Told = dict[str, Any]
_PRESUMED = "presumed"
_CLEAR = "\033[H\033[2J"


class Command(Console):
    """Tells where everything stands; changes nothing, asks SQS nothing."""

    help = "Tells of one dlq, or of all: what is where, what is stopped, what waits and why."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", nargs="?", metavar="NAME", help="one dlq's name")
        parser.add_argument("--watch", action="store_true", help="tell it again and again, until Ctrl-C")
        parser.add_argument(
            "--every",
            type=number(0.1, 86_400),
            default=2.0,
            metavar="SECONDS",
            help="how often with --watch (%(default)s)",
        )
        parser.add_argument(
            "--letters", action="store_true", help="with --json, of one dlq: the state of every letter by message id"
        )
        add_json(parser)

    def answer(self, options: dict[str, Any]) -> None:
        key = find(options["name"]).pk if options["name"] else None
        if options["letters"] and not (key and options["json"]):
            raise CommandError("--letters is for one dlq, with --json: name the dlq.")
        try:
            self.tell(key, options)
            while options["watch"] and self.heard:
                time.sleep(options["every"])
                self.tell(key, options)
        except KeyboardInterrupt:
            self.say()

    def tell(self, key: int | None, options: dict[str, Any]) -> None:
        """One look."""
        found = status(key)
        if options["letters"] and key:
            found["dlqs"][0]["states"] = standing.states(key)
        if options["json"]:
            self.report(found)
            return
        clear = _CLEAR if options["watch"] and self.stdout.isatty() else ""
        self.say(clear + "\n".join(screen(found)))


def status(key: int | None = None) -> Told:
    """Everything of one dlq, or of all."""
    now = lanes_of.clock()
    halt = stops.stopped(None)
    letters, lanes = standing.letters(key), standing.lanes(key)
    lag, expiry = conf.current().count_lag.total_seconds(), _expiry(key)
    evidence, runs = standing.evidence(key, count_lag=lag), standing.working(key)
    brakes = bearings.bearings([one.target_id for one in evidence])
    health = checks.told([one.target_id for one in evidence])
    return {
        "now": now,
        "stopped": halt and _stop(halt.since, halt.by, halt.reason),
        "rules": [rule_words.of_rule(one) for one in rules.standing(key)],
        "dlqs": [
            {
                **_of_dlq(watch),
                **_of_letters([one for one in letters if one.dlq_id == watch.id], now),
                **_until(expiry.get(watch.id), now),
                **_of_lanes([one for one in lanes if one.dlq_id == watch.id]),
                "targets": [_of_target(one, brakes, health, now) for one in evidence if one.dlq_id == watch.id],
                "runs": [_of_run(one) for one in runs if one.dlq_id == watch.id],
            }
            for watch in standing.watches(key)
        ],
    }


def _stop(since: datetime, by: str, reason: str) -> Told:
    return {"since": since, "by": by, "reason": reason}


def _of_dlq(watch: Watch) -> Told:
    return {
        "name": watch.name,
        "mode": watch.mode,
        "schedule": watch.every or watch.crontab or None,
        "next_poll_at": watch.next_poll_at,
        "stopped": watch.stopped_at and _stop(watch.stopped_at, watch.stopped_by, watch.stop_reason),
        "depth": {"visible": watch.depth_visible, "in_flight": watch.depth_in_flight, "at": watch.depth_at},
        "copies": {"held": watch.held, "to_delete": watch.to_delete},
        "capture": {
            "last_clean": watch.drained_through,
            "under_way_until": watch.captured_until,
            "unclean_until": watch.unclean_until,
        },
        "trouble": watch.trouble or None,
    }


def _of_letters(found: list[Letters], now: datetime) -> Told:
    counts = dict.fromkeys([*(state.value for state in LetterState), _PRESUMED], 0)
    for one in found:
        counts[_PRESUMED if one.presumed else one.state] += one.n
    unfinished = [one for one in found if one.state not in FINISHED]
    oldest = min((one.died_at for one in unfinished), default=None)
    return {
        "letters": counts,
        "parked": {one.reason: one.n for one in found if one.state == LetterState.PARKED},
        "unfinished": sum(one.n for one in unfinished),
        "oldest": oldest,
        "oldest_age_seconds": oldest and (now - oldest).total_seconds(),
    }


def _expiry(key: int | None) -> dict[int, datetime | None]:
    """When a dlq drops the first copy of a letter that is unfinished; nothing of dlqs that hold no such copy."""
    held = Custody.objects.filter(state=CustodyState.HELD, **({"dlq": key} if key else {}))
    unfinished = held.exclude(letter__state__in=FINISHED)
    return dict(unfinished.order_by().values_list("dlq").annotate(first=Min("letter__expires_at")))


def _until(expiry: datetime | None, now: datetime) -> Told:
    return {"expires": expiry, "expires_in_seconds": expiry and (expiry - now).total_seconds()}


def _of_lanes(found: list[Lanes]) -> Told:
    phases: dict[str, int] = {}
    for one in found:
        phases[one.phase] = phases.get(one.phase, 0) + one.n
    waiting = [{"lanes": one.n, "why": _why(one), "due_at": one.due_at} for one in found if one.phase != "leased"]
    return {"lanes": phases, "waiting": waiting}


def _why(one: Lanes) -> str:
    match one.phase:
        case "awaiting":
            return "the outcome of their head is not known yet"
        case "held" if one.why.startswith("rule "):
            return one.why
        case "held":
            return "a parked letter holds them until a person decides"
        case _ if one.why:
            return one.why
        case _ if one.due:
            return "due: any worker may take them"
        case _:
            return "their head rests until it is due"


def _of_target(one: Evidence, brakes: list[Bearing], health: list[checks.Told], now: datetime) -> Told:
    return {
        "origin": one.origin,
        "outcome": one.proof,
        "advance": one.advance,
        "rate": one.rate,
        "burst": one.burst,
        "window": one.window,
        "watched_by": one.watched_by,
        "unsettled": one.unsettled,
        "waits_for": standing.awaited(one) or None,
        "breakers": [brake_words.told(brake, now) for brake in brakes if brake.target_id == one.target_id],
        "checks": [brake_words.checked(check) for check in health if check.target_id == one.target_id],
    }


def _of_run(one: Working) -> Told:
    return {
        "name": one.name,
        "kind": one.kind,
        "state": one.state,
        "asked_by": one.asked_by,
        "started_at": one.started_at,
        "unfinished": one.unfinished,
        "why": one.why or None,
        "wave": one.wave and {"no": one.wave, "size": one.wave_size, "touched": one.touched},
    }


def screen(found: Told) -> Iterable[str]:
    """The same for people, line by line."""
    yield f"{when(found['now'])}"
    if found["stopped"]:
        yield f"EVERYTHING IS STOPPED {_stopped(found['stopped'])}: nothing is sent. resume_redrive --all lifts it."
    if not found["dlqs"]:
        yield "No dlq has been added yet: see add_dlq."
    for dlq in found["dlqs"]:
        yield ""
        yield from _dlq(dlq, found["now"])
    if found["rules"]:
        yield ""
    for rule in found["rules"]:
        yield from rule_words.standing(rule)


def _dlq(dlq: Told, now: datetime) -> Iterable[str]:
    schedule = f", {dlq['schedule']}" if dlq["schedule"] else ""
    following = f", next poll {when(dlq['next_poll_at'])}" if dlq["next_poll_at"] else ""
    yield f"{dlq['name']}  ({dlq['mode']}{schedule}{following})"
    if dlq["stopped"]:
        yield f"  STOPPED {_stopped(dlq['stopped'])}: nothing is sent. resume_redrive {dlq['name']} lifts it."
    if dlq["trouble"]:
        yield f"  trouble   {dlq['trouble']}"
    yield f"  in SQS    {_depth(dlq)}"
    yield f"  letters   {_counts(dlq['letters'])}"
    if dlq["parked"]:
        yield "  parked    " + "; ".join(f"{n}: {ParkedReason(why).sentence}" for why, n in dlq["parked"].items())
    if dlq["oldest"]:
        expiry = f"; the dlq drops its first copy {_in(dlq['expires_in_seconds'])}" if dlq["expires"] else ""
        yield f"  oldest    unfinished, sent first {in_words(dlq['oldest_age_seconds'])} ago{expiry}"
    for waiting in dlq["waiting"]:
        due = f" (from {when(waiting['due_at'])} on)" if waiting["due_at"] else ""
        yield f"  waiting   {counted(waiting['lanes'], 'lane')}: {waiting['why']}{due}"
    for target in dlq["targets"]:
        yield from _target(target, now)
    for run in dlq["runs"]:
        by = f" for {run['asked_by']}" if run["asked_by"] else ""
        which = run["kind"] if run["kind"] == RunKind.STANDING else f"{run['name']} ({run['kind']}{by})"
        left = counted(run["unfinished"], "letter")
        yield f"  run       {which} is {run['state']}: {left} unfinished{_wave(run['wave'])}"
        if run["why"]:
            yield f"            {run['why']}"
    yield f"  capture   {_capture(dlq['capture'])}"


def _target(target: Told, now: datetime) -> Iterable[str]:
    rate = "no limit of rate" if target["rate"] is None else f"{target['rate']:g} letters/s"
    unsettled = f", {target['unsettled']} sent and not settled" if target["unsettled"] else ""
    yield f"  target    {target['origin'].rpartition(':')[2]}: outcome {target['outcome']}, {rate}{unsettled}"
    if target["waits_for"]:
        yield f"            waits for: {target['waits_for']}"
    for check in target["checks"]:
        yield f"  health    {brake_words.health(check)}"
    for breaker in target["breakers"]:
        which = f" ({breaker['rate_class']})" if breaker["rate_class"] else ""
        yield f"  breaker{which}   {brake_words.standing(breaker, now)}"
        yield f"            {brake_words.allowed(breaker)}"


def _wave(wave: Told | None) -> str:
    if wave is None:
        return ""
    if wave["size"] is None:
        return f"; in its last wave, {counted(wave['touched'], 'letter')} sent"
    return f"; in a wave of {wave['size']:,}, {counted(wave['touched'], 'letter')} sent"


def _stopped(stop: Told) -> str:
    return f'since {when(stop["since"])} by {stop["by"]} ("{stop["reason"]}")'


def _depth(dlq: Told) -> str:
    depth, copies = dlq["depth"], dlq["copies"]
    said = "never asked"
    if depth["at"]:
        said = f"about {depth['visible']} visible, {depth['in_flight']} in flight at {when(depth['at'])}"
    held = "1 copy" if copies["held"] == 1 else f"{copies['held']:,} copies"
    return f"{said}; {held} held, {copies['to_delete']:,} to be deleted"


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{n} {state}" for state, n in counts.items() if n) or "none"


def _in(seconds: float) -> str:
    return f"in {in_words(seconds)}" if seconds > 0 else "now: its time is over"


def _capture(capture: Told) -> str:
    said = f"the last clean one that ran dry began {when(capture['last_clean'])}"
    if capture["under_way_until"]:
        return f"under way; {said}"
    if capture["unclean_until"]:
        return f"{said}; one ended uncleanly, so none counts before {when(capture['unclean_until'])}"
    return said
