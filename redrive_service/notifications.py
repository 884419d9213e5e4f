"""Read the variables of notifications: REDRIVE_NOTIFY_<NAME> (URL of a destination) and REDRIVE_ALERT_… (limits)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from reprocessing.domain.configuration.setting_problems import ALERT_LIMITS
from reprocessing.domain.notifications.destination import Unusable, is_name, read_destination
from reprocessing.domain.safety.url_policy import AllowList
from reprocessing.domain.targets import signing_secret

PREFIX: Final = "REDRIVE_NOTIFY_"
_CURE: Final = "Correct it, or unset it; docs/notifications.md shows what can be written."


def read_destinations(
    variables: Mapping[str, str], secrets: Mapping[str, str], inside: AllowList
) -> tuple[dict[str, str], list[str]]:
    """Return the URLs by destination, and a text about each variable that cannot be used.

    The texts do not show URLs, because URLs can contain secrets. Empty variables are ignored. `secrets` has the signing
    secrets by name. `inside` are the hosts of the internal network to which notifications may be sent.
    """
    keys = {name: key for name, text in secrets.items() if (key := signing_secret.secret_bytes(text))}
    urls: dict[str, str] = {}
    problems: list[str] = []
    for variable, value in sorted(variables.items()):
        url = value.strip()
        if not variable.startswith(PREFIX) or not url:
            continue
        name = variable.removeprefix(PREFIX).lower().replace("_", "-")
        found = read_destination(url, keys, inside)
        if not is_name(name):
            problems.append(f"{variable} names no destination. Use letters, digits and _: {PREFIX}TEAM_A")
        elif name in urls:
            problems.append(f"{variable} names the destination {name} a second time. Unset one of the two.")
        elif isinstance(found, Unusable):
            problems.append(f"{variable} cannot be used: {found.why}. {_CURE}")
        else:
            urls[name] = url
    return urls, problems


def read_alerts(variables: Mapping[str, str]) -> tuple[dict[str, float], list[str]]:
    """Return the limits that are set, by their names in settings.REDRIVE, and a text about each invalid limit.

    A limit says when people are notified, for example above how many parked messages.
    """
    found: dict[str, float] = {}
    problems: list[str] = []
    for name, (least, most) in ALERT_LIMITS.items():
        variable, setting = f"REDRIVE_{name.upper()}", name.upper()
        text = variables.get(variable, "").strip()
        if text.isascii() and text.isdecimal() and least <= int(text[:20]) <= most:
            found[setting] = int(text)
        elif text:
            unit = "" if name == "alert_parked_count" else " of seconds"
            problems.append(f"{variable} must be a whole number{unit} from {least:,.0f} to {most:,.0f}.")
    return found, problems
