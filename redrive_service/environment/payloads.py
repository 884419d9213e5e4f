"""Read the variables of payloads: the keys that encrypt them, and the fields that are masked."""

from __future__ import annotations

import re
from pathlib import Path

from redrive_service.environment.variables import Variables
from reprocessing.domain.payloads.key_ring import key_problems
from reprocessing.domain.payloads.mask_rules import mask_problems

_KEYS, _FILE, _MASKED = "REDRIVE_PAYLOAD_KEYS", "REDRIVE_PAYLOAD_KEYS_FILE", "REDRIVE_MASKED_FIELDS"


def keys(variables: Variables) -> tuple[str, ...]:
    """Return the payload keys as entries NAME=KEY; the first key encrypts. Error texts show no key."""
    text, path = variables.value(_KEYS), variables.value(_FILE)
    if text and path:
        variables.problems.append(f"{_KEYS} and {_FILE} are both set. Unset one of them.")
    if path and not text:
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or "it is not text"
            variables.problems.append(f"{_FILE} cannot be read: {why}. Name a file with NAME=KEY on each line.")
    found = tuple(filter(None, map(str.strip, re.split(r"[,\r\n]+", text))))
    cure = "Write NAME=KEY with commas or line breaks between them; make a key: openssl rand -base64 32"
    variables.problems += [f"{_KEYS} cannot be used: {problem}. {cure}" for problem in key_problems(found)]
    return found


def masked_fields(variables: Variables) -> tuple[str, ...]:
    """Return the names of fields, and JMESPath expressions, whose values are masked in all DLQs."""
    found = tuple(filter(None, map(str.strip, re.split(r"[;\r\n]+", variables.value(_MASKED)))))
    variables.problems += [f"{_MASKED} cannot be used: {problem}." for problem in mask_problems(found)]
    return found
