"""Find the names of the same person."""

from __future__ import annotations

from django.contrib.auth.models import User

from reprocessing.domain.approvals.person import VIA_API, person_key


def is_same_person(one: str, other: str) -> bool:
    """Return whether two names differ only in letter case or spaces, or are of accounts with one e-mail address."""
    return person_key(one) == person_key(other) or bool(_addresses(one) & _addresses(other))


def keys_of(name: str) -> set[str]:
    """Return the keys (`person_key`) of a person's name, and of the accounts with the same e-mail address."""
    found = {person_key(name)}
    for address in _addresses(name):
        found |= {person_key(name) for name in User.objects.filter(email__iexact=address).values_list("username", flat=True)}
    return found


def _addresses(name: str) -> set[str]:
    found = (
        User.objects.filter(username__iexact=name.partition(VIA_API)[0].strip())
        .exclude(email="")
        .values_list("email", flat=True)
    )
    return {person_key(address) for address in found}
