"""The containment leans on kombu's insides, so it runs only on the kombu it was proved on."""

from __future__ import annotations

from typing import Any, TypeAlias

PROVED = "5.7.0"
KombuValue: TypeAlias = Any
"""A value of kombu's or botocore's that their stubs leave open."""


class KombuIsUnproved(RuntimeError):
    """Another kombu is installed than the one whose faults this package contains."""


def require_proved_kombu(installed: str) -> None:
    """Refuse to start on any kombu but the proved one.

    A transport that overrides private methods fails silently when they are renamed: a worker that lives and no longer
    consumes. An error at start is the better failure.

    Raises:
        KombuIsUnproved: `installed` is not the proved version.
    """
    if installed != PROVED:
        raise KombuIsUnproved(
            f"kombu {installed} is installed, but the SQS transport of this service is proved on kombu {PROVED} only. "
            f"Install kombu=={PROVED}, or run tests/broker on {installed} and, when it passes, name that version in "
            f"redrive_service/broker/version.py (docs/adr/0001-celery-and-kombu-version.md says how)."
        )
