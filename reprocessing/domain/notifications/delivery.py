"""Define the results of sending one text to a notification destination."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sent:
    """The notification destination accepted the text."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The destination did not accept the text, or did not answer. `why` quotes neither its URL nor its answer."""

    why: str


Delivery = Sent | Failed
