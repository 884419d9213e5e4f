"""The doctor names what rows say and workers cannot do: a selector that cannot be read, an endpoint out of bounds."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reprocessing.conf import Conf
from reprocessing.domain.safety.url_policy import AllowList, allow_list
from reprocessing.domain.targets.target_kind import TargetKind
from reprocessing.models import DeadLetterQueue, Source, Target
from reprocessing.pipeline.maintenance.doctor import configuration

pytestmark = pytest.mark.django_db
URL = "https://shop.example.com/hook"


@pytest.fixture
def dlq() -> DeadLetterQueue:
    return DeadLetterQueue.objects.create(
        name="orders", url="http://127.0.0.1:9/0/orders", arn="arn:orders", region="x"
    )


def conf(*hosts: str, **secrets: str) -> Conf:
    listed = allow_list(hosts)
    assert isinstance(listed, AllowList)
    return replace(Conf(), outbound_hosts=listed, secrets=secrets)


def lead_to(dlq: DeadLetterQueue, **target: str) -> None:
    row = Target.objects.create(arn=URL, url=URL, kind=TargetKind.HTTP, region="", **target)
    Source.objects.create(dlq=dlq, arn="arn:shop", target=row)


def test_of_what_can_work_nothing_is_said(dlq: DeadLetterQueue) -> None:
    lead_to(dlq, secret="shop")
    assert list(configuration.findings(dlq, conf("shop.example.com", shop="s" * 32))) == []


@pytest.mark.parametrize(
    ("field", "option"),
    [
        ("ordering_key", "--ordering-key"),
        ("sequence", "--sequence"),
        ("idempotency_key", "--idempotency-key"),
        ("message_type", "--message-type"),
        ("tenant", "--tenant"),
    ],
)
def test_a_selector_that_cannot_be_read_is_ill_and_its_option_told(
    dlq: DeadLetterQueue, field: str, option: str
) -> None:
    setattr(dlq, field, "nonsense:x")
    (finding,) = configuration.findings(dlq, conf())
    assert finding.what.startswith(f'The value of {option} is invalid: "nonsense:x" is not a selector.')
    assert finding.cure == f"manage.py add_dlq orders {option} SELECTOR --confirm"


def test_an_endpoint_whose_host_is_not_listed_is_ill_with_the_line_to_set(dlq: DeadLetterQueue) -> None:
    lead_to(dlq)
    (finding,) = configuration.findings(dlq, conf("status.example.com"))
    assert finding.what == "Nothing may be sent there: shop.example.com is not listed in REDRIVE_OUTBOUND_HOSTS."
    assert "REDRIVE_OUTBOUND_HOSTS=status.example.com,shop.example.com " in finding.cure


def test_an_endpoint_whose_secret_is_not_set_is_ill(dlq: DeadLetterQueue) -> None:
    lead_to(dlq, secret="shop")
    (finding,) = configuration.findings(dlq, conf("shop.example.com"))
    assert finding.what == 'The secret "shop" that signs its messages is not set.'
