"""Find what is wrong with the value of a setting in settings.REDRIVE, such as a number that is too large."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import fields
from datetime import timedelta

from reprocessing.domain.message.redrive_attributes import MarkNames, is_name
from reprocessing.domain.notifications.destination import is_name as is_destination
from reprocessing.domain.payloads.key_ring import key_problems
from reprocessing.domain.payloads.mask_rules import mask_problems
from reprocessing.domain.safety.url_policy import AllowList, UrlDenied, allow_list
from reprocessing.domain.targets.signing_secret import secret_problem as problem_of_secret

#: A URL without a path, or an empty text.
_PUBLIC_URL = re.compile(r"(?:https?://[A-Za-z0-9.-]+(?::[0-9]{1,5})?)?")
#: Values of the setting COLOUR.
COLOURS = ("red", "amber", "green", "blue", "violet", "grey")
#: Max characters of the setting PLACE (the environment's name), so that it fits on a phone's screen.
LONGEST_PLACE = 40
#: Min and max of the settings about notifications and repeated checks; durations in seconds.
ALERT_LIMITS: dict[str, tuple[float, float]] = {
    "alert_parked_count": (1, 1_000_000_000),
    "alert_parked_age": (60, 365 * 86_400),
    "alert_expires_within": (60, 14 * 86_400),
    "alert_growing_for": (60, 14 * 86_400),
    "alert_silent_for": (30, 86_400),
    "alert_stalled_for": (60, 14 * 86_400),
    "doctor_every": (0, 86_400),
    "discover_every": (0, 30 * 86_400),
}
#: Min and max of each setting that is a number or a duration; durations in seconds.
LIMITS: dict[str, tuple[float, float]] = {
    "lease": (1, 300),
    "slice": (0.1, 300),
    "lanes_per_task": (1, 1_000),
    "intent_size": (1, 1_000),
    "open_requests": (1, 2_000),
    "held_copies_limit": (0, 120_000),  # AWS: at most 120,000 messages of a queue in flight
    "max_unsettled": (1, 1_000_000),
    "count_lag": (0, 3_600),
    "receive_visibility": (10, 21_600),  # half of AWS's maximum of 12 hours, so that it can be extended
    "long_poll": (0, 20),
    "receivers": (1, 32),
    "hints_per_slot": (1, 100),
    "hint_life": (1, 60),
    "hint_life_cap": (1, 3_600),
    "approval_life": (60, 7 * 86_400),
    "history": (86_400, 3_650 * 86_400),
    "payload_key_cache": (1, 86_400),
    "api_rate": (0.1, 10_000),
    "token_recheck": (0, 365 * 86_400),
    **ALERT_LIMITS,
    "price_standard": (0, 1_000),
    "price_fifo": (0, 1_000),
}


def problems(name: str, value: object, default: object) -> Iterator[str]:
    """Yield what is wrong with the value of a setting, as sentences that say what to do. Secrets are not quoted.

    `name`: in upper case. `default`: the setting's default, as `reprocessing.conf.Conf` has it; its type says how the
    value is checked.
    """
    match default:
        case MarkNames():
            yield from _problems_of_marks(name, value)
        case AllowList():
            yield from _problems_of_hosts(name, value)
        case tuple():
            yield from _problems_of_list(name, value)
        case Mapping():
            yield from _problems_of_mapping(name, value)
        case str():
            yield from _problems_of_text(name, value)
        case bool():
            yield from () if isinstance(value, bool) else (f"{name} is {value!r}; it must be True or False.",)
        case _:
            yield from _problems_of_number(name, value, default)


def _problems_of_number(name: str, value: object, default: object) -> Iterator[str]:
    least, most = LIMITS[name.lower()]
    whole = isinstance(default, int)
    seconds = isinstance(default, timedelta)
    kind = "a whole number" if whole else "a number of seconds" if seconds else "a number"
    fits = isinstance(value, int if whole else int | float) and not isinstance(value, bool) and least <= value <= most
    if not fits:
        yield f"{name} is {value!r}; it must be {kind} from {least:,} to {most:,}."


def _problems_of_text(name: str, value: object) -> Iterator[str]:
    if name == "COLOUR" and value not in COLOURS:
        yield f"{name} is {value!r}; it must be one of {', '.join(COLOURS)}."
    elif name == "PUBLIC_URL":
        if not isinstance(value, str) or not _PUBLIC_URL.fullmatch(value):
            yield f"{name} is {value!r}; it must be a URL without a path: https://redrive.example.com"
    elif not isinstance(value, str) or len(value) > LONGEST_PLACE or not value.isprintable():
        yield f"{name} is {value!r}; it must be a printable text of at most {LONGEST_PLACE} characters."


def _problems_of_marks(name: str, value: object) -> Iterator[str]:
    known = [setting.name for setting in fields(MarkNames)]
    if not isinstance(value, Mapping):
        yield f"{name} is {value!r}; it must be a mapping of {', '.join(known)} to an attribute name or None."
        return
    for mark, attribute in value.items():
        if mark not in known:
            yield f"{name} has {mark!r}; its keys are {', '.join(known)}."
        elif attribute is not None and not (isinstance(attribute, str) and is_name(attribute)):
            yield f"{name}: {mark} is {attribute!r}; SQS does not allow this attribute name. Correct it, or set None."


def _problems_of_hosts(name: str, value: object) -> Iterator[str]:
    if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
        yield f"{name} is {value!r}; it must be a list of hosts and networks: status.example.com, 10.1.0.0/16."
    elif isinstance(found := allow_list(value), UrlDenied):
        yield f"{name}: {found.why}. Correct it, or remove it."


def _problems_of_list(name: str, value: object) -> Iterator[str]:
    """Yield the problems of a setting that is a list, as text. Payload keys are not quoted, because they are secret."""
    known = {"PAYLOAD_KEYS": key_problems, "MASKED_FIELDS": mask_problems}
    if name not in known:
        yield from _problems_of_urls(name, value)
    elif not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
        yield f"{name} must be a list of texts."
    else:
        yield from (f"{name}: {problem}." for problem in known[name](value))


def _problems_of_urls(name: str, value: object) -> Iterator[str]:
    if not isinstance(value, list | tuple) or not all(isinstance(item, str) and "://" in item for item in value):
        yield f"{name} is {value!r}; it must be a list of queue URLs."


def _problems_of_mapping(name: str, value: object) -> Iterator[str]:
    """Yield the problems of SECRETS or DESTINATIONS, as text without secrets. URLs are not checked."""
    urls = name == "DESTINATIONS"
    if not isinstance(value, Mapping) or not all(isinstance(item, str) for pair in value.items() for item in pair):
        yield f"{name} must be a mapping of names to {'URLs' if urls else 'texts'}."
        return
    for key, text in value.items():
        if urls and not is_destination(key):
            yield f"{name} has {key[:50]!r}; a name is lower case, digits and hyphens, as in team-a."
        elif not urls and (problem := problem_of_secret(key, text)):
            yield f"{name}: {problem}. Make one: openssl rand -base64 32"
