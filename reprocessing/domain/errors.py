"""Exceptions. Each message says what happened, why, and what to do."""

from __future__ import annotations


class RedriveError(Exception):
    """Base of the app's exceptions."""


class QueueIsOutOfReach(RedriveError):
    """A queue could not be used: wrong address, missing permission, or SQS did not answer."""


class QueueRefuses(QueueIsOutOfReach):
    """SQS answered and refused. A retry does not help until somebody changes the queue or a permission."""


class CloudWatchIsOutOfReach(RedriveError):
    """CloudWatch could not be used: wrong region, missing permission, or no answer."""


class SelectorIsUnclear(RedriveError):
    """A selector, or a set of selectors, does not say what to read from a letter."""


class RuleIsUnclear(RedriveError):
    """A rule or a condition does not say which letters it matches or what to do with them."""


class TargetIsUnclear(RedriveError):
    """A target is not known, ambiguous, or nothing that letters can be sent to."""


class AnswersAreUnclear(RedriveError):
    """The meanings given to an endpoint's status codes cannot be parsed."""


class SettingsAreUnclear(RedriveError):
    """settings.REDRIVE has an unknown name or an invalid value."""


class RateIsUnknown(RedriveError):
    """Redis did not answer, so the rate limit cannot be checked and nothing is sent."""


class RunIsAnother(RedriveError):
    """A run's id was used for another selection."""


class RunStandsOtherwise(RedriveError):
    """A run's state does not allow the operation: it is paused, or it has ended."""


class AwsMovesTheMessages(RedriveError):
    """AWS's native redrive and this service cannot work on one DLQ at the same time."""


class BackupIsUnreconciled(RedriveError):
    """PostgreSQL was restored from a backup, and the letters in doubt are not decided yet."""


class DlqIsTaken(RedriveError):
    """Somebody else has added a DLQ with this name or queue meanwhile."""


class OriginIsNeeded(RedriveError):
    """An origin cannot be removed from a DLQ: it is not known, or letters depend on it."""


class DlqIsNotToBeRead(RedriveError):
    """Messages of a DLQ may not be received now."""


class ReporterIsUnclear(RedriveError):
    """A reporter's name or its targets are not valid."""


class NotificationIsUnclear(RedriveError):
    """A notification route is not valid: an unknown event, DLQ or destination."""


class FilterIsUnclear(RedriveError):
    """A filter is not valid, or the search took too long."""
