"""Views of a sign-in: redirect to the provider, read its answer, or show why the sign-in was refused."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from urllib.parse import urlencode

from django.conf import settings
from django.contrib import admin, messages
from django.contrib.auth import logout
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET
from mozilla_django_oidc.views import OIDCAuthenticationCallbackView, OIDCAuthenticationRequestView

from redrive_service.oidc.backend import setting
from redrive_service.oidc.metadata import provider
from redrive_service.oidc.refusals import EXPIRED, NOT_SIGNED_IN, Refusal, SignInRefused

logger = logging.getLogger("redrive.sign_in")
#: Session key of the time when the provider must confirm the session. The key's name is mozilla-django-oidc's.
RECHECK_AT = "oidc_id_token_expiration"
#: Session key of the time when the session ends, even if the provider confirmed it.
ENDS_AT = "oidc_ends_at"
_NEEDS_A_PAGE = {"login_required", "interaction_required", "consent_required", "account_selection_required"}


class _Begin(OIDCAuthenticationRequestView):  # type: ignore[misc]  # mozilla-django-oidc is untyped
    get_settings = staticmethod(setting)

    def get_extra_params(self, request: HttpRequest) -> dict[str, str]:
        """Return the parameter `prompt` for the provider.

        If the URL has the query parameter `silent`, the provider shows no page. If it has `other`, the provider shows
        its sign-in page even if the person is signed in there.
        """
        if "silent" in request.GET and request.user.is_authenticated:
            return {"prompt": "none"}
        return {"prompt": "login"} if "other" in request.GET else {}


class _Callback(OIDCAuthenticationCallbackView):  # type: ignore[misc]  # mozilla-django-oidc is untyped
    get_settings = staticmethod(setting)

    def get(self, request: HttpRequest) -> HttpResponse:
        """Sign the person in with the provider's answer.

        Raises:
            SignInRefused: the sign-in did not begin in this session, or the provider refused it.
        """
        if request.GET.get("state") not in request.session.get("oidc_states", {}):
            raise SignInRefused(EXPIRED, "the state is not of this session")
        error = request.GET.get("error")
        answer: HttpResponse = super().get(request) if not error else self._ended(request, error)
        return answer

    def _ended(self, request: HttpRequest, error: str) -> HttpResponse:
        """End the session, because the provider answered with an error.

        If the person was signed in here, and the provider wants the person to sign in again, return a redirect to this
        service's sign-in page. For other errors, raise SignInRefused.
        """
        going_to = request.session.get("oidc_login_next") or reverse("admin:index")
        was_signed_in = request.user.is_authenticated
        del request.session["oidc_states"][request.GET["state"]]
        request.session.modified = True
        logout(request)
        if was_signed_in and error in _NEEDS_A_PAGE:
            messages.warning(request, f"Your session at {provider().name} has ended. Sign in again.")
            return HttpResponseRedirect(f"{reverse('admin:login')}?{urlencode({'next': going_to})}")
        reason = error[:60] if error.isascii() and error.isprintable() else "an error"
        raise SignInRefused(NOT_SIGNED_IN, f"the provider answered {reason}")

    def login_failure(self) -> HttpResponse:
        """Raise SignInRefused, because the provider answered without a code."""
        raise SignInRefused(NOT_SIGNED_IN, "the provider answered without a code")

    def login_success(self) -> HttpResponse:
        """Begin the session of the person or, if the same person is signed in, confirm it."""
        answer: HttpResponse = super().login_success()
        ends_at = time.time() + settings.SESSION_COOKIE_AGE  # noqa: TID251  where a request gets its time
        self.request.session.setdefault(ENDS_AT, ends_at)
        return answer


@never_cache
@require_GET
def begin(request: HttpRequest) -> HttpResponse:
    """Redirect the browser to the provider's sign-in. State, nonce and PKCE protect against forged answers."""
    return _answered(_Begin.as_view(), request)


@never_cache
@require_GET
def callback(request: HttpRequest) -> HttpResponse:
    """Sign the person in with the provider's answer, or show why the sign-in was refused."""
    return _answered(_Callback.as_view(), request)


def _answered(view: Callable[..., HttpResponse], request: HttpRequest) -> HttpResponse:
    try:
        return view(request)
    except SignInRefused as refused:
        logger.warning("Sign-in refused: %s: %s", refused.refusal.title, refused.why)
        if refused.refusal.ends_session:
            logout(request)
        return page(request, refused.refusal)


def page(request: HttpRequest, refusal: Refusal) -> HttpResponse:
    """Return the page that shows a refused sign-in."""
    oidc = provider()
    context = {
        **admin.site.each_context(request),
        "title": refusal.title,
        "says": refusal.says.format(name=oidc.name),
        "provider": oidc,
    }
    return render(request, "redrive_service/sign_in_refused.html", context, status=refusal.status)
