"""Check the stored settings of a DLQ without asking SQS: selectors, HTTP endpoints and secrets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from reprocessing.conf import Conf
from reprocessing.domain.errors import InvalidSelector
from reprocessing.domain.maintenance.findings import DoctorFinding, error_finding
from reprocessing.domain.message.identity import Selector
from reprocessing.domain.safety import url_policy
from reprocessing.domain.safety.url_policy import UrlDenied
from reprocessing.domain.targets.target_kind import TargetKind
from reprocessing.models import DeadLetterQueue, Target
from reprocessing.store.dlqs.aws_resources import targets_of

#: The fields of a DLQ's row that are selectors (they say where a key is read), each with its option of add_dlq.
_SELECTORS: Final = {
    "ordering_key": "--ordering-key",
    "sequence": "--sequence",
    "idempotency_key": "--idempotency-key",
    "message_type": "--message-type",
    "tenant": "--tenant",
}


def findings(row: DeadLetterQueue, conf: Conf) -> Iterator[DoctorFinding]:
    """Yield findings about the selectors and the HTTP targets of a DLQ, and about the HTTP targets of its rules."""
    for field, option in _SELECTORS.items():
        yield from _selector(row, getattr(row, field), option)
    for target in targets_of([row]):
        if target.kind == TargetKind.HTTP:
            yield from _endpoint(target, conf)


def _selector(row: DeadLetterQueue, text: str, option: str) -> Iterator[DoctorFinding]:
    try:
        if text:
            Selector.parse(text)
    except InvalidSelector as error:
        why = "Without it, the key or rule of a message is unknown: messages wait."
        cure = f"manage.py add_dlq {row.name} {option} SELECTOR --confirm"
        yield error_finding(row.name, f"The value of {option} is invalid: {error}", why, cure)


def _endpoint(target: Target, conf: Conf) -> Iterator[DoctorFinding]:
    found = url_policy.read_url(target.url, conf.outbound_hosts)
    if isinstance(found, UrlDenied):
        cure = found.cure or f"manage.py add_target URL --confirm, and --to URL where {target} was named."
        yield error_finding(str(target), f"Nothing may be sent there: {found.why}.", "Its messages wait.", cure)
    if target.secret and target.secret not in conf.secrets:
        what = f'The secret "{target.secret}" that signs its messages is not set.'
        cure = f"Put {target.secret}=whsec_… into REDRIVE_SECRETS of the workers and of this process, and restart them."
        yield error_finding(str(target), what, "Its messages wait.", cure)
