"""Django's authentication backend for an OpenID provider: signs a user in with the code that the provider sent."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import requests
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import User
from django.http import HttpRequest
from mozilla_django_oidc.auth import OIDCAuthenticationBackend
from mozilla_django_oidc.utils import import_from_settings

from redrive_service.oidc import id_token, people
from redrive_service.oidc.metadata import TIMEOUT, keys, metadata, provider
from redrive_service.oidc.refusals import UNREACHABLE, UNVERIFIED, SignInRefused

BACKEND = "redrive_service.oidc.backend.ProviderBackend"
CALLBACK = "oidc_callback"


def setting(name: str, *default: object) -> object:
    """Return the value of a setting of mozilla-django-oidc. The client secret is not returned: nothing may show it."""
    oidc = provider()
    ours = {
        "OIDC_RP_CLIENT_ID": oidc.client_id,
        "OIDC_RP_SCOPES": oidc.scopes,
        "OIDC_USE_PKCE": True,
        "OIDC_TIMEOUT": TIMEOUT,
        "OIDC_AUTHENTICATION_CALLBACK_URL": CALLBACK,
        "OIDC_RENEW_ID_TOKEN_EXPIRY_SECONDS": oidc.recheck.total_seconds(),
    }
    if name == "OIDC_OP_AUTHORIZATION_ENDPOINT":
        return metadata().authorization_endpoint
    if name == "OIDC_TOKEN_USE_BASIC_AUTH":
        return metadata().authenticates_by_header
    if name == "OIDC_STORE_ID_TOKEN":
        return bool(metadata().end_session_endpoint)  # sign-out sends the ID token (`id_token_hint`)
    return ours[name] if name in ours else import_from_settings(name, *default)


class ProviderBackend(OIDCAuthenticationBackend):  # type: ignore[misc]  # mozilla-django-oidc is untyped
    """mozilla-django-oidc's backend with this service's verification of tokens and matching of users.

    Django makes an instance for each request of the admin, so `__init__` sends no request to the provider.
    """

    def __init__(self) -> None:
        self.UserModel = User  # the parent's __init__ would fetch all endpoints

    get_settings = staticmethod(setting)
    OIDC_OP_TOKEN_ENDPOINT = property(lambda _: metadata().token_endpoint)
    OIDC_OP_USER_ENDPOINT = property(lambda _: metadata().userinfo_endpoint)
    OIDC_RP_CLIENT_ID = property(lambda _: provider().client_id)
    OIDC_RP_CLIENT_SECRET = property(lambda _: provider().client_secret)

    def authenticate(self, request: HttpRequest, *, nonce: str, code_verifier: str) -> User:
        """Return the user whom the provider signed in, from the code in the request. Not called for passwords.

        Raises:
            SignInRefused: the sign-in failed. (None is not returned: Django would count it as a wrong password.)
        """
        try:
            user = super().authenticate(request, nonce=nonce, code_verifier=code_verifier)
        except requests.HTTPError as error:
            status = error.response.status_code if error.response is not None else 0
            refusal = UNREACHABLE if status >= HTTPStatus.INTERNAL_SERVER_ERROR else UNVERIFIED
            raise SignInRefused(refusal, f"the provider answered {status} to the code or the token") from None
        except requests.RequestException as error:
            raise SignInRefused(UNREACHABLE, f"the provider: {type(error).__name__}") from None
        if not isinstance(user, User):
            raise SignInRefused(UNVERIFIED, "there was no code in the provider's answer")
        return user

    def get_token(self, payload: dict[str, str]) -> Mapping[str, Any]:
        """Send the code to the provider, and return the tokens. Raises SignInRefused if the answer is not usable."""
        found = super().get_token(payload)
        if not isinstance(found, Mapping):
            raise SignInRefused(UNREACHABLE, "the provider's tokens are no JSON object")
        return found

    def verify_token(self, token: object, **kwargs: Any) -> dict[str, Any]:  # noqa: ANN401  the parent's
        """Verify the ID token, and return its claims. Raises SignInRefused if the token is not valid."""
        return id_token.verified(
            token, keys(), issuer=metadata().issuer, client_id=provider().client_id, nonce=kwargs.get("nonce")
        )

    def get_or_create_user(self, access_token: str, id_token: str, payload: dict[str, Any]) -> User:
        """Return the user of the person in the ID token. Claims that the token lacks come from the userinfo page."""
        userinfo = self.get_userinfo(access_token, id_token, payload)
        return people.admitted(metadata().issuer, {**userinfo, **payload}, provider())

    def get_userinfo(self, access_token: str, id_token: str, payload: dict[str, Any]) -> Mapping[str, Any]:
        """Return the claims of the provider's userinfo endpoint, or an empty dict if the provider has none.

        Raises:
            SignInRefused: the claims are about another person than the ID token.
        """
        if not metadata().userinfo_endpoint or not access_token:
            return {}
        found = super().get_userinfo(access_token, id_token, payload)
        if not isinstance(found, Mapping) or found.get("sub") != payload["sub"]:
            raise SignInRefused(UNVERIFIED, "the userinfo is about another person than the ID token")
        return found

    def get_user(self, user_id: int) -> User | None:
        """Return the user of a session, or None if the user was disabled or deleted after the sign-in."""
        found: User | None = ModelBackend.get_user(self, user_id)
        return found
