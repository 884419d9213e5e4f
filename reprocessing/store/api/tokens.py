"""Make and revoke API tokens, find a token by its secret, and record its use."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from django.contrib.auth.models import Group, User
from django.db import transaction
from django.db.models import F, QuerySet

from reprocessing import conf
from reprocessing.domain.api.scopes import ONLY_FOR_USERS, Scope
from reprocessing.domain.errors import InvalidApiToken
from reprocessing.models import ApiToken, AuditAct, AuditEntry, ProviderIdentity
from reprocessing.store.ordering.lanes import database_now
from reprocessing.store.rights.roles import ROLE_GROUPS, possible_teams
from reprocessing.store.secret_tokens import can_be_token, new_token, token_digest

_PREFIX: Final = "redrive-api-"
#: The state of a token that is accepted.
ACTIVE: Final = "active"
#: The state of a token whose owner the OpenID provider has not confirmed for longer than TOKEN_RECHECK.
UNCONFIRMED: Final = "owner not confirmed"
#: The owner, and the owner's identity at the OpenID provider, which `state_of` reads.
OWNER: Final = "user__provider_identity"


@dataclass(frozen=True, slots=True)
class TokenRequest:
    """The parameters of a new token, which belongs to `user` or to `teams`. `expires_at` None: it does not expire."""

    name: str
    scopes: tuple[Scope, ...]
    user: User | None = None
    teams: tuple[Group, ...] = ()
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class MadeToken:
    """A new token. `secret` is shown once and not stored."""

    row: ApiToken
    secret: str = field(repr=False)


def by_secret(secret: str) -> ApiToken | None:
    """Return the token with this secret, even a revoked or expired token (see `state_of`); None: there is none."""
    if not can_be_token(secret):
        return None
    return ApiToken.objects.select_related(OWNER).filter(token_hash=token_digest(secret)).first()


def check_request(asked: TokenRequest) -> None:
    """Check that an API token can be made with these parameters.

    Raises:
        InvalidApiToken: the name is in use; both a user and teams are given, or neither; a team is the group of a role;
            a scope is only for tokens of users, and teams are given; or `expires_at` is past.
    """
    if ApiToken.objects.filter(name=asked.name).exists():
        raise InvalidApiToken(
            f"There is a token named {asked.name} already, and names are not reused. Choose another name."
        )
    if (asked.user is None) == (not asked.teams):
        raise InvalidApiToken(
            "A token belongs either to one user or to teams, and sees their DLQs. Give --user NAME or --team NAME."
        )
    if roles := sorted(group.name for group in asked.teams if group.name in ROLE_GROUPS):
        raise InvalidApiToken(
            f'"{roles[0]}" is a role, and roles are not teams: DLQs belong to teams. Give the group of a team.'
        )
    if asked.teams and (unusable := [scope for scope in asked.scopes if scope in ONLY_FOR_USERS]):
        raise InvalidApiToken(
            f"The scope {unusable[0]} is only for tokens of users: {ONLY_FOR_USERS[unusable[0]]}. Leave out the scope, "
            "or make a token that belongs to a user."
        )
    if asked.expires_at is not None and asked.expires_at <= database_now():
        raise InvalidApiToken("The token would have expired already. Give a later time, or none.")


def make_token(asked: TokenRequest, *, by: str, reason: str) -> MadeToken:
    """Make a token, with an audit log entry. Raises InvalidApiToken if `check_request` does."""
    with transaction.atomic():
        check_request(asked)
        secret = new_token(_PREFIX)
        row = ApiToken.objects.create(
            name=asked.name, token_hash=token_digest(secret), scopes=list(asked.scopes), user=asked.user, added_by=by,
            expires_at=asked.expires_at,
        )  # fmt: skip
        row.teams.set(asked.teams)
        AuditEntry.objects.create(act=AuditAct.ADDED, by=by, reason=reason, after=token_values(row))
    return MadeToken(row, secret)


def revoke(name: str, *, by: str, reason: str) -> bool:
    """Revoke a token, so that it is refused from now on; return False if it was revoked before.

    Raises:
        InvalidApiToken: no token has this name. The error's text lists the existing names.
    """
    with transaction.atomic():
        row = find_token(name, locked=True)
        if row.revoked_at is not None:
            return False
        before = token_values(row)
        row.revoked_at = database_now()
        row.save(update_fields=["revoked_at"])
        AuditEntry.objects.create(act=AuditAct.CHANGED, by=by, reason=reason, before=before, after=token_values(row))
    return True


def find_token(name: str, *, locked: bool = False) -> ApiToken:
    """Return the token with this name; `locked`: lock its row. Raises InvalidApiToken if no token has the name."""
    every = ApiToken.objects.select_for_update() if locked else ApiToken.objects.all()
    if (found := every.filter(name=name).first()) is None:
        known = ", ".join(ApiToken.objects.order_by("name").values_list("name", flat=True))
        none = "None has been made yet. Make one: manage.py make_api_token NAME --user USER --scope SCOPE --confirm"
        raise InvalidApiToken(f'No API token is named "{name}". {f"There are: {known}." if known else none}')
    return found


def find_owner(user: str | None, teams: Collection[str]) -> tuple[User | None, tuple[Group, ...]]:
    """Return the owners of a new token: the user with this name (None: no name is given), and the teams.

    A team is a Django group that is not the group of a role. `teams`: the names of the teams; may be empty.

    Raises:
        InvalidApiToken: no user or no team has a given name. For a team, the error's text lists all teams.
    """
    person = User.objects.filter(username=user).first() if user is not None else None
    if user is not None and person is None:
        raise InvalidApiToken(f'No user is named "{user}". Add the user in the admin, or give --team.')
    found = tuple(Group.objects.filter(name__in=teams).order_by("name"))
    if unknown := sorted(set(teams) - {group.name for group in found}):
        known = ", ".join(possible_teams().values_list("name", flat=True)) or "none"
        raise InvalidApiToken(f'No team is named "{unknown[0]}". The teams are: {known}.')
    return person, found


def listed() -> QuerySet[ApiToken]:
    """Return all API tokens, sorted by name, with the users or teams that own them."""
    return ApiToken.objects.order_by("name").select_related(OWNER).prefetch_related("teams")


def state_of(row: ApiToken, now: datetime) -> str:
    """Return the state of a token: active, revoked, expired, owner inactive, owner not confirmed or owner deleted.

    A token of teams does not depend on the state of a person.
    """
    if row.revoked_at is not None:
        return "revoked"
    if row.expires_at is not None and row.expires_at <= now:
        return "expired"
    if row.user is None:
        return ACTIVE if row.teams.all() else "owner deleted"
    if not row.user.is_active or _has_lost_access(row.user):
        return "owner inactive"
    ends_at = confirmed_until(row)
    return ACTIVE if ends_at is None or now < ends_at else UNCONFIRMED


def confirmed_until(row: ApiToken) -> datetime | None:
    """Return the time from which a token is refused unless the OpenID provider confirms its owner again.

    None: the owner need not be confirmed. The token belongs to teams or to a user who does not sign in by a provider,
    or the setting TOKEN_RECHECK is 0.
    """
    identity = _identity(row.user) if row.user else None
    longest = conf.current().token_recheck if identity else None
    return identity.confirmed_at + longest if identity and longest else None


def _has_lost_access(user: User) -> bool:
    """Return whether the user signs in by an OpenID provider, and the provider has withdrawn the user's access."""
    return not user.is_staff and _identity(user) is not None


def _identity(user: User) -> ProviderIdentity | None:
    """Return the user's identity at the OpenID provider; None: the user does not sign in by a provider."""
    found: ProviderIdentity | None = getattr(user, "provider_identity", None)
    return found


def record_use(token: int, *, reads: bool) -> None:
    """Record that an API token was used now.

    `reads`: the request only read data; the token's row counts these requests.
    """
    used = {"last_used_at": database_now()} | ({"reads": F("reads") + 1} if reads else {})
    ApiToken.objects.filter(pk=token).update(**used)


def token_values(row: ApiToken) -> dict[str, Any]:
    """Return the fields of a token that the audit log records, without its secret."""
    return {
        "api_token": row.name,
        "scopes": row.scopes,
        "user": row.user.get_username() if row.user else None,
        "teams": sorted(team.name for team in row.teams.all()),
        "expires_at": row.expires_at and row.expires_at.isoformat(),
        "revoked": row.revoked_at is not None,
    }
