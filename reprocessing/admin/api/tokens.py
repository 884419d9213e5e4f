"""The list and the pages of API tokens, from which a person makes or revokes a token."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from reprocessing.admin.api import token_form
from reprocessing.admin.site import confirmed_action, visible_rows
from reprocessing.admin.site.buttons import Button, button
from reprocessing.admin.site.confirmed_action import Answer, Done, NotDone, Question
from reprocessing.admin.site.readonly_admin import Page, ReadOnlyAdmin
from reprocessing.models import ApiToken
from reprocessing.store.api import tokens
from reprocessing.store.ordering.lanes import database_now

CHANGE: Final = "reprocessing.change_apitoken"


@admin.register(ApiToken)
class ApiTokens(ReadOnlyAdmin):
    """The list of API tokens, with their owners, scopes and last use. A secret is shown only when its token is made."""

    add_permission = token_form.ADD
    adds_for_all = True
    list_display = ("name", "state", "owner", "of_scopes", "expires_at", "last_used_at", "reads", "added_by")
    fieldsets = (
        (None, {"fields": ("name", "state", "owner", "of_scopes", "expires_at")}),
        ("Use", {"fields": ("last_used_at", "reads", "added_by", "added_at", "revoked_at")}),
    )
    readonly_fields = ("state", "owner", "of_scopes")
    search_fields = ("name__exact",)
    list_select_related = (tokens.OWNER,)
    ordering = ("name",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[ApiToken]:
        """Return the tokens of the list, with their teams loaded by a single further query."""
        rows: QuerySet[ApiToken] = super().get_queryset(request).prefetch_related("teams")
        return rows

    @admin.display(description="state")
    def state(self, row: ApiToken) -> str:
        """Return the token's state as text, such as "active" or "revoked"."""
        return tokens.state_of(row, database_now())

    @admin.display(description="belongs to")
    def owner(self, row: ApiToken) -> str:
        """Return the user or the teams that own the token, or "nobody"."""
        return str(row.user) if row.user else ", ".join(sorted(str(team) for team in row.teams.all())) or "nobody"

    @admin.display(description="scopes")
    def of_scopes(self, row: ApiToken) -> str:
        """Return the scopes of the token."""
        return ", ".join(row.scopes)

    def add_page(self, request: HttpRequest) -> HttpResponse:
        """Return the page with the form of a new token."""
        return token_form.page(request)

    def pages(self) -> Iterable[Page]:
        """Return the page that revokes a token."""
        return (("<int:api_token>/revoke", _revoke, "revoke", {}),)

    def buttons(self, request: HttpRequest, row: ApiToken) -> Iterable[Button]:
        """Return the button that revokes the token."""
        address = reverse("admin:reprocessing_apitoken_revoke", args=[row.pk])
        yield button(request, "Revoke…", address, ("change_apitoken", "revoke API tokens"), grave=True)


def _revoke(request: HttpRequest, api_token: int) -> HttpResponse:
    row = visible_rows.row_or_404(request, ApiToken.objects, api_token)
    back = reverse("admin:reprocessing_apitoken_change", args=[row.pk])

    def question() -> Question:
        now = tokens.find_token(row.name)
        says = (
            "Requests with this token are refused from now on.",
            "Runs and bulk actions that the token started continue.",
        )
        idle = "" if now.revoked_at is None else "The token was revoked already."
        return Question(f"Revoke {row}", "Revoke", says, seen=str(now.revoked_at), back=back, about=str(row), idle=idle)

    def act(given: Mapping[str, Any], by: str) -> Answer:
        if tokens.revoke(row.name, by=by, reason=str(given["reason"])):
            return Done(back, f"{row} is revoked.")
        return NotDone("Somebody else revoked the token before you.")

    return confirmed_action.page(request, permission=CHANGE, question=question, act=act)
