"""The promises that can be broken, each an exception named after it."""

from __future__ import annotations


class RedriveError(Exception):
    """A promise was broken; the message says which, where, and how to cure it."""


class QueueIsOutOfReach(RedriveError):
    """A queue could not be used: wrong address, missing right, or SQS did not answer."""
