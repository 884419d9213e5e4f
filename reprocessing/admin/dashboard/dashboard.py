"""The start page of the admin: figures of all DLQs that a person sees, urgent problems, and a table of the DLQs."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.auth.models import Group, PermissionsMixin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse

from reprocessing.admin.dashboard import first_steps, hourly_chart
from reprocessing.admin.dashboard.dlq_row import DlqRow, RowState
from reprocessing.admin.dashboard.figures import figures
from reprocessing.admin.dashboard.read_rows import read_rows
from reprocessing.admin.dashboard.table_query import PAGE, TableQuery, table_query
from reprocessing.admin.dashboard.table_rows import headers, table_rows
from reprocessing.admin.dashboard.urgent_cards import urgent_cards
from reprocessing.admin.site import visible_rows
from reprocessing.store.ordering import lanes
from reprocessing.store.rights.visible_dlqs import ALL_DLQS, VisibleDlqs


def figures_view(request: HttpRequest) -> HttpResponse:
    """Return the parts of the dashboard that an open page requests again every few seconds.

    Notices of django.contrib.messages are left for the next whole page. The banner that says that sends are stopped is
    returned only if the stop changed. Otherwise, a screen reader would read it again each time.

    Raises:
        PermissionDenied: this person may not see DLQs.
    """
    found = _figures(request)
    if not found["may_see_board"]:
        raise PermissionDenied
    part = {"is_part": True, "shown": request.GET.get("banner")}
    context = found | admin.site.each_context(request) | part
    return TemplateResponse(request, "reprocessing/admin/dashboard_figures.html", context)


def dashboard_context(request: HttpRequest) -> dict[str, Any]:
    """Return the template context of the whole dashboard.

    For a person who may not see DLQs, the context has only `may_see_board`, which is False.
    """
    found = _figures(request)
    if not found["may_see_board"]:
        return found
    seen = visible_rows.of(request)
    return found | {
        "chart": hourly_chart.chart(found["now"], seen=seen), "steps": first_steps.first_steps(request),
        **_choices(request, found["every"], seen),
    }  # fmt: skip


def _figures(request: HttpRequest) -> dict[str, Any]:
    """Return the template context of the parts that an open page refreshes.

    For a person who may not see DLQs, the context has only `may_see_board`, which is False.
    """
    user = request.user
    if not (isinstance(user, PermissionsMixin) and user.has_perm("reprocessing.view_deadletterqueue")):
        return {"may_see_board": False}
    seen = visible_rows.of(request)
    every, query = read_rows(seen), table_query(request.GET)
    matching = [row for row in every if query.matches(row)]
    return {
        "may_see_board": True,
        "sees_all": seen.are_all,
        "may_stop": user.has_perms(("reprocessing.stop_sends", ALL_DLQS)),
        "may_add": user.has_perms(("reprocessing.add_deadletterqueue", ALL_DLQS)),
        "may_discover": user.has_perms(("reprocessing.view_discoveredqueue", ALL_DLQS)),
        "now": lanes.database_now(),
        "every": every,
        "figures": figures(every),
        "urgent": urgent_cards(every, request),
        "query": query,
        "headers": headers(query),
        "rows": table_rows(query.shown(matching), user),
        **_paging(query, matching),
    }


def _paging(query: TableQuery, matching: list[DlqRow]) -> dict[str, Any]:
    here, pages = reverse("admin:index"), query.pages(matching)
    page = min(query.page, pages)

    def link(number: int) -> str:
        return f"{here}?{query.on_page(number).text}#dlqs" if 1 <= number <= pages else ""

    return {
        "matching": len(matching), "first": (page - 1) * PAGE + 1, "last": min(page * PAGE, len(matching)),
        "previous_page": link(page - 1), "next_page": link(page + 1), "pages": pages,
    }  # fmt: skip


def _choices(request: HttpRequest, every: list[DlqRow], seen: VisibleDlqs) -> dict[str, Any]:
    """Return the choices of the table's filter: the states that at least one DLQ has now, and the teams of the DLQs.

    A person who sees only the DLQs of some teams gets only the teams to which the person belongs.
    """
    present = frozenset[RowState]().union(*(row.states for row in every))
    teams = Group.objects.filter(pk__in={team for row in every for team in row.teams})
    if not seen.are_all and isinstance(request.user, PermissionsMixin):
        teams = teams.filter(pk__in=request.user.groups.values("pk"))
    return {
        "state_choices": [state for state in RowState if state in present],
        "team_choices": list(teams.order_by("name").values_list("pk", "name")),
    }
