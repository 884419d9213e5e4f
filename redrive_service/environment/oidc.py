"""Read the variables of sign-in by an OpenID provider: all REDRIVE_OIDC_…, and REDRIVE_PASSWORD_LOGIN."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Final

from redrive_service.environment.addresses import is_visible, parts
from redrive_service.environment.variables import INVISIBLE, Variables

_PREFIX: Final = "REDRIVE_OIDC_"
_ISSUER: Final = "REDRIVE_OIDC_ISSUER"
_SECRET: Final = "REDRIVE_OIDC_CLIENT_SECRET"  # noqa: S105  a variable's name
_SECRET_FILE: Final = "REDRIVE_OIDC_CLIENT_SECRET_FILE"  # noqa: S105  a variable's name
_GROUPS: Final = "REDRIVE_OIDC_GROUPS"
_RECHECK: Final = "REDRIVE_OIDC_RECHECK_MINUTES"
_PASSWORDS: Final = "REDRIVE_PASSWORD_LOGIN"
_DISCOVERY: Final = "/.well-known/openid-configuration"
_LONGEST_NAME: Final = 40  # max characters


@dataclass(frozen=True, slots=True, kw_only=True)
class Oidc:
    """An OpenID provider, and which claims of its ID tokens give which rights in this service.

    Attributes:
        groups: pairs of a value in the provider's group claim, and the Django group whose member the person becomes.
        groups_claim: name of the claim that has the person's groups.
        staff_claim: name of a claim that must be true for access. If it is empty, a group of `groups` is enough.
        recheck: time after which the provider must confirm a session again. Zero means never.
    """

    issuer: str
    client_id: str
    client_secret: str = field(repr=False)
    name: str
    scopes: str
    groups_claim: str
    groups: tuple[tuple[str, str], ...]
    staff_claim: str
    recheck: timedelta

    @property
    def discovery_url(self) -> str:
        """Return the URL of the provider's metadata (OpenID Connect Discovery 1.0, section 4)."""
        return self.issuer.rstrip("/") + _DISCOVERY


def oidc(variables: Variables, session: timedelta) -> Oidc | None:
    """Return the OpenID provider, or None if no variable REDRIVE_OIDC_… is set.

    `session` is the length of a session. The time until a recheck must not be longer.
    """
    named = sorted(name for name in variables.all if name.startswith(_PREFIX) and variables.value(name))
    if not named:
        return None
    return Oidc(
        issuer=_issuer(variables, named),
        client_id=variables.required("REDRIVE_OIDC_CLIENT_ID", "Set it to the client id that the provider shows."),
        client_secret=_secret(variables),
        name=_name(variables),
        scopes=_scopes(variables),
        groups_claim=variables.value("REDRIVE_OIDC_GROUPS_CLAIM") or "groups",
        groups=_groups(variables),
        staff_claim=variables.value("REDRIVE_OIDC_STAFF_CLAIM"),
        recheck=_recheck(variables, session),
    )


def password_login(variables: Variables, *, provider: bool) -> bool:
    """Return whether people may sign in by password (default: yes).

    `provider` is true if an OpenID provider is set. Add a problem if nobody could sign in.
    """
    value = variables.value(_PASSWORDS).lower() or "yes"
    if value not in {"yes", "no"}:
        variables.problems.append(f"{_PASSWORDS} must be yes (the default) or no.")
    elif value == "no" and not provider:
        cure = f"Set {_ISSUER}, or unset {_PASSWORDS}"
        variables.problems.append(f"{_PASSWORDS} is no, but no OpenID provider is set: nobody could sign in. {cure}.")
    return value != "no"


def _issuer(variables: Variables, named: list[str]) -> str:
    cure = "Set it to the issuer of your provider: https://login.example.com/realms/main"
    value = variables.value(_ISSUER).removesuffix(_DISCOVERY)
    schemes = ("https", "http") if variables.value("REDRIVE_MODE") == "sandbox" else ("https",)
    found = parts(value, schemes)
    if not value:
        variables.problems.append(f"{_ISSUER} is not set, but {named[0]} is. {cure}")
    elif not is_visible(value):
        variables.problems.append(f"{_ISSUER} holds {INVISIBLE}. {cure}")
    elif not found or found.query or "@" in found.netloc:
        variables.problems.append(f"{_ISSUER} is not a URL that begins with https://, without user and query. {cure}")
    return value


def _secret(variables: Variables) -> str:
    value, file = variables.value(_SECRET), variables.value(_SECRET_FILE)
    cure = f"Set {_SECRET}, or {_SECRET_FILE} to a file that holds the secret."
    if value and file:
        variables.problems.append(f"{_SECRET} and {_SECRET_FILE} are both set. Unset one of them.")
    elif file:
        value = _read(variables, file, cure)
    elif not value:
        variables.problems.append(f"{_SECRET} is not set. {cure}")
    if value and not is_visible(value):
        variables.problems.append(f"{_SECRET} holds {INVISIBLE}. {cure}")
    return value


def _read(variables: Variables, file: str, cure: str) -> str:
    try:
        value = Path(file).read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not a text"
        variables.problems.append(f"{_SECRET_FILE} cannot be read: {why}. {cure}")
        return ""
    if not value:
        variables.problems.append(f"{_SECRET_FILE} is empty. {cure}")
    return value


def _name(variables: Variables) -> str:
    value = variables.value("REDRIVE_OIDC_NAME") or "single sign-on"
    if len(value) > _LONGEST_NAME or not value.isprintable():
        at_most = f"at most {_LONGEST_NAME} characters that can be seen"
        variables.problems.append(f"REDRIVE_OIDC_NAME cannot be shown: it must have {at_most}. Correct it.")
    return value


def _scopes(variables: Variables) -> str:
    scopes = variables.value("REDRIVE_OIDC_SCOPES").replace(",", " ").split() or ["openid", "profile", "email"]
    if "openid" not in scopes:
        variables.problems.append("REDRIVE_OIDC_SCOPES lacks openid. Set it to: openid profile email")
    return " ".join(scopes)


def _groups(variables: Variables) -> tuple[tuple[str, str], ...]:
    value = variables.value(_GROUPS)
    cure = f"Map the provider's groups to groups of this service: {_GROUPS}=redrive-ops=Redrive operator"
    entries = filter(None, map(str.strip, re.split(r"[\r\n]+" if "\n" in value else ",", value)))
    pairs = tuple((claim.strip(), group.strip()) for claim, _, group in (entry.rpartition("=") for entry in entries))
    if not pairs:
        variables.problems.append(f"{_GROUPS} is not set, so nobody could sign in. {cure}")
    elif not all(claim and group for claim, group in pairs):
        variables.problems.append(f"{_GROUPS} holds an entry that is not VALUE=GROUP. {cure}")
    return pairs


def _recheck(variables: Variables, session: timedelta) -> timedelta:
    found = timedelta(minutes=variables.number(_RECHECK, default=60, least=0, most=1_440))
    if found > session:
        cure = f"Set {_RECHECK} to less, or to 0 for never"
        variables.problems.append(f"{_RECHECK} is longer than a session (REDRIVE_SESSION_HOURS). {cure}.")
    return found
