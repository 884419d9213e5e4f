"""Define the results of discovery: queues, and the resources (sources) whose failed messages go to a queue."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from reprocessing.domain.message.arn import read, resource_name


class SourceKind(StrEnum):
    """The kind of a resource that sends its failed messages to a queue."""

    QUEUE = "queue"
    FUNCTION = "function"
    SUBSCRIPTION = "subscription"
    RULE = "rule"


_KIND_WORDS: Final = {
    SourceKind.QUEUE: "", SourceKind.FUNCTION: "function ", SourceKind.SUBSCRIPTION: "subscription ",
    SourceKind.RULE: "target ",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class FailureSource:
    """A resource whose failed messages go to the queue `dlq_arn`.

    Attributes:
        through: the ARN of the EventBridge rule, if the source is a target of a rule. Else empty.
    """

    dlq_arn: str
    source_arn: str
    kind: SourceKind
    through: str = ""

    @property
    def words(self) -> str:
        """Return the source in words, such as "function ship"; "itself" if the DLQ is its own source."""
        if self.source_arn == self.dlq_arn:
            return "itself"
        name = f"{_KIND_WORDS[self.kind]}{resource_name(self.source_arn)}"
        return f"{name} of rule {resource_name(self.through)}" if self.through else name


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueReading:
    """The attributes of a queue. The numbers are None if the queue could not be read.

    Attributes:
        retention: seconds for which the queue keeps a message.
        visible, in_flight: how many messages of the queue are visible, or in flight.
        tags: the queue's tags; None: the tags were not read.
        last_error: why the queue could not be read, and what to do. Empty if the queue was read.
    """

    arn: str
    url: str = ""
    retention: int | None = None
    visible: int | None = None
    in_flight: int | None = None
    tags: Mapping[str, str] | None = None
    last_error: str = ""


@dataclass(frozen=True, slots=True)
class Scope:
    """What one discovery scans: the queues of one account in one region.

    Attributes:
        role: the ARN of the role to assume. If empty, the service's own role is used.
        prefix: only DLQs whose name begins with this text; empty: all.
        tags: only DLQs that have all these tags; empty: all.
    """

    region: str
    role: str = ""
    prefix: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_filtered(self) -> bool:
        """Return whether the scope has a prefix or tags, so that discovery leaves out other DLQs of the account."""
        return bool(self.prefix or self.tags)

    def covers(self, arn: str, tags: Mapping[str, str] | None, found_with: str = "") -> bool:
        """Return whether a queue belongs to the scope, by its account, region, name and tags.

        A scope without a role does not cover a queue that was found with a role, because the account of such a scope is
        not known.

        Args:
            arn: the queue's ARN.
            tags: the queue's tags; None: not known, so the queue belongs to no scope with tags.
            found_with: the ARN of the role with which the queue was found. If empty, the service's own role was used.
        """
        if found_with and not self.role:
            return False
        queue, role = read(arn), read(self.role)
        if queue is None or queue.region != self.region or not resource_name(arn).startswith(self.prefix):
            return False
        return (role is None or role.account == queue.account) and self.tags.items() <= (tags or {}).items()

    @property
    def words(self) -> str:
        """Return the scope in words, such as "account 111122223333 (role redrive), eu-west-1, prefix orders-"."""
        arn = read(self.role)
        who = f"account {arn.account} (role {self.role.rpartition('/')[2]})" if arn else "the service's own account"
        tags = [f"tag {name}={value}" for name, value in sorted(self.tags.items())]
        return ", ".join([who, self.region, *([f"prefix {self.prefix}"] if self.prefix else []), *tags])
