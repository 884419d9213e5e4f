"""List all environment variables that the service reads, and find the name that a misspelt name probably means."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Final

from redrive_service.environment.secret_files import READ_FROM_FILES, SUFFIX, secret_of
from redrive_service.notifications import PREFIX as NOTIFY
from reprocessing.domain.configuration.setting_problems import ALERT_LIMITS

PREFIX: Final = "REDRIVE_"
_WITHOUT_SECRETS: Final = (
    "ALLOWED_HOSTS", "AWS_DEFAULT_REGION", "BEHIND_TLS_PROXY", "CSRF_TRUSTED_ORIGINS", "DATABASE_BEHIND_POOLER",
    "LOG_FORMAT", "REDRIVE_ALIVE_FILE", "REDRIVE_CAPTURE_QUEUE_URL", "REDRIVE_CLOUDWATCH", "REDRIVE_COLOUR",
    "REDRIVE_CONTROL_QUEUE_URL", "REDRIVE_FIRST_STEPS", "REDRIVE_LOGIN_ATTEMPTS", "REDRIVE_LOGIN_LOCK_MINUTES",
    "REDRIVE_MASKED_FIELDS", "REDRIVE_MODE", "REDRIVE_OIDC_CLIENT_ID", "REDRIVE_OIDC_GROUPS",
    "REDRIVE_OIDC_GROUPS_CLAIM", "REDRIVE_OIDC_ISSUER", "REDRIVE_OIDC_NAME", "REDRIVE_OIDC_RECHECK_MINUTES",
    "REDRIVE_OIDC_SCOPES", "REDRIVE_OIDC_STAFF_CLAIM", "REDRIVE_OUTBOUND_HOSTS", "REDRIVE_PASSWORD_LOGIN",
    "REDRIVE_PLACE", "REDRIVE_PROXY_COUNT", "REDRIVE_PUBLIC_URL", "REDRIVE_REPLAY_QUEUE_URL",
    "REDRIVE_SESSION_ENDS_WITH_BROWSER", "REDRIVE_SESSION_HOURS", "REDRIVE_TOKEN_RECHECK_DAYS", "REDRIVE_TRACES",
    "REDRIVE_TRACE_MESSAGES",
)  # fmt: skip
#: All names except those of notification destinations (`REDRIVE_NOTIFY_<NAME>`) and of secret files (`…_FILE`).
NAMES: Final = frozenset({*_WITHOUT_SECRETS, *READ_FROM_FILES, *(f"{PREFIX}{name.upper()}" for name in ALERT_LIMITS)})


def is_known(name: str) -> bool:
    """Return whether the service reads the environment variable of this name."""
    return name in NAMES or secret_of(name) is not None


def nearest_name(name: str) -> str:
    """Return the known name that is most similar to this unknown name, or "" if no known name is similar."""
    word, _, destination = name.removeprefix(PREFIX).partition("_")
    if destination and difflib.get_close_matches(word, ("NOTIFY",), cutoff=0.5):
        return f"{NOTIFY}{destination}"
    # The prefix that most names begin with is left out, because it would make all of them alike.
    known = {one.removeprefix(PREFIX): one for one in (*NAMES, *(f"{secret}{SUFFIX}" for secret in READ_FROM_FILES))}
    near = difflib.get_close_matches(name.removeprefix(PREFIX), sorted(known), n=1, cutoff=0.7)
    return known[near[0]] if near else ""


def unknown_names(variables: Iterable[str]) -> list[str]:
    """Return, sorted, the names that begin with REDRIVE_ but that the service does not read.

    Variables that Kubernetes sets for its Services are left out, such as REDRIVE_WEB_SERVICE_HOST and REDRIVE_WEB_PORT
    for the Service `redrive-web`.
    """
    names = set(variables)
    services = [name.removesuffix("_SERVICE_HOST") for name in names if name.endswith("_SERVICE_HOST")]
    of_kubernetes = tuple(f"{service}_{part}" for service in services for part in ("SERVICE_", "PORT"))
    return sorted(
        name for name in names if name.startswith(PREFIX) and not is_known(name) and not name.startswith(of_kubernetes)
    )
