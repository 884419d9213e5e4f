"""Whether a world kept every promise: by the independent judge, and by what the tables must not say in the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from django.db.models import Count

from redrive_service.sandbox.judge import Experiment, Finding, Offence, ServiceRecords, judge
from reprocessing.models import Attempt, AuditEntry, Letter
from reprocessing.store.safety.paused_runs import THE_SERVICE
from tests.proof.simulation.cast import Cast
from tests.proof.simulation.plot import BEGIN, Plot

#: Of the world's seconds.
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
#: States of letters that are not finished.
UNFINISHED: Final = ("captured", "waiting", "sending", "awaiting")
#: Attempts that count though their target was down: when it went down, and when it came back.
_AT_THE_EDGES: Final = 2
#: Seconds between a sweep's look at the outcomes and its pause of a run, with workers that freeze meanwhile.
_SWEEP_LASTS: Final = 30.0
#: What an automatic run may pause itself for.
_REASONS_TO_PAUSE: Final = ("No message to ", "The DLQ refills with redriven messages: ")
#: Of a message that was given up as the only one with which its target could be tried.
_GIVEN_UP: Final = "and the run has no other message to test "
_KNOWN_BACK = """
SELECT FROM redrive_attempt back, redrive_attempt sent JOIN redrive_letter l ON l.id = sent.letter_id
 WHERE back.sent_message_id = %s AND back.outcome = 'returned'
   AND l.public_id::text || ':' || sent.no = %s AND back.closed_at < sent.opened_at
"""
_PLACED = """
SELECT FROM redrive_stage_diary passed, redrive_attempt sent JOIN redrive_letter l ON l.id = sent.letter_id
 WHERE passed.message_id = ANY(%s)
   AND l.public_id::text || ':' || sent.no = %s AND passed.placed_at < sent.opened_at
"""
# A letter whose last attempt's end nobody knows is parked, and its key is free: its equal goes, as its repeat would.
_AFTER_UNKNOWN = """
SELECT count(*) FROM redrive_attempt sent JOIN redrive_letter l ON l.id = sent.letter_id
 WHERE EXISTS (SELECT FROM redrive_letter equal JOIN redrive_attempt a ON a.letter_id = equal.id
                WHERE equal.idempotency_key = l.idempotency_key AND equal.id <> l.id AND a.outcome = 'unknown'
                  AND a.no >= equal.attempts AND a.opened_at < sent.opened_at)
"""
# An attempt of unknown end may have succeeded. The repeat after it is the fault's; a repeat that fails is tried again,
# in an outage as often as the outage lasts, and each of these is sent though the first had not come back.
_AGAIN_AFTER_UNKNOWN = """
SELECT count(*) FROM redrive_attempt sent
 WHERE EXISTS (SELECT FROM redrive_attempt a WHERE a.letter_id = sent.letter_id AND a.no < sent.no
                  AND a.outcome = 'unknown' AND a.returned_at IS NULL)
   AND EXISTS (SELECT FROM redrive_attempt a WHERE a.letter_id = sent.letter_id AND a.no = sent.no - 1
                  AND a.outcome <> 'unknown')
"""
_UNKNOWN = "SELECT count(*) FROM redrive_attempt WHERE outcome = 'unknown'"
_AMISS = """
SELECT 'lane ' || id || ' is ' || phase FROM redrive_lane WHERE phase = 'leased' OR (phase = 'ready' AND NOT EXISTS (
       SELECT FROM redrive_letter l WHERE l.lane_id = redrive_lane.id AND l.state IN ('waiting', 'sending')))
UNION ALL
SELECT 'attempt ' || id || ' is open' FROM redrive_attempt WHERE closed_at IS NULL
UNION ALL
SELECT 'letter ' || message_id || ' is parked, nobody says why' FROM redrive_letter
 WHERE state = 'parked' AND reason = ''
UNION ALL
SELECT 'letter ' || message_id || ' is stale, though none that passed it came sooner' FROM redrive_letter l
 WHERE reason = 'stale' AND NOT EXISTS (
       SELECT FROM redrive_letter o JOIN redrive_attempt a ON a.letter_id = o.id
        WHERE o.lane_id = l.lane_id AND o.sequence > l.sequence AND o.captured_at < l.captured_at)
"""

Ask = Callable[..., list[tuple[Any, ...]]]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was found.

    Attributes:
        broken: promises that were not kept, in sentences.
        excused: findings that PROTOCOL names as not to be promised.
        duplicates: deliveries beyond the first, which promise 5 allows after some faults.
    """

    broken: tuple[str, ...]
    excused: int
    duplicates: int


def judged(cast: Cast, ask: Ask) -> Verdict:
    """Judge a world that is over; `ask` puts a question to its tables."""
    judgement = judge(_experiment(cast.plot), cast.near.log, cast.consumed, _books(cast))
    excused = {one for one in judgement.findings if _is_excused(one, cast, ask)}
    duplicates = [one for one in judgement.found(Offence.DUPLICATE) if one not in excused]
    allowed = _duplicates_allowed(cast) + sum(int(ask(text)[0][0]) for text in (_AFTER_UNKNOWN, _AGAIN_AFTER_UNKNOWN))
    broken = [one.sentence for one in judgement.findings if one not in excused and one not in duplicates]
    if len(duplicates) > allowed:
        broken += [f"{len(duplicates)} duplicates, {allowed} may be.", *(one.sentence for one in duplicates)]
    broken += [str(text) for (text,) in ask(_AMISS)]
    broken += _too_many_unknown(cast, ask)
    broken += _too_often(cast)
    broken += _paused_too_soon(cast)
    broken += _spent_by_an_outage(cast)
    return Verdict(tuple(broken), len(excused), len(duplicates))


def _is_excused(one: Finding, cast: Cast, ask: Ask) -> bool:
    """Whether a frozen process put it on the wire after its time; or it passed what was not known to be back."""
    if one.offence in {Offence.OVERLAP, Offence.REORDERED, Offence.DUPLICATE} and _is_late(one, cast):
        return True
    unknown = one.offence is Offence.REORDERED and one.call is not None
    return unknown and _was_unknown(one, one.call or 0, cast, ask)


def _is_late(one: Finding, cast: Cast) -> bool:
    """Whether a letter of the same lane was sent by one who froze between its deadline and the wire."""
    keys = {event.name: event.key or event.name for event in cast.plot.events}
    late = {keys[entry["attributes"]["event"]] for call in cast.near.late for entry in cast.near.log[call]["sent"]}
    return keys[one.event] in late


def _was_unknown(one: Finding, call: int, cast: Cast, ask: Ask) -> bool:
    """Whether what was passed had no place in its lane, or was back unwritten, when it was decided what passes it."""
    (mark,) = [entry["attributes"].get("RedriveId") for entry in _sent(one.event, cast, since=call, until=call + 1)]
    seen = [entry for entry in _sent(str(one.passed), cast, until=call) if entry["accepted"]]
    back = [entry["message_id"] for entry in seen if "RedriveId" in entry["attributes"]]
    if back:
        return not ask(_KNOWN_BACK, back[-1], mark)
    return not ask(_PLACED, [entry["message_id"] for entry in seen], mark)


def _sent(event: str, cast: Cast, *, since: int = 0, until: int) -> Iterator[dict[str, Any]]:
    for call in cast.near.log[since:until]:
        yield from (entry for entry in call["sent"] if entry["attributes"].get("event") == event)


def _too_many_unknown(cast: Cast, ask: Ask) -> Iterator[str]:
    """Attempts of which nobody knows the end, though nobody died over them and every answer was heard and clear."""
    struck, unknown = cast.stage.struck, ask(_UNKNOWN)[0][0]
    unclear = struck["SQS unanswered"] + struck["SQS refused"] + struck["SQS partial"]
    most = _lost(struck) * cast.plot.conf.intent_size + unclear * 10
    if unknown > most:
        yield f"{unknown} attempts are unknown, {most} may be."


def _lost(struck: Counter[str]) -> int:
    return struck["crash"] + struck["freeze"] + struck["connection cut"] + struck["commit unheard"]


def _too_often(cast: Cast) -> Iterator[str]:
    taken: Counter[str] = Counter()
    for entry in (entry for call in cast.near.log for entry in call["sent"]):
        if (mark := entry["attributes"].get("RedriveId")) and entry["accepted"] and not entry["duplicate"]:
            taken[mark.rpartition(":")[0]] += 1
    spared = Attempt.objects.filter(spared=True).values_list("letter__public_id").annotate(n=Count("pk"))
    beside = {str(public): n for public, n in spared}
    known = {str(public): message_id for public, message_id in Letter.objects.values_list("public_id", "message_id")}
    for public, often in taken.items():
        most = int(str(cast.plot.dlq["max_attempts"])) * (1 + cast.released[known.get(public, "")])
        most += beside.get(public, 0)
        if often > most:
            yield f"Letter {public} was taken {often} x; {most} may be."


def _paused_too_soon(cast: Cast) -> Iterator[str]:
    """Return pauses of the automatic run for another reason than its two, or while its target still took messages."""
    patience = _patience(cast.plot)
    for review in AuditEntry.objects.filter(act="paused", by=THE_SERVICE):
        if not review.reason.startswith(_REASONS_TO_PAUSE):
            yield f"The automatic run paused itself: {review.reason}"
        known = {
            "closed_at__lt": review.at - timedelta(seconds=_SWEEP_LASTS),
            "counts_as_failure": False,
            "returned_at": None,
        }
        if Attempt.objects.filter(opened_at__gt=review.at - patience, **known).exists():
            yield f"The run gave up {patience} after its target took messages: {review.reason}"


def _patience(plot: Plot) -> timedelta:
    return timedelta(seconds=float(str(plot.dlq["give_up_after"])))


def _spent_by_an_outage(cast: Cast) -> Iterator[str]:
    """Return messages with more than two counted attempts whose failures one outage explains.

    The two: one failed while those before the outage were still known to go well, one failed as those after it began to
    go well. Whatever a person does with runs and messages, and a success that is known before it comes back, counts
    differently: worlds with those are left out.
    """
    plot = cast.plot
    if plot.meddles or not plot.outage.is_single or plot.target["proof"] != "absence":
        return
    begins, ends = (EPOCH + timedelta(seconds=BEGIN + at) for at in (plot.outage.begins, plot.outage.ends))
    well = [f"body of {event.name}".encode() for event in plot.events if event.temper == "well"]
    failed = Attempt.objects.filter(
        letter__payload__body__in=well, spared=False, outcome="returned", opened_at__gt=begins, returned_at__lt=ends
    )
    for message_id, often in failed.values_list("letter__message_id").annotate(n=Count("pk")):
        if often > _AT_THE_EDGES:
            yield f"An outage used up {often} attempts of letter {message_id}."
    if not cast.stage.struck and int(str(plot.dlq["max_attempts"])) > _AT_THE_EDGES:
        spent = Letter.objects.filter(state="parked", reason="attempts_spent", payload__body__in=well)
        parked = spent.exclude(detail__contains=_GIVEN_UP, finished_at__gte=begins + _patience(plot))
        yield from (f"An outage parked letter {letter.message_id}." for letter in parked)


def _experiment(plot: Plot) -> Experiment:
    end = ".fifo" if plot.fifo else ""
    rate: Any = plot.target["rate"]
    keyed = plot.keyed and not plot.fifo
    return Experiment(
        sources=frozenset({f"source{end}"}), dlqs=frozenset({f"dlq{end}"}), identity="event",
        ordering="key" if keyed else None, sequence="n" if keyed else None,
        advance="settled" if plot.target["advance"] == "settled" else "accepted", fifo=plot.fifo,
        rate=rate, burst=max(1.0, rate) if rate else 0,
    )  # fmt: skip


def _books(cast: Cast) -> ServiceRecords:
    states: dict[str, set[str]] = {}
    found = list(Letter.objects.values_list("message_id", "state", "body_hash"))
    put_aside = {digest for _, state, digest in found if state in {"parked", "discarded"}}
    for message_id, state, digest in found:
        # What came back after its equal was closed stands for that one, too.
        stands = state == "duplicate" and digest in put_aside
        states.setdefault("parked" if stands else state, set()).add(message_id)
    return ServiceRecords(
        parked=frozenset(states.get("parked", ())), discarded=frozenset(states.get("discarded", ())),
        duplicates=frozenset(states.get("duplicate", ())),
        open=frozenset().union(*(states.get(one, set()) for one in UNFINISHED)),
        released=frozenset(cast.released) if cast.plot.dlq["stale"] == "park" else frozenset().union(*states.values()),
    )  # fmt: skip


def _duplicates_allowed(cast: Cast) -> int:
    """Promise 5: an intent group for each process that died or lost its way, a request for each unheard answer.

    Letters of one event that have no key in common are sent as often as each of them may. A FIFO queue swallows the
    rest.
    """
    plot, struck = cast.plot, cast.stage.struck
    often = int(str(plot.dlq["max_attempts"])) * (1 + max(cast.released.values(), default=0))
    repeats = 0
    if plot.dlq["idempotency_key"] == "message-id":
        events = [event for event in plot.events if event.copies > 1]
        bodies = [f"body of {event.name}".encode() for event in events]
        repeats = sum(event.copies * often - 1 for event in events)
        repeats += Attempt.objects.filter(letter__payload__body__in=bodies, spared=True).count()
    return repeats if plot.fifo else _lost(struck) * plot.conf.intent_size + struck["SQS unanswered"] * 10 + repeats
