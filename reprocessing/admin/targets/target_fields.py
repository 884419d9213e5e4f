"""What a sheet asks of targets: what it takes to call letters delivered, how fast they go, and what stops them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from django import forms

from reprocessing.admin.site.fields import OFF, NumberOrOff, choice, number, whole
from reprocessing.models.target import FASTEST, FORTNIGHT, SLOWEST, Advance, Proof
from reprocessing.store.targets import targets

#: What "off", or an emptied field, stands for, where that is not nothing.
WITHOUT: Final = {
    "parking_url": "", "ramp_from": 1.0, "message_type": "", "tenant": "", "answers": "", "content_type": "",
    "secret": "", "role_arn": "",
}  # fmt: skip
PACE: Final = ("proof", "advance", "window", "rate", "burst")
BRAKES: Final = tuple(targets.BRAKES)
_AS_IS: Final = "as it is, or by default"


class Pace(forms.Form):
    """Fields of pace, outcome and brakes; empty ones say nothing."""

    proof = choice(
        "Outcome: a letter counts as delivered", Proof.choices,
        "By default absence where a watched dlq lies behind the target, else accepted.", empty=_AS_IS,
    )  # fmt: skip
    advance = choice(
        "A lane's next letter may go", Advance.choices,
        "By default settled for keyed standard queues, else accepted.", empty=_AS_IS,
    )  # fmt: skip
    window = number(
        "Window, seconds", "How long a failed letter may take to come back, or a consumer to say what became of one.",
        least=0.001, most=FORTNIGHT,
    )  # fmt: skip
    rate = NumberOrOff(
        least=SLOWEST,
        most=FASTEST,
        label="Rate, letters a second",
        help_text='By all workers together. "off": no limit.',
    )
    burst = NumberOrOff(least=1, most=FASTEST, label="Burst, letters at once", help_text='"off": one second of rate.')
    breaker_threshold = whole("Breaker: failures in a row that open it", "By default 5.", most=1_000)
    breaker_ratio = number(
        "Breaker: share of failures that opens it", "Of the last 20 or more; by default 0.5.", least=0.001, most=1
    )
    breaker_cooldown = number(
        "Breaker: rest, seconds", "By default 30; twice as long after each try that fails.", least=0.1, most=FORTNIGHT
    )
    breaker_closes_after = whole("Breaker: tries that close it", "By default 3 in a row.", most=1_000)
    ramp_from = NumberOrOff(
        least=0.001,
        most=1,
        label="Ramp: share of the rate to begin with",
        help_text='By default 0.1. "off": all of it.',
    )
    ramp_every = number("Ramp: seconds on a step", "By default 10, at the least.", least=0.1, most=FORTNIGHT)


def said(form: forms.Form, names: Iterable[str]) -> dict[str, Any]:
    """What was changed or filled in, by the names of the row's fields; emptied, or "off", is what that means."""
    given = {one: form.cleaned_data[one] for one in names if one in form.changed_data}
    return {one: WITHOUT.get(one) if value in (OFF, "", None) else value for one, value in given.items()}
