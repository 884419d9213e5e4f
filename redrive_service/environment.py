"""What the service is told by environment variables, checked as a whole before anything starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlsplit

import environ
from django.core.exceptions import ImproperlyConfigured

Mode = Literal["production", "sandbox"]
QUEUES = ("redrive-control", "redrive-capture", "redrive-replay")
SHORTEST_SECRET = 50  # characters, as Django's deployment check asks for


class EnvironmentIsIncomplete(ImproperlyConfigured):
    """The service was started without something it must not guess."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """The service's surroundings. Nothing here has a default that could hide a mistake in production."""

    mode: Mode
    secret_key: str
    allowed_hosts: tuple[str, ...]
    trusted_origins: tuple[str, ...]
    database: dict[str, Any]
    redis_url: str
    queue_urls: dict[str, str]
    region: str
    behind_proxy: bool


def read(variables: Mapping[str, str]) -> Environment:
    """The environment, or everything that is wrong with it in one message.

    Raises:
        EnvironmentIsIncomplete: a variable is missing or cannot be used; the message names each and its cure.
    """
    reader = _Reader(variables)
    environment = Environment(
        mode=reader.mode(),
        secret_key=reader.secret_key(),
        allowed_hosts=reader.allowed_hosts(),
        trusted_origins=reader.words("CSRF_TRUSTED_ORIGINS"),
        database=reader.database(),
        redis_url=reader.redis_url(),
        queue_urls={name: reader.queue_url(name) for name in QUEUES},
        region=reader.text("AWS_DEFAULT_REGION", "Set it to the region of your queues, such as eu-west-1."),
        behind_proxy=reader.yes_or_no("BEHIND_TLS_PROXY"),
    )
    if reader.problems:
        problems = "\n".join(f"  - {problem}" for problem in reader.problems)
        raise EnvironmentIsIncomplete(
            f"The redrive service cannot start:\n{problems}\n"
            "For a first look without any of this: python manage.py sandbox"
        )
    return environment


class _Reader:
    """Reads one variable after the other and notes what is wrong, so that all of it is told at once."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        self.variables = variables
        self.problems: list[str] = []

    def text(self, name: str, cure: str) -> str:
        value = self.variables.get(name, "").strip()
        if not value:
            self.problems.append(f"{name} is not set. {cure}")
        return value

    def words(self, name: str) -> tuple[str, ...]:
        return tuple(word.strip() for word in self.variables.get(name, "").split(",") if word.strip())

    def mode(self) -> Mode:
        value = self.variables.get("REDRIVE_MODE", "production")
        if value == "sandbox":
            return "sandbox"
        if value != "production":
            self.problems.append("REDRIVE_MODE is neither production (the default) nor sandbox. Unset it.")
        return "production"

    def yes_or_no(self, name: str) -> bool:
        value = self.variables.get(name, "no").strip().lower()
        if value not in {"yes", "no"}:
            self.problems.append(f"{name} must be yes or no.")
        return value == "yes"

    def secret_key(self) -> str:
        cure = 'Make one: python -c "import secrets; print(secrets.token_urlsafe(50))"'
        value = self.text("SECRET_KEY", cure)
        if 0 < len(value) < SHORTEST_SECRET:
            self.problems.append(f"SECRET_KEY is shorter than {SHORTEST_SECRET} characters. {cure}")
        return value

    def allowed_hosts(self) -> tuple[str, ...]:
        hosts = self.words("ALLOWED_HOSTS")
        if not hosts:
            self.problems.append("ALLOWED_HOSTS is not set. List the host names of the admin: redrive.example.com")
        elif "*" in hosts:
            self.problems.append("ALLOWED_HOSTS admits every host (*). List the host names of the admin.")
        return hosts

    def database(self) -> dict[str, Any]:
        cure = "Set it to a PostgreSQL database: postgres://USER:PASSWORD@HOST:5432/NAME"
        # The scheme first: of one it does not know the parser tells the whole address, password and all.
        value = self.url("DATABASE_URL", cure, schemes=("postgres", "postgresql"))
        if not value:
            return {}
        database: dict[str, Any] = environ.Env.db_url_config(value)
        if not database["NAME"]:
            self.problems.append(f"DATABASE_URL names no database. {cure}")
        return database

    def redis_url(self) -> str:
        cure = "Set it to a Redis or Valkey server: rediss://:PASSWORD@HOST:6379/0"
        return self.url("REDIS_URL", cure, schemes=("redis", "rediss", "unix"))

    def queue_url(self, queue: str) -> str:
        name = f"{queue.upper().replace('-', '_')}_QUEUE_URL"
        return self.url(name, f"Set it to the URL of the service's own queue {queue}.", schemes=("https", "http"))

    def url(self, name: str, cure: str, *, schemes: tuple[str, ...]) -> str:
        """The URL, or nothing when it is missing or cannot be used."""
        value = self.text(name, cure)
        if not value or _is_url(value, schemes):
            return value
        self.problems.append(f"{name} is not a URL that begins with {schemes[0]}://. {cure}")
        return ""


def _is_url(value: str, schemes: tuple[str, ...]) -> bool:
    try:
        parts = urlsplit(value)
        parts.port  # noqa: B018  # reading it is what checks it
    except ValueError:
        return False
    return parts.scheme in schemes and bool(parts.netloc or parts.path)
