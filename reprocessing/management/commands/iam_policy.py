"""The command `manage.py iam_policy`, which prints the least-privilege IAM policy of the service."""

from __future__ import annotations

import json
import re
from argparse import ArgumentTypeError
from collections.abc import Callable, Iterator
from typing import Any, Final

from django.core.management.base import CommandError, CommandParser

from reprocessing import conf
from reprocessing.domain.aws.iam_policy import ANY_RESOURCE, Purpose, ResourceUse, kms_key_arn, policies, trust_policy
from reprocessing.domain.dlqs.discovery import Scope
from reprocessing.domain.errors import QueueUnreachable
from reprocessing.domain.message.arn import Arn, ResourceKind, read
from reprocessing.domain.notifications.destination import SnsTopic
from reprocessing.domain.payloads.key_ring import KmsKeyName, read_key
from reprocessing.domain.targets.target_kind import QUEUE_KINDS
from reprocessing.gateways.aws.clients import configured_region
from reprocessing.gateways.sqs import QueueAddress, describe, locate
from reprocessing.management.arguments import add_json, matching
from reprocessing.management.console import Console, find_dlq
from reprocessing.management.options.target_policy_options import read_role_arn
from reprocessing.models import DeadLetterQueue
from reprocessing.models.dlq import Mode
from reprocessing.store.dlqs import aws_resources, discovery_scopes

_BUCKET: Final = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_LONGEST: Final = 6_144  #: max characters of a managed policy, without white space. Source: AWS, IAM quotas
#: Shown in a trust policy instead of the service's role, if --service-role is not given.
_SERVICE: Final = "arn:aws:iam::ACCOUNT:role/NAME"
_WITH: Final = ("provision", "native", "metrics", "alarms", "doctor")
#: For each purpose of a queue: the right that is needed on the queue's KMS key, and whether mode observe omits it.
_KEYS: Final = {
    Purpose.TAKE: (Purpose.DECRYPT, True),
    Purpose.SEND: (Purpose.ENCRYPT, True),
    Purpose.PARK: (Purpose.ENCRYPT, True),
    Purpose.OWN: (Purpose.ENCRYPT, False),
}
_QUEUES: Final = (Purpose.WATCH, Purpose.LOOK, Purpose.LOOK_AT_PARKING, Purpose.OWN)
#: Queues of these purposes have alarms. With `_ALARMS`, `re.sub` turns the ARN of a queue into the ARN of its alarms.
_ALARMED: Final = (Purpose.WATCH, Purpose.OWN)
_ALARMS: Final = r":cloudwatch:\1:alarm:redrive-*"


bucket = matching(_BUCKET.fullmatch, "a bucket name", "orders-bodies")


class Command(Console):
    """Print the least-privilege IAM policy of the service.

    Covers the configured DLQs, their targets and health checks, the service's own queues, and the KMS keys of
    REDRIVE_PAYLOAD_KEYS. Asks SQS which KMS keys encrypt the queues. Changes nothing.

    Examples:
        iam_policy --mode manual
        iam_policy orders --mode automatic --with provision,alarms
    """

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "names", nargs="*", metavar="NAME", help="names of DLQs, as given to add_dlq (default: all)"
        )
        what = parser.add_mutually_exclusive_group(required=True)
        what.add_argument(
            "--mode", choices=Mode.values,
            help="mode of the DLQs: for observe, the policy has no rights to receive or send messages",
        )  # fmt: skip
        what.add_argument(
            "--discover", action="store_true",
            help="print only the rights that discover_dlqs needs in the accounts and regions that it has scanned",
        )  # fmt: skip
        arns: dict[str, Any] = {"action": "append", "default": [], "type": queue, "metavar": "ARN"}
        parser.add_argument(
            "--dlq",
            **arns,
            help="queue ARN of a DLQ that is not registered yet: add the rights that the DLQ needs; repeatable",
        )
        parser.add_argument("--source", **arns, help="ARN of a queue: add the right to send to the queue; repeatable")
        parser.add_argument(
            "--bucket", action="append", default=[], type=bucket, metavar="NAME",
            help="S3 bucket that has bodies of large messages: add the right to check that the bodies exist, and to "
            "read them when people view them; repeatable",
        )  # fmt: skip
        parser.add_argument(
            "--with", dest="also", type=several, default=(), metavar="WHAT",
            help=f"add the rights for these features, separated by commas: {', '.join(_WITH)}",
        )  # fmt: skip
        parser.add_argument(
            "--for",
            dest="whose",
            type=read_role_arn,
            metavar="ARN",
            help="print the policy and the trust policy of this IAM role, which the service assumes",
        )
        parser.add_argument(
            "--service-role", type=read_role_arn, metavar="ARN",
            help="role of the service, which the printed trust policies allow to assume other roles",
        )  # fmt: skip
        add_json(parser)

    def answer(self, options: dict[str, Any]) -> None:
        uses = _of_discovery() if options["discover"] else PolicyResources(options, self.warn).uses()
        found = policies(uses, acts=options["mode"] != Mode.OBSERVE)
        roles = [one for one in found if one]
        for one in found.values():
            if (length := len(re.sub(r"\s", "", json.dumps(one)))) > _LONGEST:
                self.warn(
                    f"A managed policy has at most {_LONGEST:,} characters, and one of these has {length:,}. Print "
                    "several policies, each with the NAMEs of some DLQs."
                )
        if options["json"]:
            trust = {one: trust_policy(options["service_role"] or _SERVICE) for one in roles}
            self.report({"policy": found[""], "roles": {one: found[one] for one in roles}, "trust": trust})
        elif options["whose"]:
            if options["whose"] not in found:
                raise CommandError(f"The role {options['whose']} is not used. Roles: {', '.join(roles) or 'none'}.")
            both = {"policy": found[options["whose"]], "trust": trust_policy(options["service_role"] or _SERVICE)}
            self.say(json.dumps(both, indent=2))
        else:
            self.say(json.dumps(found[""], indent=2))
            for whose in roles:
                self.warn(f"Some resources are used with the role {whose}. To print its policies, add: --for {whose}")

    def warn(self, text: str) -> None:
        self.stderr.write(text)


class PolicyResources:
    """Finds the AWS resources that the policy covers: of registered DLQs, of options, and of the service itself."""

    def __init__(self, options: dict[str, Any], warn: Callable[[str], None]) -> None:
        self._options = options
        self._warn = warn
        self._dlqs = [find_dlq(one) for one in options["names"]]
        if not (options["names"] or options["dlq"] or options["source"]):
            self._dlqs = list(DeadLetterQueue.objects.order_by("name"))
        self._urls: dict[str, str] = {}

    def uses(self) -> Iterator[ResourceUse]:
        """Yield each AWS resource that the service uses, with the purpose. A resource can occur several times."""
        said = [*self._configured(), *self._of_options(), *self._parking(), *self._own(), *self._topics()]
        said += self._payload_keys()
        yield from said
        yield from self._buckets(said)
        yield from self._keys(said)
        yield from self._of_features(said)

    def _configured(self) -> Iterator[ResourceUse]:
        if not self._dlqs:
            return
        yield from aws_resources.required_permissions(self._dlqs)
        self._urls |= {one.arn: one.url for one in self._dlqs}
        self._urls |= {one.arn: one.url for one in aws_resources.targets_of(self._dlqs) if one.kind in QUEUE_KINDS}

    def _topics(self) -> Iterator[ResourceUse]:
        """Yield the SNS topics that notifications are sent to."""
        for destination in conf.current().destinations.values():
            if isinstance(destination, SnsTopic):
                yield ResourceUse(Purpose.PUBLISH, destination.arn)

    def _payload_keys(self) -> Iterator[ResourceUse]:
        """Yield the KMS keys of REDRIVE_PAYLOAD_KEYS. The first encrypts new data keys; the others only decrypt."""
        for number, key in enumerate(map(read_key, conf.current().payload_keys)):
            if isinstance(key, KmsKeyName):
                yield ResourceUse(Purpose.UNWRAP if number else Purpose.WRAP, key.arn)

    def _of_options(self) -> Iterator[ResourceUse]:
        for arn in self._options["dlq"]:
            yield from aws_resources.uses_of_dlq(arn.text)
        for arn in self._options["source"]:
            yield from aws_resources.uses_of_queue(arn.text)

    def _parking(self) -> Iterator[ResourceUse]:
        for url in sorted({one.parking_url for one in self._dlqs} - {""}):
            address = QueueAddress.of(url)
            self._urls[address.arn] = url
            yield from (ResourceUse(one, address.arn) for one in (Purpose.LOOK_AT_PARKING, Purpose.PARK))

    def _own(self) -> Iterator[ResourceUse]:
        for address in map(QueueAddress.of, conf.current().own_queues):
            self._urls[address.arn] = address.url
            yield ResourceUse(Purpose.OWN, address.arn)

    def _buckets(self, said: list[ResourceUse]) -> Iterator[ResourceUse]:
        for one in said:
            if one.purpose is Purpose.TAKE:
                arns = [f"arn:{one.arn.split(':')[1]}:s3:::{name}" for name in self._options["bucket"]]
                yield from (
                    ResourceUse(each, arn, one.role) for arn in arns for each in (Purpose.OBJECTS, Purpose.BUCKETS)
                )

    def _keys(self, said: list[ResourceUse]) -> Iterator[ResourceUse]:
        for one in sorted({one for one in said if one.purpose in _KEYS}, key=lambda one: one.arn):
            purpose, acting = _KEYS[one.purpose]
            key = self._key(one)
            arn = kms_key_arn(one.arn, key) if key else None
            if arn:
                yield ResourceUse(purpose, arn, one.role, within=_region(one), acting=acting)

    def _key(self, one: ResourceUse) -> str | None:
        try:
            url = self._urls.get(one.arn)
            return describe(QueueAddress(url, _region(one), one.role) if url else locate(one.arn, one.role)).kms_key
        except QueueUnreachable as error:
            self._warn(f"It is not known whether a KMS key encrypts {one.arn} and needs further rights: {error}")
            return None

    def _of_features(self, said: list[ResourceUse]) -> Iterator[ResourceUse]:
        also = self._options["also"]
        if "provision" in also:
            yield from (ResourceUse(Purpose.PROVISION, one.arn, one.role) for one in said if one.purpose in _QUEUES)
            yield from (ResourceUse(Purpose.PROVISION, f"{one.arn}-dlq") for one in said if one.purpose is Purpose.OWN)
        if "native" in also:
            moves = {Purpose.WATCH: Purpose.NATIVE, Purpose.SEND: Purpose.NATIVE_TO}
            queues = [one for one in said if one.purpose in moves and ":sqs:" in one.arn]
            yield from (ResourceUse(moves[one.purpose], one.arn, one.role) for one in queues)
        namespace = conf.current().cloudwatch
        if "metrics" in also and not namespace:
            raise CommandError("No metrics are published to CloudWatch. Set REDRIVE_CLOUDWATCH to a namespace first.")
        if namespace:
            yield ResourceUse(Purpose.METRICS, ANY_RESOURCE, within=namespace)
        if "alarms" in also:
            for one in said:
                if one.purpose in _ALARMED and not one.role:
                    yield ResourceUse(Purpose.PUT_ALARMS, re.sub(r":sqs:([^:]*:[^:]*):.*", _ALARMS, one.arn))
                    yield ResourceUse(Purpose.SEE_ALARMS, ANY_RESOURCE, within=_region(one))
        if "doctor" in also:
            queues = [one for one in said if one.purpose is Purpose.LOOK and ":sqs:" in one.arn]
            yield from (ResourceUse(Purpose.CONSUMERS, ANY_RESOURCE, one.role, within=_region(one)) for one in queues)
            yield from (ResourceUse(Purpose.DEAD_TASKS, f"{one.arn}-dlq") for one in said if one.purpose is Purpose.OWN)


def _of_discovery() -> Iterator[ResourceUse]:
    """Return the permissions that discovery needs in all scanned accounts and regions.

    If none was scanned, return the permissions for the configured region of the service's own account.
    """
    known = [row.scope for row in discovery_scopes.all_scopes()]
    return discovery_scopes.required_permissions(known or [Scope(configured_region() or "")])


def queue(text: str) -> Arn:
    """Read the ARN of an SQS queue."""
    arn = read(text)
    if arn is None or arn.named is not ResourceKind.QUEUE:
        raise ArgumentTypeError(
            f"{text!r} is not the ARN of a queue. Example: arn:aws:sqs:eu-west-1:111122223333:orders"
        )
    return arn


def several(text: str) -> tuple[str, ...]:
    """Read the value of --with: names of features, separated by commas."""
    found = tuple(one.strip() for one in text.split(",") if one.strip())
    if unknown := [one for one in found if one not in _WITH]:
        raise ArgumentTypeError(f"{', '.join(unknown)} is unknown. Use some of: {', '.join(_WITH)}")
    return found


def _region(one: ResourceUse) -> str:
    arn = read(one.arn)
    return arn.region if arn else ""
