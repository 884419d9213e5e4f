"""Check whether the S3 objects to which letters point still exist. The objects' contents are not read."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from botocore.exceptions import BotoCoreError, ClientError

from reprocessing.domain.message.s3_pointer import PointerToS3
from reprocessing.gateways.aws.clients import s3_client
from reprocessing.gateways.aws.errors import renew_credentials, status_of
from reprocessing.gateways.aws.request_threads import run_in_parallel

_THREADS: Final = 16
_NOT_FOUND: Final = 404


def are_gone(pointers: Collection[PointerToS3], region: str, role: str = "") -> set[PointerToS3]:
    """Return the pointers whose S3 object or bucket does not exist.

    Only the answer 404 counts as missing. After any other answer, the object is assumed to exist. If the role may not
    list the bucket, S3 answers 403 for a missing object, so the object is then assumed to exist
    (https://docs.aws.amazon.com/AmazonS3/latest/API/API_HeadObject.html).
    """

    def is_gone(pointer: PointerToS3) -> bool:
        try:
            s3_client(region, role).head_object(Bucket=pointer.bucket, Key=pointer.key)
        except (BotoCoreError, ClientError) as error:
            renew_credentials(error)
            return isinstance(error, ClientError) and status_of(error) == _NOT_FOUND
        return False

    some = list(dict.fromkeys(pointers))
    return {pointer for pointer, gone in zip(some, run_in_parallel(is_gone, some, _THREADS), strict=True) if gone}
