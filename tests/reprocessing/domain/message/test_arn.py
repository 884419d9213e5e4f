"""ARNs are parsed, and shown by the names that people use."""

from __future__ import annotations

import pytest

from reprocessing.domain.message.arn import ResourceKind, is_region, is_role, read, resource_name

AWS = "arn:aws:{}:eu-west-1:111122223333:{}"


@pytest.mark.parametrize(
    ("service", "resource", "named", "name"),
    [
        ("sqs", "orders", ResourceKind.QUEUE, "orders"), ("sqs", "orders.fifo", ResourceKind.QUEUE, "orders.fifo"),
        ("lambda", "function:orders", ResourceKind.FUNCTION, "orders"),
        ("lambda", "function:orders:prod", ResourceKind.FUNCTION, "orders:prod"),
        ("lambda", "layer:orders", ResourceKind.ANOTHER, "layer:orders"),
        ("sns", "orders", ResourceKind.TOPIC, "orders"),
        ("sns", "orders.fifo", ResourceKind.TOPIC, "orders.fifo"),
        ("sns", "orders:0b7f-1", ResourceKind.SUBSCRIPTION, "orders:0b7f-1"),
        ("events", "event-bus/orders", ResourceKind.BUS, "orders"),
        ("events", "rule/bus/orders", ResourceKind.RULE, "rule/bus/orders"),
        ("states", "stateMachine:orders", ResourceKind.ANOTHER, "stateMachine:orders"),
    ],
)  # fmt: skip
def test_an_arn_names_one_kind_of_resource(service: str, resource: str, named: ResourceKind, name: str) -> None:
    text = AWS.format(service, resource)
    found = read(text)
    assert found is not None
    assert (found.named, found.region, found.account) == (named, "eu-west-1", "111122223333")
    assert found.fifo == resource.endswith(".fifo")
    assert resource_name(text) == name


def test_a_function_without_a_qualifier_is_latest() -> None:
    latest, plain = read(AWS.format("lambda", "function:orders:$LATEST")), read(AWS.format("lambda", "function:orders"))
    assert latest == plain


@pytest.mark.parametrize("text", ["", "orders", "arn:aws:sqs", "https://a.example/", "arn:aws:sqs:eu-west-1:1:a b"])
def test_other_texts_are_no_arn(text: str) -> None:
    assert read(text) is None


def test_the_name_of_a_url_is_the_url() -> None:
    assert resource_name("https://a.example:8443/hook?a=b:c") == "https://a.example:8443/hook?a=b:c"


@pytest.mark.parametrize(
    ("text", "role", "region"),
    [
        ("arn:aws:iam::111122223333:role/redrive", True, False), ("arn:aws-cn:iam::111122223333:role/a/b", True, False),
        ("arn:aws:iam::111122223333:user/redrive", False, False), ("arn:aws:iam::111122223333:role/a b", False, False),
        ("eu-west-1", False, True), ("us-gov-west-1", False, True), ("eu-west", False, False), ("", False, False),
    ],
)  # fmt: skip
def test_roles_and_regions_are_recognised_by_their_names(text: str, *, role: bool, region: bool) -> None:
    assert (is_role(text), is_region(text)) == (role, region)
