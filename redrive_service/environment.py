"""What the service is told by environment variables, checked as a whole before anything starts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal
from urllib.parse import urlsplit

import environ
from django.core.exceptions import ImproperlyConfigured

from redrive_service.addresses import is_host, is_visible, misfit_of_libpq, misfit_of_redis, parts
from redrive_service.notifications import read_alerts, read_destinations
from reprocessing.conf import COLOURS, LONGEST_PLACE
from reprocessing.domain.safety.url_policy import AllowList, Denied, allow_list
from reprocessing.domain.targets import signing_secret

Mode = Literal["production", "sandbox"]
QUEUES = ("redrive-control", "redrive-capture", "redrive-replay")
REGION = re.compile(r"[a-z]{2}(-[a-z]+)+-\d+")
HOST_OF_A_REGION = re.compile(r"sqs(?:-fips)?\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?")
QUEUE_PATH = re.compile(r"/\d{12}/[A-Za-z0-9_-]{1,80}")  # AWS: CreateQueue, QueueName
NAMESPACE = re.compile(r"(?!AWS/)[A-Za-z0-9._/#:-]{1,40}")  # AWS: PutMetricData, Namespace; as short as a place
_INVISIBLE = "a space, a line break or another character that nobody sees"
SHORTEST_SECRET = 50  # characters, as Django's deployment check asks for
SHORTEST_TOKEN = 32
MOST_PROXIES = 10


class EnvironmentIsIncomplete(ImproperlyConfigured):
    """The service was started without something it must not guess."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SignIn:
    """How often a password may be wrong, and how long a session lasts."""

    attempts: int
    lock: timedelta
    session: timedelta
    ends_with_browser: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """The service's surroundings. Nothing here has a default that could hide a mistake in production."""

    mode: Mode
    secret_key: str = field(repr=False)
    allowed_hosts: tuple[str, ...]
    trusted_origins: tuple[str, ...]
    database: dict[str, Any] = field(repr=False)
    redis_url: str = field(repr=False)
    queue_urls: dict[str, str]
    region: str
    behind_proxy: bool
    proxy_count: int
    sign_in: SignIn
    outbound_hosts: tuple[str, ...]
    place: str
    colour: str
    cloudwatch: str
    public_url: str
    destinations: dict[str, str] = field(repr=False)
    alerts: dict[str, float]
    metrics_token: str = field(repr=False)
    secrets: dict[str, str] = field(repr=False)


def read(variables: Mapping[str, str]) -> Environment:
    """The environment, or everything that is wrong with it in one message.

    Raises:
        EnvironmentIsIncomplete: a variable is missing or cannot be used; the message names each and its cure.
    """
    reader = _Reader(variables)
    environment = Environment(
        mode=reader.mode(),
        secret_key=reader.secret_key(),
        allowed_hosts=reader.allowed_hosts(),
        trusted_origins=reader.trusted_origins(),
        database=reader.database(),
        redis_url=reader.redis_url(),
        region=(region := reader.region()),
        queue_urls=reader.queue_urls(region),
        behind_proxy=(behind_proxy := reader.yes_or_no("BEHIND_TLS_PROXY")),
        proxy_count=reader.proxy_count(required=behind_proxy),
        sign_in=reader.sign_in(),
        outbound_hosts=reader.outbound_hosts(),
        place=reader.place(),
        colour=reader.colour(),
        cloudwatch=reader.cloudwatch(),
        metrics_token=reader.metrics_token(),
        secrets=(secrets := reader.secrets()),
        destinations=(destinations := reader.destinations(secrets)),
        public_url=reader.public_url(needed=bool(destinations)),
        alerts=reader.alerts(),
    )
    if reader.problems:
        problems = "\n".join(f"  - {problem}" for problem in reader.problems)
        raise EnvironmentIsIncomplete(
            f"The redrive service cannot start:\n{problems}\nFor a first look without any of this: manage.py sandbox"
        )
    return environment


class _Reader:
    """Reads one variable after the other and notes what is wrong, so that all of it is told at once."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        self.variables = variables
        self.problems: list[str] = []

    def text(self, name: str, cure: str) -> str:
        value = self.variables.get(name, "").strip()
        if not value:
            self.problems.append(f"{name} is not set. {cure}")
        return value

    def words(self, name: str) -> tuple[str, ...]:
        return tuple(word.strip() for word in self.variables.get(name, "").split(",") if word.strip())

    def mode(self) -> Mode:
        value = self.variables.get("REDRIVE_MODE", "").strip() or "production"
        if value == "sandbox":
            return "sandbox"
        if value != "production":
            self.problems.append("REDRIVE_MODE is neither production (the default) nor sandbox. Unset it.")
        return "production"

    def yes_or_no(self, name: str) -> bool:
        value = self.variables.get(name, "").strip().lower() or "no"
        if value not in {"yes", "no"}:
            self.problems.append(f"{name} must be yes or no.")
        return value == "yes"

    def number(self, name: str, *, default: int, least: int, most: int) -> int:
        """A whole number within its bounds."""
        value = self.variables.get(name, "").strip() or str(default)
        if not re.fullmatch(r"[0-9]{1,9}", value) or not least <= int(value) <= most:
            self.problems.append(f"{name} must be a whole number from {least} to {most:,}. Unset, it is {default}.")
            return default
        return int(value)

    def proxy_count(self, *, required: bool) -> int:
        """Return how many proxies add to X-Forwarded-For. Required behind a proxy: a wrong guess is unsafe."""
        if required and not self.variables.get("REDRIVE_PROXY_COUNT", "").strip():
            self.problems.append(
                "REDRIVE_PROXY_COUNT is not set, but BEHIND_TLS_PROXY is yes. Set it to the number of proxies that add "
                "the client's address to X-Forwarded-For (mostly 1), or to 0 if none does. Wrong passwords are counted "
                "per address."
            )
        return self.number("REDRIVE_PROXY_COUNT", default=0, least=0, most=MOST_PROXIES)

    def sign_in(self) -> SignIn:
        """The limits of signing in."""
        minutes = self.number("REDRIVE_LOGIN_LOCK_MINUTES", default=15, least=1, most=1_440)
        hours = self.number("REDRIVE_SESSION_HOURS", default=12, least=1, most=336)
        return SignIn(
            attempts=self.number("REDRIVE_LOGIN_ATTEMPTS", default=5, least=1, most=100),
            lock=timedelta(minutes=minutes),
            session=timedelta(hours=hours),
            ends_with_browser=self.yes_or_no("REDRIVE_SESSION_ENDS_WITH_BROWSER"),
        )

    def secret_key(self) -> str:
        cure = 'Make one: python -c "import secrets; print(secrets.token_urlsafe(50))"'
        value = self.text("SECRET_KEY", cure)
        if 0 < len(value) < SHORTEST_SECRET:
            self.problems.append(f"SECRET_KEY is shorter than {SHORTEST_SECRET} characters. {cure}")
        return value

    def allowed_hosts(self) -> tuple[str, ...]:
        hosts = self.words("ALLOWED_HOSTS")
        cure = "List the host names of the admin: redrive.example.com"
        if not hosts:
            self.problems.append(f"ALLOWED_HOSTS is not set. {cure}")
        elif "*" in hosts:
            self.problems.append(f"ALLOWED_HOSTS admits every host (*). {cure}")
        elif any("/" in host for host in hosts):
            self.problems.append(f"ALLOWED_HOSTS holds a URL, not a host name. {cure}")
        elif not all(is_visible(host) for host in hosts):
            self.problems.append(f"ALLOWED_HOSTS holds {_INVISIBLE}. Separate the names with commas alone. {cure}")
        elif not all(map(is_host, hosts)):
            wanted = "neither the name nor the address of a host, nor a .domain"
            self.problems.append(f"ALLOWED_HOSTS holds what is {wanted}. Leave ports out. {cure}")
        return hosts

    def trusted_origins(self) -> tuple[str, ...]:
        origins = self.words("CSRF_TRUSTED_ORIGINS")
        cure = "Begin each with https:// and separate them with commas alone."
        found = [parts(origin, ("https", "http")) for origin in origins]
        if not all(map(is_visible, origins)):
            self.problems.append(f"CSRF_TRUSTED_ORIGINS holds {_INVISIBLE}. {cure}")
        elif not all(one and one.netloc for one in found):
            self.problems.append(f"CSRF_TRUSTED_ORIGINS holds something else than https://HOST. {cure}")
        return origins

    def outbound_hosts(self) -> tuple[str, ...]:
        hosts = self.words("REDRIVE_OUTBOUND_HOSTS")
        self.refuse_the_old_name("REDRIVE_HEALTH_HOSTS", "REDRIVE_OUTBOUND_HOSTS")
        listed = allow_list(hosts)
        if isinstance(listed, Denied):
            cure = "List host names, addresses or networks: status.example.com, 10.1.2.3:8080"
            self.problems.append(f"REDRIVE_OUTBOUND_HOSTS cannot be used: {listed.why}. {cure}")
        return hosts

    def refuse_the_old_name(self, old: str, new: str) -> None:
        """Report an old name, with the line to set instead. Its value is shown only if it is a list of hosts."""
        if hosts := self.words(old):
            value = "HOST,HOST:PORT" if isinstance(allow_list(hosts), Denied) else ",".join(hosts)
            self.problems.append(f"{old} is now called {new}, because targets use it too. Set instead: {new}={value}")

    def place(self) -> str:
        value = self.variables.get("REDRIVE_PLACE", "").strip() or self.variables.get("REDRIVE_MODE", "").strip()
        if len(value) > LONGEST_PLACE or not value.isprintable():
            at_most = f"at most {LONGEST_PLACE} characters that can be seen"
            self.problems.append(f"REDRIVE_PLACE cannot be shown: it must have {at_most}. Correct it.")
        return value or "production"

    def colour(self) -> str:
        value = self.variables.get("REDRIVE_COLOUR", "").strip()
        if value and value not in COLOURS:
            self.problems.append(f"REDRIVE_COLOUR must be one of {', '.join(COLOURS)}.")
        return value or ("green" if self.variables.get("REDRIVE_MODE", "").strip() == "sandbox" else "red")

    def cloudwatch(self) -> str:
        """May be missing: then CloudWatch is told nothing."""
        value = self.variables.get("REDRIVE_CLOUDWATCH", "").strip()
        if value and not NAMESPACE.fullmatch(value):
            self.problems.append("REDRIVE_CLOUDWATCH is no namespace of metrics. One is Redrive/Production.")
        return value

    def destinations(self, secrets: Mapping[str, str]) -> dict[str, str]:
        """Return the URL of each notification destination. A problem shows nothing of its URL, which holds a secret."""
        listed = allow_list(self.words("REDRIVE_OUTBOUND_HOSTS"))
        found = read_destinations(self.variables, secrets, AllowList() if isinstance(listed, Denied) else listed)
        self.problems += found.problems
        return found.urls

    def alerts(self) -> dict[str, float]:
        """Return the thresholds of notifications that are set."""
        found, problems = read_alerts(self.variables)
        self.problems += problems
        return found

    def public_url(self, *, needed: bool) -> str:
        """Return the URL of the admin's host, for the links in notifications."""
        value = self.variables.get("REDRIVE_PUBLIC_URL", "").strip().rstrip("/")
        cure = "Set it to the URL of the admin's host: https://redrive.example.com"
        in_production = self.variables.get("REDRIVE_MODE", "").strip() != "sandbox"
        found = parts(value, ("https",) if in_production else ("https", "http")) if value else None
        if not value and needed and in_production:
            self.problems.append(f"REDRIVE_PUBLIC_URL is not set, but a notification destination is. {cure}")
        elif value and not (found and is_visible(value) and found.netloc == value.partition("://")[2]):
            self.problems.append(f"REDRIVE_PUBLIC_URL must be a URL without a path. {cure}")
        return value

    def metrics_token(self) -> str:
        """May be missing: then nobody is told any metrics. Nothing of it is told."""
        value = self.variables.get("REDRIVE_METRICS_TOKEN", "").strip()
        if value and (len(value) < SHORTEST_TOKEN or not value.isascii() or not is_visible(value)):
            needed = f"at least {SHORTEST_TOKEN} characters that can be seen"
            self.problems.append(f"REDRIVE_METRICS_TOKEN must have {needed}. Make one: openssl rand -hex 32")
        return value

    def secrets(self) -> dict[str, str]:
        """NAME=TEXT, with commas or line breaks between them. Nothing of a text is told, whatever is wrong with it."""
        found: dict[str, str] = {}
        entries = re.split(r"[,\r\n]+", self.variables.get("REDRIVE_SECRETS", ""))
        for entry in (one.strip() for one in entries if one.strip()):
            name, _, text = (part.strip() for part in (entry if "=" in entry else f"={entry}").partition("="))
            problem = f"{name} is there twice" if name in found else signing_secret.problem(name, text)
            if problem:
                cure = "Write NAME=whsec_… with commas between them; make one: openssl rand -base64 32"
                self.problems.append(f"REDRIVE_SECRETS cannot be used: {problem}. {cure}")
            found[name] = text
        return found

    def database(self) -> dict[str, Any]:
        cure = "Set it to a PostgreSQL database: postgres://USER:PASSWORD@HOST:5432/NAME"
        # The scheme first: of one it does not know the parser tells the whole address, password and all.
        value = self.url("DATABASE_URL", cure, schemes=("postgres", "postgresql"))
        if problem := misfit_of_libpq(value):
            self.problems.append(f"DATABASE_URL has {problem}. Correct or remove it. {cure}")
        if problem or not value:
            return {}
        database: dict[str, Any] = environ.Env.db_url_config(value)
        if not database["NAME"]:
            self.problems.append(f"DATABASE_URL names no database. {cure}")
        return database

    def redis_url(self) -> str:
        cure = "Set it to a Redis or Valkey server: rediss://:PASSWORD@HOST:6379/0"
        value = self.url("REDIS_URL", cure, schemes=("redis", "rediss", "unix"))
        if value and not value.startswith("unix:") and not re.fullmatch(r"/?[0-9]{0,99}", urlsplit(value).path):
            self.problems.append(f"REDIS_URL does not end with the number of a database. {cure}")
        elif value and (problem := misfit_of_redis(value)):
            self.problems.append(f"REDIS_URL has {problem}. Correct or remove it. {cure}")
        return value

    def region(self) -> str:
        cure = "Set it to the region of your queues, such as eu-west-1."
        value = self.text("AWS_DEFAULT_REGION", cure)
        if value and not REGION.fullmatch(value):
            self.problems.append(f"AWS_DEFAULT_REGION is not the name of a region. {cure}")
        return value

    def queue_urls(self, region: str) -> dict[str, str]:
        urls = {queue: self.queue_url(queue, region) for queue in QUEUES}
        usable = [url for url in urls.values() if url]
        if len(set(usable)) < len(usable):
            self.problems.append("Two of the service's own queues have the same URL. Give each a queue of its own.")
        return urls

    def queue_url(self, queue: str, region: str) -> str:
        name = f"{queue.upper().replace('-', '_')}_QUEUE_URL"
        cure = f"Set it to the URL of the service's own queue {queue}."
        value = self.url(name, cure, schemes=("https", "http"))
        if not value:
            return ""
        found = urlsplit(value)
        at_home = HOST_OF_A_REGION.fullmatch(found.hostname or "")
        if "@" in found.netloc:
            self.problems.append(f"{name} has a user or a password: SQS takes neither, and logs would tell it. {cure}")
        elif found.path.endswith(".fifo"):
            self.problems.append(f"{name} is a FIFO queue. {cure} It must be a standard queue.")
        elif not QUEUE_PATH.fullmatch(found.path):
            self.problems.append(f"{name} does not end with an account and a queue's name. {cure}")
        elif at_home and REGION.fullmatch(region) and at_home[1] != region:
            self.problems.append(f"{name} is in {at_home[1]}, but AWS_DEFAULT_REGION is {region}. Correct one of them.")
        return value

    def url(self, name: str, cure: str, *, schemes: tuple[str, ...]) -> str:
        """The URL, or nothing when it is missing or cannot be used."""
        value = self.text(name, cure)
        if not value or (is_visible(value) and parts(value, schemes)):
            return value
        if not is_visible(value):
            self.problems.append(f"{name} holds {_INVISIBLE}. Remove it, or percent-encode it in a password. {cure}")
        elif value.startswith(tuple(f"{scheme}://" for scheme in schemes)):
            hint = "Its port must be a number from 1 to 65535, and what is special in a password percent-encoded."
            self.problems.append(f"{name} cannot be read. {hint} {cure}")
        else:
            self.problems.append(f"{name} is not a URL that begins with {schemes[0]}://. {cure}")
        return ""
