"""Check the service's permissions on a queue, without any effect on the queue."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from reprocessing.domain.maintenance.findings import DoctorFinding, error_finding
from reprocessing.gateways.sqs import QueueAddress
from reprocessing.gateways.sqs.permission_probe import denied

_WHY: Final = {
    "sqs:ReceiveMessage": "No messages can be received from it.",
    "sqs:DeleteMessage": "Received messages cannot be deleted, and come back.",
    "sqs:ChangeMessageVisibility": "Received messages cannot be hidden longer, or made visible again.",
    "sqs:SendMessage": "Nothing can be sent to it.",
}


def missing_rights(address: QueueAddress, rights: Iterable[str]) -> Iterator[DoctorFinding]:
    """Yield a finding for each of these permissions that the service does not have on a queue; it says what will fail.

    Raises:
        QueueUnreachable: SQS did not answer.
    """
    for right in denied(address, rights):
        who = f"the role {address.role}" if address.role else "the role of this process"
        cure = f"Allow {right} on {address.arn} to {who}."
        yield error_finding(address.name, f"SQS refuses {right}: AccessDenied.", _WHY[right], cure)
