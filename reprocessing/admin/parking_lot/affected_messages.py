"""The messages that a decision in the parking lot would change, as its confirmation page shows them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Final

from django.core.exceptions import ValidationError
from django.db.models import F
from django.http import Http404, HttpRequest

from reprocessing.admin.messages.readable_bytes import visible
from reprocessing.admin.parking_lot import message_list
from reprocessing.admin.parking_lot.confirm_forms import DecisionForm, filter_of_query
from reprocessing.admin.parking_lot.decision import DecisionKind, unpack_messages
from reprocessing.admin.site import visible_rows
from reprocessing.domain.errors import InvalidFilter
from reprocessing.domain.lifecycle import FAILS_AGAIN, ParkedReason
from reprocessing.domain.parking_lot.message_filter import MessageFilter
from reprocessing.models import Letter, Rule
from reprocessing.models.parking_lot import BulkActionKind
from reprocessing.pipeline.parking_lot import start_bulk_action
from reprocessing.store.approvals import frozen, limits
from reprocessing.store.parking_lot import filtered_letters
from reprocessing.store.parking_lot.filtered_letters import CountByReason

_SAMPLE: Final = 20  #: max messages that the page shows as examples
_RULES: Final = 5  #: max rules that the page names


def of_letters(request: HttpRequest, decision: DecisionKind, form: DecisionForm) -> dict[str, Any]:
    """Return template values about the selected messages that have the required state: number, reasons and examples.

    `without_lane`: how many messages have no ordering key, because the key is missing or cannot be read. `unchanged`:
    how many messages were parked after failures of their consumer, and were not edited since then. `quarantined`: a
    sentence about messages that a rule quarantined. `others`: hidden fields that select only the other messages.
    """
    text = str(form["letters"].value() or "")
    seen = seen_or_404(request, text)
    found = Letter.objects.filter(pk__in=seen, state=decision.state.value).select_related("dlq")
    letters = list(found.order_by("pk"))
    kinds = Counter((letter.dlq.name, _why(letter.state, letter.reason)) for letter in letters)
    held = {letter.pk: letter.rule_id for letter in letters if letter.reason == ParkedReason.QUARANTINED}
    rest = {letter.pk for letter in letters} - set(held)
    others = ",".join(part for part in text.split(",") if int(part.partition("@")[0]) in rest) if held else ""
    return {
        "quarantined": _quarantined(request, len(held), len(letters), f"{len(letters):,}", held.values()),
        "others": {"letters": others, "query": str(form["query"].value() or "")} if others else {},
        "counted": f"{len(letters):,}",
        "count": len(letters),
        "about": Counter(letter.dlq_id for letter in letters),
        "kinds": [(dlq, why, n) for (dlq, why), n in sorted(kinds.items())],
        "without_lane": sum(
            letter.lane_id is None and letter.key_hash is None and letter.source_id is not None for letter in letters
        ),
        "unchanged": found.filter(reason__in=FAILS_AGAIN).exclude(revision__at__gte=F("finished_at")).count(),
        "sample": [(visible(letter.message_id), visible(letter.ordering_key or "")) for letter in letters[:_SAMPLE]],
        "unshown": max(0, len(letters) - _SAMPLE),
    }


def seen_or_404(request: HttpRequest, letters: str) -> list[int]:
    """Return the ids of the messages in a hidden field (`letters`); an empty list if the field cannot be read.

    Raises:
        Http404: this person does not see one of the messages.
    """
    try:
        seen = list(unpack_messages(letters))
    except ValidationError:
        return []
    require_visible(request, seen)
    return seen


def require_visible(request: HttpRequest, letters: Iterable[int]) -> None:
    """Raise Http404 if this person may not see one of the messages. Ids of deleted messages are ignored."""
    found = Letter.objects.filter(pk__in=list(letters))
    if found.exclude(pk__in=visible_rows.rows(request, found).values("pk")).exists():
        raise Http404


def of_filter(request: HttpRequest, decision: DecisionKind, form: DecisionForm) -> dict[str, Any]:
    """Return template values about all messages that match the form's filter: number, reasons and examples.

    At most 10,000 messages are counted. If the filter is refused, `refusal` says why.
    """
    try:
        criteria = decidable(request, decision, filter_of_query(str(form["query"].value() or "")))
        kinds = filtered_letters.counts_by_reason(criteria, until=form.since)
        sample = filtered_letters.newest_letters(criteria, limit=_SAMPLE)
    except InvalidFilter as error:
        return {"refusal": str(error), "count": 0, "counted": "0"}
    n, held = sum(kind.n for kind in kinds), [kind for kind in kinds if kind.reason == ParkedReason.QUARANTINED]
    rules = {rule for kind in held for rule in kind.rules}
    return {
        "quarantined": _quarantined(request, sum(kind.n for kind in held), n, filtered_letters.counted(n), rules),
        "others": _others(form, kinds) if held else {},
        "count": n,
        "counted": filtered_letters.counted(n),
        "about": frozen.count_by_dlq(criteria) if decision.needs_approval and limits.is_any_limited() else {},
        "bounded": filtered_letters.MAX_COUNT if n > filtered_letters.MAX_COUNT else 0,
        "sentence": criteria.sentence(message_list.names_of(request, criteria), single=n == 1),
        "kinds": [(kind.dlq, _why(kind.state, kind.reason), kind.n) for kind in kinds],
        "without_lane": sum(kind.without_lane for kind in kinds),
        "unchanged": sum(kind.unchanged for kind in kinds),
        "sample": [(visible(letter.message_id), visible(letter.key or "")) for letter in sample],
        "unshown": max(0, n - len(sample)),
    }


def decidable(request: HttpRequest, decision: DecisionKind, asked: MessageFilter) -> MessageFilter:
    """Return the filter, limited to DLQs that this person sees. Check that a bulk action can use the filter.

    Raises:
        InvalidFilter: the filter selects messages in another state than the decision requires, or it may not find all
            matching messages.
        PermissionDenied: the filter searches payloads, and this person may not see payloads.
    """
    criteria = message_list.allowed(asked, request)
    start_bulk_action.require_decidable(BulkActionKind(decision.value), criteria)
    return criteria


def _why(state: str, reason: str) -> str:
    return ParkedReason(reason).label if reason else state


def _others(form: DecisionForm, kinds: Sequence[CountByReason]) -> dict[str, str]:
    """Return hidden fields that select the messages of the form's filter that no rule quarantined; empty: all were.

    If more messages match than were counted, the other reasons are not known: then all other reasons are selected.
    """
    asked = filter_of_query(str(form["query"].value() or ""))
    is_whole = sum(kind.n for kind in kinds) <= filtered_letters.MAX_COUNT
    known = {kind.reason for kind in kinds} if is_whole else set(asked.reasons or ParkedReason)
    reasons = tuple(sorted(str(reason) for reason in known - {ParkedReason.QUARANTINED}))
    return {"scope": "all", "query": message_list.query_of(replace(asked, reasons=reasons))} if reasons else {}


def _quarantined(request: HttpRequest, n: int, of: int, counted: str, rules: Iterable[int | None]) -> str:
    """Return a sentence that says how many of the messages a rule quarantined, and that a release sends them, too.

    `of`, `counted`: the number of all messages, and its text. `rules`: ids of the rules. The sentence names only those
    that this person sees. Empty: no rule quarantined a message.
    """
    if not n:
        return ""
    every = set(rules)
    ids = [rule for rule in every if rule is not None]
    seen = visible_rows.rows(request, Rule.objects.filter(pk__in=ids)).order_by("name")
    named = [visible(name) for name in seen.values_list("name", flat=True)[:_RULES]]
    more = len(every) - len(named)
    by = f"the rule{'s' if len(named) > 1 else ''} {', '.join(named)}" if named else "a rule" if more == 1 else "rules"
    by += f" and {more} other rule{'s' if more > 1 else ''}" if named and more else ""
    least = "At least " if of > filtered_letters.MAX_COUNT else ""
    is_all, is_one = n == of and not least, n == 1
    which = "This message" if of == 1 else f"All {counted} messages" if is_all else f"{n:,} of these {counted} messages"
    sent = f"{'It is' if is_one else 'They are'} sent{'' if is_all else ', too'}"
    rule = "This rule does" if len(every) == 1 else "These rules do"
    again = f"{rule} not quarantine {'it' if is_one else 'them'} again"
    return f"{least}{which} {'was' if is_one else 'were'} quarantined by {by}. {sent}: {again[0].lower()}{again[1:]}."
