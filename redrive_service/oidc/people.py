"""Find or create the user of a person whom an OpenID provider signed in. Issuer and `sub` identify the person."""

from __future__ import annotations

import logging

from django.contrib.auth.models import Group, User
from django.db import IntegrityError, transaction

from redrive_service.environment import Oidc
from redrive_service.oidc import claims as claim
from redrive_service.oidc.claims import Claims
from redrive_service.oidc.refusals import DISABLED, NO_ACCESS, SignInRefused
from reprocessing.models import ProviderIdentity
from reprocessing.store.ordering.lanes import database_now

logger = logging.getLogger("redrive.sign_in")


def admitted(issuer: str, claims: Claims, oidc: Oidc) -> User:
    """Return the user of the person, with names and groups from the claims.

    If the person has no access any more according to the claims, the user loses access here.

    Raises:
        SignInRefused: the person has no access at the provider, or the user was disabled here.
    """
    user = _committed(issuer, claims, oidc)
    if user is None:
        why = "too many groups for a token" if claim.hides_groups(claims, oidc) else "no mapped group"
        raise SignInRefused(NO_ACCESS, why)
    if not user.is_active:
        raise SignInRefused(DISABLED, f"{user.username} is disabled")
    return user


def _committed(issuer: str, claims: Claims, oidc: Oidc) -> User | None:
    try:
        with transaction.atomic():
            return _updated(issuer, claims, oidc)
    except IntegrityError:  # meanwhile, another request created this person's user, or a user of this name: try again
        with transaction.atomic():
            return _updated(issuer, claims, oidc)


def _updated(issuer: str, claims: Claims, oidc: Oidc) -> User | None:
    """Update the user's groups and names from the claims. Return the user, or None if the person has no access."""
    subject = str(claims["sub"])
    known = ProviderIdentity.objects.select_for_update().select_related("user").filter(issuer=issuer, subject=subject)
    identity = known.first()
    groups = _existing(claim.mapped_groups(claims, oidc)) if claim.may_enter(claims, oidc) else []
    if identity is None and not groups:
        return None
    user = identity.user if identity else _create(issuer, subject, claims)
    _set_groups(user, groups, oidc)
    for field, value in claim.names(claims).items():
        setattr(user, field, value)
    user.is_staff = bool(groups)
    user.save(update_fields=["email", "first_name", "last_name", "is_staff"])
    if not groups:
        return None
    ProviderIdentity.objects.filter(user=user).update(confirmed_at=database_now())
    return user


def _create(issuer: str, subject: str, claims: Claims) -> User:
    """Create a user without a password. The user name is always new, so that nobody gets another person's user."""
    wished = claim.user_name(claims)
    alike = User.objects.filter(username__istartswith=wished).values_list("username", flat=True)
    # Names are lowered in Python, as in `free_name`, because PostgreSQL's result depends on its locale.
    user = User.objects.create_user(claim.free_name(wished, {name.lower() for name in alike}))
    ProviderIdentity.objects.create(user=user, issuer=issuer, subject=subject)
    logger.info("A new user: %s", user.username)
    return user


def _existing(names: frozenset[str]) -> list[Group]:
    found = list(Group.objects.filter(name__in=names))
    for name in sorted(names - {group.name for group in found}):
        cure = "Create it (roles: manage.py make_roles --confirm), or correct the variable."
        logger.warning("The group %r of REDRIVE_OIDC_GROUPS does not exist. %s", name, cure)
    return found


def _set_groups(user: User, groups: list[Group], oidc: Oidc) -> None:
    """Set the user's groups to `groups`. Groups that REDRIVE_OIDC_GROUPS does not name stay as they are."""
    has = {group.name: group for group in user.groups.filter(name__in={name for _, name in oidc.groups})}
    wanted = {group.name: group for group in groups}
    added, removed = wanted.keys() - has.keys(), has.keys() - wanted.keys()
    user.groups.add(*(wanted[name] for name in added))
    user.groups.remove(*(has[name] for name in removed))
    for verb, changed in (("added", added), ("removed", removed)):
        if changed:
            logger.info("Groups of %s %s: %s", user.username, verb, ", ".join(sorted(changed)))
