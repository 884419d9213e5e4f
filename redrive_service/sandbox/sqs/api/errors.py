"""The errors of SQS, with the codes and statuses its clients tell them apart by."""

from typing import Final

_WITH_PREFIX: Final = (
    "BatchEntryIdsNotDistinct", "BatchRequestTooLong", "EmptyBatchRequest", "InvalidBatchEntryId",
    "MessageNotInflight", "PurgeQueueInProgress", "QueueDeletedRecently", "TooManyEntriesInBatchRequest",
    "UnsupportedOperation",
)  # fmt: skip
# What a query-compatible client calls the error (header x-amzn-query-error); other shapes go by their own name.
QUERY_CODES: Final = {
    **{name: f"AWS.SimpleQueueService.{name}" for name in _WITH_PREFIX},
    "InvalidParameterValueException": "InvalidParameterValue",
    "KmsAccessDenied": "KMS.AccessDeniedException",
    "KmsDisabled": "KMS.DisabledException",
    "KmsInvalidKeyUsage": "KMS.InvalidKeyUsageException",
    "KmsInvalidState": "KMS.InvalidStateException",
    "KmsNotFound": "KMS.NotFoundException",
    "KmsOptInRequired": "KMS.OptInRequired",
    "KmsThrottled": "KMS.ThrottlingException",
    "MissingRequiredParameterException": "MissingParameter",
    "QueueDoesNotExist": "AWS.SimpleQueueService.NonExistentQueue",
    "QueueNameExists": "QueueAlreadyExists",
}
# Everything else is a 400.
STATUSES: Final = {
    "OverLimit": 403,
    "PurgeQueueInProgress": 403,
    "ReceiptHandleIsInvalid": 404,
    "RequestThrottled": 403,
    "ResourceNotFoundException": 404,
}
_SHAPES: Final = {code: shape for shape, code in QUERY_CODES.items()}
_SERVER_FAULT: Final = 500


class SqsError(Exception):
    """A request that SQS refuses: `shape` is the error's name in the API, `message` what AWS would say."""

    def __init__(self, shape: str, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.shape = printable(shape)
        self.message = printable(message)
        self.status = status or STATUSES.get(shape, 400)

    @classmethod
    def from_code(cls, code: str, message: str, status: int) -> "SqsError":
        """The error that clients see as `code`, whether it names a shape or is the query protocol's name for one."""
        return cls(_SHAPES.get(code, code), message, status)

    @property
    def code(self) -> str:
        """What boto3 shows as `Error.Code`."""
        return QUERY_CODES.get(self.shape, self.shape)

    @property
    def sender_fault(self) -> bool:
        """Whether the caller is to blame: true below 500."""
        return self.status < _SERVER_FAULT


def printable(text: str) -> str:
    """Return the text without lone surrogates: a request may hold them, no answer can."""
    return text.encode("utf-8", "replace").decode()


def invalid_parameter(message: str) -> SqsError:
    """A parameter has a value that SQS does not take."""
    return SqsError("InvalidParameterValueException", message)


def invalid_value(value: object, parameter: str, reason: str) -> SqsError:
    """`value` is refused for `parameter`, in AWS's usual sentence."""
    return invalid_parameter(f"Value {value} for parameter {parameter} is invalid. Reason: {reason}")


def missing_parameter(parameter: str) -> SqsError:
    """A required parameter is absent or empty."""
    return SqsError("MissingRequiredParameterException", f"The request must contain the parameter {parameter}.")


def wrong_type(parameter: str, expected: str) -> SqsError:
    """A parameter has another JSON type than the API says."""
    return SqsError("SerializationException", f"The parameter {parameter} must be {expected}.")


def no_such_queue() -> SqsError:
    """The queue was never there, or has been deleted."""
    return SqsError("QueueDoesNotExist", "The specified queue does not exist.")


def handle_is_malformed(handle: str) -> SqsError:
    """The text is no receipt handle of this queue."""
    return SqsError("ReceiptHandleIsInvalid", f'The input receipt handle "{handle}" is not a valid receipt handle.')


def handle_has_expired(handle: str) -> SqsError:
    """FIFO only: the visibility timeout of that receive is over."""
    return invalid_value(handle, "ReceiptHandle", "The receipt handle has expired.")
