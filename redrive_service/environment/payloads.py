"""Read the variables of payloads: the keys that encrypt them, and the fields that are masked."""

from __future__ import annotations

import re

from redrive_service.environment.variables import Variables
from reprocessing.domain.payloads.key_ring import KmsKeyName, key_problems, read_key
from reprocessing.domain.payloads.mask_rules import mask_problems

KEYS, _MASKED = "REDRIVE_PAYLOAD_KEYS", "REDRIVE_MASKED_FIELDS"


def keys(variables: Variables) -> tuple[str, ...]:
    """Return the payload keys as entries NAME=KEY. The first key encrypts; the others only decrypt."""
    found = _entries(variables.value(KEYS))
    cure = "Write NAME=KEY with commas or line breaks between them; make a key: openssl rand -base64 32"
    variables.problems += [f"{KEYS} cannot be used: {problem}. {cure}" for problem in key_problems(found)]
    return found


def has_only_kms_keys(text: str) -> bool:
    """Return whether all keys in the value of REDRIVE_PAYLOAD_KEYS are ARNs of KMS keys. An ARN is not secret."""
    found = _entries(text)
    return bool(found) and all(isinstance(read_key(entry), KmsKeyName) for entry in found)


def masked_fields(variables: Variables) -> tuple[str, ...]:
    """Return the names of fields, and JMESPath expressions, whose values are masked in all DLQs."""
    found = tuple(filter(None, map(str.strip, re.split(r"[;\r\n]+", variables.value(_MASKED)))))
    variables.problems += [f"{_MASKED} cannot be used: {problem}." for problem in mask_problems(found)]
    return found


def _entries(text: str) -> tuple[str, ...]:
    return tuple(filter(None, map(str.strip, re.split(r"[,\r\n]+", text))))
