"""Check the encryption of payloads: whether it is on, whether its keys work, and whether all payloads have it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
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
from reprocessing.store.payloads import payload_keys, resealing

_NAME: Final = "payloads"


def findings(conf: Conf) -> Iterator[DoctorFinding]:
    """Yield findings about the payload keys: each key in use must be right, and the first key must encrypt and decrypt.

    To check this, one data key of each key name is decrypted, since a wrong key may have the right name.
    """
    used = payload_keys.used_wrapping_keys()
    known = [entry.partition("=")[0] for entry in conf.payload_keys]
    if not known:
        yield _without_keys(used)
        return
    errors = [*_key_errors(used, known)]
    yield from errors
    if former := sorted(set(used).intersection(known[1:])):
        yield warning_finding(
            _NAME, f"{', '.join(former)} still wraps data keys, not only {known[0]}.",
            "The former keys cannot be removed yet.",
            'Run: manage.py rotate_payload_keys --reason "rotation" --confirm',
        )  # fmt: skip
    yield from _readable(used)
    if not errors:
        yield ok_finding(_NAME, f"encrypted with the key {known[0]}.")


def _without_keys(used: Collection[str]) -> DoctorFinding:
    if not used:
        return note_finding(
            _NAME, "Payloads are stored readable in PostgreSQL, since REDRIVE_PAYLOAD_KEYS is not set.",
            "To encrypt them, set REDRIVE_PAYLOAD_KEYS (docs/payloads.md).",
        )  # fmt: skip
    return error_finding(
        _NAME, f"REDRIVE_PAYLOAD_KEYS is not set, but payloads are encrypted with {', '.join(used)}.",
        "A process without keys captures no messages, and cannot show or send encrypted messages.",
        "Set REDRIVE_PAYLOAD_KEYS for every process (docs/payloads.md), and restart the processes.",
    )  # fmt: skip


def _key_errors(used: Collection[str], known: Collection[str]) -> Iterator[DoctorFinding]:
    """Yield an error for each key in use that does not work, and for the first key if it does not work."""
    if lost := sorted(set(used) - set(known)):
        yield error_finding(
            _NAME, f"REDRIVE_PAYLOAD_KEYS lacks {', '.join(lost)}, with which messages are encrypted "
            f"(data keys: {payload_keys.count_wrapped_by(lost):,}).",
            "These messages cannot be shown or sent. DLQs with ordering keys may wait for them.",
            "Add the keys again to REDRIVE_PAYLOAD_KEYS, behind the first key. If a key is lost for good, list its "
            'messages (docs/payloads.md, "A lost key"), and destroy them: '
            "manage.py shred_payloads DLQ --message-id ID --reason WHY --confirm",
        )  # fmt: skip
    for name in sorted(set(used).intersection(known)):
        try:
            payload_keys.check_fits(name)
        except PayloadUnreadable as error:
            yield error_finding(
                _NAME, str(error), "Messages that are encrypted with the key of this name cannot be shown or sent.", ""
            )
    try:
        payload_keys.try_first_key()
    except PayloadUnreadable as error:
        yield error_finding(_NAME, str(error), "No message is captured, because none can be encrypted.", "")


def _readable(used: Collection[str]) -> Iterator[DoctorFinding]:
    """Yield a warning if some payloads are stored unencrypted, although others are encrypted."""
    if used and (n := resealing.count_readable()):
        few = f"among the oldest and newest {resealing.LOOKED_AT:,} of each"
        yield warning_finding(
            _NAME, f"{n:,} payloads and edits are stored readable ({few}).",
            "They were stored before encryption was enabled, or by a process without REDRIVE_PAYLOAD_KEYS.",
            'Run: manage.py rotate_payload_keys --seal-readable --reason "encryption was enabled" --confirm',
        )  # fmt: skip
