"""Route heads by their content: ask the rules, write what they decide, and find each lane's next head."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import assert_never

from reprocessing.domain.lifecycle import LanePhase, LetterState, ParkedReason
from reprocessing.domain.routing.first_match import Action, Erred, Matched, Routed, Rule, Unmatched
from reprocessing.pipeline.routing.evaluate_rules import Book
from reprocessing.store import rows
from reprocessing.store.ordering import lanes
from reprocessing.store.ordering.lanes import Standing
from reprocessing.store.replay.settlement import PUT_OFF, Closing, Deletable, close, put_off
from reprocessing.store.routing import routing_decisions, rules
from reprocessing.store.routing.routing_decisions import Asked, Decided
from reprocessing.store.safety import send_limits

__all__ = ["Book", "Turned", "heads", "keep_up", "wake"]

logger = logging.getLogger(__name__)

ERRED = "erred"
_LONGEST_WHY = 500


@dataclass(frozen=True, slots=True)
class Turned:
    """What routing leaves: the lanes with the heads they have now, and copies that may be deleted from their dlqs.

    A lane that is no longer the caller's is in neither.
    """

    standings: list[Standing]
    deletable: list[Deletable]


@dataclass(frozen=True, slots=True)
class _Lot:
    """Letters with their lanes and fences (None: the lanes are nobody's that asks)."""

    lanes: list[int]
    fences: list[int | None]
    letters: list[int]
    dlqs: set[int]

    @property
    def owned(self) -> bool:
        return None not in self.fences


@dataclass(frozen=True, slots=True)
class _Answer:
    """What is to be done about one letter, and what is said of its lane while it is stopped.

    `leaves`: it goes elsewhere than before, where it has a key that is free then.
    """

    decided: Decided
    closing: Closing | None = None
    why: str = ""
    trouble: str = ""
    leaves: bool = False

    @property
    def is_final(self) -> bool:
        """Where it was, nothing of it may be left."""
        return self.closing is not None or self.leaves


def heads(standings: Sequence[Standing], book: Book, *, lease: float) -> Turned:
    """Ask the rules about these heads; their lanes are the caller's, and stay so for `lease` seconds more.

    Those that go keep their lanes leased, with target, rate class and rule as decided; those that a rule holds, delays
    or could not be asked about leave them; quarantined and discarded ones make room for the next head, which is to be
    asked in its turn. One that is to end, or to go elsewhere with its key, and of which a copy may come back yet, rests
    until it cannot, and is asked about again then. What the book of an older version says is not written: such a head
    is to be asked again.

    Raises:
        django.db.Error: Postgres failed; nothing of it is done.
    """
    asked = [one for one in standings if one.letter_id is not None]
    lot = _Lot(
        [one.lane_id for one in asked], [one.fence for one in asked], [one.letter_id or 0 for one in asked],
        {one.dlq_id for one in asked if one.dlq_id is not None},
    )  # fmt: skip
    turned = _route(lot, book, lease=lease)
    if any(one.phase != LanePhase.LEASED for one in turned.standings):
        _make_up_for_changes(lot, book)
    return turned


def _make_up_for_changes(lot: _Lot, book: Book) -> None:
    """Whoever changed the rules before this was committed looked for what they stopped too early to see it."""
    while rules.version() != book.version:
        book = Book.load()
        _route(replace(lot, fences=[None] * len(lot.lanes)), book, lease=0.0)


def wake(book: Book) -> int:
    """Ask anew about what rules stopped under another version of the rulebook; how many letters that were.

    Lanes that nothing stops any more are due at once; those behind an open breaker, or an unwell target, are looked at
    once: a rule may quarantine what waits there, or send it elsewhere. Doing it twice, or beside others, is harmless.
    """
    routing_decisions.look_again(book.version, rules=bool(book.rules))
    done, above = 0, 0
    while some := routing_decisions.stopped(version=book.version, above=above):
        lot = _Lot(
            [one.lane_id for one in some], [None] * len(some), [one.letter_id for one in some],
            {one.dlq_id for one in some},
        )  # fmt: skip
        _route(lot, book, lease=0.0)
        done, above = done + len(some), some[-1].letter_id
    return done


def keep_up(now: datetime, known: Book | None = None) -> Book:
    """See to rules that have begun or ended by now, and to what they stopped; the book as it is now.

    Whoever changed a rule and died before the waking is made up for, too. Nothing is woken under a book that is known.
    """
    rules.turn_over(now)
    book = Book.load(known)
    if book is not known and book.version:
        wake(book)
    return book


def _route(lot: _Lot, book: Book, *, lease: float) -> Turned:
    answers = _answers(lot, book)
    _tell(book)
    classes = [(one.decided.target_id, one.decided.rate_class_id) for one in answers.values()]
    if places := {(target, of) for target, of in classes if target is not None and of is not None}:
        send_limits.make_breakers(places)

    def record() -> Turned:
        mine = lanes.lock(lot.lanes, lot.fences)
        later = _put_off(lot, answers, mine)
        decided = [one.decided for letter, one in answers.items() if letter not in later]
        written = routing_decisions.write(decided, mine, version=book.version, owned=lot.owned)
        closings = [closing for one in written if (closing := answers[one.letter_id].closing) is not None]
        deletable = close(closings) if closings else []
        standings = lanes.advance(lot.lanes, lot.fences, keep=True, lease=lease)
        _note(lot, answers, {one.letter_id for one in written}, later)
        _count([answers[one.letter_id] for one in written if one.new])
        return Turned(standings, deletable)

    return rows.whole(record)


def _put_off(lot: _Lot, answers: Mapping[int, _Answer], mine: Collection[int]) -> set[int]:
    """Letters that are to end or to leave, once no copy of them can come back: they are asked about again then."""
    ending = [
        letter
        for lane, letter in zip(lot.lanes, lot.letters, strict=True)
        if lane in mine and letter in answers and answers[letter].is_final
    ]
    return put_off(ending, owned=lot.owned) if ending else set()


def _answers(lot: _Lot, book: Book) -> dict[int, _Answer]:
    """What is to be done, by letter; asked outside any transaction, in chunks of bounded bytes."""
    answers: dict[int, _Answer] = {}
    left = sorted(lot.letters)
    bodies = book.reads_bodies(lot.dlqs)
    while left and (loaded := routing_decisions.load(left, bodies=bodies)):
        answers |= {one.letter_id: _whole(one, _answer(one, book.ask(one))) for one in loaded}
        left = [one for one in left if one > loaded[-1].letter_id]
    return answers


def _whole(letter: Asked, answer: _Answer) -> _Answer:
    """With what follows for where the letter was to go until now."""
    decided = answer.decided
    moves = decided.target_id not in {None, letter.target_id} and not decided.keeps_place
    return replace(answer, leaves=letter.claims and moves)


def _answer(letter: Asked, routed: Routed) -> _Answer:
    match routed:
        case Unmatched():
            return _Answer(Decided(letter.letter_id, letter.route_version, target_id=letter.home))
        case Erred(rule, why):
            why = why[:_LONGEST_WHY]
            decided = Decided(letter.letter_id, letter.route_version, ERRED, rule.id, keeps_place=True)
            return _Answer(decided, why=f"rule {rule.name} could not be asked: {why}", trouble=why)
        case Matched(rule):
            return _matched(letter, rule)
        case _ as never:
            assert_never(never)


def _matched(letter: Asked, rule: Rule) -> _Answer:
    decided = Decided(
        letter.letter_id, letter.route_version, rule.action, rule.id,
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
            quarantined = Closing(letter.letter_id, LetterState.PARKED, ParkedReason.QUARANTINED, detail=rule.name)
            return _Answer(decided, quarantined)
        case Action.DISCARD:
            return _Answer(decided, Closing(letter.letter_id, LetterState.DISCARDED, detail=rule.name))
        case _ as never:
            assert_never(never)


def _note(lot: _Lot, answers: dict[int, _Answer], written: set[int], later: set[int]) -> None:
    """Why lanes stand, or nothing, where they stood before."""
    whys = {
        lane: PUT_OFF if letter in later else answers[letter].why
        for lane, letter in zip(lot.lanes, lot.letters, strict=True)
        if letter in later or (letter in written and (answers[letter].why or not lot.owned))
    }
    if whys:
        routing_decisions.note(whys)


def _count(answers: Sequence[_Answer]) -> None:
    """Letters that rules decided for the first time, or could not be asked about."""
    hits: Counter[int] = Counter()
    errs: Counter[int] = Counter()
    troubles: dict[int, str] = {}
    for one in answers:
        rule = one.decided.rule_id
        if rule is None:
            continue
        (errs if one.trouble else hits)[rule] += 1
        if one.trouble:
            troubles[rule] = one.trouble
    if hits or errs:
        routing_decisions.count(hits, errs, troubles)


def _tell(book: Book) -> None:
    for rule, erred, asked in book.trouble():
        logger.error(
            "Rule %s could not be asked of %d of the last %d letters, which are held. Correct it (manage.py add_rule "
            "%s --reason WHY shows it), or disable it (manage.py disable_rule %s --reason WHY --confirm).",
            rule.name, erred, asked, rule.name, rule.name,
        )  # fmt: skip
