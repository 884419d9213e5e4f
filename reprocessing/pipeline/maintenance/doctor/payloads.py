"""Check the encryption of payloads: is it on, and can its keys be used?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from reprocessing.conf import Conf
from reprocessing.domain.errors import PayloadUnreadable
from reprocessing.domain.maintenance.findings import (
    DoctorFinding,
    error_finding,
    note_finding,
    ok_finding,
    warning_finding,
)
from reprocessing.store.payloads import payload_keys

_NAME: Final = "payloads"


def findings(conf: Conf) -> Iterator[DoctorFinding]:
    """Yield findings: is every key that is in use set, and can the first key encrypt and decrypt data keys?"""
    used = set(payload_keys.used_wrapping_keys())
    known = [entry.partition("=")[0] for entry in conf.payload_keys]
    if lost := sorted(used - set(known)):
        yield error_finding(
            _NAME, f"REDRIVE_PAYLOAD_KEYS lacks {', '.join(lost)}, with which messages are encrypted.",
            "These messages cannot be shown or sent.", "Add the keys again, behind the first key.",
        )  # fmt: skip
    if not known:
        yield note_finding(
            _NAME, "They are stored readable in PostgreSQL, since REDRIVE_PAYLOAD_KEYS is not set.",
            "To encrypt them, set REDRIVE_PAYLOAD_KEYS (docs/payloads.md).",
        )  # fmt: skip
        return
    try:
        payload_keys.try_first_key()
    except PayloadUnreadable as error:
        yield error_finding(_NAME, str(error), "No message is captured, because none can be encrypted.", "")
        return
    if former := sorted(used - {known[0]} - set(lost)):
        yield warning_finding(
            _NAME, f"{', '.join(former)} still wraps data keys, not only {known[0]}.",
            "The former keys cannot be removed yet.",
            'Run: manage.py rotate_payload_keys --reason "rotation" --confirm',
        )  # fmt: skip
    yield ok_finding(_NAME, f"encrypted with the key {known[0]}.")
