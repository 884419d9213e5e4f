"""Read a person's groups, access and names from the claims that an OpenID provider sent."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Mapping
from itertools import count
from typing import Final

from redrive_service.environment import Oidc

Claims = Mapping[str, object]
_NOT_IN_USER_NAMES: Final = re.compile(r"[^\w.@+-]+")  # as in Django's UnicodeUsernameValidator
_LONGEST_USER_NAME: Final = 140  # Django allows 150 characters; `free_name` may add a number
_LONGEST_NAME: Final = 150  # Django's limit of first and last name
_LONGEST_EMAIL: Final = 254  # the limit of Django and of RFC 5321


def mapped_groups(claims: Claims, oidc: Oidc) -> frozenset[str]:
    """Return the names of the Django groups to which the person's groups at the provider are mapped."""
    claim = claims.get(oidc.groups_claim)
    values = claim if isinstance(claim, list) else [claim]
    return frozenset(group for value, group in oidc.groups if value in values)


def may_enter(claims: Claims, oidc: Oidc) -> bool:
    """Return whether the claim `staff_claim`, which access requires, is true. If no claim is required, return True."""
    return not oidc.staff_claim or claims.get(oidc.staff_claim) in (True, "true")


def hides_groups(claims: Claims, oidc: Oidc) -> bool:
    """Return whether the provider left the groups out of the token. Microsoft Entra does so for too many groups."""
    left_out = claims.get("_claim_names")
    return isinstance(left_out, Mapping) and oidc.groups_claim in left_out


def names(claims: Claims) -> dict[str, str]:
    """Return e-mail address, first and last name, by field name of Django's user. A missing claim gives ""."""
    email = text(claims, "email")
    return {
        "email": email if len(email) <= _LONGEST_EMAIL else "",
        "first_name": text(claims, "given_name")[:_LONGEST_NAME],
        "last_name": text(claims, "family_name")[:_LONGEST_NAME],
    }


def user_name(claims: Claims) -> str:
    """Make a user name from the claims, in characters that Django accepts. Another user may already have this name."""
    name = text(claims, "preferred_username") or text(claims, "email") or text(claims, "sub")
    plain = unicodedata.normalize("NFKC", name)
    return _NOT_IN_USER_NAMES.sub("-", plain)[:_LONGEST_USER_NAME].strip("-") or "person"


def free_name(wished: str, taken: Collection[str]) -> str:
    """Return the wished user name or, if another user has this name, the name with -2, -3, … added.

    `taken` are the names of other users in lower case.
    """
    numbered = (wished if number == 1 else f"{wished}-{number}" for number in count(1))
    return next(name for name in numbered if name.lower() not in taken)


def text(claims: Claims, name: str) -> str:
    """Return the claim if it is a text of printable characters, else an empty text."""
    value = claims.get(name)
    return value.strip() if isinstance(value, str) and value.isprintable() else ""
