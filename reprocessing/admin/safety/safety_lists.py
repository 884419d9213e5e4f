"""The lists and pages of key queues, circuit breakers, waves and health checks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, ClassVar

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse

from reprocessing.admin.messages import key_queue_panel
from reprocessing.admin.messages.readable_bytes import visible
from reprocessing.admin.safety import breaker_actions, stop_pages
from reprocessing.admin.site import visible_rows
from reprocessing.admin.site.buttons import Button, button
from reprocessing.admin.site.keyset_list import search_words
from reprocessing.admin.site.readonly_admin import Page, ReadOnlyAdmin, RecordsAdmin
from reprocessing.domain.ordering.placement import read_sort_key
from reprocessing.models import Breaker, HealthCheck, Lane, Wave
from reprocessing.models.safety import BreakerState
from reprocessing.store.ordering import lanes

if TYPE_CHECKING:
    from django.contrib.admin.options import _FieldOpts


def _internals(*fields: str) -> tuple[str, _FieldOpts]:
    """Return the section of a page with the fields that only developers of the service need. It is closed at first."""
    return "Internals", {"fields": fields, "classes": ("collapse",)}


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


@admin.register(Lane)
class Lanes(RecordsAdmin):
    """The list and the pages of key queues. On the page of a key queue, a person can stop and resume the key queue."""

    list_display = ("id", "key", "dlq", "source", "phase", "due_at", "why", "stopped_by")
    list_filter = ("dlq", "phase")
    list_select_related = ("dlq", "source")
    search_fields = ("key__exact",)
    readonly_fields = ("waits", "highest_sent")
    fieldsets = (
        (None, {"fields": (
            "dlq", "source", "key", "phase", "waits", "due_at", "run", "breaker", "stopped_at", "stopped_by",
            "stop_reason",
        )}),
        _internals("why", "highest_sent", "single", "fence", "owner", "hinted_until"),
    )  # fmt: skip

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Lane], search_term: str
    ) -> tuple[QuerySet[Lane], bool]:
        """Return the key queues with the ordering key `search_term`. No index has the keys, but one has their hashes.

        The second value that is returned is False, which tells Django that no key queue occurs twice.
        """
        for key in search_words(search_term):
            queryset = queryset.filter(pk__in=lanes.lanes_of_key(key), key=key)
        return queryset, False

    @admin.display(description="What it waits for", empty_value="-")
    def waits(self, row: Lane) -> str | None:
        """Return what the key queue waits for now. Its field `why` has what a worker last found, which may be old."""
        return visible(key_queue_panel.why_lane_waits(row)) or None

    @admin.display(description="Highest sent sequence", empty_value="-")
    def highest_sent(self, row: Lane) -> str | None:
        """Return the highest sequence of the sent messages of the key queue, as it is written in the message.

        The database has it in another form, by which sequences are compared.
        """
        return row.highest_sent_sequence and read_sort_key(row.highest_sent_sequence)

    def pages(self) -> Iterable[Page]:
        """Return the pages that stop and resume a key queue."""
        return stop_pages.pages("lane", "lane")

    def buttons(self, request: HttpRequest, row: Lane) -> Iterable[Button]:
        """Return the button that stops or resumes the key queue."""
        yield stop_pages.stop_button(request, row, ("stop_lane", "stop key queues"))


@admin.register(Breaker)
class Breakers(ReadOnlyAdmin):
    """The list and the pages of circuit breakers, with buttons that close, open or half-open a circuit breaker."""

    list_display = ("id", "target", "rate_class", "state", "since", "why", "retry_at", "ramp_up")
    list_filter = ("state",)
    list_select_related = ("target", "rate_class")
    ordering = ("id",)
    sortable_by = ()
    field_help: ClassVar[Mapping[str, str]] = {
        "canary_until": "A canary (one message as a test) was sent. The next canary is sent as soon as the outcome of "
        "this canary is known. If the outcome stays unknown, the next canary is sent at this time. If the target "
        "accepted the canary, this time is one hour after its outcome should be known. The max cooldown does not limit "
        "this time.",
        "failing_since": "When the circuit breaker opened. Empty: it is closed, or a canary has succeeded since.",
    }
    readonly_fields = ("ramp_up",)
    fieldsets = (
        (None, {"fields": (
            "target", "rate_class", "state", "since", "why", "failing_since", "retry_at", "current_cooldown",
            "canary_until", "successes", "ramp_up",
        )}),
        ("Settings", {"fields": (
            "threshold", "ratio", "at_least", "cooldown", "cooldown_cap", "canaries_to_close", "ramp_from",
            "ramp_every",
        )}),
        _internals("epoch", "ramp_at", "ramp_failure_ratio"),
    )  # fmt: skip

    @admin.display(description="Ramp-up")
    def ramp_up(self, row: Breaker) -> str:
        """Return which share of the target's rate limit the ramp-up allows now, and why.

        If the circuit breaker is not closed, return with which share the sends will begin when it closes.
        """
        if row.ramp_from == 1:
            return "off"
        if row.state != BreakerState.CLOSED:
            return f"starts again at {_percent(row.ramp_from)} of the rate when the circuit breaker closes"
        return f"{_percent(row.ramp)} of the rate{f' ({row.ramp_reason})' if row.ramp_reason else ''}"

    def pages(self) -> Iterable[Page]:
        """Return the page that closes, opens or half-opens a circuit breaker."""
        return (("<int:breaker>/<slug:move>/now", breaker_actions.page, "action", {}),)

    def buttons(self, request: HttpRequest, row: Breaker) -> Iterable[Button]:
        """Return a button for each state that the circuit breaker can be put into."""
        shared = visible_rows.is_shared(request, row)
        for move in breaker_actions.possible_moves(row):
            address = reverse("admin:reprocessing_breaker_action", args=[row.pk, move])
            takes = ("reset_breaker", "change circuit breakers")
            yield button(request, f"{move.capitalize()}…", address, takes, grave=move == "open", shared=shared)


@admin.register(Wave)
class Waves(RecordsAdmin):
    """The list of waves, the parts of a run. The next wave of a run starts if the wave before succeeded."""

    list_display = ("id", "run", "no", "size", "opened_at", "settled_at", "sent", "failed")
    list_select_related = ("run",)
    search_fields = ("run__name__exact",)


@admin.register(HealthCheck)
class HealthChecks(ReadOnlyAdmin):
    """The list of health checks. The command check_health adds and removes them."""

    list_display = ("id", "target", "kind", "subject", "ceiling", "verdict", "detail", "checked_at")
    list_filter = ("kind", "verdict")
    list_select_related = ("target",)
    ordering = ("id",)
    sortable_by = ()
