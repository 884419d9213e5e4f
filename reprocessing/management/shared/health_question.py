"""Read a health check from the options of check_health, or from a configuration file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.core.management.base import CommandError

from reprocessing.conf import Conf
from reprocessing.domain.safety import url_policy
from reprocessing.domain.safety.url_policy import UrlDenied
from reprocessing.models.safety import CheckKind
from reprocessing.store.safety.health_checks import CheckQuestion


def read_question(options: Mapping[str, Any], view: Conf) -> CheckQuestion | None:
    """Return the health check that the options describe, or None if they describe no check.

    Raises:
        CommandError: an option is missing, or the check could never be healthy, for example because its URL is not
            allowed.
    """
    if options["status"] is not None and not options["http"]:
        raise CommandError("--status needs --http URL.")
    if options["http"]:
        return _url(options["http"], options["status"], view)
    if options["alarm"]:
        if options["alarm"].startswith("arn:"):
            raise CommandError("--alarm takes the name of the alarm, not its ARN. It is read in the target's region.")
        return CheckQuestion(CheckKind.ALARM, options["alarm"])
    if options["max_depth"] is not None:
        return CheckQuestion(CheckKind.DEPTH, ceiling=options["max_depth"])
    if options["max_age"] is not None:
        return CheckQuestion(CheckKind.AGE, ceiling=options["max_age"])
    return None


def _url(url: str, status: int | None, view: Conf) -> CheckQuestion:
    read = url_policy.read_url(url, view.outbound_hosts)
    if isinstance(read, UrlDenied):
        raise CommandError(f"Nothing was changed: {url[:100]!a} is not allowed: {read.why}. {read.cure}".rstrip())
    if status is not None and 300 <= status < 400:  # noqa: PLR2004  redirects
        raise CommandError(f"{status} is a redirect, and redirects are not followed. Give the URL it redirects to.")
    return CheckQuestion(CheckKind.HTTP, url, expected_status=status)
