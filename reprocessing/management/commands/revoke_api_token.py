"""`manage.py revoke_api_token`."""

from __future__ import annotations

from reprocessing.management.shared.revoke_command import RevokeCommand
from reprocessing.models import ApiToken
from reprocessing.store.api import tokens


class Command(RevokeCommand):
    """Revoke a token of the HTTP API.

    Its requests are refused from now on. What it started goes on: runs, and bulk actions.

    Examples:
        revoke_api_token deploy --reason "token leaked"
        revoke_api_token deploy --reason "token leaked" --confirm
    """

    what = "api_token"
    name_help = "name of the token (manage.py list_api_tokens shows them)"

    def find(self, name: str) -> ApiToken:
        return tokens.find_token(name)

    def revoke(self, name: str, *, by: str, reason: str) -> bool:
        return tokens.revoke(name, by=by, reason=reason)
