"""An address is read from a URL, or the URL is said to be none."""

from __future__ import annotations

import pytest

from reprocessing.domain.errors import QueueUnreachable
from reprocessing.gateways import aws
from reprocessing.gateways.sqs import QueueAddress


@pytest.mark.parametrize(
    ("host", "region"),
    [
        ("sqs.eu-west-1.amazonaws.com", "eu-west-1"),
        ("sqs-fips.us-gov-west-1.amazonaws.com", "us-gov-west-1"),
        ("sqs.cn-north-1.amazonaws.com.cn", "cn-north-1"),
        ("sqs.ap-southeast-2.api.aws", "ap-southeast-2"),
        ("sqs.cn-north-1.api.amazonwebservices.com.cn", "cn-north-1"),
        ("vpce-0a1b-c2d3.sqs.eu-central-1.vpce.amazonaws.com", "eu-central-1"),
        ("eu-west-2.queue.amazonaws.com", "eu-west-2"),
        ("queue.amazonaws.com", "us-east-1"),
        ("localhost:9324", "sa-east-1"),
        ("sqs.eu-west-1.amazonaws.com.evil.example", "sa-east-1"),
    ],
)
def test_the_region_is_in_the_host_of_aws_and_else_the_one_that_is_configured(
    afresh: pytest.MonkeyPatch, host: str, region: str
) -> None:
    afresh.setenv("AWS_DEFAULT_REGION", "sa-east-1")
    aws.forget_clients()
    assert QueueAddress.of(f"https://{host}/111122223333/orders").region == region


@pytest.mark.parametrize(
    ("region", "arn"),
    [
        ("eu-west-1", "arn:aws:sqs:eu-west-1:111122223333:orders.fifo"),
        ("cn-north-1", "arn:aws-cn:sqs:cn-north-1:111122223333:orders.fifo"),
        ("us-gov-west-1", "arn:aws-us-gov:sqs:us-gov-west-1:111122223333:orders.fifo"),
    ],
)
def test_name_account_kind_and_arn_are_in_the_url(region: str, arn: str) -> None:
    address = QueueAddress.of(f"https://sqs.{region}.amazonaws.com/111122223333/orders.fifo")
    assert (address.name, address.account, address.fifo, address.arn) == ("orders.fifo", "111122223333", True, arn)
    assert not QueueAddress.of("https://sqs.eu-west-1.amazonaws.com/111122223333/fifo").fifo


@pytest.mark.parametrize(
    "url",
    [
        "", "orders", "arn:aws:sqs:eu-west-1:1:orders", "https://", "https://host", "https://[/a/b", "ftp://h/1/q",
        "http://ann:hush@localhost:9324/000000000000/orders",
    ],
)  # fmt: skip
def test_what_is_no_url_of_a_queue_is_shown_with_one_that_is_and_without_credentials(url: str) -> None:
    with pytest.raises(QueueUnreachable, match=r"such as https://sqs\.eu-west-1\.amazonaws\.com/") as raised:
        QueueAddress.of(url)
    assert "hush" not in str(raised.value)


def test_a_region_that_nothing_tells_is_asked_for(afresh: pytest.MonkeyPatch) -> None:
    afresh.delenv("AWS_DEFAULT_REGION")
    afresh.setenv("AWS_CONFIG_FILE", "/dev/null")
    aws.forget_clients()
    with pytest.raises(QueueUnreachable, match="Set AWS_DEFAULT_REGION"):
        QueueAddress.of("http://localhost:9324/000000000000/orders")
