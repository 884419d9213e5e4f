"""The list of the parking lot, with its filter. A person acts on selected messages, or on all that match the filter."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from typing import Any, Final
from urllib.parse import urlencode

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.template.response import TemplateResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from reprocessing.admin.messages import listed_messages
from reprocessing.admin.messages.listed_messages import Neighbours
from reprocessing.admin.messages.message_page import may_see_payloads
from reprocessing.admin.messages.readable_bytes import NOT_IN_SQS, duration, short_key, time_since, visible
from reprocessing.admin.messages.uncounted_attempts import attempts_in_lists
from reprocessing.admin.parking_lot.confirm_forms import AT, TO
from reprocessing.admin.parking_lot.decision import DecisionKind, from_stamp, pack_message, to_stamp
from reprocessing.admin.search.read_search import names, search_of, settings_seen
from reprocessing.admin.search.search_rights import may_search_bodies, with_masked_values
from reprocessing.admin.site import labels, visible_rows
from reprocessing.admin.site.buttons import Button
from reprocessing.domain.errors import InvalidFilter
from reprocessing.domain.lifecycle import FINISHED_STATES, LetterState, ParkedReason
from reprocessing.domain.parking_lot.message_filter import SEARCHED_LETTERS, MessageFilter
from reprocessing.domain.search.search_text import SearchText, write_search
from reprocessing.models import DeadLetterQueue, FailureGroup, Letter, Rule, Run, Source, Target
from reprocessing.store.maintenance import counters
from reprocessing.store.ordering import lanes
from reprocessing.store.parking_lot import filtered_letters
from reprocessing.store.parking_lot.filtered_letters import ListedLetter, PageStart

#: Max messages on one page.
SHOWN: Final = 50
#: URL parameters that are not filters: the start of the page, and parameters of Django's lists.
_NO_FILTER: Final = frozenset({"after", "e", "p", "o", "search", "_changelist_filters"})
_PLACE = re.compile(r"(\d{1,17})-(\d{1,18})", re.ASCII)
_DLQS_SHOWN = 500
_STATES: Final = {LetterState.PARKED.value: "Parked", LetterState.DISCARDED.value: "Discarded"}


def filter_of(request: HttpRequest) -> MessageFilter:
    """Return the filter that the URL of the request describes.

    Raises:
        InvalidFilter: the query is not a filter, or a filter that `allowed` refuses.
        PermissionDenied: the filter searches payloads, and this person may not see payloads.
    """
    return _filter_of(request, request.GET)


def neighbours(request: HttpRequest, letter: Letter, query: QueryDict) -> Neighbours:
    """Return the ids of the previous and the next message in the list with this query.

    None: there is no such message, or the list searches bodies, which is slow. Raises the same errors as `filter_of`.
    """
    criteria = _filter_of(request, query)
    if criteria.text is not None or letter.finished_at is None:
        return None, None
    return filtered_letters.neighbours(criteria, (letter.finished_at, letter.pk))


def _filter_of(request: HttpRequest, query: QueryDict) -> MessageFilter:
    asked = {name: values for name, values in query.lists() if name not in _NO_FILTER}
    return allowed(MessageFilter.from_query(asked), request)


def allowed(criteria: MessageFilter, request: HttpRequest) -> MessageFilter:
    """Return the filter, limited to the DLQs that this person sees.

    Raises:
        PermissionDenied: the filter searches payloads, and this person may not see payloads.
        InvalidFilter: the filter selects unfinished messages, which are not in this list; or it searches payloads that
            may have masked values, and this person may not reveal them.
    """
    if criteria.reads_bodies and not may_see_payloads(request.user):
        raise PermissionDenied
    if criteria.reads_bodies and not may_search_bodies(request, criteria):
        raise InvalidFilter(
            "A text search could reveal masked values of these messages. It needs the permission to reveal masked "
            "values."
        )
    if not set(criteria.states) <= set(FINISHED_STATES):
        raise InvalidFilter("These messages are in progress. Find them in the list of all messages, by state.")
    return replace(with_masked_values(request, criteria), dlqs=visible_rows.of(request).ids)


def query_of(criteria: MessageFilter) -> str:
    """Return the filter as a URL query."""
    return urlencode(criteria.to_query())


def address_of(criteria: MessageFilter) -> str:
    """Return the URL of the list of messages that match the filter."""
    query = query_of(criteria)
    return reverse("admin:reprocessing_parkedletter_changelist") + (f"?{query}" if query else "")


def names_of(request: HttpRequest, criteria: MessageFilter) -> dict[str, str]:
    """Return the names of the DLQ, failure group, source queue, target, rule and run that the filter has as ids.

    The keys are "dlq", "group", …. Objects that do not exist, or that this person does not see, are left out.
    """
    rows: dict[str, QuerySet[Any]] = {
        "dlq": DeadLetterQueue.objects.all(), "group": FailureGroup.objects.all(), "source": Source.with_removed.all(),
        "target": Target.objects.all(), "rule": Rule.objects.all(), "run": Run.objects.all(),
    }  # fmt: skip
    ids = {name: getattr(criteria, name) for name in rows}
    found = {name: visible_rows.rows(request, rows[name]).filter(pk=key).first() for name, key in ids.items() if key}
    return {name: visible(str(row)) for name, row in found.items() if row is not None}


@require_safe
def page(request: HttpRequest) -> HttpResponse:
    """Show the list of messages that match the filter in the URL."""
    if not request.user.has_perm("reprocessing.view_parkedletter"):
        raise PermissionDenied
    criteria, below, refusal, found, count = MessageFilter(), None, "", list[ListedLetter](), 0
    try:
        criteria, below = filter_of(request), _page_start(request)
        if "search" in request.GET:  # submitted form: redirect to the filter's URL
            searched = search_of(request, request.GET["search"], within=criteria)
            return HttpResponseRedirect(address_of(searched.criteria))
        looked = filtered_letters.letter_page(criteria, below=below, limit=SHOWN + 1)
        found, count = looked.letters, looked.n
    except InvalidFilter as error:
        refusal = str(error)
    context = {
        **admin.site.each_context(request),
        "title": "Parking lot",
        "refusal": refusal,
        "search": request.GET.get("search") or write_search(_as_search(criteria)),
        "declared": names(
            sorted({field.name for settings in settings_seen(request, criteria) for field in settings.fields})
        ),
        "lines": [_line(letter, lanes.database_now(), request.GET) for letter in found[:SHOWN]],
        "count": count,
        "counted": filtered_letters.counted(count),
        "next": _next(request, found),
        "first": address_of(criteria) if below else "",
        **_filter_context(request, criteria, count),
    }
    return TemplateResponse(request, "reprocessing/admin/parking_lot.html", context)


def _reasons(criteria: MessageFilter) -> Iterable[tuple[ParkedReason, str]]:
    """Yield the reasons from which a person chooses in the filter, each with its number of messages as text.

    These are the reasons that messages have now, and reasons already chosen. The numbers come from stored counts, which
    do not fit a filter with other conditions, too. The texts are then empty.
    """
    alone = replace(criteria, reasons=()) == MessageFilter(dlq=criteria.dlq, states=criteria.states, dlqs=criteria.dlqs)
    found = Counter[str]()
    for kind in counters.counts_by_state(criteria.dlq):
        if kind.state in criteria.states and (criteria.dlqs is None or kind.dlq_id in criteria.dlqs):
            found[kind.reason] += kind.n
    for reason in ParkedReason:
        if found[reason.value] > 0 or reason in criteria.reasons:
            yield reason, f"{max(0, found[reason.value]):,}" if alone else ""


def _filter_context(request: HttpRequest, criteria: MessageFilter, count: int) -> dict[str, Any]:
    names = names_of(request, criteria)
    states = [
        (label, query_of(MessageFilter(dlq=criteria.dlq, states=(state,))), criteria.states == (state,))
        for state, label in _STATES.items()
    ]
    ways = list(_action_buttons(request, criteria))
    may_export = request.user.has_perm("reprocessing.export_letter")
    takes = "" if may_export else "it needs the permission to export messages"
    export = Button("Export…", reverse("admin:parkedletter_export"), takes)
    return {
        "criteria": criteria,
        "sentence": criteria.sentence(names, single=count == 1),
        "query": query_of(criteria),
        "states": states,
        "kept": _hidden_conditions(criteria),
        "narrowings": list(_narrowings(criteria, names)),
        "dlqs": list(
            visible_rows.rows(request, DeadLetterQueue.objects.order_by("name")).values_list("pk", "name")[:_DLQS_SHOWN]
        ),
        "reasons": [(reason.value, reason.label, n) for reason, n in _reasons(criteria)],
        "is_parked": criteria.states == (LetterState.PARKED.value,),
        "may_look_into_bodies": may_see_payloads(request.user),
        "looked_through": SEARCHED_LETTERS if criteria.reads_bodies else 0,
        "ways": ways,
        "export": export,
        "may_act": any(not button.closed for button in ways),
        "refusals": list(_refusals([*ways, export])),
    }


def _line(letter: ListedLetter, now: datetime, query: QueryDict) -> dict[str, Any]:
    """Return a row of the list as values for the template. `query`: the query of the list's URL.

    `pick`: the value of the row's checkbox. `left`: the time until SQS deletes the message from the DLQ.
    """
    model = "parkedletter" if letter.state == LetterState.PARKED else "letter"
    return {
        "address": listed_messages.link(reverse(f"admin:reprocessing_{model}_change", args=[letter.id]), query),
        "pick": pack_message(letter.id, letter.finished_at, letter.revision_id),
        "message_id": visible(letter.message_id),
        "dlq": letter.dlq, "why": ParkedReason(letter.reason).label if letter.reason else letter.state,
        "key": short_key(letter.key or ""), "group": letter.group_id, "cause": visible(letter.cause or ""),
        "age": time_since(now - letter.first_sent_at),
        "since": time_since(now - letter.finished_at) if letter.finished_at else "-",
        "attempts": attempts_in_lists(
            letter.attempts, earlier=letter.attempts_before_release, spared=letter.spared, allowed=letter.max_attempts
        ),
        "left": duration(letter.expires_at - now) if letter.expires_at else NOT_IN_SQS,
        "assigned": visible(letter.assigned_to),
    }  # fmt: skip


def _page_start(request: HttpRequest) -> PageStart | None:
    text = request.GET.get("after", "")
    found = _PLACE.fullmatch(text)
    if text and not found:
        raise InvalidFilter("The address of this page is not valid. Go to the first page.")
    return (from_stamp(int(found[1])), int(found[2])) if found else None


def _next(request: HttpRequest, found: list[ListedLetter]) -> str:
    """Return the URL of the next page; empty: this is the last page."""
    if len(found) <= SHOWN:
        return ""
    last = found[SHOWN - 1]
    query = request.GET.copy()
    query["after"] = f"{to_stamp(last.finished_at)}-{last.id}"
    return f"?{query.urlencode()}"


def _hidden_conditions(criteria: MessageFilter) -> list[tuple[str, str]]:
    """Return the conditions of the filter that have no visible form field. The form keeps them as hidden fields."""
    own = {"dlq", "reason", "q", "key", "field", "assigned", "text"}
    own |= {"sent_after", "sent_before", "parked_after", "parked_before"}
    return [(name, value) for name, value in criteria.to_query() if name not in own]


def _as_search(criteria: MessageFilter) -> SearchText:
    """Return the conditions of the filter that the search box shows."""
    return SearchText(named=criteria.named, key=criteria.key, fields=criteria.conditions)


def _narrowings(criteria: MessageFilter, names: dict[str, str]) -> Iterable[dict[str, str]]:
    """Yield each condition that has no visible form field, in words, with the URL of the list without the condition."""
    for name in ("group", "source", "target", "rule", "run"):
        if (value := getattr(criteria, name)) is not None:
            rest = {other: kept for other, kept in criteria.stored().items() if other != name}
            label = labels.column(name).lower()
            text = f"{label}: {names.get(name) or visible(str(value))}"
            yield {"words": text, "without": address_of(MessageFilter.read(rest))}
    if criteria.selector is not None:
        value = "no value" if criteria.value is None else visible(criteria.value)
        without = address_of(replace(criteria, selector=None, value=None))
        yield {"words": f"{visible(criteria.selector)}: {value}", "without": without}


def _action_buttons(request: HttpRequest, criteria: MessageFilter) -> Iterable[Button]:
    if criteria.states == (LetterState.DISCARDED.value,):
        yield _action_button(request, DecisionKind.RESTORE, "Restore…")
    elif criteria.states == (LetterState.PARKED.value,):
        for decision, label, how in (
            (DecisionKind.RELEASE, "Release…", ""), (DecisionKind.RELEASE, "Release at…", AT),
            (DecisionKind.RELEASE, "Release to…", TO),
            (DecisionKind.DISCARD, "Discard…", ""), (DecisionKind.ASSIGN, "Assign…", ""),
            (DecisionKind.NOTE, "Note…", ""),
        ):  # fmt: skip
            yield _action_button(request, decision, label, how=how)
        may_edit = request.user.has_perm("reprocessing.edit_parkedletter") and may_see_payloads(request.user)
        takes = "" if may_edit else "it needs the permissions to edit messages and to see payloads"
        yield Button("Edit…", reverse("admin:parkedletter_edit_all"), takes)


def _refusals(ways: Iterable[Button]) -> Iterable[tuple[str, str]]:
    """Yield for each permission that the person lacks: the actions that need it, and a text about the permission."""
    closed: dict[str, list[str]] = {}
    for button in ways:
        if button.closed:
            closed.setdefault(button.closed, []).append(button.label.strip("…").lower().partition(" ")[0])
    return [(" or ".join(dict.fromkeys(labels)), why) for why, labels in closed.items()]


def _action_button(request: HttpRequest, decision: DecisionKind, label: str, *, how: str = "") -> Button:
    closed = "" if request.user.has_perm(decision.permission) else decision.takes
    return Button(label, reverse(f"admin:parkedletter_{decision}"), closed, how=how)
