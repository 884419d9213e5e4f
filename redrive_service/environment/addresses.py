"""Check the URLs and host names in environment variables. Error texts do not quote them, because they may be secret."""

from __future__ import annotations

import ipaddress
import re
from typing import Any, Final
from urllib.parse import SplitResult, parse_qsl, urlsplit

import redis
from psycopg.pq import Conninfo

_OPTIONS_OF_LIBPQ = frozenset(option.keyword.decode() for option in Conninfo.get_defaults())
_NUMBERS = re.compile(r"connect_timeout|tcp_user_timeout|keepalives(_\w+)?")
_LABEL = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
_HOST = re.compile(rf"(?ai)\.?{_LABEL}(\.{_LABEL})*")
_DATABASES: Final = 2**31 - 1  #: maximum number of databases of a Redis server, which stores it as an int
_LONGEST_WAIT: Final = 86_400.0  #: max seconds of a timeout in REDIS_URL
_WAITS: Final = ("socket_timeout", "socket_connect_timeout")


def parts(value: str, schemes: tuple[str, ...]) -> SplitResult | None:
    """Return the parts of the URL, or None if the URL is malformed or its scheme is not one of `schemes`."""
    try:
        found = urlsplit(value)
        port = found.port  # reading the port validates it
    except ValueError:
        return None
    usable = found.scheme in schemes and value.startswith(f"{found.scheme}://") and not found.fragment and port != 0
    return found if usable and (found.netloc or found.path.strip("/")) else None


def is_visible(value: str) -> bool:
    """Return whether all characters are visible. urlsplit drops invisible characters, but other libraries send them."""
    return value.isprintable() and " " not in value and "%00" not in value


def is_host(value: str) -> bool:
    """Return whether Django accepts the value in ALLOWED_HOSTS: a name, an address, or `.domain`, without a port."""
    if value.startswith("[") and value.endswith("]"):
        try:
            return ipaddress.IPv6Address(value[1:-1]).scope_id is None
        except ValueError:
            return False
    return bool(_HOST.fullmatch(value))


def misfit_of_libpq(url: str) -> str:
    """Return which option of a PostgreSQL URL libpq would refuse, without its value, or "" if libpq accepts all."""
    options = parse_qsl(urlsplit(url).query, keep_blank_values=True)
    if not _OPTIONS_OF_LIBPQ.issuperset(name for name, _ in options):
        return "an option that libpq does not know"
    odd = (name for name, text in options if _NUMBERS.fullmatch(name) and not re.fullmatch(r"-?[0-9]{1,9}", text))
    return next((f"a {name} that is no whole number" for name in odd), "")


def misfit_of_redis(url: str) -> str:
    """Return what redis-py or Redis would refuse in the URL, or "" if both accept it. Does not connect to Redis."""
    try:
        connection: Any = redis.ConnectionPool.from_url(url).make_connection()
        connection.encoder.encode("")  # checks the encoding's name
    except (TypeError, ValueError, LookupError, redis.RedisError):
        return "an option, or a value of an option, that redis-py does not accept"
    waits = {name: getattr(connection, name) for name in _WAITS}
    odd = (name for name, wait in waits.items() if wait is not None and not 0 < wait <= _LONGEST_WAIT)
    if name := next(odd, ""):
        return f"a {name} that is no number of seconds above 0 and at most {_LONGEST_WAIT:,.0f}"
    if not 0 <= connection.db < _DATABASES:
        return f"the number of a database that no Redis has: 0 is the first, {_DATABASES - 1:,} the last"
    return ""
