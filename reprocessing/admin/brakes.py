"""What holds letters back, to be looked at: breakers, waves, and the checks of targets' health."""

from __future__ import annotations

from django.contrib import admin

from reprocessing.admin.history import History
from reprocessing.models import Breaker, HealthCheck, Wave


@admin.register(Breaker)
class Breakers(History):
    """Whether letters may go, and how many a second. `manage.py reset_breaker` moves one by hand."""

    list_display = ("id", "target", "rate_class", "state", "since", "why", "retry_at", "ramp", "ramp_why")
    list_filter = ("state",)
    list_select_related = ("target", "rate_class")
    ordering = ("id",)
    sortable_by = ()


@admin.register(Wave)
class Waves(History):
    """How many letters of a run went before it was known how those went."""

    list_display = ("id", "run", "no", "size", "opened_at", "settled_at", "touched", "failed")
    list_select_related = ("run",)
    search_fields = ("run__name__exact",)
    ordering = ("-id",)
    sortable_by = ()


@admin.register(HealthCheck)
class HealthChecks(History):
    """What a target must answer before letters go there. `manage.py check_health` adds and removes."""

    list_display = ("id", "target", "kind", "subject", "ceiling", "verdict", "detail", "checked_at")
    list_filter = ("kind", "verdict")
    list_select_related = ("target",)
    ordering = ("id",)
    sortable_by = ()
