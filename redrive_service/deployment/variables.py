"""Decide which variables `--set` may write into deployment files. Secrets are refused: everybody can read the files.

If a variable names a file, the file is not read here, because its path is in the container, not on this machine.
"""

from __future__ import annotations

import re
from typing import Final

from redrive_service.environment import payloads
from redrive_service.environment.known_variables import is_known, nearest_name
from redrive_service.environment.secret_files import secret_of

_NAME: Final = re.compile(r"[A-Z][A-Z0-9_]*")
#: Variables that libraries of the service read.
_OF_LIBRARIES: Final = re.compile(r"(AWS|OTEL)_\w+|(HTTPS?|NO|ALL)_PROXY|SSL_CERT_(FILE|DIR)|REQUESTS_CA_BUNDLE")
_AWS_KEYS: Final = re.compile(r"AWS_(ACCESS_KEY_ID|SECRET_ACCESS_KEY|SESSION_TOKEN)|AWS_\w*AUTHORIZATION_TOKEN")
_TRACE_HEADERS: Final = re.compile(r"OTEL_\w*HEADERS")
_URL_WITH_USER: Final = re.compile(r"://[^/?#\s]*@")
_KMS_MAY_BE_SET: Final = ", or --set it if every key is NAME=ARN of a KMS key"


def variable_problem(name: str, value: str) -> str:
    """Return why `--set NAME=VALUE` is refused, and what to type instead, or an empty text if it is accepted.

    The text does not show the value, which may be secret.
    """
    if not _NAME.fullmatch(name):
        return f"{name!r} is no variable's name. Type --set NAME=VALUE"
    if name == payloads.KEYS and payloads.has_only_kms_keys(value):
        return ""
    if secret := secret_of(name):
        but = _KMS_MAY_BE_SET if secret == payloads.KEYS else ""
        return f"{name} is a secret, and files show its value. Type --secret {secret}{but}"
    return _secret_of_library(name) or _unknown(name) or _value_problem(name, value)


def secret_problem(name: str) -> str:
    """Return why `--secret NAME` is refused, and what to type instead, or an empty text if it is accepted."""
    secret = secret_of(name)
    if secret == name:
        return ""
    if secret:
        return f"{name} is not a secret, but the path of a secret's file. Type --secret {secret}"
    if problem := _secret_of_library(name) or _unknown(name):
        return problem
    return f"{name} is not a secret of this service. Type --set {name}=VALUE"


def _value_problem(name: str, value: str) -> str:
    if _URL_WITH_USER.search(value) or (name.endswith("_PROXY") and "@" in value):
        return f"{name} has a user or a password, which the files would show. Remove it from the URL."
    if name == "REDRIVE_MODE" and value not in {"", "production"}:
        return "The files are for production, so REDRIVE_MODE cannot be set. For a sandbox, run: manage.py sandbox"
    if name == "REDRIVE_ALIVE_FILE":
        return (
            "The files set REDRIVE_ALIVE_FILE themselves, because their liveness probes read this file. Leave it out."
        )
    return ""


def _secret_of_library(name: str) -> str:
    if _AWS_KEYS.fullmatch(name):
        return f"{name} is a secret, and files show its value. Give the processes an IAM role instead."
    if _TRACE_HEADERS.fullmatch(name):
        cure = "Patch the files so that the variable comes from your store of secrets."
        return f"{name} can contain a secret, and files show its value. {cure}"
    return ""


def _unknown(name: str) -> str:
    if is_known(name) or _OF_LIBRARIES.fullmatch(name):
        return ""
    near = nearest_name(name)
    cure = (
        f"Did you mean {near}?"
        if near
        else "docs/production.md lists the variables. To add another one, patch the files."
    )
    return f"{name} is not a variable of this service. {cure}"
