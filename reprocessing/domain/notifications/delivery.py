"""Define the results of sending one text to one destination."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sent:
    """The destination accepted the text."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The text was not accepted, or the result is not known. `why` contains no part of the URL or the answer."""

    why: str


Delivery = Sent | Failed
