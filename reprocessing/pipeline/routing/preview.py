"""Preview what rules would do to recently captured letters. Nothing is written, locked or sent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from reprocessing.domain.lifecycle import FINISHED_STATES, LetterState
from reprocessing.domain.routing.first_match import Action, NoRuleMatched, RoutingResult, RuleMatched, RuleUnreadable
from reprocessing.models import DeadLetterQueue
from reprocessing.pipeline.routing.evaluate_rules import RuleBook
from reprocessing.store.routing import routable_letters
from reprocessing.store.routing.routable_letters import RoutableLetter
from reprocessing.store.routing.rules import BoundRule

IDS_SHOWN = 10  # most message ids that are shown for each rule


@dataclass(slots=True)
class RulePreview:
    """How many letters one rule matches: letters on which it would act, and others, by the reason why it would not."""

    name: str
    action: str
    would_act_on: Counter[str] = field(default_factory=Counter)  # letters that are not sent yet, by state
    objected: int = 0  # captured letters that will be parked for another reason first
    released: int = 0  # letters that the rule quarantined and a person released; the rule lets them pass
    under_way: int = 0  # letters that are being sent or await an outcome; the rule decides if they come back
    matched_before: Counter[str] = field(default_factory=Counter)  # finished letters, by state
    shown: list[str] = field(default_factory=list)  # message ids of the newest letters that it would act on
    error_count: int = 0  # letters for which the rule fails, and which it would hold
    last_error: str = ""  # the error for the newest of these letters
    taken_first: Counter[str] = field(default_factory=Counter)  # letters decided by earlier rules, by rule name

    @property
    def acts(self) -> int:
        """The number of letters that the rule would act on."""
        return self.would_act_on.total()


@dataclass(slots=True)
class Preview:
    """What rules would do to `letters` letters. `shares`: what each rule would do, in the order of the rules."""

    shares: list[RulePreview]
    letters: int = 0
    unmatched: int = 0  # letters that no rule matches
    older: int = 0  # unfinished letters that were captured before `since`, and are not previewed
    cut: bool = False  # whether more letters were not previewed


def letters(  # noqa: PLR0913  # arguments are passed by name
    rules: Sequence[BoundRule], *, since: datetime, dlq: int | None = None, focus: int | None = None,
    on_progress: Callable[[int], None] = lambda _: None, most: int | None = None,
    stop: Callable[[], bool] = lambda: False, among: Collection[int] | None = None,
) -> Preview:  # fmt: skip
    """Preview what these rules would do to letters that were captured after `since`. The newest letters come first.

    Args:
        rules: the rules.
        since: the time.
        dlq: id of the letters' DLQ; None: all DLQs.
        focus: id of the only rule to report. It is also tried on letters about which an earlier rule decides. None: all
            rules are reported.
        on_progress: called after each chunk of letters, with the number of letters so far.
        most: the preview ends after about this number of letters; None: no limit.
        stop: the preview ends when this function returns True.
        among: ids of letters; only these are previewed, and older letters are not counted. None: all letters.
    """
    book = RuleBook(0, rules)
    alone = RuleBook(0, [row for row in rules if row.rule.id == focus]) if focus is not None else None
    shares = {
        row.rule.id: RulePreview(row.rule.name, row.rule.action) for row in book.rules if focus in {None, row.rule.id}
    }
    preview = Preview(list(shares.values()))
    if among is not None:
        _add_all(preview, shares, routable_letters.load_chosen(among, since=since), (book, alone), stop)
        return preview
    preview.older = routable_letters.count_older(since=since, dlq=dlq)
    dlqs = DeadLetterQueue.objects.values_list("pk", flat=True) if dlq is None else [dlq]
    bodies = book.reads_bodies(list(dlqs))
    below: int | None = None
    while not preview.cut:
        chunk = routable_letters.captured_since(since=since, dlq=dlq, below=below, bodies=bodies)
        if not _add_all(preview, shares, chunk, (book, alone), stop):
            return preview
        below = chunk[-1].letter_id if chunk else routable_letters.lowest_captured(since=since, dlq=dlq, below=below)
        if below is None:
            break
        on_progress(preview.letters)
        preview.cut = (most is not None and preview.letters >= most) or (not chunk and stop())
    return preview


def _add_all(
    preview: Preview, shares: dict[int, RulePreview], chunk: Sequence[RoutableLetter],
    books: tuple[RuleBook, RuleBook | None], stop: Callable[[], bool],
) -> bool:  # fmt: skip
    """Evaluate the rules on letters. Return False if `stop` returned True before the last letter."""
    book, alone = books
    for letter in chunk:
        if stop():
            preview.cut = True
            return False
        _add(preview, shares, letter, book.ask(letter), None if alone is None else alone.ask(letter))
    return True


def _add(
    preview: Preview,
    shares: dict[int, RulePreview],
    letter: RoutableLetter,
    routed: RoutingResult,
    alone: RoutingResult | None,
) -> None:
    preview.letters += 1
    if isinstance(routed, NoRuleMatched):
        preview.unmatched += 1
        return
    if (share := shares.get(routed.rule.id)) is not None:
        _decide(share, letter, routed)
    elif isinstance(alone, RuleMatched):
        shares[alone.rule.id].taken_first[routed.rule.name] += 1


def _decide(share: RulePreview, letter: RoutableLetter, routed: RuleMatched | RuleUnreadable) -> None:
    if isinstance(routed, RuleUnreadable):
        share.error_count += 1
        share.last_error = share.last_error or routed.why
        return
    if letter.state in FINISHED_STATES:
        share.matched_before[letter.state] += 1
    elif letter.blocked_reason:
        share.objected += 1
    elif routed.rule.action is Action.QUARANTINE and letter.is_released_from(routed.rule):
        share.released += 1
    elif letter.state in {LetterState.WAITING, LetterState.CAPTURED}:
        share.would_act_on[letter.state] += 1
        if len(share.shown) < IDS_SHOWN:
            share.shown.append(letter.message_id)
    else:
        share.under_way += 1
