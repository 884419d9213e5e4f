"""The search page: one box for ids, keys, values of search fields, and texts. It opens a single exact match at once."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final
from urllib.parse import urlencode

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from reprocessing.admin.messages.readable_bytes import short_key, time_since, visible
from reprocessing.admin.messages.uncounted_attempts import attempts_in_lists
from reprocessing.admin.parking_lot import message_list
from reprocessing.admin.search import saved_filter_pages
from reprocessing.admin.search.read_search import Search, names, search_of
from reprocessing.admin.search.saved_filter_pages import SavingPage
from reprocessing.admin.search.search_rights import may_search_bodies
from reprocessing.admin.site import labels, visible_rows
from reprocessing.domain.errors import InvalidFilter
from reprocessing.domain.lifecycle import LetterState, ParkedReason
from reprocessing.domain.parking_lot.message_filter import MessageFilter
from reprocessing.domain.search.search_text import SearchText, read_search, write_search
from reprocessing.models import DeadLetterQueue
from reprocessing.store.ordering import lanes
from reprocessing.store.search import filter_conditions, found_letters
from reprocessing.store.search.found_letters import FoundLetter, FoundPage

#: Max messages on one page.
SHOWN: Final = 50
_VIEW: Final = "reprocessing.view_letter"
_PARKED: Final = "reprocessing.view_parkedletter"
#: States whose messages the parking lot lists. There, people act on all messages that match, or export them.
_PARKING_LOT_STATES: Final = (LetterState.PARKED.value, LetterState.DISCARDED.value)
_MOST_ID: Final = 18  # max digits of a message's id
#: A word that can be the name of a state, and a word that can be the beginning of a message id, but not a whole one.
_STATE: Final = re.compile("[A-Za-z]+(?:[ _-][A-Za-z]+)?")
_BEGINNING_OF_ID: Final = re.compile("[0-9A-Fa-f]{8}[0-9A-Fa-f-]{0,27}")


@dataclass(frozen=True, slots=True)
class _Result:
    """What a search found. `scan`: how far bodies were scanned, in words; empty: bodies were not scanned."""

    criteria: MessageFilter
    page: FoundPage
    scan: str


@require_safe
def page(request: HttpRequest) -> HttpResponse:
    """Show what a search means and finds, or open the only message that it finds."""
    if not request.user.has_perm(_VIEW):
        raise PermissionDenied
    text = request.GET.get("q", "").strip()
    context: dict[str, Any] = {"title": "Search", "q": text}
    if not text:
        context |= saved_filter_pages.section_values(request, SavingPage.SEARCH, "", None)
    else:
        try:
            search, below = search_of(request, text), _below(request)
            result = _result(request, search, below)
        except InvalidFilter as error:
            context |= {"refusal": str(error)} | saved_filter_pages.section_values(
                request, SavingPage.SEARCH, text, None
            )
        else:
            if below is None and _is_exact(result) and result.page.n == 1:
                messages.info(request, f"Found by the search: {visible(_matched(search, result))}.")
                return HttpResponseRedirect(_address(request, result.page.letters[0]))
            context |= _found(request, text, search, result) | _saved(request, text, result)
    return TemplateResponse(request, "reprocessing/admin/search.html", admin.site.each_context(request) | context)


def _saved(request: HttpRequest, text: str, result: _Result) -> dict[str, Any]:
    """Return template values: the saved filters, and the form that saves this search.

    If bodies were searched because no id, key or value was found, the saved search also searches bodies.
    """
    asked, criteria = read_search(text), result.criteria
    if criteria.text != asked.text:  # no id, key or value was found, so that bodies were searched instead
        text = write_search(replace(asked, named=None, text=criteria.text))
    return saved_filter_pages.section_values(request, SavingPage.SEARCH, text, criteria)


def _result(request: HttpRequest, search: Search, below: int | None) -> _Result:
    """Find messages. If a single word is no id, key or value of a message, search for the word in bodies.

    Bodies are searched only if this person may do so.
    """
    criteria = search.criteria
    found = found_letters.find_letters(criteria, below=below, limit=SHOWN + 1)
    in_bodies = replace(criteria, named=None, text=criteria.named)
    if not found.n and criteria.named is not None and criteria.text is None and may_search_bodies(request, in_bodies):
        criteria = in_bodies
        found = found_letters.find_letters(criteria, below=below, limit=SHOWN + 1)
    return _Result(criteria, found, _scan(criteria) if criteria.text is not None else "")


def _scan(criteria: MessageFilter) -> str:
    done = found_letters.scanned(criteria)
    if filter_conditions.is_exhaustive(criteria):
        return f"This was a scan of the bodies of all {done.n:,} messages that match the other conditions."
    back_to = f"{done.since:%Y-%m-%d %H:%M} UTC" if done.since else "-"
    return (
        f"This was a scan of the bodies of the newest {done.n:,} messages. It stopped at messages captured on "
        f"{back_to}; older messages were not searched. Add dlq:NAME or state:parked, so that fewer messages match."
    )


def _is_exact(result: _Result) -> bool:
    criteria = result.criteria
    is_asked = criteria.named is not None or criteria.key is not None or bool(criteria.fields)
    return is_asked and criteria.text is None and not any(condition.is_prefix for condition in criteria.conditions)


def _matched(search: Search, result: _Result) -> str:
    """Return in words why the only message was found, such as "ordering key is customer-7"."""
    (letter,), named = result.page.letters, search.criteria.named
    for words, value in (("message id", letter.message_id), ("ordering key", letter.key)):
        if named is not None and value == named:
            return f"{words} is {named}"
    return search.meanings[0]


def _found(request: HttpRequest, text: str, search: Search, result: _Result) -> dict[str, Any]:
    found, now = result.page, lanes.database_now()
    is_scan = result.scan and search.criteria.text is None
    return {
        "meanings": search.meanings,
        "notes": search.notes,
        "scan": result.scan,
        "instead": f'No message has this id, key or value. Searched bodies for "{search.criteria.named}" instead.'
        if is_scan else "",
        "counted": _counted(found),
        "count": found.n,
        "states": list(_states(request, text, result)),
        "lines": [_line(request, letter, now) for letter in found.letters[:SHOWN]],
        "next": _next(text, found),
        "first": f"?{urlencode({'q': text})}" if "below" in request.GET else "",
        **(_nothing(request, text, search) if not found.n else {}),
    }  # fmt: skip


def _states(request: HttpRequest, text: str, result: _Result) -> Iterator[dict[str, Any]]:
    """Yield for each state its name, the number of found messages, and the URL that shows only these messages.

    If not all messages that match were counted, the numbers are not known, and empty. `in_parking_lot`: whether the URL
    is that of the parking lot, where a person can act on the messages.
    """
    counts = _counts(result)
    for state, n in counts.items():
        criteria = replace(result.criteria, states=(state,), dlqs=None, reveals=False)
        in_parking_lot = state in _PARKING_LOT_STATES and request.user.has_perm(_PARKED)
        address = message_list.address_of(criteria) if in_parking_lot else ""
        more = f"?{urlencode({'q': _in_state(text, state)})}" if len(counts) > 1 else ""
        yield {
            "words": labels.counted_state(state), "n": n, "address": address or more, "in_parking_lot": bool(address),
        }  # fmt: skip


def _counts(result: _Result) -> dict[str, str]:
    """Return the number of found messages by state, as text; empty texts: the numbers are not known."""
    found = result.page
    if found.counts is not None:
        return {count.state: f"{count.n:,}" for count in found.counts}
    states = list(dict.fromkeys(result.criteria.states)) or [state.value for state in LetterState]
    return dict.fromkeys(states, _counted(found) if len(states) == 1 else "")


def _counted(found: FoundPage) -> str:
    """Return the number of found messages as text, such as "1,000+" if not all were counted."""
    return f"{found.n:,}{'+' if found.counts is None else ''}"


def _in_state(text: str, state: str) -> str:
    """Return a search text that finds the same messages as `text`, but only those in this state."""
    return write_search(replace(read_search(text), states=(state,)))


def _line(request: HttpRequest, letter: FoundLetter, now: datetime) -> dict[str, Any]:
    return {
        "address": _address(request, letter), "message_id": visible(letter.message_id), "dlq": letter.dlq,
        "state": labels.state(letter.state, letter.presumed),
        "why": ParkedReason(letter.reason).label if letter.reason else "",
        "type": letter.type, "finished_at": letter.finished_at,
        "key": short_key(letter.key or ""), "age": time_since(now - letter.first_sent_at),
        "attempts": attempts_in_lists(
            letter.attempts, earlier=letter.attempts_before_release, spared=letter.spared, allowed=letter.max_attempts
        ),
    }  # fmt: skip


def _address(request: HttpRequest, letter: FoundLetter) -> str:
    is_parked = letter.state == LetterState.PARKED and request.user.has_perm(_PARKED)
    return reverse(f"admin:reprocessing_{'parkedletter' if is_parked else 'letter'}_change", args=[letter.id])


def _nothing(request: HttpRequest, text: str, search: Search) -> dict[str, Any]:
    """Return template values for a search that found nothing.

    `without`: names of DLQs without search fields. `meant`: a search by state, if a word of the search is the name of a
    state. `is_part_of_id`: whether the searched word can be the beginning of a message id.
    """
    seen = visible_rows.rows(request, DeadLetterQueue.objects.order_by("name"))
    of = seen.filter(pk=search.criteria.dlq) if search.criteria.dlq else seen
    without = list(of.filter(search_fields=[]).values_list("name", flat=True)[:500])
    is_part_of_id = _BEGINNING_OF_ID.fullmatch(search.criteria.named or "") is not None
    return {"without": names(without), "meant": _meant(read_search(text)), "is_part_of_id": is_part_of_id}


def _meant(asked: SearchText) -> str:
    """Return the search by the state that the searched word names, such as "state:parked"; empty: it names no state."""
    if asked.states or not _STATE.fullmatch(asked.named or ""):
        return ""
    try:
        state = read_search(f'state:"{asked.named}"')
    except InvalidFilter:
        return ""
    return write_search(replace(asked, named=None, states=state.states, presumed=state.presumed))


def _next(text: str, found: FoundPage) -> str:
    if len(found.letters) <= SHOWN:
        return ""
    return f"?{urlencode({'q': text, 'below': found.letters[SHOWN - 1].id})}"


def _below(request: HttpRequest) -> int | None:
    text = request.GET.get("below", "")
    if text and not (text.isascii() and text.isdecimal() and len(text) <= _MOST_ID):
        raise InvalidFilter("The address of this page is not valid. Search again.")
    return int(text) if text else None
