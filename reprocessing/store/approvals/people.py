"""Decide whether two names are of the same person."""

from __future__ import annotations

from django.contrib.auth.models import User

from reprocessing.domain.approvals.person import VIA_API, person_key


def is_same_person(one: str, other: str) -> bool:
    """Return whether two names differ only in letter case or spaces, or are of accounts with one e-mail address."""
    return person_key(one) == person_key(other) or bool(_addresses(one) & _addresses(other))


def _addresses(name: str) -> set[str]:
    found = (
        User.objects.filter(username__iexact=name.partition(VIA_API)[0].strip())
        .exclude(email="")
        .values_list("email", flat=True)
    )
    return {person_key(address) for address in found}
