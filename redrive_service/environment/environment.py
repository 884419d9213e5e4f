"""Read all environment variables, or raise one error that lists every problem."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from redrive_service.environment import installation, observability, oidc, outbound, payloads, services, web
from redrive_service.environment.first_look import with_first_look
from redrive_service.environment.variables import Variables


class EnvironmentIsIncomplete(ImproperlyConfigured):
    """A variable that the service needs is missing, or cannot be used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """The checked values of all environment variables."""

    mode: installation.Mode
    secret_key: str = field(repr=False)
    allowed_hosts: tuple[str, ...]
    trusted_origins: tuple[str, ...]
    database: dict[str, Any] = field(repr=False)
    behind_pooler: bool
    redis_url: str = field(repr=False)
    queue_urls: dict[str, str]
    region: str
    behind_proxy: bool
    proxy_count: int
    sign_in: web.SignIn
    oidc: oidc.Oidc | None
    password_login: bool
    token_recheck: timedelta
    outbound_hosts: tuple[str, ...]
    place: str
    colour: str
    first_steps: bool
    cloudwatch: str
    public_url: str
    destinations: dict[str, str] = field(repr=False)
    alerts: dict[str, float]
    metrics_token: str = field(repr=False)
    secrets: dict[str, str] = field(repr=False)
    payload_keys: tuple[str, ...] = field(repr=False)
    masked_fields: tuple[str, ...]
    log_format: observability.LogFormat
    traces: bool
    trace_messages: bool
    alive_file: str


def read(variables: Mapping[str, str]) -> Environment:
    """Return the checked values of all variables.

    Raises:
        EnvironmentIsIncomplete: a variable is missing or cannot be used. The error lists all problems.
    """
    found = Variables(variables)
    environment = Environment(
        mode=installation.mode(found),
        secret_key=web.secret_key(found),
        allowed_hosts=web.allowed_hosts(found),
        trusted_origins=web.trusted_origins(found),
        database=services.database(found),
        behind_pooler=found.yes_or_no("DATABASE_BEHIND_POOLER"),
        redis_url=services.redis_url(found),
        region=(region := services.region(found)),
        queue_urls=services.queue_urls(found, region),
        behind_proxy=(behind_proxy := found.yes_or_no("BEHIND_TLS_PROXY")),
        proxy_count=web.proxy_count(found, required=behind_proxy),
        sign_in=(sign_in := web.sign_in(found)),
        oidc=(provider := oidc.oidc(found, sign_in.session)),
        password_login=oidc.password_login(found, provider=provider is not None),
        token_recheck=web.token_recheck(found),
        outbound_hosts=outbound.hosts(found),
        place=installation.place(found),
        colour=installation.colour(found),
        first_steps=found.yes_or_no("REDRIVE_FIRST_STEPS"),
        cloudwatch=installation.cloudwatch(found),
        metrics_token=web.metrics_token(found),
        secrets=(secrets := outbound.secrets(found)),
        destinations=(destinations := outbound.destinations(found, secrets)),
        public_url=web.public_url(found, needed=bool(destinations)),
        alerts=outbound.alerts(found),
        payload_keys=payloads.keys(found),
        masked_fields=payloads.masked_fields(found),
        log_format=observability.log_format(found),
        traces=(traces := observability.traces(found)),
        trace_messages=observability.trace_messages(found, traces=traces),
        alive_file=observability.alive_file(found),
    )
    if found.problems:
        problems = "\n".join(f"  - {problem}" for problem in found.problems)
        raise EnvironmentIsIncomplete(with_first_look(f"The redrive service cannot start:\n{problems}"))
    return environment
