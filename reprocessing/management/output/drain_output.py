"""Show the plan that drain_dlq makes, as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from reprocessing.domain.aws.pricing import in_words as cost_in_words
from reprocessing.domain.lifecycle import ParkedReason
from reprocessing.domain.message.arn import resource_name
from reprocessing.domain.message.identity import SelectorSource
from reprocessing.domain.runs.forecast import Forecast, duration_in_words
from reprocessing.domain.runs.selection import Selection
from reprocessing.management.command_line import command
from reprocessing.models.dlq import DeadLetterQueue, DeleteWhen
from reprocessing.models.run import Run
from reprocessing.pipeline.runs import other_runs, run_actions
from reprocessing.pipeline.runs.forecast_plan import PlanForecast
from reprocessing.pipeline.runs.other_runs import describe_holder
from reprocessing.store.runs.arrived_since import Arrived
from reprocessing.store.runs.plan_figures import PlanFigures, TargetFigures

#: Max message ids that the plan shows.
_NAMED = 10
#: Final states of a run's messages: fields of `RunCounts`, and their names in output.
FINAL_STATES = {
    "delivered": "delivered",
    "presumed": "presumed delivered",
    "parked": "parked",
    "closed_as_duplicate": "closed as duplicate",
    "discarded": "discarded",
}


def capture_notice(dlq: DeadLetterQueue) -> str:
    """Return a sentence about what a capture does to the messages in the DLQ: delete them, or make them invisible."""
    if dlq.delete_when == DeleteWhen.CAPTURED:
        return f"Capturing {dlq.name}: the messages move to PostgreSQL and are deleted from SQS."
    return f"Capturing {dlq.name}: the messages stay in the DLQ, invisible to other readers for a while."


def plan_lines(outlook: PlanForecast, new: int) -> Iterable[str]:
    """Yield the lines of the plan. `new` is the number of messages that this command has captured."""
    asked = Selection.read(outlook.run.selection)
    waits = "only messages of paused runs wait" if outlook.paused else "no message waits"
    if outlook.is_empty and not asked.conditions and not outlook.behind:
        yield f"{outlook.dlq.name}: nothing to redrive. The DLQ is empty, and {waits}."
    elif outlook.is_empty:
        yield f"{outlook.dlq.name}: nothing to redrive: {asked} were selected, and none can be sent."
    else:
        yield from _ahead(outlook, new)
    if outlook.behind:
        ids = ", ".join(outlook.behind)
        number = outlook.run.behind or len(outlook.behind)
        yield f"  not sent        {number:,}: earlier messages of their keys are not part of this run. {ids}"
    for one in outlook.plans:
        many = counted(one.selected or 0, "message")
        yield f"  planned         {many}: {describe_holder(one)} (manage.py show_runs {outlook.dlq.name})"
    for one in outlook.paused:
        yield f"  paused          {paused_notice(one)}"
    if gone := outlook.verified.missing:
        ids = ", ".join(gone[:_NAMED])
        some = f"{len(gone):,} of {outlook.verified.asked:,} in S3"
        yield f"  bodies missing  {some}: their consumer will fail. Restore the objects, or discard the messages. {ids}"
    if outlook.parked:
        decide = f"manage.py release_parked {outlook.dlq.name} --reason WHY shows them; or use the admin"
        yield f"  parked          {counted(outlook.parked, 'message')} to review: {decide}"


def no_match_text(dlq: DeadLetterQueue, asked: Selection) -> str:
    """Return a text that no captured message matches the selection `asked`, with commands that show the messages."""
    shown = [command("redrive_status", "--message", each) for each in asked.message_ids]
    commands = "\n".join([*shown, command("redrive_status", dlq.name)])
    goes_on = "".join(
        f"\nThe run {run.name} has not finished. To continue it:\n{command('rerun', run.name, '--confirm')}"
        for run in other_runs.in_progress(dlq)
    )
    return (
        f"No message of {dlq.name} matches: {asked.conditions}. Nothing was sent. Parked and finished messages, and "
        f"messages of started runs, are not selected. To see what is there:\n{commands}{goes_on}"
    )


def leftovers_refusal(outlook: PlanForecast) -> str:
    """Return an error text: the run would also send messages that the command's options do not select."""
    others = f"{counted(outlook.prospect.returned, 'unfinished message')} of runs that have ended"
    return (
        f"Nothing was sent yet. The run would also send {others}, whatever the options select: their keys may hold up "
        f"the selected messages. To send all of them (first, see them: manage.py show_runs {outlook.dlq.name}):"
    )


def paused_notice(run: Run) -> str:
    """Return a sentence that the run is paused, and that later messages of the same ordering keys wait for the run."""
    return f"{run.name} is paused, and later messages of its keys wait for it (manage.py show_runs {run.dlq.name})."


def _ahead(outlook: PlanForecast, new: int) -> Iterable[str]:
    ahead = outlook.prospect
    yield _first_line(outlook, new)
    yield f"  to be sent      {ahead.letters:,}{_keys(outlook)}"
    if ahead.returned:
        unfinished = f"{counted(ahead.returned, 'unfinished message')} of runs that have ended"
        yield f"  also sent       {unfinished}; the figures below do not count them"
    yield from (f"  obstacle        {sentence}" for sentence in outlook.obstacles)
    for one in outlook.objections:
        yield f"  to be parked    {one.letters:,}: {ParkedReason(one.reason).label}"
    for share in outlook.shares:
        yield from _target(share, outlook.forecast(share), waves=bool(outlook.waves))
        if order := outlook.order_given_up(share):
            yield f"      order: {order} (add_dlq {outlook.dlq.name} ...)"
        yield from _faster(outlook.faster_options(share), outlook.dlq.name)
    if outlook.shares:
        yield f"  assumes         {'; '.join(outlook.assumptions)}"
        asks = ", plus about one request/s for outcomes" if any(one.tail for one in outlook.shares) else ""
        yield f"  costs           {cost_in_words(outlook.cost)}{asks}"
    if ahead.expires_at and outlook.dlq.delete_when == DeleteWhen.TERMINAL:
        yield f"  expiry          SQS deletes the oldest message {_until(ahead)}; PostgreSQL keeps it"
    if limits := run_actions.own_limits(outlook.run):
        yield f"  limits          {limits.strip()}"
    if outlook.run.waves and ahead.letters + ahead.returned > 1:
        wait = f"; {outlook.waves_wait_for}" if outlook.waves_wait_for else ""
        yield f"  waves           1 message first, then 10, then 100, then all{wait}; a failed wave pauses the run"
    for name, letters in outlook.under_way.items():
        yield f"  in progress     {counted(letters, 'message')} of the run {name} (sent with this run)"


def _first_line(outlook: PlanForecast, new: int) -> str:
    total = outlook.prospect.letters + outlook.prospect.objected
    if outlook.captured <= total:
        return f"{outlook.dlq.name}: {counted(total, 'message')} captured, {new:,} of them just now"
    selected = f"{total:,} of {outlook.captured:,} captured messages selected"
    return f"{outlook.dlq.name}: {selected}; the others wait. {new:,} captured just now"


def _keys(outlook: PlanForecast) -> str:
    ahead = outlook.prospect
    if not ahead.letters:
        return ""
    if outlook.dlq.ordering_key == "none" and ahead.longest == 1:
        return ", without ordering keys"
    return f", of {counted(ahead.lanes, 'ordering key')}, at most {ahead.longest:,} of one key"


def _target(one: TargetFigures, forecast: Forecast, *, waves: bool) -> Iterable[str]:
    rate = "no rate limit" if one.rate is None else f"{one.rate:g} messages/s"
    window = f", window {one.window:g} s" if one.proof == "absence" else ""
    yield f"  to {resource_name(one.name)}: {counted(one.letters, 'message')}, {rate}"
    if one.confirmed_fanout is not None:
        yield f"      {refire_notice(one.confirmed_fanout)}"
    yield f"      outcome {one.proof}{window}; a key's next message is sent when the one before is {one.advance}"
    yield f"      {forecast_text(one, forecast, waves=waves)}"


def _faster(ways: list[str], dlq: str) -> Iterable[str]:
    """Yield a line with the command that makes the run faster, and a line for each option of the command (`ways`)."""
    if ways:
        said = f"Faster (options of manage.py add_dlq {dlq}):"
        yield f"      Most of that time is waiting for outcomes, one after another. {said}"
        yield from (f"      - {way}" for way in ways)


def refire_notice(others: int) -> str:
    """Return a warning that an SNS topic or bus also sends each message to `others` subscribers besides the target."""
    return f"each message is published again to {counted(others, 'other subscriber')}"


def forecast_text(one: TargetFigures, forecast: Forecast, *, waves: bool) -> str:
    """Return a text: how long it takes to send the run's messages to one target, and what limits the speed."""
    takes = f"takes {duration_in_words(forecast.seconds)}"
    trip = f"{one.longest:,} x {one.round_trip:g} s{', the first one sooner' if one.tail < one.round_trip else ''}"
    if forecast.bound == "rate":
        limits = ["the rate"] if one.rate else []
        limits += ["the waits for the waves' outcomes"] if waves and one.tail else []
        by_key = f"; the longest key: {duration_in_words(forecast.by_lane)} ({trip})" if one.round_trip else ""
        return f"{takes}{', limited by ' if limits else ''}{' and '.join(limits)}{by_key}"
    if forecast.bound == "outcomes":
        limit = f"at most {one.room:,} messages may await their outcome (setting MAX_UNSETTLED)"
        known = f"{limit}, and each outcome takes {one.outcome_in:g} s or more"
        return f"{takes}, limited by outcomes: {known}; by the rate alone {duration_in_words(forecast.by_rate)}"
    otherwise = f"; without this limit {duration_in_words(forecast.without_lanes)}" if forecast.without_lanes else ""
    return f"{takes}, limited by the longest key ({trip}){otherwise}"


def expiry_refusal(outlook: PlanForecast) -> str:
    """Return an error text: SQS would delete messages (retention) before the plan sends them. It says what to do."""
    waves = bool(outlook.waves)
    messages = "; ".join(
        f"{counted(one.late, 'message')} to {resource_name(one.name)} "
        f"({forecast_text(one, outlook.forecast(one), waves=waves)})"
        for one in outlook.late_targets
    )
    name = outlook.dlq.name
    return (
        f"{name}: some keys have so many messages, sent one after another, that time is too short. "
        f"SQS would delete {messages} before they are sent; "
        f"it deletes the oldest message {_until(outlook.prospect)}. Send a key's next message as soon as the target "
        f"accepted the one before (manage.py add_dlq {name} --advance accepted --confirm), have consumers report "
        f"outcomes (--outcome acknowledged), or keep messages in PostgreSQL only (--delete-when captured)."
    )


def _until(ahead: PlanFigures) -> str:
    if ahead.expires_at is None:
        return "never"
    left = (ahead.expires_at - ahead.now).total_seconds()
    return f"in {duration_in_words(left)}" if left > 0 else "now"


def plan_in_json(outlook: PlanForecast, new: int, refused: str) -> dict[str, Any]:
    """Return the plan as JSON.

    `refused` says why the plan cannot be started, or is empty. In the JSON, `run` is null if the plan cannot be started
    or has no messages.
    """
    run = None if refused or outlook.is_empty else outlook.run.name
    ahead = outlook.prospect
    total = ahead.letters + ahead.objected
    return {
        "run": run,
        "captured": total,
        **dict.fromkeys(FINAL_STATES, 0),
        "waiting": total,
        "failed_attempts": 0,
        "dry_run": True,
        "dlq": outlook.dlq.name,
        "new": new,
        "messages": ahead.letters,
        "lanes": ahead.lanes,
        "longest_lane": ahead.longest,
        "not_eligible": ahead.objected,
        "objections": {one.reason: one.letters for one in outlook.objections},
        "returned": ahead.returned,
        "forecast_seconds": outlook.seconds,
        "expires": ahead.expires_at,
        "forecast_assumes": outlook.assumptions,
        "obstacles": outlook.obstacles,
        "aws_requests": asdict(outlook.cost),
        "targets": [_target_in_json(one, outlook.forecast(one), outlook) for one in outlook.shares],
        "in_other_plans": {one.name: one.selected for one in outlook.plans},
        "behind": outlook.run.behind or 0,
        "behind_ids": outlook.behind,
        "bodies_in_s3": {"asked": outlook.verified.asked, "gone": outlook.verified.missing},
        "waves": outlook.run.waves,
        "refused": refused or None,
    }


def _target_in_json(one: TargetFigures, forecast: Forecast, outlook: PlanForecast) -> dict[str, Any]:
    return {
        "target": one.name,
        "messages": one.letters,
        "longest_lane": one.longest,
        "rate": one.rate,
        "kind": one.kind,
        "confirmed_fanout": one.confirmed_fanout,
        "outcome": one.proof,
        "advance": one.advance,
        "window": one.window,
        "captured_every": one.every or None,
        "seconds_by_rate": forecast.by_rate,
        "seconds_by_lane": forecast.by_lane,
        "seconds_by_outcomes": forecast.by_outcomes,
        "late": one.late,
        "faster": outlook.faster_options(one),
        "order_given_up": outlook.order_given_up(one) or None,
    }


def lane_word(ordering_key: str) -> str:
    """Return the word with which output counts lanes: "message" if the DLQ has no ordering key, else "key queue"."""
    return "message" if ordering_key == SelectorSource.NONE else "key queue"


def counted(count: int, what: str) -> str:
    """Return a number with its noun `what`, such as "1 message" or "1,200 messages"."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def arrived_text(since: Arrived) -> str:
    """Return the number of messages that were captured since a run began, such as "20,000+ messages"; empty: none."""
    if since.is_minimum:
        return f"{since.n:,}+ messages" if since.n else "perhaps some messages"
    return counted(since.n, "message") if since.n else ""
