"""Every command of docs/targets.md is run, in its order, and does what the manual says."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.test import override_settings

from reprocessing.models import DeadLetterQueue, Source, Target
from tests.contract.queues import redrive_policy
from tests.reprocessing.commands.conftest import Ask
from tests.reprocessing.commands.listeners import Listeners, function
from tests.reprocessing.gateways.aws_endpoint import MakeQueue

pytestmark = pytest.mark.django_db

MANUAL = Path(__file__).parents[4] / "docs/targets.md"
HOOK = "https://shop.example.com/hook"


@pytest.fixture(autouse=True)
def known() -> Iterator[None]:
    with override_settings(
        REDRIVE={"OUTBOUND_HOSTS": ["shop.example.com"], "SECRETS": {"shop": "s" * 32}, "LONG_POLL": 0}
    ):
        yield


def blocks() -> dict[str, list[list[str]]]:
    """The commands of each section, by its heading, each in words."""
    found: dict[str, list[list[str]]] = {}
    for section in MANUAL.read_text().split("\n## ")[1:]:
        lines = [line for block in re.findall(r"```\n(.*?)```", section, re.DOTALL) for line in block.splitlines()]
        assert all(line.startswith("manage.py ") for line in lines)
        if lines:
            found[section.splitlines()[0]] = [shlex.split(line, comments=True)[1:] for line in lines]
    return found


def run(ask: Ask, section: str, **variables: str) -> str:
    def filled(word: str) -> str:
        return variables[word.removeprefix("$")] if word.startswith("$") else word

    return "\n".join(ask(*[filled(word) for word in words]) for words in blocks()[section])


def ways(dlq: str) -> dict[str, str]:
    return dict(Source.objects.filter(dlq__name=dlq).values_list("arn", "target__arn"))


def test_every_section_s_commands_are_run_below() -> None:
    here = Path(__file__).read_text()
    assert [section for section in blocks() if f'"{section}"' not in here] == []


def test_a_function(ask: Ask, make_queue: MakeQueue) -> None:
    run(ask, "A Lambda function", URL=make_queue().url)
    target = Target.objects.get()
    assert (target.arn, target.timeout, target.rate) == (function("ship"), 120, 25)


@pytest.mark.soak
def test_a_subscriber(ask: Ask, make_queue: MakeQueue, listeners: Listeners) -> None:
    _, [subscription] = listeners.topic(("lambda", function("ship")))
    run(ask, "A subscriber of a topic", URL=make_queue().url, SUBSCRIPTION=subscription)
    assert ways("news") == {subscription: function("ship")}


def test_a_target_of_eventbridge(ask: Ask, make_queue: MakeQueue) -> None:
    run(ask, "A target of EventBridge", URL=make_queue().url)
    assert ways("events") == {function("bill"): function("bill")}


def test_an_endpoint(ask: Ask, make_queue: MakeQueue) -> None:
    dlq = make_queue()
    queue = make_queue(RedrivePolicy=redrive_policy(dlq, 3))
    run(ask, "An HTTP endpoint", URL=dlq.url)
    target = Target.objects.get(arn=HOOK)
    assert ways("orders") == {queue.arn: HOOK}
    assert (target.secret, target.answers, target.rate, target.burst) == ("shop", "409=success", 200, 50)
    run(ask, "Outcome")
    target.refresh_from_db()
    assert (target.proof, target.window) == ("acknowledged", 3600)


def test_another_queue(ask: Ask, make_queue: MakeQueue) -> None:
    dlq, other = make_queue(), make_queue()
    queue = make_queue(RedrivePolicy=redrive_policy(dlq, 3))
    run(ask, "Another queue", URL=dlq.url, OTHER_QUEUE=other.url)
    assert ways("orders") == {queue.arn: queue.arn}
    assert Target.objects.filter(arn=other.arn).exists()


@pytest.mark.soak
def test_a_topic(ask: Ask, make_queue: MakeQueue, listeners: Listeners) -> None:
    topic, [subscription, *_] = listeners.topic(*(("lambda", function(name)) for name in ("a", "b", "c")))
    section = "A topic or an event bus"
    said = run(ask, section, URL=make_queue().url, TOPIC=topic, SUBSCRIPTION=subscription)
    assert ways("news") == {subscription: topic}
    assert "each message is published again to 2 other subscribers" in said


@pytest.mark.soak
def test_other_accounts(ask: Ask, make_queue: MakeQueue, listeners: Listeners) -> None:
    run(ask, "Other accounts", URL=make_queue().url, FUNCTION=function("ship"))
    assert DeadLetterQueue.objects.get().role_arn == "arn:aws:iam::111122223333:role/redrive"
    assert Target.objects.get().role_arn == ""
