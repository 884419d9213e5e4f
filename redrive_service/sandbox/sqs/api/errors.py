"""The errors of SQS, with the codes and statuses that its clients check."""

from typing import Final

_WITH_PREFIX: Final = (
    "BatchEntryIdsNotDistinct", "BatchRequestTooLong", "EmptyBatchRequest", "InvalidBatchEntryId",
    "MessageNotInflight", "PurgeQueueInProgress", "QueueDeletedRecently", "TooManyEntriesInBatchRequest",
    "UnsupportedOperation",
)  # fmt: skip
# Codes of errors for query-compatible clients (header x-amzn-query-error), by shape. For other errors, code and shape
# are equal.
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
# Every other error has status 400.
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
    """The refusal of a request. `shape` is the error's name in the API model, and `message` is AWS's text."""

    def __init__(self, shape: str, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.shape = printable(shape)
        self.message = printable(message)
        self.status = status or STATUSES.get(shape, 400)

    @classmethod
    def from_code(cls, code: str, message: str, status: int) -> "SqsError":
        """Return the error with this code: its name in the API model, or its older name in AWS's query protocol.

        For example, `QueueDoesNotExist` and `AWS.SimpleQueueService.NonExistentQueue` are the same error.
        """
        return cls(_SHAPES.get(code, code), message, status)

    @property
    def code(self) -> str:
        """Return the code that boto3 shows as `Error.Code`."""
        return QUERY_CODES.get(self.shape, self.shape)

    @property
    def sender_fault(self) -> bool:
        """Return whether the client caused the error: its status is below 500."""
        return self.status < _SERVER_FAULT


def printable(text: str) -> str:
    """Return the text with `?` for each lone surrogate (half a character), because UTF-8 cannot encode it."""
    return text.encode("utf-8", "replace").decode()


def invalid_parameter(message: str) -> SqsError:
    """Return the error for a parameter value that SQS does not accept."""
    return SqsError("InvalidParameterValueException", message)


def invalid_value(value: object, parameter: str, reason: str) -> SqsError:
    """Return the error for an invalid value of a parameter, in AWS's words. `reason` says why it is invalid."""
    return invalid_parameter(f"Value {value} for parameter {parameter} is invalid. Reason: {reason}")


def missing_parameter(parameter: str) -> SqsError:
    """Return the error for a required parameter that is absent or empty."""
    return SqsError("MissingRequiredParameterException", f"The request must contain the parameter {parameter}.")


def wrong_type(parameter: str, expected: str) -> SqsError:
    """Return the error for a parameter whose JSON type is wrong. `expected` is the right type, such as "a string"."""
    return SqsError("SerializationException", f"The parameter {parameter} must be {expected}.")


def no_such_queue() -> SqsError:
    """Return the error for a queue that does not exist."""
    return SqsError("QueueDoesNotExist", "The specified queue does not exist.")


def handle_is_malformed(handle: str) -> SqsError:
    """Return the error for a text that is not a receipt handle of this queue."""
    return SqsError("ReceiptHandleIsInvalid", f'The input receipt handle "{handle}" is not a valid receipt handle.')


def handle_has_expired(handle: str) -> SqsError:
    """Return the error for an expired handle (FIFO only): the visibility timeout of its receive has ended."""
    return invalid_value(handle, "ReceiptHandle", "The receipt handle has expired.")
