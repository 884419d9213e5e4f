"""Recognise the same person under several names, so that nobody approves their own request."""

from __future__ import annotations

from django.contrib.auth.models import User

from reprocessing.domain.approvals.person import VIA_API, person_key


def is_same_person(one: str, other: str) -> bool:
    """Return whether two user names belong to one person.

    They do if they differ only in letter case or spaces, or if their accounts have the same e-mail address.
    """
    return person_key(one) == person_key(other) or bool(_addresses(one) & _addresses(other))


def keys_of(name: str) -> set[str]:
    """Return a person's name and the names of all accounts with the same e-mail address, each as a `person_key`."""
    accounts = (User.objects.filter(email__iexact=address) for address in _addresses(name))
    return {person_key(name), *(person_key(user.get_username()) for some in accounts for user in some)}


def _addresses(name: str) -> set[str]:
    found = (
        User.objects.filter(username__iexact=name.partition(VIA_API)[0].strip())
        .exclude(email="")
        .values_list("email", flat=True)
    )
    return {person_key(address) for address in found}
