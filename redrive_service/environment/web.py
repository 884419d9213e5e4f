"""Read the variables of the web server: hosts, proxies, sign-in and secrets."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from redrive_service.environment.addresses import is_host, is_visible, parts
from redrive_service.environment.variables import INVISIBLE, Variables

_SHORTEST_SECRET = 50  # min characters, as in Django's deployment check
_SHORTEST_TOKEN = 32  # min characters
_MOST_PROXIES = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class SignIn:
    """Limits of sign-in.

    After `attempts` wrong passwords, a user name is locked for the time `lock`. A session lasts for the time `session`.
    If `ends_with_browser` is true, a session also ends when the browser is closed.
    """

    attempts: int
    lock: timedelta
    session: timedelta
    ends_with_browser: bool


def secret_key(variables: Variables) -> str:
    """Return Django's secret key (SECRET_KEY). A key of less than 50 characters is a problem."""
    cure = 'Make one: python -c "import secrets; print(secrets.token_urlsafe(50))"'
    value = variables.required("SECRET_KEY", cure)
    if 0 < len(value) < _SHORTEST_SECRET:
        variables.problems.append(f"SECRET_KEY is shorter than {_SHORTEST_SECRET} characters. {cure}")
    return value


def allowed_hosts(variables: Variables) -> tuple[str, ...]:
    """Return the host names under which the admin answers (ALLOWED_HOSTS)."""
    hosts = variables.words("ALLOWED_HOSTS")
    cure = "List the host names of the admin: redrive.example.com"
    if not hosts:
        variables.problems.append(f"ALLOWED_HOSTS is not set. {cure}")
    elif "*" in hosts:
        variables.problems.append(f"ALLOWED_HOSTS admits every host (*). {cure}")
    elif any("/" in host for host in hosts):
        variables.problems.append(f"ALLOWED_HOSTS holds a URL, not a host name. {cure}")
    elif not all(map(is_visible, hosts)):
        variables.problems.append(f"ALLOWED_HOSTS holds {INVISIBLE}. Separate the names with commas alone. {cure}")
    elif not all(map(is_host, hosts)):
        wanted = "neither the name nor the address of a host, nor a .domain"
        variables.problems.append(f"ALLOWED_HOSTS holds an entry that is {wanted}. Leave ports out. {cure}")
    return hosts


def trusted_origins(variables: Variables) -> tuple[str, ...]:
    """Return the origins (https://HOST) whose pages may send forms to the admin."""
    sources = variables.words("CSRF_TRUSTED_ORIGINS")
    cure = "Begin each with https:// and separate them with commas alone."
    if not all(map(is_visible, sources)):
        variables.problems.append(f"CSRF_TRUSTED_ORIGINS holds {INVISIBLE}. {cure}")
    elif not all((found := parts(source, ("https", "http"))) and found.netloc for source in sources):
        variables.problems.append(f"CSRF_TRUSTED_ORIGINS holds an entry that is not https://HOST. {cure}")
    return sources


def proxy_count(variables: Variables, *, required: bool) -> int:
    """Return how many proxies add an address to X-Forwarded-For. If `required`, a missing variable is a problem."""
    if required and not variables.value("REDRIVE_PROXY_COUNT"):
        variables.problems.append(
            "REDRIVE_PROXY_COUNT is not set, but BEHIND_TLS_PROXY is yes. Set it to the number of proxies that add "
            "the client's address to X-Forwarded-For (mostly 1), or to 0 if none does. Wrong passwords are counted "
            "per address."
        )
    return variables.number("REDRIVE_PROXY_COUNT", default=0, least=0, most=_MOST_PROXIES)


def sign_in(variables: Variables) -> SignIn:
    """Return the limits of sign-in: wrong passwords, and length of a session."""
    minutes = variables.number("REDRIVE_LOGIN_LOCK_MINUTES", default=15, least=1, most=1_440)
    hours = variables.number("REDRIVE_SESSION_HOURS", default=12, least=1, most=336)
    return SignIn(
        attempts=variables.number("REDRIVE_LOGIN_ATTEMPTS", default=5, least=1, most=100),
        lock=timedelta(minutes=minutes),
        session=timedelta(hours=hours),
        ends_with_browser=variables.yes_or_no("REDRIVE_SESSION_ENDS_WITH_BROWSER"),
    )


def token_recheck(variables: Variables) -> timedelta:
    """Return how long an API token works after the OpenID provider last confirmed its owner. Zero means no limit."""
    return timedelta(days=variables.number("REDRIVE_TOKEN_RECHECK_DAYS", default=30, least=0, most=365))


def public_url(variables: Variables, *, needed: bool) -> str:
    """Return the URL of the admin's host, for links in notifications. If `needed`, a missing URL is a problem."""
    value = variables.value("REDRIVE_PUBLIC_URL").rstrip("/")
    cure = "Set it to the URL of the admin's host: https://redrive.example.com"
    in_production = variables.value("REDRIVE_MODE") != "sandbox"
    found = parts(value, ("https",) if in_production else ("https", "http")) if value else None
    if not value and needed and in_production:
        variables.problems.append(f"REDRIVE_PUBLIC_URL is not set, but a notification destination is. {cure}")
    elif value and not (found and is_visible(value) and found.netloc == value.partition("://")[2]):
        variables.problems.append(f"REDRIVE_PUBLIC_URL must be a URL without a path. {cure}")
    return value


def metrics_token(variables: Variables) -> str:
    """Return the token with which Prometheus may read /metrics. If it is empty, nobody can read metrics."""
    value = variables.value("REDRIVE_METRICS_TOKEN")
    if value and (len(value) < _SHORTEST_TOKEN or not value.isascii() or not is_visible(value)):
        needed = f"at least {_SHORTEST_TOKEN} characters that can be seen"
        variables.problems.append(f"REDRIVE_METRICS_TOKEN must have {needed}. Make one: openssl rand -hex 32")
    return value
