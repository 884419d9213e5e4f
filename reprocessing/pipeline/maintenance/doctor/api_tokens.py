"""Check API tokens: find tokens that are refused, or soon will be, until their owners sign in again."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from reprocessing.conf import Conf
from reprocessing.domain.maintenance.findings import DoctorFinding, warning_finding
from reprocessing.models import ApiToken
from reprocessing.store.api import tokens
from reprocessing.store.ordering.lanes import database_now

#: Max time before the refusal of a token at which the warning begins; a quarter of TOKEN_RECHECK if that is less.
_EARLIEST: Final = timedelta(days=7)
_WHY: Final = "Programs with a refused token get the status 401."


def findings(conf: Conf) -> Iterator[DoctorFinding]:
    """Yield a warning for each token that is refused, or soon will be, because its owner did not sign in.

    Raises:
        django.db.Error: PostgreSQL does not answer.
    """
    now, soon = database_now(), min(_EARLIEST, conf.token_recheck / 4)
    for row in tokens.listed().filter(revoked_at=None).exclude(user=None):
        ends_at = tokens.confirmed_until(row)
        may_end = tokens.state_of(row, now) in {tokens.ACTIVE, tokens.UNCONFIRMED}
        if ends_at is not None and may_end and ends_at <= now + soon:
            yield _warning(row, ends_at, now)


def _warning(row: ApiToken, ends_at: datetime, now: datetime) -> DoctorFinding:
    verb = "has been refused since" if ends_at <= now else "will be refused from"
    what = f"The API token {verb} {ends_at:%Y-%m-%d %H:%M} UTC: its owner {row.user} has not signed in for too long."
    revoke = f'manage.py revoke_api_token {row.name} --reason "its owner left" --confirm'
    cure = f"Ask {row.user} to sign in to the admin by the OpenID provider. Or revoke the token: {revoke}"
    return warning_finding(row.name, what, _WHY, cure)
