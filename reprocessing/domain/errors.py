"""Define the app's exceptions. The text of an exception says what happened, why, and what to do."""

from __future__ import annotations


class RedriveError(Exception):
    """The base class of the app's exceptions."""


class QueueUnreachable(RedriveError):
    """A queue could not be used: wrong address, missing permission, or SQS did not answer."""


class QueueRequestRefused(QueueUnreachable):
    """SQS refused a request. A retry does not help until somebody changes the queue or a permission."""


class CloudWatchUnreachable(RedriveError):
    """CloudWatch could not be used: wrong region, missing permission, or no answer."""


class InvalidSelector(RedriveError):
    """A selector, which says where a key is in a message, is not valid, or does not fit the other selectors."""


class InvalidRule(RedriveError):
    """A rule or a condition is not valid: a part is missing or cannot be parsed, or the parts do not fit together."""


class InvalidPolicy(RedriveError):
    """A DLQ refers to a policy (settings that DLQs share) that does not exist."""


class ConfigurationRefused(RedriveError):
    """A configuration file cannot be applied. The exception's text lists every problem."""


class InvalidTarget(RedriveError):
    """The name of a target is unknown or ambiguous, or letters cannot be sent to the target."""


class InvalidAnswers(RedriveError):
    """A text that gives HTTP status codes a meaning, such as 409=success, cannot be parsed."""


class InvalidSettings(RedriveError):
    """settings.REDRIVE has an unknown name or an invalid value."""


class StepsFailed(RedriveError):
    """Some steps of a task failed with unexpected errors, which are in the log; the other steps were done."""


class RateLimitUnavailable(RedriveError):
    """Redis did not answer, so the rate limit cannot be checked and nothing is sent."""


class RunIdInUse(RedriveError):
    """A run cannot be created, because a run with the same id exists and selects other letters."""


class InvalidRunState(RedriveError):
    """A run's state does not allow the operation, such as a pause of a run that has ended."""


class NativeRedriveConflict(RedriveError):
    """The operation is refused: AWS's native redrive and this service may not work on one DLQ at the same time."""


class RestoreUnresolved(RedriveError):
    """PostgreSQL was restored from a backup, and a person has not yet decided about the unfinished letters."""


class DlqAlreadyRegistered(RedriveError):
    """A DLQ cannot be added, because another person has just added a DLQ with this name or queue."""


class SourceInUse(RedriveError):
    """A source cannot be removed from a DLQ: the source is not known, or letters refer to the source."""


class DlqNotReadable(RedriveError):
    """Messages of a DLQ may not be received now: a capture runs, or the DLQ's mode or redrive policy forbids it."""


class InvalidReporter(RedriveError):
    """A reporter (a consumer that may report outcomes) cannot be saved: its name or targets are not valid."""


class InvalidNotificationRoute(RedriveError):
    """A route, which sends notifications of events to a destination, has an unknown event, DLQ or destination."""


class InvalidFilter(RedriveError):
    """A filter of messages is not valid, or the search with it took too long."""


class SelectionChanged(RedriveError):
    """Fewer or more messages match a bulk action than its preview showed. `matching`: how many match."""

    def __init__(self, matching: int) -> None:
        super().__init__(f"{matching:,} messages match, not as many as were previewed.")
        self.matching = matching


class InvalidPatch(RedriveError):
    """A JSON Patch (RFC 6902) is not valid, or larger than allowed."""


class PayloadUnreadable(RedriveError):
    """An encrypted (sealed) payload cannot be decrypted."""


class PayloadKeyUnavailable(PayloadUnreadable):
    """A payload key of REDRIVE_PAYLOAD_KEYS is missing or was replaced by another key, or AWS KMS does not answer."""


class PayloadDestroyed(PayloadUnreadable):
    """A person destroyed the data key of a payload, so nobody can decrypt the payload any more."""


class ErasureRefused(RedriveError):
    """Messages cannot be erased, or made unreadable (shredded), now, because some of them are being sent."""


class InvalidApiToken(RedriveError):
    """An API token cannot be created: its name, scopes, owner or expiry is not valid."""
