"""What became of one text to one destination."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sent:
    """The destination took it."""


@dataclass(frozen=True, slots=True)
class Failed:
    """It was not taken, or nobody knows. `why`: in words that show nothing of the URL or the answer."""

    why: str


Delivery = Sent | Failed
