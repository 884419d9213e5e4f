"""The pages that close, open and half-open a circuit breaker.

Each page asks for a reason. Nothing is done if the circuit breaker changed after the page was opened.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from django import forms
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse

from reprocessing.admin.site import confirmed_action, visible_rows
from reprocessing.admin.site.confirmed_action import Done, NotDone, Question, ReasonForm
from reprocessing.models import Breaker
from reprocessing.models.safety import BreakerState
from reprocessing.models.target import MAX_SECONDS
from reprocessing.store.safety import breaker_resets, breaker_status
from reprocessing.store.safety.breaker_resets import State
from reprocessing.store.safety.breaker_status import BreakerStatus

PERMISSION: Final = "reprocessing.reset_breaker"
#: For the last part of each page's URL: the state into which the page puts the circuit breaker.
MOVES: Final[Mapping[str, State]] = {"close": "closed", "open": "open", "half-open": "half_open"}
_WORDS: Final = {"closed": "closed", "open": "open", "half_open": "half open"}
_ACTIONS: Final = {"closed": "Close", "open": "Open", "half_open": "Half-open"}
_DOES: Final = {
    "closed": "Messages are sent again, slowly at first (ramp-up). Earlier failures no longer count.",
    "open": "Nothing is sent during the cooldown. Then one message is sent as a canary, a test of the target.",
    "half_open": "One message is sent at once as a canary. If it succeeds, the next canary is sent; if it fails, the "
    "circuit breaker opens again.",
}


class OpenForm(ReasonForm):
    """The form that opens a circuit breaker: the reason, and how long the circuit breaker stays open."""

    seconds = forms.FloatField(
        required=False, min_value=0.1, max_value=MAX_SECONDS, label="Cooldown (s)",
        help_text="Seconds until the first canary (one message as a test) is sent. Empty: the target's usual cooldown. "
        "At most 14 days (1209600).",
    )  # fmt: skip


def possible_moves(breaker: Breaker) -> list[str]:
    """Return the names of the actions (keys of `MOVES`) that are possible in the circuit breaker's present state.

    An open circuit breaker can be opened again, which changes its cooldown.
    """
    return [move for move, state in MOVES.items() if state != breaker.state or state == "open"]


def page(request: HttpRequest, breaker: int, move: str) -> HttpResponse:
    """Show what an action does and ask for the reason. When the form is submitted, change the circuit breaker.

    `breaker`: the id of the circuit breaker. `move`: the action, a key of `MOVES` such as "half-open".

    Raises:
        Http404: this person does not see the circuit breaker, or `move` is not in `MOVES`.
        PermissionDenied: a DLQ that this person does not see uses the circuit breaker.
    """
    if move not in MOVES:
        raise Http404
    visible_rows.changeable_or_403(request, Breaker.objects, breaker)
    to = MOVES[move]
    question, act = partial(_question, breaker, to), partial(_act, breaker, to)
    form = OpenForm if to == "open" else ReasonForm
    return confirmed_action.page(request, permission=PERMISSION, question=question, act=act, form_class=form)


def _found(key: int) -> BreakerStatus:
    row = Breaker.objects.filter(pk=key).first()
    for status in breaker_status.breaker_statuses([row.target_id]) if row else ():
        if status.breaker_id == key:
            return status
    raise Http404


def _seen(status: BreakerStatus) -> str:
    return f"{status.state}@{status.epoch}"


def _question(key: int, to: State) -> Question:
    status = _found(key)
    name = f"Circuit breaker of {status.name}"
    return Question(
        title=f"{_ACTIONS[to]} the circuit breaker of {status.name}",
        button=_ACTIONS[to],
        says=(_DOES[to], "This applies to messages of every DLQ that are sent to this target."),
        seen=_seen(status),
        back=reverse("admin:reprocessing_breaker_change", args=[key]),
        about=name,
        facts=(
            ("State", _WORDS[status.state]), ("Since", f"{status.since:%Y-%m-%d %H:%M:%S} UTC"),
            ("Reason", status.why or status.ramp_reason or "none"),
        ),
        idle="The circuit breaker is closed already." if to == status.state == BreakerState.CLOSED else "",
    )  # fmt: skip


def _act(key: int, to: State, given: Mapping[str, Any], by: str) -> Done | NotDone:
    status = _found(key)
    moved = None
    if given["seen"] == _seen(status):
        moved = breaker_resets.reset_one(status, to=to, by=by, reason=given["reason"], seconds=given.get("seconds"))
    if moved is None:
        now = _found(key)
        why = f": {now.why}" if now.why else ""
        state = f"It is {_WORDS[now.state]} since {now.since:%H:%M:%S} UTC{why}."
        return NotDone(f"The circuit breaker changed after you opened this page. {state}")
    address = reverse("admin:reprocessing_breaker_change", args=[key])
    return Done(address, f"The circuit breaker of {status.name} is {_WORDS[to]}.")
