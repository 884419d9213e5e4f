"""Read the variables of outgoing requests: allowed hosts, signing secrets, and notifications."""

from __future__ import annotations

import re
from collections.abc import Mapping

from redrive_service.environment.variables import Variables
from redrive_service.notifications import read_alerts, read_destinations
from reprocessing.domain.safety.url_policy import AllowList, UrlDenied, allow_list
from reprocessing.domain.targets import signing_secret

_HOSTS = "REDRIVE_OUTBOUND_HOSTS"
_OLD_NAME = "REDRIVE_HEALTH_HOSTS"


def hosts(variables: Variables) -> tuple[str, ...]:
    """Return the hosts and networks to which requests may go (REDRIVE_OUTBOUND_HOSTS)."""
    listed = variables.words(_HOSTS)
    if old := variables.words(_OLD_NAME):  # its value is shown only if it is a list of hosts
        value = "HOST,HOST:PORT" if isinstance(allow_list(old), UrlDenied) else ",".join(old)
        because = "because targets use it too"
        variables.problems.append(f"{_OLD_NAME} is now called {_HOSTS}, {because}. Set instead: {_HOSTS}={value}")
    found = allow_list(listed)
    if isinstance(found, UrlDenied):
        cure = "List host names, addresses or networks: status.example.com, 10.1.2.3:8080"
        variables.problems.append(f"{_HOSTS} cannot be used: {found.why}. {cure}")
    return listed


def secrets(variables: Variables) -> dict[str, str]:
    """Return the secrets that sign requests, by name, from REDRIVE_SECRETS (NAME=TEXT). Error texts show no secret."""
    found: dict[str, str] = {}
    for entry in filter(None, map(str.strip, re.split(r"[,\r\n]+", variables.value("REDRIVE_SECRETS")))):
        name, _, text = (part.strip() for part in (entry if "=" in entry else f"={entry}").partition("="))
        problem = f"{name} is there twice" if name in found else signing_secret.secret_problem(name, text)
        if problem:
            cure = "Write NAME=whsec_… with commas between them; make one: openssl rand -base64 32"
            variables.problems.append(f"REDRIVE_SECRETS cannot be used: {problem}. {cure}")
        found[name] = text
    return found


def destinations(variables: Variables, secrets: Mapping[str, str]) -> dict[str, str]:
    """Return the URLs of notification destinations by name. Error texts do not show URLs, which hold secrets."""
    listed = allow_list(variables.words(_HOSTS))
    inside = AllowList() if isinstance(listed, UrlDenied) else listed
    urls, problems = read_destinations(variables.all, secrets, inside)
    variables.problems += problems
    return urls


def alerts(variables: Variables) -> dict[str, float]:
    """Return the limits that cause notifications and that variables set, by their names in settings.REDRIVE."""
    found, problems = read_alerts(variables.all)
    variables.problems += problems
    return found
