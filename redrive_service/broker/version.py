"""Check kombu's version.

The SQS transport overrides private methods of kombu, so it runs only on the tested version.
"""

from __future__ import annotations

from typing import Any, TypeAlias

TESTED = "5.7.0"
KombuValue: TypeAlias = Any
"""A value from kombu or botocore whose type their stubs do not give."""


class UntestedKombu(RuntimeError):
    """The installed kombu is not the version that this package was tested with."""


def require_tested_kombu(installed: str) -> None:
    """Refuse to start with a version of kombu that was not tested.

    Another version may have other private methods than those that the transport overrides. Then a worker would run,
    but consume no tasks. An error at the start is better.

    Raises:
        UntestedKombu: `installed` is not the tested version.
    """
    if installed != TESTED:
        raise UntestedKombu(
            f"kombu {installed} is installed, but the SQS transport of this service is tested on kombu {TESTED} only. "
            f"Install kombu=={TESTED}, or run tests/broker on {installed} and, when it passes, name that version in "
            f"redrive_service/broker/version.py (docs/adr/0001-celery-and-kombu-version.md says how)."
        )
