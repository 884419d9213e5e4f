"""Fetch the OpenID provider's endpoints and signing keys from the provider."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import requests
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from redrive_service.environment import Oidc
from redrive_service.oidc.refusals import UNREACHABLE, UNVERIFIED, SignInRefused

TIMEOUT: Final = 5.0  #: seconds until the provider must accept a connection, and then send each part of an answer
_REMEMBERED: Final = 600.0  # seconds for which fetched metadata are used again
_ENDPOINTS: Final = ("authorization_endpoint", "token_endpoint", "jwks_uri")
_OPTIONAL_ENDPOINTS: Final = ("userinfo_endpoint", "end_session_endpoint")


@dataclass(frozen=True, slots=True, kw_only=True)
class Metadata:
    """The provider's metadata (OpenID Connect Discovery 1.0, section 3). Optional endpoints may be empty.

    If `authenticates_by_header` is true, the client secret is sent in the header Authorization, else in the body.
    """

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    userinfo_endpoint: str
    end_session_endpoint: str
    authenticates_by_header: bool


_lock = threading.Lock()
_known: dict[Oidc, tuple[float, Metadata]] = {}


def provider() -> Oidc:
    """Return the provider in settings.OIDC. Raises ImproperlyConfigured if no provider is set."""
    found = settings.OIDC
    if found is None:
        raise ImproperlyConfigured("No OpenID provider is set: REDRIVE_OIDC_ISSUER.")
    return found


def metadata() -> Metadata:
    """Return the provider's metadata, at most ten minutes old.

    Raises:
        SignInRefused: the provider does not answer, or its answer cannot be used.
    """
    oidc = provider()
    now = time.monotonic()
    with _lock:
        read_at, found = _known.get(oidc, (0.0, None))
    if found is None or now - read_at > _REMEMBERED:
        found = _checked(fetch(oidc.discovery_url), oidc)
        with _lock:
            _known[oidc] = (now, found)
    return found


def keys() -> Mapping[str, Any]:
    """Fetch the provider's current signing keys, a JSON Web Key Set (RFC 7517)."""
    return fetch(metadata().jwks_uri)


def fetch(url: str) -> Mapping[str, Any]:
    """Fetch a JSON object from the provider. Raises SignInRefused if the provider does not answer with an object."""
    try:
        answer = requests.get(url, timeout=TIMEOUT)
        answer.raise_for_status()
        found = answer.json()
    except requests.RequestException as error:
        raise SignInRefused(UNREACHABLE, f"{url}: {type(error).__name__}") from None
    if not isinstance(found, Mapping):
        raise SignInRefused(UNREACHABLE, f"{url}: no JSON object")
    return found


def _checked(document: Mapping[str, Any], oidc: Oidc) -> Metadata:
    issuer = document.get("issuer")
    if not isinstance(issuer, str) or issuer.rstrip("/") != oidc.issuer.rstrip("/"):
        raise SignInRefused(UNVERIFIED, f"REDRIVE_OIDC_ISSUER is {oidc.issuer}, but the provider's is {issuer!r}")
    urls = {name: _endpoint(document, name, oidc) for name in (*_ENDPOINTS, *_OPTIONAL_ENDPOINTS)}
    methods = document.get("token_endpoint_auth_methods_supported") or ["client_secret_basic"]
    return Metadata(issuer=issuer, authenticates_by_header="client_secret_post" not in methods, **urls)


def _endpoint(document: Mapping[str, Any], name: str, oidc: Oidc) -> str:
    url = document.get(name) or ""
    scheme = f"{oidc.issuer.partition('://')[0]}://"  # a sandbox also accepts http
    if isinstance(url, str) and (url.startswith(("https://", scheme)) or (not url and name in _OPTIONAL_ENDPOINTS)):
        return url
    raise SignInRefused(UNREACHABLE, f"the provider's {name} is no URL that begins with https://")
