"""On the page of a planned run, compare different values of max rate, order and waves. A person can choose one."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse

from reprocessing.admin.messages.readable_bytes import visible
from reprocessing.admin.runs import run_actions
from reprocessing.admin.site import visible_rows
from reprocessing.admin.site.fields import choice, number
from reprocessing.domain.aws import pricing
from reprocessing.domain.message.arn import resource_name
from reprocessing.domain.runs.forecast import duration_in_words, rate_in_words
from reprocessing.domain.runs.plan_choice import Choice, ChoiceFigures, Offer, Peak
from reprocessing.models import Run
from reprocessing.models.target import MAX_RATE, MIN_RATE
from reprocessing.pipeline.runs import run_actions as actions
from reprocessing.pipeline.runs.forecast_plan import PlanForecast
from reprocessing.store.runs import run_transitions

EARLY: Final = "early"  #: value of `ChoiceForm.order`: do not wait for outcomes
RATE_LABEL: Final = "Max rate (messages/s)"
RATE_HELP: Final = "Most messages/s that this run sends to each target, from all workers. Empty: the target's rate."
ORDER_CHOICES: Final = (
    ("", "as set for the targets"), (EARLY, "do not wait for outcomes: a failed message is sent after later ones"),
)  # fmt: skip
_WAVES: Final = (("yes", "1 message first, then 10, then 100, then all"), ("no", "all at once"))
_PEAKS: Final = 3  # max targets whose highest rate a column names


class ChoiceForm(forms.Form):
    """The form in which a person enters how a planned run is executed: max rate, order and waves.

    URLs and buttons of the page have the same three values.
    """

    rate = number(RATE_LABEL, RATE_HELP, least=MIN_RATE, most=MAX_RATE)
    order = choice("Order", ORDER_CHOICES)
    waves = forms.ChoiceField(label="Waves", choices=_WAVES)

    @property
    def choice(self) -> Choice:
        """Return the entered max rate, order and waves. The form must be valid."""
        given = self.cleaned_data
        return Choice(rate=given["rate"], waits_for_outcomes=given["order"] != EARLY, waves=given["waves"] == "yes")


def values_of(chosen: Choice) -> dict[str, str]:
    """Return the values of the fields of a `ChoiceForm` for this max rate, order and waves."""
    return {
        "rate": "" if chosen.rate is None else f"{chosen.rate:.15g}",
        "order": "" if chosen.waits_for_outcomes else EARLY,
        "waves": "yes" if chosen.waves else "no",
    }


def form_of(run: Run, query: Mapping[str, Any]) -> ChoiceForm:
    """Return the form with the max rate, order and waves in the URL's query. If the query has none, take the run's."""
    own = Choice(rate=run.rate, waits_for_outcomes=run.waits_for_outcomes, waves=run.waves)
    return ChoiceForm(query) if "waves" in query else ChoiceForm(initial=values_of(own))


def columns(outlook: PlanForecast, form: ChoiceForm) -> list[dict[str, Any]]:
    """Return the template values of each column of the comparison: what the plan does with other rate, order and waves.

    `form`: the values that the person entered. They also get a column if they are valid.
    """
    asked = form.choice if form.is_bound and form.is_valid() else None
    if asked and not (asked.waits_for_outcomes or outlook.may_overtake):
        asked = None
    return [_column(outlook, offer) for offer in outlook.offers(asked)]


def order_note(outlook: PlanForecast) -> str:
    """Return why the next message of a key may be sent only after the outcome of the message before is known.

    Empty: a person may choose not to wait, or no target of the run waits anyway.
    """
    waits = any(share.round_trip for share in outlook.configured)
    return actions.why_it_must_wait(outlook.dlq) if waits else ""


def _column(outlook: PlanForecast, offer: Offer) -> dict[str, Any]:
    found = outlook.figures(offer.choice)
    return {
        "title": offer.title,
        "how": list(_how(offer.choice)),
        "chosen": offer.choice == outlook.choice,
        "value": "|".join(values_of(offer.choice).values()),
        "takes": duration_in_words(found.seconds),
        "ends": "not known: see Obstacles" if outlook.obstacles else _ends(outlook.prospect.now, found.ends_at),
        "requests": pricing.count_in_words(found.cost),
        "price": pricing.price_in_words(found.cost),
        "peaks": _peaks(found),
        "late": found.late,
    }


def _how(chosen: Choice) -> list[str]:
    rate = "the targets' rates" if chosen.rate is None else f"at most {rate_in_words(chosen.rate, digits=12)}"
    order = "order as set for the targets" if chosen.waits_for_outcomes else "sends before outcomes are known"
    return [rate, "waves of 1, 10, 100, all" if chosen.waves else "no waves", order]


def _ends(now: datetime, at: datetime) -> str:
    if at.date() == now.date():
        return f"{at:%H:%M:%S} UTC"
    return f"{at:%Y-%m-%d %H:%M} UTC"


def _peaks(found: ChoiceFigures) -> list[str]:
    alone = len(found.peaks) == 1
    named = [_peak(peak, alone=alone) for peak in found.peaks[:_PEAKS]]
    rest = len(found.peaks) - _PEAKS
    return [*named, f"{rest:,} more targets"] if rest > 0 else named


def _peak(peak: Peak, *, alone: bool) -> str:
    rate = "no limit" if peak.rate is None else rate_in_words(peak.rate)
    return rate if alone else f"{rate} to {visible(resource_name(peak.target))}"


def page(request: HttpRequest, run: int) -> HttpResponse:
    """Store the chosen max rate, order and waves of a planned run, and redirect to the run's page.

    Raises:
        PermissionDenied: this person may not operate runs.
        Http404: this person does not see the run.
    """
    found = visible_rows.row_or_404(request, Run.objects, run)
    if not request.user.has_perm(run_actions.PERMISSION):
        raise PermissionDenied
    names = ("rate", "order", "waves")
    values = request.POST.get("choice", "").split("|")
    form = ChoiceForm(dict(zip(names, values, strict=True)) if len(values) == len(names) else request.POST)
    if not form.is_valid():
        messages.warning(request, "Nothing was changed: the values cannot be read. Choose again.")
    elif why := actions.choose(run, form.choice, seen=request.POST.get("seen", ""), by=request.user.get_username()):
        messages.warning(request, f"Nothing was changed. {why}")
    else:
        limits = ", ".join(_how(form.choice))
        messages.success(
            request, f"{found.name} has these limits now: {limits}. Nothing is sent until somebody starts it."
        )
    return HttpResponseRedirect(reverse("admin:reprocessing_run_change", args=[run]))


def stamp(run: Run) -> str:
    """Return a text that changes when the run changes, for a hidden field of the run's page."""
    return run_transitions.page_stamp(run)
