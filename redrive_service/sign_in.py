"""Sign-in by password: the form, the client's address, and the page after too many wrong passwords.

django-axes counts wrong passwords by user name and client address. After too many, it locks this user name for this
address, for AXES_COOLOFF_TIME.
"""

from __future__ import annotations

import ipaddress
import shlex
from collections.abc import Mapping
from typing import Any

from axes.models import AccessAttempt
from django.conf import settings
from django.contrib.admin.forms import AdminAuthenticationForm
from django.core.exceptions import ValidationError
from django.db.models import Max
from django.http import HttpRequest, HttpResponse
from django.utils.formats import date_format

TOO_MANY_REQUESTS = 429


class SignInForm(AdminAuthenticationForm):
    """Django's sign-in form, with an error that says until when a user name is locked."""

    def get_invalid_login_error(self) -> ValidationError:
        """Return the error: a wrong password, or a locked user name."""
        if self.request is None or not getattr(self.request, "axes_locked_out", False):
            return super().get_invalid_login_error()
        return ValidationError(lock_message(self.request, self.cleaned_data["username"]), code="locked")


def lock_message(request: HttpRequest, username: str) -> str:
    """Return a text that says why the user name is locked, until when, and which command ends the lock."""
    address = client_address(request)
    minutes = int(settings.AXES_COOLOFF_TIME.total_seconds() // 60)
    failed = AccessAttempt.objects.filter(username=username, ip_address=address)
    last = failed.aggregate(last=Max("attempt_time"))["last"]
    until = (
        f"until {date_format(last + settings.AXES_COOLOFF_TIME, 'Y-m-d H:i:s')} UTC"
        if last
        else f"for {minutes} minutes"
    )
    command = f".venv/bin/python manage.py axes_reset_ip_username {address} {shlex.quote(username)}"
    return (
        f"This user name is locked for your address ({address}) {until}: {settings.AXES_FAILURE_LIMIT} wrong passwords "
        f"within {minutes} minutes. Wait until then, or have an administrator run: {command}"
    )


def locked_out(
    _request: HttpRequest, response: HttpResponse, _credentials: Mapping[str, Any] | None = None
) -> HttpResponse:
    """Return the sign-in page with status 429, so that programs also notice the lock."""
    response.status_code = TOO_MANY_REQUESTS
    return response


def client_address(request: HttpRequest) -> str | None:
    """Return the client's address, by which wrong passwords are counted, or None if it is unknown.

    Of an IPv6 address, return the /64 network. Each of the REDRIVE_PROXY_COUNT proxies appends the address of its
    client to X-Forwarded-For. Earlier entries of this header may be forged, so they are not read.
    """
    peer = request.META.get("REMOTE_ADDR", "")
    addresses = [word.strip() for word in request.META.get("HTTP_X_FORWARDED_FOR", "").split(",")]
    count = settings.PROXY_COUNT
    client = addresses[-count] if 0 < count <= len(addresses) else peer
    return _counted(client) or _counted(peer)


def _counted(text: str) -> str | None:
    host = text[1:].partition("]")[0] if text.startswith("[") else text
    if host.count(":") == 1:  # an IPv4 address with a port
        host = host.partition(":")[0]
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    if address.ipv4_mapped:
        return str(address.ipv4_mapped)
    return str(ipaddress.IPv6Network((int(address), 64), strict=False).network_address)
