"""Authenticate a request by its API token, and check what the token may do and which DLQs it sees."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from http import HTTPStatus
from typing import Final, TypeVar

from django.conf import settings
from django.db.models import Manager, Model, QuerySet
from django.http import HttpRequest

from reprocessing import conf
from reprocessing.api.site.problems import Problem, not_found
from reprocessing.domain.api.scopes import Scope
from reprocessing.domain.approvals.person import VIA_API
from reprocessing.domain.approvals.requested_action import Messages
from reprocessing.gateways.redis.request_rate import RequestRates
from reprocessing.models import ApiToken
from reprocessing.store.api import tokens
from reprocessing.store.approvals import guard
from reprocessing.store.ordering.lanes import database_now
from reprocessing.store.rights.visible_dlqs import VisibleDlqs, dlqs_of_token

Row = TypeVar("Row", bound=Model)
_CALLER: Final = "_redrive_caller"
_BEARER: Final = {"WWW-Authenticate": "Bearer"}
_MAKE_ANOTHER: Final = "Make another in the admin, or by the command make_api_token."
_SIGN_IN: Final = (
    "The owner has not signed in to the admin by the OpenID provider for too long. Let the owner sign in again: then "
    "the token is accepted again."
)


@dataclass(frozen=True, slots=True)
class Caller:
    """The API token of a request, and the DLQs that the token sees.

    `key`: the request's idempotency key; None: the request has none.
    """

    token: ApiToken
    seen: VisibleDlqs
    key: str | None

    @property
    def by(self) -> str:
        """Return the name for the audit log: a person's name and the token's name.

        The person is the user who owns the token. If teams own the token, it is the person who made the token.
        """
        person = self.token.user.get_username() if self.token.user else self.token.added_by
        return f"{person}{VIA_API}{self.token.name}"

    def may(self, scope: Scope) -> bool:
        """Return whether the token has the scope and, if a user owns the token, the user has its permission."""
        user = self.token.user
        return scope in self.token.scopes and (user is None or user.has_perm(scope.permission))

    def require(self, scope: Scope) -> None:
        """Check that the token may do what the scope allows.

        Raises:
            Problem: the token lacks the scope, or its user lacks the permission.
        """
        if scope not in self.token.scopes:
            has = ", ".join(self.token.scopes)
            why = f"This needs the scope {scope}, to {scope.sentence}. The scopes of the token {self.token.name} are: "
            raise Problem(
                HTTPStatus.FORBIDDEN, f"{why}{has}. Make a token with this scope: the command is make_api_token."
            )
        if not self.may(scope):
            why = f"This needs the permission to {scope.sentence}, which the user of the token does not have."
            raise Problem(HTTPStatus.FORBIDDEN, f"{why} Ask an administrator for {scope.permission}.")

    def approval_notice(self, messages: Messages) -> list[str]:
        """Return a list with one sentence if a change of these messages needs a second person; else an empty list.

        `messages`: the number of changed messages of each DLQ.
        """
        notice = "This needs a second person: with confirm, an approval is requested, and nothing is done until then."
        return [notice] if guard.is_needed(messages, by=self.by) else []

    def require_all_dlqs(self) -> None:
        """Check that the token sees all DLQs.

        Raises:
            Problem: the token sees only some DLQs.
        """
        if not self.seen.are_all:
            why = "This is about all DLQs, and this token sees only some. Use the token of a user who sees all DLQs."
            raise Problem(HTTPStatus.FORBIDDEN, why)

    def rows(self, every: Manager[Row] | QuerySet[Row]) -> QuerySet[Row]:
        """Return, of these rows, the rows that belong to DLQs that the token sees."""
        return self.seen.rows(every.all())

    def row(self, every: Manager[Row] | QuerySet[Row], what: str, **named: object) -> Row:
        """Return the row with this name or id.

        `every`: the rows of the model. `named`: the field and the value that select the row. `what`: the kind of row
        for the error's text, such as "run".

        Raises:
            Problem: there is no such row, or the token does not see it.
        """
        found = self.rows(every).filter(**named).first()
        if found is None:
            raise not_found(what)
        return found


def admit(request: HttpRequest, scope: Scope, *, key: str | None) -> Caller:
    """Authenticate a request by its API token, and return the caller. The request counts for the token's rate limit.

    `key`: the request's idempotency key; None: it has none.

    Raises:
        Problem: the token is unknown, revoked, expired, has no owner any more, lacks the scope, or sends too many
            requests.
    """
    token = _token(request)
    if wait := request_rates().wait(token.pk, rate=conf.current().api_rate):
        why = f"The token {token.name} sends more than {conf.current().api_rate:g} requests a second. Retry later."
        raise Problem(HTTPStatus.TOO_MANY_REQUESTS, why, {"Retry-After": str(math.ceil(wait))})
    caller = Caller(token, dlqs_of_token(token), key)
    caller.require(scope)
    setattr(request, _CALLER, caller)
    return caller


def caller_of(request: HttpRequest) -> Caller:
    """Return the caller of a request that `admit` has authenticated."""
    found: Caller = getattr(request, _CALLER)
    return found


@cache
def request_rates() -> RequestRates:
    """Return the rate limiter of all API tokens. It counts requests in Redis, for all web processes together."""
    return RequestRates.at(settings.REDIS_URL)


def _token(request: HttpRequest) -> ApiToken:
    scheme, _, secret = request.headers.get("Authorization", "").partition(" ")
    found = tokens.by_secret(secret.strip()) if scheme.lower() == "bearer" else None
    if found is None:
        why = "No API token has this secret. Send Authorization: Bearer SECRET, as make_api_token printed it."
        raise Problem(HTTPStatus.UNAUTHORIZED, why, _BEARER)
    if (state := tokens.state_of(found, database_now())) != tokens.ACTIVE:
        cure = _SIGN_IN if state == tokens.UNCONFIRMED else _MAKE_ANOTHER
        raise Problem(HTTPStatus.UNAUTHORIZED, f"The token {found.name} is refused: {state}. {cure}", _BEARER)
    return found
