"""Define the address of a queue: its URL, the region for which calls are signed, and the role to assume for calls."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from reprocessing.domain.errors import QueueUnreachable
from reprocessing.domain.message.arn import Arn, ResourceKind, read
from reprocessing.gateways.aws.clients import configured_region

#: Host names of SQS: regional, FIPS, dual-stack, VPC endpoint, and the older form.
_HOSTS = (
    re.compile(r"(?:.+\.)?sqs(?:-fips)?\.(?P<region>[a-z0-9-]+)\.(?:amazonaws\.com|api\.aws)(?:\.cn)?"),
    re.compile(r"(?:.+\.)?sqs(?:-fips)?\.(?P<region>[a-z0-9-]+)\.api\.amazonwebservices\.com\.cn"),
    re.compile(r"(?:.+\.)?sqs\.(?P<region>[a-z0-9-]+)\.vpce\.amazonaws\.com(?:\.cn)?"),
    re.compile(r"(?P<region>[a-z0-9-]+)\.queue\.amazonaws\.com(?:\.cn)?"),
)
_COLONS_OF_AN_ARN = 5
_REGION_OF_THE_OLDEST_HOST = "us-east-1"
_CURE = "Give the URL that SQS shows for it, such as https://sqs.eu-west-1.amazonaws.com/111122223333/orders-dlq."


@dataclass(frozen=True, slots=True)
class QueueAddress:
    """The address of one queue.

    Attributes:
        url: as SQS shows it; the last part of its path is the queue's name.
        region: such as eu-west-1.
        role: the ARN of the role to assume for calls to the queue. If empty, the process's own role is used.
    """

    url: str
    region: str
    role: str = ""

    @classmethod
    def of(cls, url: str, role: str = "") -> QueueAddress:
        """Return the address of the queue at `url`. Calls assume `role`; empty: the process's own role.

        The region is read from an AWS host name. For other hosts, it is read from the environment or the AWS
        configuration.

        Raises:
            QueueUnreachable: `url` is not the URL of a queue, has credentials in it, or its region is not known.
        """
        try:
            parts = urlsplit(url)
            host = parts.hostname or ""
        except ValueError:
            raise QueueUnreachable(f"{url!r} is not a URL. {_CURE}") from None
        if parts.scheme not in {"http", "https"} or not host or not parts.path.strip("/"):
            raise QueueUnreachable(f"{url!r} is not the URL of a queue. {_CURE}")
        if "@" in parts.netloc:
            raise QueueUnreachable(f"The URL of a queue at {host} contains credentials, which would be stored. {_CURE}")
        region = _region_of(host) or configured_region()
        if not region:
            raise QueueUnreachable(f"The region of {url!r} is not in its host. Set AWS_DEFAULT_REGION to it.")
        return cls(url, region, role)

    @property
    def name(self) -> str:
        """The queue's name."""
        return urlsplit(self.url).path.rstrip("/").rpartition("/")[2]

    @property
    def account(self) -> str:
        """The id of the AWS account; empty if the URL has none."""
        return urlsplit(self.url).path.rstrip("/").rpartition("/")[0].rpartition("/")[2]

    @property
    def fifo(self) -> bool:
        """Whether the queue is FIFO; the names of FIFO queues end in .fifo."""
        return self.name.endswith(".fifo")

    @property
    def arn(self) -> str:
        """The queue's ARN, computed from the URL. `queue_attributes.describe` returns the ARN that SQS reports."""
        partition = {"cn": "aws-cn", "us-gov": "aws-us-gov"}.get(self.region.rsplit("-", 2)[0], "aws")
        return f"arn:{partition}:sqs:{self.region}:{self.account}:{self.name}"


def region_of(arn: str) -> str:
    """Return the region that an ARN names.

    Raises:
        QueueUnreachable: `arn` is not an ARN, or has no region.
    """
    parts = arn.split(":", _COLONS_OF_AN_ARN)
    if len(parts) <= _COLONS_OF_AN_ARN or parts[0] != "arn" or not parts[3]:
        raise QueueUnreachable(
            f"{arn!r} is not an ARN with a region, such as arn:aws:sns:eu-west-1:111122223333:orders."
        )
    return parts[3]


def arn_of_queue(text: str) -> Arn:
    """Return the ARN of a queue, read from its text.

    Raises:
        QueueUnreachable: `text` is not the ARN of a queue.
    """
    found = read(text)
    if found is None or found.named is not ResourceKind.QUEUE or not found.region or not found.account:
        raise QueueUnreachable(f"{text!r} is not a queue's ARN, such as arn:aws:sqs:eu-west-1:111122223333:orders.")
    return found


def is_of_sqs(url: str) -> bool:
    """Return whether the host of a URL belongs to AWS's SQS."""
    try:
        return _region_of(urlsplit(url).hostname or "") is not None
    except ValueError:
        return False


def _region_of(host: str) -> str | None:
    if host in {"queue.amazonaws.com", "sqs.amazonaws.com"}:
        return _REGION_OF_THE_OLDEST_HOST
    for form in _HOSTS:
        if found := form.fullmatch(host):
            return found["region"]
    return None
