"""Links to the runs that send released messages, for the sentence that the admin shows after a release."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import conditional_escape, format_html, format_html_join

from reprocessing.admin.messages.readable_bytes import visible
from reprocessing.admin.site import visible_rows
from reprocessing.domain.lifecycle import OPEN_STATES
from reprocessing.models import Letter, Run
from reprocessing.models.run import RunState

#: Max runs to which a sentence links.
_MOST: Final = 5


def with_runs(request: HttpRequest, sentence: str, letters: Collection[int]) -> str:
    """Return a sentence about a release as HTML, with links to the runs that send the released messages.

    There are at most 5 links. If this person may not see runs, the sentence is returned unchanged. `letters`: ids of
    the released messages.
    """
    if not request.user.has_perm("reprocessing.view_run"):
        return sentence
    sent = Letter.objects.filter(pk__in=list(letters), state__in=[state.value for state in OPEN_STATES])
    found = visible_rows.rows(request, Run.objects.filter(pk__in=sent.values("run"))).order_by("pk")[:_MOST]
    links = [(reverse("admin:reprocessing_run_change", args=[run.pk]), visible(str(run)), _but(run)) for run in found]
    if not links:
        return sentence
    shown = format_html_join(", ", '<a href="{}">Show the run {}</a>{}', links)
    return format_html("{} {}", conditional_escape(sentence), shown)


def _but(run: Run) -> str:
    return " (paused: nothing is sent until somebody resumes it)" if run.state == RunState.PAUSED else ""
