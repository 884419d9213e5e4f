"""Convert the status of DLQs and of messages to the text that redrive_status prints."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from reprocessing.domain.aws.pricing import Cost
from reprocessing.domain.aws.pricing import in_words as cost_in_words
from reprocessing.domain.lifecycle import STATE_NAMES, LetterState, ParkedReason
from reprocessing.domain.message.arn import resource_name
from reprocessing.domain.message.safe_text import visible
from reprocessing.domain.outcomes.delivery_status import OutcomeSource
from reprocessing.domain.runs.forecast import duration_in_words
from reprocessing.management.console import format_time
from reprocessing.management.output import rule_output, safety_output
from reprocessing.management.output.drain_output import counted, lane_word, refire_notice
from reprocessing.models.dlq import Mode
from reprocessing.models.run import RunKind, RunState
from reprocessing.store.outcomes.recent_letters import MAX_OF_PART

Json = dict[str, Any]


def status_lines(found: Json) -> Iterable[str]:
    """Yield the lines that redrive_status prints about DLQs. `found` is the result of `status_json.status`."""
    yield f"{format_time(found['now'])}"
    if found["held_after_restore"]:
        yield f"EVERYTHING IS HELD {_stopped(found['stopped'])}: PostgreSQL was restored from a backup."
        yield "  nothing is sent until after_restore resolve and release; see: manage.py after_restore report"
    elif found["stopped"]:
        resume = "manage.py resume_redrive --all --reason WHY --confirm"
        yield f"EVERYTHING IS STOPPED {_stopped(found['stopped'])}: nothing is sent. To resume: {resume}"
    if not found["dlqs"]:
        yield "No DLQ has been added yet. Add one: manage.py add_dlq NAME --url URL --confirm"
    for dlq in found["dlqs"]:
        yield ""
        yield from _dlq(dlq, found)
    if found["polling"] and found["dlqs"]:
        yield ""
        yield f"Polling costs about {_waiting(found['polling'])}"
    if found["rules"]:
        yield ""
    for rule in found["rules"]:
        yield from rule_output.rule_lines(rule)


def _dlq(dlq: Json, found: Json) -> Iterable[str]:
    now = found["now"]
    schedule = f", {dlq['schedule']}" if dlq["schedule"] else ""
    following = f", next queue check {format_time(dlq['next_poll_at'])}" if dlq["next_poll_at"] else ""
    yield f"{dlq['name']}  ({dlq['mode']}{schedule}{following})"
    if dlq["stopped"]:
        resume = f"manage.py resume_redrive {dlq['name']} --reason WHY --confirm"
        nothing = "nothing is captured or sent" if dlq["mode"] == Mode.AUTOMATIC else "nothing is sent"
        yield f"  STOPPED {_stopped(dlq['stopped'])}: {nothing}. To resume: {resume}"
    yield from _problems(dlq, found)
    yield f"  in SQS    {_depth(dlq)}"
    yield f"  messages  {_counts(dlq['messages'])}"
    if dlq["known"] or dlq["known_is_part"]:
        most = f"{MAX_OF_PART:,}"
        of = f" (of the newest {most} finished messages, and {most} of each other state)"
        yield f"  evidence  {_counts(dlq['known'])}{of if dlq['known_is_part'] else ''}"
    if dlq["parked"]:
        yield "  parked    " + "; ".join(
            f"{n:,}: {ParkedReason(why).sentence.rstrip('.')}" for why, n in dlq["parked"].items()
        )
    if dlq["oldest"]:
        expiry = f"; SQS deletes it {_in(dlq['expires_in_seconds'])}" if dlq["expires"] else ""
        yield f"  oldest    unfinished message, first sent {duration_in_words(dlq['oldest_age_seconds'])} ago{expiry}"
    for waiting in dlq["waiting"]:
        due = f" (from {format_time(due_at)} on)" if (due_at := waiting["due_at"]) and due_at > now else ""
        yield f"  waiting   {counted(waiting['lanes'], lane_word(dlq['ordering_key']))}: {waiting['why']}{due}"
    for target in dlq["targets"]:
        yield from _target(target, now)
    for run in dlq["runs"]:
        by = f" for {run['asked_by']}" if run["asked_by"] else ""
        which = run["kind"] if run["kind"] == RunKind.AUTOMATIC else f"{run['name']} ({run['kind']}{by})"
        yield f"  run       {which} is {_run_state(run)}"
        if run["why"]:
            yield f"            {run['why']}"
        if (asked := run["aws_requests"]) and asked["most"]:  # costs of large drains are only in show_runs
            yield f"            cost so far {cost_in_words(Cost(**asked))}, for sends and deletes"
    yield f"  capture   {_capture(dlq['capture'])}"


def _problems(dlq: Json, found: Json) -> Iterable[str]:
    """Yield lines about problems of a DLQ: no beat or workers, AWS's own redrive, capture errors, failed attempts."""
    if dlq["mode"] == Mode.AUTOMATIC:
        yield from (f"  MISSING   {one}" for one in found["missing"])
    labels = {"native": "native", "last_error": "error"}
    yield from (f"  {label:9} {dlq[field]}" for field, label in labels.items() if dlq[field])
    if failing := dlq["failing"]:
        yield f"  failing   {failing['answer']}, {counted(failing['attempts'], 'attempt')} recently"


def _target(target: Json, now: datetime) -> Iterable[str]:
    rate = "no rate limit" if target["rate"] is None else f"{target['rate']:g} messages/s"
    unsettled = f", {target['unsettled']:,} sent without outcome yet" if target["unsettled"] else ""
    source, to = resource_name(target["source"]), resource_name(target["target"])
    way = source if target["source"] == target["target"] else f"{source} \N{RIGHTWARDS ARROW} {to}"
    yield f"  target    {way}: outcome {target['outcome']}, {rate}{unsettled}"
    if target["confirmed_fanout"] is not None:
        yield f"            {refire_notice(target['confirmed_fanout'])}"
    if target["waits_for"]:
        yield f"            waits for: {target['waits_for']}"
    for check in target["checks"]:
        yield f"  health    {safety_output.check_text(check)}"
    for breaker in target["breakers"]:
        which = f" ({breaker['rate_class']})" if breaker["rate_class"] else ""
        yield f"  breaker{which}   {safety_output.breaker_text(breaker, now)}"
        yield f"            {safety_output.rate_text(breaker)}"


def _run_state(run: Json) -> str:
    """Return a text with the state of a run, and its number of unfinished messages.

    If all messages of a running run are finished, the text says that the run is done, and that beat will end it.
    """
    if (run["kind"], run["state"], run["unfinished"]) == (RunKind.DRAIN, RunState.RUNNING, 0):
        return "done: beat ends it"
    return f"{run['state']}: {counted(run['unfinished'], 'message')} unfinished{_wave(run['wave'])}"


def _wave(wave: Json | None) -> str:
    if wave is None:
        return ""
    size = "the last wave" if wave["size"] is None else f"a wave of {wave['size']:,}"
    return f"; in {size}, {counted(wave['sent'], 'message')} sent"


def _waiting(polling: Json) -> str:
    day = polling["a_day"]
    price = f"${day['least_price']:,.2f}"
    return f"{polling['requests_a_second']:.1f} AWS requests/s, {day['least']:,} a day, {price}."


def _stopped(stop: Json) -> str:
    return f'since {format_time(stop["since"])} by {stop["by"]} ("{stop["reason"]}")'


def _depth(dlq: Json) -> str:
    depth, copies = dlq["depth"], dlq["copies"]
    said = "not read yet"
    if depth["at"]:
        said = f"about {depth['visible']:,} visible, {depth['in_flight']:,} in flight at {format_time(depth['at'])}"
    return f"{said}; {copies['held']:,} captured messages kept in the DLQ, {copies['to_delete']:,} to be deleted"


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{n:,} {STATE_NAMES.get(state, state)}" for state, n in counts.items() if n) or "none"


def _in(seconds: float) -> str:
    return f"in {duration_in_words(seconds)}" if seconds > 0 else "now"


def _capture(capture: Json) -> str:
    last = capture["last_clean"]
    said = f"the last complete capture began {format_time(last)}" if last else "no capture is complete yet"
    if capture["under_way_until"]:
        return f"running; {said}"
    if capture["orphans_hidden_until"]:
        until = format_time(capture["orphans_hidden_until"])
        return f"{said}; a capture was interrupted: messages may be invisible until {until}"
    return said


def message_lines(found: Json) -> Iterable[str]:
    """Yield the lines about one message. `found` is the result of `status_json.letter_in_json`.

    Texts that consumers reported are left out, because they may quote payloads.
    """
    since = f", since {format_time(found['since'])}" if found["since"] else ""
    is_presumed = (found["state"], found["how"]) == (LetterState.DELIVERED, OutcomeSource.PRESUMED)
    state = "presumed" if is_presumed else found["state"]
    yield f"{found['message_id']}  of {found['dlq']}: {STATE_NAMES.get(state, state)}"
    yield f"  {found['sentence']} ({found['how']}{since})"
    yield f"  redrive id  {found['redrive_id']}, {counted(found['attempts'], 'attempt')}"
    if found["sequence"]:
        yield f"  sequence    {visible(found['sequence'])}"
    for said in found["said"]:
        who = said["by"] or "a consumer in this database"
        why = ", ".join(one for one in (said["type"], said["fingerprint"]) if one)
        yield f"  reported    {said['verdict']} at {format_time(said['at'])} by {who}{f': {why}' if why else ''}"
