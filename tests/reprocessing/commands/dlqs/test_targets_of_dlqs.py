"""Letters go back to the one that failed, or where a person says; nobody is guessed, and nothing goes in circles."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import override_settings

from reprocessing.domain.lifecycle import LetterState
from reprocessing.gateways import aws
from reprocessing.models import DeadLetterQueue, Letter, Rule, Source, Target
from tests.contract.queues import Queue, redrive_policy
from tests.reprocessing.commands.conftest import AddRow, Ask, AskJson
from tests.reprocessing.commands.listeners import Listeners, function
from tests.reprocessing.commands.refusals import findings, refusal
from tests.reprocessing.commands.refusals import refused as refused_by
from tests.reprocessing.commands.stock import add_letter
from tests.reprocessing.gateways.aws_endpoint import MakeQueue
from tests.reprocessing.gateways.stand_ins import Said, standing_in

pytestmark = pytest.mark.django_db

URL = "https://shop.example.com/hook"
SHIP, BILL = function("ship"), function("bill")


@pytest.fixture(autouse=True)
def known() -> Any:  # noqa: ANN401  a generator
    with override_settings(REDRIVE={"OUTBOUND_HOSTS": ["shop.example.com"], "LONG_POLL": 0}):
        yield


@pytest.fixture
def dlq(make_queue: MakeQueue) -> Queue:
    return make_queue(MessageRetentionPeriod="1209600")


def add(ask: Ask, queue: Queue, *arguments: str) -> DeadLetterQueue:
    ask("add_dlq", "orders", "--url", queue.url, *arguments, "--confirm")
    return DeadLetterQueue.objects.get(name="orders")


def ways() -> dict[str, str]:
    return dict(Source.objects.values_list("arn", "target__arn"))


def refused(*arguments: str) -> list[str]:
    return refused_by("add_dlq", "orders", *arguments)


# Back to the one that failed.


def test_a_function_is_the_target_of_its_own_letters_and_of_those_that_do_not_name_it(ask: Ask, dlq: Queue) -> None:
    row = add(ask, dlq, "--source", f"{SHIP}:$LATEST", "--rate", "3")
    target = Target.objects.get()
    assert (target.kind, target.arn, target.rate, target.proof, target.timeout) == ("lambda", SHIP, 3, "accepted", 60)
    assert ways() == {SHIP: SHIP}
    assert row.default_source is not None
    assert row.default_source.arn == SHIP
    assert "nothing to change" in ask("add_dlq", "orders", "--confirm")
    ask("add_dlq", "orders", "--rate", "7", "--confirm")  # it need not be named again
    assert (Target.objects.get().rate, ways()) == (7, {SHIP: SHIP})
    [what] = refused("--outcome", "absence")
    assert what == "The outcome absence cannot be proved: no watched DLQ gets failed messages of ship."


def test_a_queue_that_only_a_person_named_need_not_be_named_again(ask: Ask, dlq: Queue, make_queue: MakeQueue) -> None:
    queue = make_queue()
    add(ask, dlq, "--source", queue.url)
    ask("add_dlq", "orders", "--rate", "7", "--confirm")
    assert (Target.objects.get().rate, ways()) == (7, {queue.arn: queue.arn})
    [what] = refused("--outcome", "absence")
    assert what == f"The outcome absence cannot be proved: no watched DLQ gets failed messages of {queue.name}."


def test_a_dlq_of_a_queue_may_have_a_function_s_letters_as_well(ask: Ask, dlq: Queue, make_queue: MakeQueue) -> None:
    queue = make_queue(RedrivePolicy=redrive_policy(dlq, 3))
    row = add(ask, dlq, "--source", SHIP)
    assert ways() == {queue.arn: queue.arn, SHIP: SHIP}
    assert Target.objects.get(arn=queue.arn).proof == "absence"
    assert row.default_source is not None
    assert row.default_source.arn == SHIP


def test_of_several_functions_letters_that_name_none_are_parked_and_that_is_told(ask_json: AskJson, dlq: Queue) -> None:
    found = ask_json("add_dlq", "orders", "--url", dlq.url, "--source", SHIP, "--source", BILL)
    assert any(
        "do not name what failed: with several sources, their source is unknown" in one
        for one in findings(found, "warn")
    )


def test_a_queue_that_a_rule_of_eventbridge_names_may_be_of_another_type(
    ask: Ask, dlq: Queue, make_queue: MakeQueue
) -> None:
    queue = make_queue(fifo=True)
    add(ask, dlq, "--source", queue.arn)
    assert ways() == {queue.arn: queue.arn}
    assert Target.objects.get().fifo


@pytest.mark.soak
@pytest.mark.parametrize("listening", [("lambda", SHIP, "lambda"), ("https", URL, "http"), ("sqs", "", "sqs")])
def test_a_subscription_leads_to_whom_it_delivers(
    ask: Ask, dlq: Queue, make_queue: MakeQueue, listeners: Listeners, listening: tuple[str, str, str]
) -> None:
    protocol, to, kind = listening
    to = to or make_queue().arn
    _, [subscription] = listeners.topic((protocol, to))
    add(ask, dlq, "--source", subscription)
    assert ways() == {subscription: to}
    assert Target.objects.get().kind == kind


def test_a_subscriber_that_cannot_be_reached_from_here_is_refused_with_the_cure(
    ask: Ask, dlq: Queue, listeners: Listeners
) -> None:
    _, [subscription] = listeners.topic(("email", "orders@example.com"))
    [what] = refused("--url", dlq.url, "--source", subscription)
    assert what.endswith("delivers by email, which this service cannot send to.")
    ask("add_target", URL, "--confirm")
    add(ask, dlq, "--source", subscription, "--to", URL)
    assert ways() == {subscription: URL}


@pytest.mark.parametrize(
    ("arn", "what"),
    [
        ("arn:aws:sns:us-east-1:111122223333:orders", "orders is a topic, and messages fail in its subscriptions."),
        ("arn:aws:events:us-east-1:111122223333:event-bus/orders", "orders is a bus: all of its rules"),
        ("arn:aws:events:us-east-1:111122223333:rule/orders", "rule/orders is a rule, and messages fail in its"),
        ("arn:aws:states:us-east-1:111122223333:stateMachine:a", "is a resource to which this service cannot send"),
    ],
)
def test_what_is_no_single_one_is_refused(dlq: Queue, arn: str, what: str) -> None:
    [found] = refused("--url", dlq.url, "--source", arn)
    assert what in found


# Where a person says.


@pytest.mark.soak
def test_letters_go_where_a_person_says_and_back_when_told_so(
    ask: Ask, ask_json: AskJson, dlq: Queue, make_queue: MakeQueue
) -> None:
    queue = make_queue(RedrivePolicy=redrive_policy(dlq, 3))
    ask("add_target", URL, "--confirm")
    add(ask, dlq)
    found = ask_json("add_dlq", "orders", "--to", URL, "--confirm")
    change = {"of": "orders", "field": f"target of {queue.name}", "before": queue.arn, "after": URL}
    assert (found["changes"], ways()) == ([change], {queue.arn: URL})
    ask("add_dlq", "orders", "--max-attempts", "5", "--confirm")
    assert ways() == {queue.arn: URL}
    ask("add_dlq", "orders", "--to", "off", "--confirm")
    assert ways() == {queue.arn: queue.arn}


def test_another_queue_can_be_named_by_its_url_for_the_letters_of_one_source(
    ask: Ask, dlq: Queue, make_queue: MakeQueue
) -> None:
    one, other = (make_queue(RedrivePolicy=redrive_policy(dlq, 3)) for _ in range(2))
    queue = make_queue()
    add(ask, dlq, "--source", one.url, "--to", queue.url)
    assert ways() == {one.arn: queue.arn, other.arn: other.arn}
    assert Target.objects.values_list("kind", "proof").get(arn=queue.arn) == ("sqs", "accepted")


@pytest.mark.soak
@pytest.mark.parametrize("elsewhere", [True, pytest.param(False, marks=pytest.mark.soak)])
def test_commands_alone_bring_a_function_s_letters_back_to_it_or_to_an_endpoint(
    ask: Ask, ask_json: AskJson, dlq: Queue, monkeypatch: pytest.MonkeyPatch, elsewhere: bool
) -> None:
    with standing_in(lambda _: Said()) as one:
        monkeypatch.setenv("AWS_ENDPOINT_URL_LAMBDA", one.url)
        aws.forget_clients()
        hook = f"{one.url}/hook"
        with override_settings(REDRIVE={"OUTBOUND_HOSTS": [hook.split("/")[2]], "LONG_POLL": 0}):
            add(ask, dlq, "--source", SHIP)
            if elsewhere:
                ask("add_target", hook, "--confirm")
                ask("add_dlq", "orders", "--to", hook, "--confirm")
            _bury(dlq, b'{"n": 1.0}')
            assert ask_json("drain_dlq", "orders", "--confirm")["delivered"] == 1
    path = "/hook" if elsewhere else f"/2015-03-31/functions/{SHIP}/invocations"
    assert [(asked.path, asked.body) for asked in one.asked] == [(path, b'{"n": 1.0}')]


def _bury(dlq: Queue, event: bytes) -> None:
    """An asynchronous event that its function failed on, as Lambda puts it into the function's dead-letter queue."""
    texts = {"RequestID": "e4b46cbf", "ErrorMessage": "it broke"}
    attributes = {name: {"DataType": "String", "StringValue": text} for name, text in texts.items()}
    attributes["ErrorCode"] = {"DataType": "Number", "StringValue": "200"}
    dlq.send(event.decode(), MessageAttributes=attributes)


@pytest.mark.soak
def test_who_gets_letters_again_is_told(ask: Ask, ask_json: AskJson, dlq: Queue, listeners: Listeners) -> None:
    topic, _ = listeners.topic(("lambda", SHIP), ("lambda", BILL))
    ask("add_target", topic, "--refire", "1", "--confirm")
    found = ask_json("add_dlq", "orders", "--url", dlq.url, "--source", SHIP, "--to", topic, "--confirm")
    name = topic.rpartition(":")[2]
    told = f"Each message is published again: it goes again to 1 subscribers of the topic {name} that had it already."
    assert told in findings(found, "warn")
    dlq.send()
    for command in ("drain_dlq", "redrive_status"):
        assert "each message is published again to 1 other subscriber" in ask(command, "orders")
    [target] = ask_json("redrive_status", "orders")["dlqs"][0]["targets"]
    assert (target["source"], target["target"], target["kind"], target["confirmed_fanout"]) == (SHIP, topic, "topic", 1)


def test_nothing_is_published_again_without_a_person(ask: Ask, dlq: Queue, listeners: Listeners) -> None:
    topic, _ = listeners.topic(("lambda", SHIP))
    ask("add_target", topic, "--refire", "0", "--confirm")
    add(ask, dlq, "--source", SHIP, "--to", topic)
    [what] = refused("--mode", "automatic")
    assert what.endswith("in mode automatic it would be published again without end.")


def test_captured_letters_take_the_new_way_and_those_under_way_keep_theirs(
    ask: Ask, ask_json: AskJson, dlq: Queue
) -> None:
    add(ask, dlq, "--source", SHIP)
    ask("add_target", URL, "--confirm")
    source = Source.objects.get()
    captured = add_letter(source, LetterState.CAPTURED, planned=True)
    kept = [add_letter(source, state) for state in (LetterState.WAITING, LetterState.PARKED)]
    found = ask_json("add_dlq", "orders", "--to", URL, "--confirm")
    assert (
        f"Messages of ship go to {URL} from now on, also those that are already captured. Messages in progress "
        "(1) and parked messages (1) keep ship."
    ) in findings(found, "note")
    captured.refresh_from_db()
    assert (str(captured.target), captured.planned) == (URL, False)
    assert {str(one.target) for one in Letter.objects.filter(pk__in=[one.pk for one in kept])} == {"ship"}


def test_a_source_that_is_named_has_captured_letters_traced_again(ask: Ask, dlq: Queue) -> None:
    add(ask, dlq, "--source", SHIP)
    captured = add_letter(Source.objects.get(), LetterState.CAPTURED, planned=True)
    ask("add_dlq", "orders", "--source", BILL, "--confirm")
    captured.refresh_from_db()
    assert (captured.planned, str(captured.target)) == (False, "ship")


@pytest.mark.parametrize("what", [URL, SHIP, "arn:aws:sns:us-east-1:111122223333:orders", "nowhere"])
def test_a_target_that_nobody_added_is_refused_in_one_sentence(dlq: Queue, what: str) -> None:
    said = refusal("add_dlq", "orders", "--url", dlq.url, "--source", SHIP, "--to", what)
    assert (what in said, "add_target" in said or "No target is named" in said) == (True, True)


# Nothing goes in circles.


def test_a_queue_that_a_rule_or_another_dlq_s_letters_lead_to_is_not_watched(
    ask: Ask, dlq: Queue, add_row: AddRow
) -> None:
    target = Target.objects.create(arn=dlq.arn, url=dlq.url, region="us-east-1")
    mails = add_row("mails")
    Rule.objects.create(
        name="aside", position=1, enabled=True, dlq=mails, conditions=[], action="divert", target=target,
        created_by="ann",
    )  # fmt: skip
    [what] = refused("--url", dlq.url, "--source", SHIP)
    assert what.startswith("The rule aside sends messages to this queue: if it is watched, they are")
    Rule.objects.update(enabled=False)
    source = Source.objects.create(dlq=mails, arn=BILL, target=target)
    [what] = refused("--url", dlq.url, "--source", SHIP)
    assert what.startswith("Messages of mails that failed in bill go to this queue: if it is watched")
    source.delete()
    add(ask, dlq, "--source", SHIP)


def test_letters_do_not_go_to_a_watched_dlq(ask: Ask, dlq: Queue, make_queue: MakeQueue) -> None:
    other = make_queue()
    ask("add_dlq", "mails", "--url", other.url, "--source", BILL, "--confirm")
    for queue in (other, dlq):
        assert f"{queue.name} is a watched DLQ: what is sent there would be captured as failed." in refused(
            "--url", dlq.url, "--source", SHIP, "--to", queue.url
        )


# Other accounts.


@pytest.mark.soak
def test_the_role_of_a_dlq_is_the_role_of_what_its_letters_go_back_to(
    ask: Ask, dlq: Queue, make_queue: MakeQueue, listeners: Listeners
) -> None:
    queue, role = make_queue(RedrivePolicy=redrive_policy(dlq, 3)), "arn:aws:iam::111122223333:role/redrive"
    row = add(ask, dlq, "--role", role, "--source", SHIP)
    assert row.role_arn == role
    assert dict(Target.objects.values_list("arn", "role_arn")) == {queue.arn: role, SHIP: role}
    ask("add_target", "ship", "--role", "off", "--confirm")
    ask("add_dlq", "orders", "--rate", "3", "--confirm")
    assert dict(Target.objects.values_list("arn", "role_arn")) == {queue.arn: role, SHIP: ""}


@pytest.mark.soak
def test_who_is_to_answer_for_a_function_has_a_time_to_answer_in(ask: Ask, dlq: Queue) -> None:
    asked = ("--url", dlq.url, "--source", SHIP, "--outcome", "acknowledged")
    why = "The consumer of ship must report the outcome of each message, but no time limit for it is set."
    assert refused(*asked) == [why]
    ask("add_dlq", "orders", *asked, "--window", "600", "--confirm")
    assert Target.objects.values_list("proof", "window").get() == ("acknowledged", 600)
