"""The command `manage.py revoke_reporter`, which revokes the token of a consumer that reports outcomes."""

from __future__ import annotations

from reprocessing.management.shared.revoke_command import RevokeCommand
from reprocessing.models import Reporter
from reprocessing.store.outcomes import reporters


class Command(RevokeCommand):
    """Revoke the token with which a consumer reports outcomes of messages.

    In commands, such a consumer is called a reporter. Outcomes that it has reported are kept. Its reports about
    messages that are not captured yet are ignored.

    Examples:
        revoke_reporter shop --reason "token leaked"
        revoke_reporter shop --reason "token leaked" --confirm
    """

    what = "reporter"
    name_help = "name of the reporter"

    def find(self, name: str) -> Reporter:
        return reporters.find_reporter(name)

    def revoke(self, name: str, *, by: str, reason: str) -> bool:
        return reporters.revoke(name, by=by, reason=reason)
