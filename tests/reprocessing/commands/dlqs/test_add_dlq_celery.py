"""Sources that Celery workers consume: said by a person, refused where workers would delete what they reject."""

from __future__ import annotations

import json
from contextlib import suppress
from io import StringIO

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from reprocessing.domain.lifecycle import LetterState
from reprocessing.models import DeadLetterQueue, Letter, Source, Target
from tests.contract.queues import Queue, redrive_policy
from tests.reprocessing.commands.conftest import Ask
from tests.reprocessing.commands.stock import add_letter
from tests.reprocessing.gateways.aws_endpoint import MakeQueue

pytestmark = pytest.mark.django_db

FIELDS = ("kind", "strips_eta", "strips_expires", "resets_retries", "renews_id")


def said(severity: str, dlq: Queue, *arguments: str) -> list[str]:
    out = StringIO()
    with suppress(CommandError):  # something is refused
        call_command("add_dlq", "orders", "--url", dlq.url, *arguments, "--json", stdout=out)
    found = json.loads(out.getvalue())["findings"]
    return [one["what"] for one in found if one["severity"] == severity]


def watched(make_queue: MakeQueue, *, fifo: bool = False) -> tuple[Queue, Queue]:
    """A dlq, and the queue whose messages die into it."""
    dlq = make_queue(fifo=fifo)
    return dlq, make_queue(fifo=fifo, RedrivePolicy=redrive_policy(dlq, 3))


@pytest.mark.soak
def test_what_is_said_of_workers_is_remembered_and_taken_back_and_nobody_is_taken_for_one(
    ask: Ask, make_queue: MakeQueue
) -> None:
    dlq, _ = watched(make_queue)
    steps = [
        (("--url", dlq.url), ("sqs", False, False, False, False)),
        (("--celery", "--strip-expires", "--new-id"), ("celery", False, True, False, True)),
        (
            ("--strip-eta", "--reset-retries", "--no-strip-expires", "--no-new-id"),
            ("celery", True, False, True, False),
        ),
        (("--rate", "5"), ("celery", True, False, True, False)),
        (("--no-celery", "--no-strip-eta", "--no-reset-retries"), ("sqs", False, False, False, False)),
    ]
    for arguments, fields in steps:
        ask("add_dlq", "orders", *arguments, "--confirm")
        assert Target.objects.values_list(*FIELDS).get() == fields


def test_workers_whose_queue_has_no_redrive_policy_are_refused(make_queue: MakeQueue) -> None:
    dlq, source = make_queue(), make_queue()
    arguments = ("--source", source.url)
    name = source.url.rpartition("/")[2]
    why = (
        f"{name} has no redrive policy: Celery workers delete what they reject from such a queue (kombu 5.7), so a "
        "message of a task that they do not know would be lost."
    )
    assert said("refuse", dlq, *arguments) == []
    assert said("refuse", dlq, *arguments, "--celery") == [why]
    assert not DeadLetterQueue.objects.exists()


def test_what_is_for_task_messages_is_refused_of_other_letters(make_queue: MakeQueue) -> None:
    dlq, source = watched(make_queue)
    why = f"--strip-eta and --new-id change Celery task messages, but --celery is not set for {source.name}."
    assert said("refuse", dlq, "--strip-eta", "--new-id") == [why]
    assert said("refuse", dlq, "--strip-eta", "--new-id", "--celery") == []


def test_the_order_of_a_fifo_queue_is_not_kept_by_workers(make_queue: MakeQueue) -> None:
    dlq, _ = watched(make_queue, fifo=True)
    warned = [one for one in said("warn", dlq, "--celery") if one not in said("warn", dlq)]
    assert ["side by side" in one for one in warned] == [True]


@pytest.mark.parametrize("option", ["--strip-expires", "--no-celery"])
def test_what_spoke_against_captured_letters_is_asked_anew(ask: Ask, make_queue: MakeQueue, option: str) -> None:
    dlq, _ = watched(make_queue)
    ask("add_dlq", "orders", "--url", dlq.url, "--celery", "--confirm")
    add_letter(Source.objects.get(), LetterState.CAPTURED, planned=True, blocked_reason="expired", key_hash=b"k")
    for given, kept in ((("--rate", "5"), (True, "expired")), ((option,), (False, ""))):
        ask("add_dlq", "orders", *given, "--confirm")
        assert Letter.objects.values_list("planned", "blocked_reason").get() == kept
