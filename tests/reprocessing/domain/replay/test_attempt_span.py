"""A span says where an attempt went and how it ended, and nothing that a message contains."""

from __future__ import annotations

import pytest

from reprocessing.domain.replay.attempt_span import AttemptFacts, result_of
from reprocessing.domain.replay.verdicts import NotSent, Outcome, Refused, Taken, Unknown

ARN = "arn:aws:sqs:eu-west-1:111122223333:orders"


def facts(kind: str = "sqs", target: str = ARN, run: str = "orders-1") -> AttemptFacts:
    return AttemptFacts(
        kind=kind, target=target, dlq="orders", redrive_id="r-1", message_id="m-1", key_queue=7, number=2, run=run
    )


def test_a_span_has_the_names_of_the_conventions_and_the_ids_of_this_service() -> None:
    assert facts().name == "send orders"
    assert facts().attributes == {
        "messaging.system": "aws_sqs",
        "messaging.operation.name": "send",
        "messaging.operation.type": "send",
        "messaging.destination.name": "orders",
        "redrive.id": "r-1",
        "redrive.message_id": "m-1",
        "redrive.dlq": "orders",
        "redrive.key_queue_id": 7,
        "redrive.attempt": 2,
        "redrive.run": "orders-1",
    }
    assert "redrive.run" not in facts(run="").attributes


@pytest.mark.parametrize(
    ("kind", "target", "system", "name"),
    [
        ("celery", ARN, "aws_sqs", "send orders"),
        ("topic", "arn:aws:sns:eu-west-1:111122223333:all", "aws.sns", "send all"),
        ("bus", "arn:aws:events:eu-west-1:111122223333:event-bus/main", "aws.eventbridge", "send main"),
        ("lambda", "arn:aws:lambda:eu-west-1:111122223333:function:ship", "aws.lambda", "send ship"),
        ("http", "https://user:secret@hooks.example.com:8443/T0/secret?k=secret", "http", "send hooks.example.com"),
    ],
)
def test_every_kind_of_target_has_a_system_and_a_name_without_secrets(
    kind: str, target: str, system: str, name: str
) -> None:
    made = facts(kind, target)
    assert (made.name, made.attributes["messaging.system"]) == (name, system)
    assert "secret" not in repr(made) + repr(made.attributes)


@pytest.mark.parametrize(
    ("outcome", "attributes"),
    [
        (Taken("m-2"), {"redrive.outcome": "accepted", "messaging.message.id": "m-2"}),
        (Taken(), {"redrive.outcome": "accepted"}),
        (Refused("503", "canary"), {"redrive.outcome": "refused", "error.type": "503"}),
        (Refused("an error\ncanary", "x"), {"redrive.outcome": "refused", "error.type": "_OTHER"}),
        (NotSent("canary"), {"redrive.outcome": "not_sent", "error.type": "not_sent"}),
        (NotSent("canary", unreachable=True), {"redrive.outcome": "not_sent", "error.type": "unreachable"}),
        (Unknown("canary"), {"redrive.outcome": "unknown", "error.type": "unknown"}),
        (None, {"redrive.outcome": "unknown", "error.type": "unknown"}),
    ],
)
def test_an_outcome_is_told_by_its_code_and_never_by_its_text(
    outcome: Outcome | None, attributes: dict[str, str]
) -> None:
    assert result_of(outcome).attributes == attributes
