"""Read notification destinations from URLs in the environment. Errors quote no URL, since it may have a secret."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Final

from reprocessing.domain.message import arn
from reprocessing.domain.message.arn import ResourceKind
from reprocessing.domain.safety import url_policy
from reprocessing.domain.safety.url_policy import AllowList, UrlDenied

#: Max characters of a notification destination's name.
LONGEST_NAME: Final = 40
_LONGEST_URL: Final = 4_000
_NAME: Final = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_SCHEMA: Final = re.compile(r"(?a)([A-Za-z][A-Za-z0-9.-]{1,30})://.")
_WEBHOOK: Final = "webhook+"
_SECRET: Final = "secret="  # noqa: S105 - what is before a secret's name
_SNS: Final = "sns:"

#: Allowed schemas of Apprise: services that reach people over the network. Not allowed: schemas that run a program, use
#: the desktop or syslog, read or write files, or post without a signature (json://, xml://, form://; use
#: `webhook+https://`, which signs).
SCHEMAS: Final = frozenset((
    "apprise", "apprises", "azure", "bark", "barks", "betterstack", "brevo", "discord", "feishu", "firehydrant",
    "flock", "gchat", "goalert", "goalerts", "gotify", "gotifys", "guilded", "ilert", "incidentio", "jira", "join",
    "lark", "line", "mailersend", "mailgun", "mailto", "mailtos", "mastodon", "mastodons", "matrix", "matrixs",
    "mmost", "mmosts", "nctalk", "nctalks", "ntfy", "ntfys", "o365", "opsgenie", "pagerduty", "pagertree",
    "postmark", "pover", "prowl", "pushy", "pbul", "resend", "revolt", "rocket", "rockets", "sendgrid", "ses",
    "signal", "signals", "signl4", "slack", "smtp2go", "sparkpost", "spike", "splunk", "squadcast", "synology",
    "synologys", "tgram", "threema", "twilio", "victorops", "vonage", "webex", "wecombot", "whatsapp", "workflow",
    "workflows", "wxteams", "zoom", "zulip",
))  # fmt: skip


@dataclass(frozen=True, slots=True)
class AppriseService:
    """An e-mail address, a chat or a pager that the library Apprise can reach. `schema`: of its URL, such as mailto.

    `kind` describes the destination without its secrets, such as "mailto://, by Apprise".
    """

    schema: str
    url: str = field(repr=False)

    @property
    def kind(self) -> str:  # noqa: D102  # see above
        return f"{self.schema}://, by Apprise"


@dataclass(frozen=True, slots=True)
class SnsTopic:
    """An SNS topic. Its subscribers are configured in AWS."""

    arn: str = field(repr=False)
    kind: ClassVar[str] = "an SNS topic"


@dataclass(frozen=True, slots=True)
class SignedWebhook:
    """An HTTP endpoint that gets signed JSON. `secret` is the name of the signing secret, `key` the secret's bytes.

    `allowed`: the hosts and networks that requests to the endpoint may reach.
    """

    url: str = field(repr=False)
    secret: str
    key: bytes = field(repr=False)
    allowed: AllowList = field(repr=False)
    kind: ClassVar[str] = "a signed webhook"


Destination = AppriseService | SnsTopic | SignedWebhook


@dataclass(frozen=True, slots=True)
class Unusable:
    """A notification destination cannot be used. `why` contains no part of its URL, which may have a secret."""

    why: str


def is_name(name: str) -> bool:
    """Return whether a notification destination can have this name: lower case, digits, hyphens, as in team-a."""
    return len(name) <= LONGEST_NAME and bool(_NAME.fullmatch(name))


def read_destination(url: str, keys: Mapping[str, bytes], inside: AllowList) -> Destination | Unusable:
    """Return the destination that a URL describes, or why the destination cannot be used.

    Args:
        url: sns:ARN, webhook+https://HOST/PATH#secret=NAME, or a URL of Apprise: mailto://…, slack://…
        keys: the bytes of each secret, by the secret's name.
        inside: the hosts and networks of REDRIVE_OUTBOUND_HOSTS, for webhooks whose host has no public address.
    """
    if not url.isprintable() or " " in url or len(url) > _LONGEST_URL:
        return Unusable(f"it contains a space or an invisible character, or is longer than {_LONGEST_URL:,} characters")
    if url.startswith(_SNS) and not url.startswith("sns://"):
        return _topic(url.removeprefix(_SNS))
    if url.startswith(_WEBHOOK):
        return _webhook(url.removeprefix(_WEBHOOK), keys, inside)
    found = _SCHEMA.match(url)
    if found is None:
        return Unusable("it is neither sns:ARN, nor webhook+https://HOST/PATH#secret=NAME, nor a URL of Apprise")
    schema = found[1].lower()
    if schema not in SCHEMAS:
        return Unusable(_of_schema(schema))
    return AppriseService(schema, url)


def _topic(text: str) -> SnsTopic | Unusable:
    found = arn.read(text)
    if found is None or found.named is not ResourceKind.TOPIC:
        return Unusable("the text after sns: is not the ARN of an SNS topic: sns:arn:aws:sns:REGION:ACCOUNT:TOPIC")
    if found.fifo:
        return Unusable("it is a FIFO topic, which people cannot subscribe to; use a standard topic")
    return SnsTopic(text)


def _webhook(text: str, keys: Mapping[str, bytes], inside: AllowList) -> SignedWebhook | Unusable:
    url, _, fragment = text.partition("#")
    secret = fragment.removeprefix(_SECRET)
    if not fragment.startswith(_SECRET) or not secret:
        return Unusable("it names no signing secret; end it with #secret=NAME, where NAME is in REDRIVE_SECRETS")
    if secret not in keys:
        return Unusable("the secret that it names is not in REDRIVE_SECRETS; add NAME=whsec_… there")
    allowed = _allowed(url, inside)
    endpoint = allowed if isinstance(allowed, UrlDenied) else url_policy.read_url(url, allowed)
    if isinstance(allowed, UrlDenied) or isinstance(endpoint, UrlDenied):
        return Unusable(
            "the text after webhook+ is not a URL such as https://hooks.example.com/redrive, or has credentials"
        )
    if endpoint.scheme == "http" and isinstance(endpoint.host, str):
        return Unusable("plain http can be read by others; use https, or the IP address of a host in your own network")
    return SignedWebhook(url, secret, keys[secret], allowed)


def _allowed(url: str, inside: AllowList) -> AllowList | UrlDenied:
    """Return the allow list for a webhook: its own host, which the environment names, and the entries of `inside`."""
    authority = re.sub(r"(?i)^https?://", "", url).partition("/")[0].partition("?")[0]
    found = url_policy.allow_list([authority])
    if isinstance(found, UrlDenied):
        return found
    return AllowList(found.names | inside.names, found.networks + inside.networks)


def _of_schema(schema: str) -> str:
    if schema in {"json", "jsons", "xml", "xmls", "form", "forms", "http", "https"}:
        return "it would be posted unsigned; write webhook+https://HOST/PATH#secret=NAME"
    if schema == "sns":
        return "Apprise needs AWS keys for SNS; write sns:ARN instead, which uses the service's own role"
    return "its schema is not allowed; docs/notifications.md lists the allowed ones"
