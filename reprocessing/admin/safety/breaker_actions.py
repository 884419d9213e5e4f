"""Breakers by hand: closed, opened or half opened, with a reason, and only as they were seen."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from django import forms
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse

from reprocessing.admin.site import confirmed_action
from reprocessing.admin.site.confirmed_action import Done, NotDone, Question, Why
from reprocessing.models import Breaker
from reprocessing.models.safety import BreakerState
from reprocessing.models.target import FORTNIGHT
from reprocessing.store.safety import breaker_resets, breaker_status
from reprocessing.store.safety.breaker_resets import State
from reprocessing.store.safety.breaker_status import Bearing

PERMISSION: Final = "reprocessing.reset_breaker"
#: The last part of an address, and the state that it leads to.
DEEDS: Final[Mapping[str, State]] = {"close": "closed", "open": "open", "half-open": "half_open"}
_WORDS: Final = {"closed": "closed", "open": "open", "half_open": "half open"}
_DOES: Final = {
    "closed": "Letters go there again, slowly at first, by the ramp; what was seen before no longer counts.",
    "open": "Nothing goes there for a while. Then one letter tries, as it would by itself.",
    "half_open": "One letter tries, at once. When it goes well, the next does; when it fails, the breaker opens again.",
}


class Opening(Why):
    """For how long."""

    seconds = forms.FloatField(
        required=False, min_value=0.1, max_value=FORTNIGHT, label="For so many seconds",
        help_text="Empty: for its usual rest. It is at most a fortnight.",
    )  # fmt: skip


def possible(breaker: Breaker) -> list[str]:
    """What can be done to a breaker where it stands; one that is open can be opened anew, for another while."""
    return [deed for deed, state in DEEDS.items() if state != breaker.state or state == "open"]


def page(request: HttpRequest, breaker: int, move: str) -> HttpResponse:
    """The page of one deed."""
    if move not in DEEDS:
        raise Http404
    to = DEEDS[move]
    return confirmed_action.page(
        request,
        permission=PERMISSION,
        question=partial(_question, breaker, to),
        act=partial(_act, breaker, to),
        form=Opening if to == "open" else Why,
    )


def _found(key: int) -> Bearing:
    row = Breaker.objects.filter(pk=key).first()
    found = breaker_status.bearings([row.target_id]) if row else []
    for one in found:
        if one.breaker_id == key:
            return one
    raise Http404


def _seen(one: Bearing) -> str:
    return f"{one.state}@{one.epoch}"


def _question(key: int, to: State) -> Question:
    one = _found(key)
    now = one.why or one.ramp_why
    return Question(
        title=f"Breaker of {one.name}: {_WORDS[to]}",
        button={"closed": "Close it", "open": "Open it", "half_open": "Half open it"}[to],
        says=(_DOES[to], "Letters of every dlq that go there are meant."),
        seen=_seen(one),
        back=reverse("admin:reprocessing_breaker_change", args=[key]),
        about=f"Breaker of {one.name}",
        facts=(
            ("Now", _WORDS[one.state]), ("Since", f"{one.since:%Y-%m-%d %H:%M:%S} UTC"), ("Why", now or "nobody said"),
        ),
        idle="It is closed already." if to == "closed" and one.state == BreakerState.CLOSED else "",
    )  # fmt: skip


def _act(key: int, to: State, given: Mapping[str, Any], by: str) -> Done | NotDone:
    one = _found(key)
    moved = None
    if given["seen"] == _seen(one):
        moved = breaker_resets.reset_one(one, to=to, by=by, reason=given["reason"], seconds=given.get("seconds"))
    if moved is None:
        now = _found(key)
        why = f": {now.why}" if now.why else ""
        return NotDone(f"It is another than you saw: it is {_WORDS[now.state]} since {now.since:%H:%M:%S} UTC{why}.")
    there = reverse("admin:reprocessing_breaker_change", args=[key])
    return Done(there, f"The breaker of {one.name} is {_WORDS[to]}.")
