"""Encrypt (wrap) and decrypt (unwrap) data keys with a key in AWS KMS."""

from __future__ import annotations

from dataclasses import dataclass

from botocore.exceptions import BotoCoreError, ClientError

from reprocessing.domain.aws.iam_policy import KMS_CONTEXT
from reprocessing.domain.errors import PayloadKeyUnavailable
from reprocessing.domain.payloads.key_ring import KmsKeyName
from reprocessing.gateways.aws.clients import kms_client
from reprocessing.gateways.aws.errors import error_in_words, renew_credentials


@dataclass(frozen=True, slots=True)
class KmsKey:
    """A key in AWS KMS. The key never leaves KMS, and CloudTrail records each use."""

    of: KmsKeyName

    def wrap(self, secret: bytes, context: str) -> bytes:
        """Return the data key `secret`, encrypted by KMS. `context`: a text without which `unwrap` fails.

        Raises PayloadKeyUnavailable if KMS refuses or does not answer.
        """
        return self._call("Encrypt", Plaintext=secret, context=context)

    def unwrap(self, wrapped: bytes, context: str) -> bytes:
        """Return the data key that `wrap` encrypted with the same `context`.

        Raises PayloadKeyUnavailable if KMS refuses or does not answer.
        """
        return self._call("Decrypt", CiphertextBlob=wrapped, context=context)

    def _call(self, action: str, *, context: str, **content: bytes) -> bytes:
        client = kms_client(self.of.region)
        try:
            answer = getattr(client, action.lower())(
                KeyId=self.of.arn, EncryptionContext={KMS_CONTEXT: context}, **content
            )
        except (BotoCoreError, ClientError) as error:
            renew_credentials(error)
            raise PayloadKeyUnavailable(
                f"AWS KMS: {action} with {self.of.arn} failed: {error_in_words(error)}. Check that the key is enabled, "
                f"and that this process's role may use kms:{action} on it."
            ) from None
        return bytes(answer["CiphertextBlob" if action == "Encrypt" else "Plaintext"])
