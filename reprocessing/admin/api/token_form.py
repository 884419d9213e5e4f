"""The form that makes an API token, and the page that shows its secret once."""

from __future__ import annotations

from typing import Any, Final

from django import forms
from django.contrib import admin
from django.contrib.auth.models import Group, User
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.views.decorators.http import require_http_methods

from reprocessing.admin.site import visible_rows
from reprocessing.admin.site.confirmed_action import reason_field
from reprocessing.admin.site.fields import slug, utc_datetime
from reprocessing.domain.api.scopes import Scope, read_scopes
from reprocessing.domain.errors import InvalidApiToken
from reprocessing.store.api import tokens
from reprocessing.store.api.tokens import MadeToken, TokenRequest
from reprocessing.store.rights.roles import possible_teams

ADD: Final = "reprocessing.add_apitoken"


class TokenForm(forms.Form):
    """The form of a new API token: name, owner, scopes and expiry.

    It offers only scopes for which the user has the required permission.
    """

    name = slug("Letters a to z, digits, - and _, no spaces. It cannot be changed later. No other token can have it.")
    teams = forms.ModelMultipleChoiceField(
        Group.objects.none(), required=False, label="Teams",
        help_text="The token has access to the DLQs of these teams. None selected: the token belongs to you, and "
        "allows only what your permissions allow.",
    )  # fmt: skip
    scopes = forms.MultipleChoiceField(label="Scopes", widget=forms.CheckboxSelectMultiple)
    expires_at = utc_datetime("Expires at (UTC)", "Empty: the token does not expire.")
    reason = reason_field()

    def __init__(self, user: User, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401  Django's own
        super().__init__(*args, **kwargs)
        may = [scope for scope in Scope if user.has_perm(scope.permission)]
        self.fields["teams"].queryset = possible_teams()  # type: ignore[attr-defined]  # a model choice field's
        self.fields["scopes"].choices = [(scope.value, f"{scope}: {scope.sentence}") for scope in may]  # type: ignore[attr-defined]  # a choice field's

    def request_of(self, user: User) -> TokenRequest:
        """Return the values of the new token. If no team is selected, the token belongs to `user`."""
        given = self.cleaned_data
        teams = tuple(given["teams"])
        owner = None if teams else user
        return TokenRequest(given["name"], read_scopes(given["scopes"]), owner, teams, given["expires_at"])


@require_http_methods(["GET", "HEAD", "POST"])
def page(request: HttpRequest) -> HttpResponse:
    """Show the form of a new token. When a valid form is submitted, make the token and show its secret once.

    Raises:
        PermissionDenied: the person may not add tokens, or does not see all DLQs.
    """
    user = request.user
    if not isinstance(user, User) or not user.has_perm(ADD):
        raise PermissionDenied
    visible_rows.require_all(request)
    form = TokenForm(user, request.POST if request.method == "POST" else None)
    made = _made(form, user) if form.is_bound and form.is_valid() else None
    context = {
        **admin.site.each_context(request), "title": "Add an API token" if made is None else f"API token {made.row}",
        "form": form, "made": made,
    }  # fmt: skip
    answer = TemplateResponse(request, "reprocessing/admin/api_token.html", context)
    answer.headers["Cache-Control"] = "no-store"
    return answer


def _made(form: TokenForm, user: User) -> MadeToken | None:
    try:
        return tokens.make_token(form.request_of(user), by=user.get_username(), reason=form.cleaned_data["reason"])
    except InvalidApiToken as error:
        form.add_error(None, str(error))
        return None
