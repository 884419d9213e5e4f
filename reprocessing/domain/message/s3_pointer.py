"""Recognise a body that points to an S3 object, in the format of the extended clients for SQS and SNS.

See https://github.com/awslabs/amazon-sqs-python-extended-client-lib.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Final

from reprocessing.domain.message.envelope import Attributes
from reprocessing.domain.message.json_span import json_string_text, member_bytes

_LONGEST: Final = 8_192  #: max bytes of a body that is a pointer
_CLASSES: Final = {
    "software.amazon.payloadoffloading.PayloadS3Pointer",
    "com.amazon.sqs.javamessaging.MessageS3Pointer",
}
#: The two possible names of the attribute that has the body's size.
SIZES: Final = ("ExtendedPayloadSize", "SQSLargePayloadSize")
_BUCKET: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,254}")
_LONGEST_KEY: Final = 1_024  #: max bytes of an object's key in S3


@dataclass(frozen=True, slots=True)
class PointerToS3:
    """The bucket and the key of the S3 object that has a message's body."""

    bucket: str
    key: str


def read(body: bytes, attributes: Attributes) -> PointerToS3 | None:
    """Return the pointer to S3 that a body consists of; None: the body is no pointer. Never raises.

    The extended clients also add an attribute with the body's size. A body without this attribute is no pointer.
    """
    if len(body) > _LONGEST or not any(name in attributes and attributes[name].type == "Number" for name in SIZES):
        return None
    try:
        parts = json.loads(body, parse_int=float)  # int() refuses more than 4300 digits
    except (ValueError, RecursionError):
        return None
    if not isinstance(parts, list) or len(parts) != 2 or parts[0] not in list(_CLASSES):  # noqa: PLR2004  a class and its values
        return None
    return _pointer(parts[1])


def _pointer(values: object) -> PointerToS3 | None:
    found = member_bytes(json.dumps(values).encode())
    if isinstance(found, dict) and found.keys() == {"s3BucketName", "s3Key"}:
        bucket, key = json_string_text(found["s3BucketName"]), json_string_text(found["s3Key"])
        if bucket and key and _BUCKET.fullmatch(bucket) and len(key.encode()) <= _LONGEST_KEY:
            return PointerToS3(bucket, key)
    return None
