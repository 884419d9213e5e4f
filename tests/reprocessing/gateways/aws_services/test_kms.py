from __future__ import annotations

from collections.abc import Iterator

import boto3
import pytest
from moto import mock_aws

from reprocessing.domain.errors import PayloadKeyUnavailable
from reprocessing.domain.payloads.key_ring import KmsKeyName
from reprocessing.gateways.aws.clients import forget_clients
from reprocessing.gateways.aws_services.kms import KmsKey


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> Iterator[KmsKey]:
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_KMS"):
        monkeypatch.delenv(name, raising=False)
    with mock_aws():
        forget_clients()
        made = boto3.client("kms", region_name="eu-west-1").create_key()
        yield KmsKey(KmsKeyName(made["KeyMetadata"]["Arn"]))
    forget_clients()


@pytest.mark.soak
def test_a_data_key_is_unwrapped_as_it_was_wrapped(key: KmsKey) -> None:
    wrapped = key.wrap(b"s" * 32, "redrive dlq 1 2026-03-01")
    assert (key.unwrap(wrapped, "redrive dlq 1 2026-03-01"), b"s" * 32 in wrapped) == (b"s" * 32, False)


@pytest.mark.soak
def test_a_key_of_another_row_is_refused_without_a_word_of_it(key: KmsKey) -> None:
    wrapped = key.wrap(b"canary-" * 4 + b"1234", "redrive dlq 1 2026-03-01")
    with pytest.raises(PayloadKeyUnavailable, match=r"AWS KMS: Decrypt with arn:aws:kms:.* failed") as found:
        key.unwrap(wrapped, "redrive dlq 2 2026-03-01")
    assert "canary" not in str(found.value)


def test_a_service_that_does_not_answer_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_KMS", "http://127.0.0.1:9")
    forget_clients()
    key = KmsKey(KmsKeyName("arn:aws:kms:eu-west-1:111122223333:key/1f2e"))
    with pytest.raises(PayloadKeyUnavailable, match=r"AWS KMS: Encrypt with arn:aws:kms:.* failed"):
        key.wrap(b"s" * 32, "redrive installation")
    forget_clients()
