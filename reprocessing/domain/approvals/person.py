"""Compare names of people, and build the author's text of a history entry, such as "ann, approved by bob"."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

#: The text between the names of two people in a history: "ann, approved by bob". No person's name may contain it.
APPROVED_BY: Final = ", approved by "
#: The text between a person's name and the API token that acted for the person: "ann, API token deploy".
VIA_API: Final = ", API token "
#: The text after the name of a person who acted alone, although a second person was needed.
ALONE: Final = ", without approval"


def person_key(name: str) -> str:
    """Return a key to compare people's names: equal for names that differ only in case, spaces or Unicode form.

    The key of "bob, API token deploy" is that of "bob", because the token acts for its owner.
    """
    return _folded(name.partition(VIA_API)[0])


def signed_by_both(by: str, approver: str) -> str:
    """Return the author of a history entry about an approved action, such as "ann, approved by bob"."""
    return f"{by}{APPROVED_BY}{approver}"


def signed_alone(by: str) -> str:
    """Return the author of a history entry about an action without approval, such as "ann, without approval"."""
    return f"{by}{ALONE}"


def is_one_name(name: str) -> bool:
    """Return whether a text can be one person's name: it contains neither "approved by" nor "without approval"."""
    return APPROVED_BY.strip(", ") not in _folded(name) and ALONE.strip(", ") not in _folded(name)


def history_pattern(name: str) -> str:
    """Return a PostgreSQL regular expression that matches the author of a history entry if `name` is part of it.

    For "bob", it matches "bob", "bob, API token deploy", "bob, without approval" and "ann, approved by bob". `name` may
    also be a whole author, such as "ann, approved by bob".
    """
    ends = "|".join(map(re.escape, (APPROVED_BY, VIA_API, ALONE)))
    return f"(^|{re.escape(APPROVED_BY)}){re.escape(name)}($|{ends})"


def _folded(text: str) -> str:
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return " ".join("".join(c for c in folded if unicodedata.category(c) != "Cf").split())
