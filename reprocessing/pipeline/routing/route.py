"""Route the heads of lanes: evaluate the rules, store their decisions, and find the next heads.

A lane's head is its first unfinished letter.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import assert_never

from reprocessing.domain.lifecycle import LanePhase, LetterState, ParkedReason
from reprocessing.domain.routing.first_match import (
    Action,
    NoRuleMatched,
    RoutingResult,
    Rule,
    RuleMatched,
    RuleUnreadable,
)
from reprocessing.pipeline.routing.evaluate_rules import RuleBook
from reprocessing.store import rows
from reprocessing.store.ordering import lane_state, lanes
from reprocessing.store.ordering.lane_state import LaneState
from reprocessing.store.replay.settlement import (
    WAITS_FOR_COPY,
    Deletable,
    LetterClosing,
    close_letters,
    put_off_letters,
)
from reprocessing.store.routing import routable_letters, routing_decisions, rules
from reprocessing.store.routing.routable_letters import RoutableLetter
from reprocessing.store.routing.routing_decisions import RoutingDecision
from reprocessing.store.safety import send_limits

__all__ = ["RoutedLanes", "RuleBook", "refresh_rules", "route_heads", "wake_stopped"]

logger = logging.getLogger(__name__)

ERRED = "erred"  #: the decision about a letter on which a rule fails
_LONGEST_WHY = 500  #: most characters of a stored reason


@dataclass(frozen=True, slots=True)
class RoutedLanes:
    """The lanes with their heads after the rules were applied, and copies that may be deleted from DLQs.

    Lanes whose lease was lost are left out.
    """

    lane_states: list[LaneState]
    deletable: list[Deletable]


@dataclass(frozen=True, slots=True)
class _Lot:
    """Letters that are routed together, with their lanes.

    `fences`: the fencing tokens of the lanes' leases; None: the caller has not leased the lane.
    """

    lanes: list[int]
    fences: list[int | None]
    letters: list[int]
    dlqs: set[int]

    @property
    def owned(self) -> bool:
        return None not in self.fences


@dataclass(frozen=True, slots=True)
class _Answer:
    """What follows from the rules for one letter.

    Attributes:
        decided: the decision to be stored.
        closing: how the letter is parked or discarded; None: it is neither.
        why: why the letter's lane waits; empty: it does not wait.
        last_error: the error of a rule that could not be evaluated; empty: there was none.
        leaves: whether the letter gets another target.
    """

    decided: RoutingDecision
    closing: LetterClosing | None = None
    why: str = ""
    last_error: str = ""
    leaves: bool = False

    @property
    def is_final(self) -> bool:
        """Return whether the letter is parked, discarded or given another target.

        Such a decision must wait until no message of the letter can be at the old target any more.
        """
        return self.closing is not None or self.leaves


def route_heads(lane_states: Sequence[LaneState], book: RuleBook, *, lease: float) -> RoutedLanes:
    """Apply the rules to the heads (first unfinished letters) of lanes that the caller has leased; return the lanes.

    Lanes whose head may be sent stay leased for `lease` seconds. Lanes are freed if their head is held or delayed, or
    if a rule fails on it. If a head is quarantined or discarded, the lane's next head must be routed. If a head was
    sent before and may still come back, it is not closed and keeps its target for now; it is routed again later. If
    `book` is outdated, no decision is stored, and the heads must be routed again.

    Raises:
        django.db.Error: PostgreSQL failed; nothing is done.
    """
    asked = [head for head in lane_states if head.letter_id is not None]
    lot = _Lot(
        [head.lane_id for head in asked], [head.fence for head in asked], [head.letter_id or 0 for head in asked],
        {head.dlq_id for head in asked if head.dlq_id is not None},
    )  # fmt: skip
    turned = _route(lot, book, lease=lease)
    if any(lane.phase != LanePhase.LEASED for lane in turned.lane_states):
        _make_up_for_changes(lot, book)
    return turned


def _make_up_for_changes(lot: _Lot, book: RuleBook) -> None:
    """If the rules changed while these letters were routed, route them again.

    A change of the rules routes held and delayed letters again. It misses letters whose decision was not stored yet.
    """
    while rules.version() != book.version:
        book = RuleBook.load()
        _route(replace(lot, fences=[None] * len(lot.lanes)), book, lease=0.0)


def wake_stopped(book: RuleBook) -> int:
    """Route letters again that rules of an earlier version hold or delay; return the number of letters.

    Lanes that no rule holds or delays any more can be sent at once. Heads that wait for an open circuit breaker or an
    unhealthy target are routed once, too, since a rule may quarantine them or give them another target. Repeated or
    parallel calls are harmless.
    """
    routing_decisions.wake_for_new_rules(book.version, rules=bool(book.rules))
    done, above = 0, 0
    while some := routing_decisions.stopped_letters(version=book.version, above=above):
        lot = _Lot(
            [letter.lane_id for letter in some], [None] * len(some), [letter.letter_id for letter in some],
            {letter.dlq_id for letter in some},
        )  # fmt: skip
        _route(lot, book, lease=0.0)
        done, above = done + len(some), some[-1].letter_id
    return done


def refresh_rules(now: datetime, known: RuleBook | None = None) -> RuleBook:
    """Return the current rules. If a rule has started, expired or changed, first route held and delayed letters again.

    `known`: the rules that the caller has; None: it has none.
    """
    rules.raise_version_if_due(now)
    book = RuleBook.load(known)
    if book is not known and book.version:
        wake_stopped(book)
    return book


def _route(lot: _Lot, book: RuleBook, *, lease: float) -> RoutedLanes:
    answers, unreadable = _answers(lot, book)
    _log_failing_rules(book)
    classes = [(answer.decided.target_id, answer.decided.rate_class_id) for answer in answers.values()]
    if places := {(target, of) for target, of in classes if target is not None and of is not None}:
        send_limits.make_breakers(places)

    def record() -> RoutedLanes:
        mine = lanes.lock(lot.lanes, lot.fences)
        later = dict.fromkeys(_put_off(lot, answers, mine), WAITS_FOR_COPY)
        if unreadable:
            put_off = routing_decisions.put_off_unreadable(unreadable.keys(), mine, owned=lot.owned)
            later |= {letter: unreadable[letter] for letter in put_off}
        decided = [answer.decided for letter, answer in answers.items() if letter not in later]
        written = routing_decisions.write(decided, mine, version=book.version, owned=lot.owned)
        closings = [closing for answer in written if (closing := answers[answer.letter_id].closing) is not None]
        deletable = close_letters(closings) if closings else []
        lane_states = lane_state.advance(lot.lanes, lot.fences, keep=True, lease=lease)
        _note(lot, answers, {answer.letter_id for answer in written}, later)
        _count([answers[answer.letter_id] for answer in written if answer.new])
        return RoutedLanes(lane_states, deletable)

    return rows.in_transaction(record)


def _put_off(lot: _Lot, answers: Mapping[int, _Answer], mine: Collection[int]) -> set[int]:
    ending = [
        letter
        for lane, letter in zip(lot.lanes, lot.letters, strict=True)
        if lane in mine and letter in answers and answers[letter].is_final
    ]
    return put_off_letters(ending, owned=lot.owned) if ending else set()


def _answers(lot: _Lot, book: RuleBook) -> tuple[dict[int, _Answer], dict[int, str]]:
    """Return the rules' decisions, by letter id. Also return why other letters cannot be decrypted, by letter id."""
    answers, unreadable = dict[int, _Answer](), dict[int, str]()
    left = sorted(lot.letters)
    bodies = book.reads_bodies(lot.dlqs)
    while left and (loaded := routable_letters.load_waiting(left, bodies=bodies)):
        for letter in loaded:
            if letter.unreadable:
                unreadable[letter.letter_id] = letter.unreadable[:_LONGEST_WHY]
                continue
            answer = _answer(letter, book.ask(letter))
            decided = answer.decided
            moves = decided.target_id not in {None, letter.target_id} and not decided.keeps_place
            answers[letter.letter_id] = replace(answer, leaves=letter.claims and moves)
        left = [letter_id for letter_id in left if letter_id > loaded[-1].letter_id]
    return answers, unreadable


def _answer(letter: RoutableLetter, routed: RoutingResult) -> _Answer:
    match routed:
        case NoRuleMatched():
            return _Answer(RoutingDecision(letter.letter_id, letter.rulebook_version, target_id=letter.home))
        case RuleUnreadable(rule, why):
            why = why[:_LONGEST_WHY]
            decided = RoutingDecision(letter.letter_id, letter.rulebook_version, ERRED, rule.id, keeps_place=True)
            return _Answer(decided, why=f"rule {rule.name} could not be evaluated: {why}", last_error=why)
        case RuleMatched(rule):
            return _matched(letter, rule)
        case _ as never:
            assert_never(never)


def _matched(letter: RoutableLetter, rule: Rule) -> _Answer:
    decided = RoutingDecision(
        letter.letter_id, letter.rulebook_version, rule.action, rule.id,
        target_id=letter.home if rule.target is None else rule.target, rate_class_id=rule.rate_class,
        delay=None if rule.delay is None else rule.delay.total_seconds(),
    )  # fmt: skip
    match rule.action:
        case Action.REPLAY | Action.DIVERT:
            return _Answer(decided)
        case Action.DELAY:
            return _Answer(decided, why=f"rule {rule.name} delays it")
        case Action.HOLD:
            return _Answer(decided, why=f"rule {rule.name} holds it")
        case Action.QUARANTINE if letter.is_released_from(rule):
            return _Answer(decided)
        case Action.QUARANTINE:
            quarantined = LetterClosing(
                letter.letter_id, LetterState.PARKED, ParkedReason.QUARANTINED, detail=rule.name
            )
            return _Answer(decided, quarantined)
        case Action.DISCARD:
            return _Answer(decided, LetterClosing(letter.letter_id, LetterState.DISCARDED, detail=rule.name))
        case _ as never:
            assert_never(never)


def _note(lot: _Lot, answers: dict[int, _Answer], written: set[int], later: Mapping[int, str]) -> None:
    whys = {
        lane: later[letter] if letter in later else answers[letter].why
        for lane, letter in zip(lot.lanes, lot.letters, strict=True)
        if letter in later or (letter in written and (answers[letter].why or not lot.owned))
    }
    if whys:
        routing_decisions.record_reasons(whys)


def _count(answers: Sequence[_Answer]) -> None:
    by_rule = [(rule, answer.last_error) for answer in answers if (rule := answer.decided.rule_id) is not None]
    match_count = Counter(rule for rule, last_error in by_rule if not last_error)
    error_count = Counter(rule for rule, last_error in by_rule if last_error)
    last_errors = {rule: last_error for rule, last_error in by_rule if last_error}
    if by_rule:
        routing_decisions.add_counts(match_count, error_count, last_errors)


def _log_failing_rules(book: RuleBook) -> None:
    for rule, erred, asked in book.failing_rules():
        logger.error(
            "Rule %s could not be evaluated for %d of %d messages, which are held. Correct it (manage.py add_rule "
            "%s --reason WHY shows it), or disable it (manage.py disable_rule %s --reason WHY --confirm).",
            rule.name, erred, asked, rule.name, rule.name, extra={"rule": rule.name},
        )  # fmt: skip
