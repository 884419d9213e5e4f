"""The command `manage.py revoke_api_token`, which revokes a token of the HTTP API."""

from __future__ import annotations

from reprocessing.management.shared.revoke_command import RevokeCommand
from reprocessing.models import ApiToken
from reprocessing.store.api import tokens


class Command(RevokeCommand):
    """Revoke a token of the HTTP API.

    Requests with the token are refused from now on. Runs and bulk actions that the token started continue.

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
