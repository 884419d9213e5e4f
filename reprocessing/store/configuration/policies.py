"""Find policies (named settings for several DLQs) by name."""

from __future__ import annotations

from collections.abc import Iterable

from reprocessing.domain.errors import InvalidPolicy
from reprocessing.models import Policy


def find_policy(name: str | None) -> Policy | None:
    """Return the policy (settings for several DLQs) with this name; None if `name` is None.

    Raises:
        InvalidPolicy: no policy has this name; the message lists the names.
    """
    if name is None:
        return None
    found = Policy.objects.filter(name=name).first()
    if found is None:
        raise InvalidPolicy(unknown_policy(name, Policy.objects.order_by("name").values_list("name", flat=True)))
    return found


def unknown_policy(name: str, known: Iterable[str]) -> str:
    """Return the error text for a policy that does not exist, with the names of the existing policies."""
    names = ", ".join(known)
    return f'No policy is named "{name}". There are: {names or "none; apply_config adds policies"}.'
