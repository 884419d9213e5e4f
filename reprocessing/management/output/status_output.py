"""What `redrive_status` found, as people read it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from reprocessing.domain.aws.pricing import Cost
from reprocessing.domain.aws.pricing import in_words as cost_in_words
from reprocessing.domain.lifecycle import ParkedReason
from reprocessing.domain.message.arn import name_of
from reprocessing.domain.message.safe_text import visible
from reprocessing.domain.runs.forecast import in_words
from reprocessing.management.console import when
from reprocessing.management.output import rule_output, safety_output
from reprocessing.management.output.drain_output import counted, refired
from reprocessing.models.dlq import Mode
from reprocessing.models.run import RunKind, RunState

Told = dict[str, Any]


def screen(found: Told) -> Iterable[str]:
    """The same for people, line by line."""
    yield f"{when(found['now'])}"
    if found["held_after_restore"]:
        yield f"EVERYTHING IS HELD {_stopped(found['stopped'])}: PostgreSQL was restored from a backup."
        yield "  nothing is sent; manage.py after_restore report tells what is known, resolve and release end it"
    elif found["stopped"]:
        resume = "manage.py resume_redrive --all --reason WHY --confirm"
        yield f"EVERYTHING IS STOPPED {_stopped(found['stopped'])}: nothing is sent. To lift it: {resume}"
    if not found["dlqs"]:
        yield "No dlq has been added yet. Add one: manage.py add_dlq NAME --url URL --confirm"
    for dlq in found["dlqs"]:
        yield ""
        yield from _dlq(dlq, found)
    if found["polling"] and found["dlqs"]:
        yield ""
        yield f"Waiting alone costs about {_waiting(found['polling'])}"
    if found["rules"]:
        yield ""
    for rule in found["rules"]:
        yield from rule_output.standing(rule)


def _dlq(dlq: Told, found: Told) -> Iterable[str]:
    now = found["now"]
    schedule = f", {dlq['schedule']}" if dlq["schedule"] else ""
    following = f", next poll {when(dlq['next_poll_at'])}" if dlq["next_poll_at"] else ""
    yield f"{dlq['name']}  ({dlq['mode']}{schedule}{following})"
    if dlq["stopped"]:
        resume = f"manage.py resume_redrive {dlq['name']} --reason WHY --confirm"
        yield f"  STOPPED {_stopped(dlq['stopped'])}: nothing is sent. To lift it: {resume}"
    yield from _ailments(dlq, found)
    yield f"  in SQS    {_depth(dlq)}"
    yield f"  letters   {_counts(dlq['letters'])}"
    if dlq["known"]:
        yield f"  known     {_counts(dlq['known'])}"
    if dlq["parked"]:
        yield "  parked    " + "; ".join(f"{n}: {ParkedReason(why).sentence}" for why, n in dlq["parked"].items())
    if dlq["oldest"]:
        expiry = f"; the dlq drops its first copy {_in(dlq['expires_in_seconds'])}" if dlq["expires"] else ""
        yield f"  oldest    unfinished, sent first {in_words(dlq['oldest_age_seconds'])} ago{expiry}"
    for waiting in dlq["waiting"]:
        due = f" (from {when(due_at)} on)" if (due_at := waiting["due_at"]) and due_at > now else ""
        yield f"  waiting   {counted(waiting['lanes'], 'lane')}: {waiting['why']}{due}"
    for target in dlq["targets"]:
        yield from _target(target, now)
    for run in dlq["runs"]:
        by = f" for {run['asked_by']}" if run["asked_by"] else ""
        which = run["kind"] if run["kind"] == RunKind.STANDING else f"{run['name']} ({run['kind']}{by})"
        yield f"  run       {which} is {_stands(run)}"
        if run["why"]:
            yield f"            {run['why']}"
        if (asked := run["aws_requests"]) and asked["most"]:  # of a large run show_runs tells it
            yield f"            so far {cost_in_words(Cost(**asked))}, for its sends and deletes"
    yield f"  capture   {_capture(dlq['capture'])}"


def _ailments(dlq: Told, found: Told) -> Iterable[str]:
    """Who is missing of those that redrive it by themselves; what its queue ails; why attempts fail."""
    if dlq["mode"] == Mode.AUTOMATIC:
        yield from (f"  MISSING   {one}" for one in found["missing"])
    yield from (f"  {one:9} {dlq[one]}" for one in ("native", "trouble") if dlq[one])
    if failing := dlq["failing"]:
        yield f"  failing   {failing['answer']}, {counted(failing['attempts'], 'attempt')} lately"


def _target(target: Told, now: datetime) -> Iterable[str]:
    rate = "no limit of rate" if target["rate"] is None else f"{target['rate']:g} letters/s"
    unsettled = f", {target['unsettled']} sent and not settled" if target["unsettled"] else ""
    origin, to = name_of(target["origin"]), name_of(target["target"])
    way = origin if target["origin"] == target["target"] else f"{origin} \N{RIGHTWARDS ARROW} {to}"
    yield f"  target    {way}: outcome {target['outcome']}, {rate}{unsettled}"
    if target["refires"] is not None:
        yield f"            {refired(target['refires'])}"
    if target["waits_for"]:
        yield f"            waits for: {target['waits_for']}"
    for check in target["checks"]:
        yield f"  health    {safety_output.health(check)}"
    for breaker in target["breakers"]:
        which = f" ({breaker['rate_class']})" if breaker["rate_class"] else ""
        yield f"  breaker{which}   {safety_output.standing(breaker, now)}"
        yield f"            {safety_output.allowed(breaker)}"


def _stands(run: Told) -> str:
    """Where a run stands; a drain of which nothing is left runs until beat, or the next drain, looks at it."""
    if (run["kind"], run["state"], run["unfinished"]) == (RunKind.DRAIN, RunState.RUNNING, 0):
        return "at its end: beat finishes it"
    return f"{run['state']}: {counted(run['unfinished'], 'letter')} unfinished{_wave(run['wave'])}"


def _wave(wave: Told | None) -> str:
    if wave is None:
        return ""
    if wave["size"] is None:
        return f"; in its last wave, {counted(wave['touched'], 'letter')} sent"
    return f"; in a wave of {wave['size']:,}, {counted(wave['touched'], 'letter')} sent"


def _waiting(polling: Told) -> str:
    day = polling["a_day"]
    price = f"${day['least_price']:,.2f}"
    return f"{polling['requests_a_second']:.1f} AWS requests a second, {day['least']:,} a day, {price}."


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


def letter(found: Told) -> Iterable[str]:
    """One letter, line by line. What consumers' messages quote is for those who may see payloads, in the admin."""
    since = f", since {when(found['since'])}" if found["since"] else ""
    yield f"{found['message_id']}  of {found['dlq']}: {found['state']}"
    yield f"  {found['sentence']} ({found['how']}{since})"
    yield f"  redrive id  {found['redrive_id']}, {counted(found['attempts'], 'attempt')}"
    if found["sequence"]:
        yield f"  sequence    {visible(found['sequence'])}"
    for said in found["said"]:
        who = said["by"] or "a consumer in this database"
        why = ", ".join(one for one in (said["type"], said["fingerprint"]) if one)
        yield f"  said        {said['verdict']} at {when(said['at'])} by {who}{f': {why}' if why else ''}"
