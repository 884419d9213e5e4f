"""The promises that can be broken, each an exception named after it."""

from __future__ import annotations


class RedriveError(Exception):
    """A promise was broken; the message says which, where, and how to cure it."""


class QueueIsOutOfReach(RedriveError):
    """A queue could not be used: wrong address, missing right, or SQS did not answer."""


class QueueRefuses(QueueIsOutOfReach):
    """SQS answered and refused. A retry does not help until somebody changes the queue or a permission."""


class CloudWatchIsOutOfReach(RedriveError):
    """CloudWatch was not told, or did not tell: wrong region, missing right, or no answer."""


class SelectorIsUnclear(RedriveError):
    """A selector, or a set of them, does not say what is to be read from a letter."""


class RuleIsUnclear(RedriveError):
    """A rule, or one of its conditions, does not say which letters are meant or what is to be done with them."""


class TargetIsUnclear(RedriveError):
    """What was named as a target is none that letters can be sent to, or could be several."""


class AnswersAreUnclear(RedriveError):
    """What an endpoint's answers mean was said in a way that cannot be read."""


class SettingsAreUnclear(RedriveError):
    """settings.REDRIVE has names or values that nobody can act on."""


class RateIsUnknown(RedriveError):
    """Redis did not say whether a letter may go, so none may."""


class RunIsAnother(RedriveError):
    """A run's id was used for another selection: running a run again must change nothing that is done."""


class RunStandsOtherwise(RedriveError):
    """A run was asked for what it cannot do where it stands: it is paused, or it has ended."""


class AwsMovesTheMessages(RedriveError):
    """A dlq is AWS's to empty or ours, never both at once: AWS's own redrive is at work on it, or something of ours."""


class BackupIsUnreconciled(RedriveError):
    """PostgreSQL was restored from a backup, and nobody has said yet what became of what it remembers as unsent."""


class DlqIsTaken(RedriveError):
    """A dlq's name or queue was added by somebody else meanwhile."""


class OriginIsNeeded(RedriveError):
    """An origin cannot be removed from a DLQ: it is not known, or letters depend on it."""


class DlqIsNotToBeRead(RedriveError):
    """Messages of a dlq were asked for that may not be received now."""


class ReporterIsUnclear(RedriveError):
    """Who is to report, or on which targets' letters, was said in a way that nobody can act on."""


class NotificationIsUnclear(RedriveError):
    """A notification route is not valid: an unknown event, DLQ or destination."""


class FilterIsUnclear(RedriveError):
    """A filter does not say which letters are meant, or could not be looked through to its end."""
