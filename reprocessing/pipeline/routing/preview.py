"""Preview what rules would have done to the letters of the last days. Nothing is written, locked or sent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from reprocessing.domain.lifecycle import FINISHED, LetterState
from reprocessing.domain.routing.first_match import Action, Erred, Matched, Routed, Unmatched
from reprocessing.models import DeadLetterQueue
from reprocessing.pipeline.routing.evaluate_rules import Book
from reprocessing.store.routing import routing_decisions
from reprocessing.store.routing.routing_decisions import Asked
from reprocessing.store.routing.rules import Bound

#: Letters whose message ids are told.
SHOWN = 10


@dataclass(slots=True)
class Share:
    """What one rule would do.

    Attributes:
        would_act_on: letters that wait or are captured, by state: they get it as soon as it is their turn.
        objected: captured letters that are parked for another reason before they are asked about.
        released: letters that it had quarantined and a person released: it lets them through.
        under_way: letters that are with their target: they get it if they come back.
        matched_before: letters that are finished, by state: it would have decided about them.
        shown: message ids of the newest that it would act on.
        errs: letters that it could not be asked about, which it would hold.
        trouble: what the newest of these tripped over.
        taken_first: letters that it matches and another rule, by its name, takes first.
    """

    name: str
    action: str
    would_act_on: Counter[str] = field(default_factory=Counter)
    objected: int = 0
    released: int = 0
    under_way: int = 0
    matched_before: Counter[str] = field(default_factory=Counter)
    shown: list[str] = field(default_factory=list)
    errs: int = 0
    trouble: str = ""
    taken_first: Counter[str] = field(default_factory=Counter)

    @property
    def acts(self) -> int:
        """How many letters it would act on."""
        return self.would_act_on.total()


@dataclass(slots=True)
class Preview:
    """What rules would do to `letters` letters, of which none matches `unmatched`; in the order of the rules.

    `older` letters, captured before those and not finished, were not asked about; they will be when it is their turn.
    `cut`: there are more letters than were asked about.
    """

    shares: list[Share]
    letters: int = 0
    unmatched: int = 0
    older: int = 0
    cut: bool = False


def letters(  # noqa: PLR0913  # each by its name
    rules: Sequence[Bound],
    *,
    since: datetime,
    dlq: int | None = None,
    focus: int | None = None,
    told: Callable[[int], None] = lambda _: None,
    most: int | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> Preview:
    """What these rules, in their order, would do to the letters captured since then.

    Args:
        rules: those that hold, with those that might.
        since: a moment.
        dlq: letters of this one alone.
        focus: the id of one of the rules: of that alone is told, and what other rules take from it.
        told: how many letters were asked about, again and again.
        most: so many letters at the most, about, the newest; None: all.
        stop: asked before each letter whether it is time to end: one letter can take some tenths of a second.
    """
    book = Book(0, rules)
    alone = Book(0, [one for one in rules if one.rule.id == focus]) if focus is not None else None
    shares = {one.rule.id: Share(one.rule.name, one.rule.action) for one in book.rules if focus in {None, one.rule.id}}
    preview = Preview(list(shares.values()), older=routing_decisions.older(since=since, dlq=dlq))
    bodies = any(book.reads_bodies([one]) for one in _dlqs(dlq))
    below: int | None = None
    while chunk := routing_decisions.captured(since=since, dlq=dlq, below=below, bodies=bodies):
        for one in chunk:
            if stop():
                preview.cut = True
                return preview
            _add(preview, shares, one, book.ask(one), None if alone is None else alone.ask(one))
        below = chunk[-1].letter_id
        told(preview.letters)
        if most is not None and preview.letters >= most:
            preview.cut = True
            break
    return preview


def _dlqs(dlq: int | None) -> Iterable[int]:
    return DeadLetterQueue.objects.values_list("pk", flat=True) if dlq is None else [dlq]


def _add(preview: Preview, shares: dict[int, Share], letter: Asked, routed: Routed, alone: Routed | None) -> None:
    preview.letters += 1
    if isinstance(routed, Unmatched):
        preview.unmatched += 1
        return
    if (share := shares.get(routed.rule.id)) is not None:
        _decide(share, letter, routed)
    elif isinstance(alone, Matched):
        shares[alone.rule.id].taken_first[routed.rule.name] += 1


def _decide(share: Share, letter: Asked, routed: Matched | Erred) -> None:
    if isinstance(routed, Erred):
        share.errs += 1
        share.trouble = share.trouble or routed.why
        return
    if letter.state in FINISHED:
        share.matched_before[letter.state] += 1
    elif letter.objection:
        share.objected += 1
    elif routed.rule.action is Action.QUARANTINE and letter.is_released_from(routed.rule):
        share.released += 1
    elif letter.state in {LetterState.WAITING, LetterState.CAPTURED}:
        share.would_act_on[letter.state] += 1
        if len(share.shown) < SHOWN:
            share.shown.append(letter.message_id)
    else:
        share.under_way += 1
