"""ARNs are parsed, and shown by the names that people use."""

from __future__ import annotations

import pytest

from reprocessing.domain.message.arn import Named, name_of, read

AWS = "arn:aws:{}:eu-west-1:111122223333:{}"


@pytest.mark.parametrize(
    ("service", "resource", "named", "name"),
    [
        ("sqs", "orders", Named.QUEUE, "orders"), ("sqs", "orders.fifo", Named.QUEUE, "orders.fifo"),
        ("lambda", "function:orders", Named.FUNCTION, "orders"),
        ("lambda", "function:orders:prod", Named.FUNCTION, "orders:prod"),
        ("lambda", "layer:orders", Named.ANOTHER, "layer:orders"), ("sns", "orders", Named.TOPIC, "orders"),
        ("sns", "orders.fifo", Named.TOPIC, "orders.fifo"),
        ("sns", "orders:0b7f-1", Named.SUBSCRIPTION, "orders:0b7f-1"),
        ("events", "event-bus/orders", Named.BUS, "orders"),
        ("events", "rule/bus/orders", Named.RULE, "rule/bus/orders"),
        ("states", "stateMachine:orders", Named.ANOTHER, "stateMachine:orders"),
    ],
)  # fmt: skip
def test_an_arn_names_one_kind_of_resource(service: str, resource: str, named: Named, name: str) -> None:
    text = AWS.format(service, resource)
    found = read(text)
    assert found is not None
    assert (found.named, found.region, found.account) == (named, "eu-west-1", "111122223333")
    assert found.fifo == resource.endswith(".fifo")
    assert name_of(text) == name


def test_a_function_without_a_qualifier_is_latest() -> None:
    latest, plain = read(AWS.format("lambda", "function:orders:$LATEST")), read(AWS.format("lambda", "function:orders"))
    assert latest == plain


@pytest.mark.parametrize("text", ["", "orders", "arn:aws:sqs", "https://a.example/", "arn:aws:sqs:eu-west-1:1:a b"])
def test_other_texts_are_no_arn(text: str) -> None:
    assert read(text) is None


def test_the_name_of_a_url_is_the_url() -> None:
    assert name_of("https://a.example:8443/hook?a=b:c") == "https://a.example:8443/hook?a=b:c"
