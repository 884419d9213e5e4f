"""A target is examined before letters go to it; what is said of one is remembered with who and why."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.core.management.base import CommandError
from django.test import override_settings
from pytest_django import Settings

from reprocessing.gateways.aws.clients import configured_region
from reprocessing.models import AuditAct, AuditEntry, Target
from tests.reprocessing.commands.conftest import AddRow, Ask, AskJson
from tests.reprocessing.commands.listeners import Listeners, function
from tests.reprocessing.commands.refusals import findings
from tests.reprocessing.commands.refusals import refused as refused_by
from tests.reprocessing.gateways.aws_endpoint import MakeQueue

pytestmark = pytest.mark.django_db

URL = "https://shop.example.com/hook"
SECRET = "s" * 32


def refused(*arguments: str, part: str = "what") -> list[str]:
    return refused_by("add_target", *arguments, part=part)


@pytest.fixture(autouse=True)
def known() -> Any:  # noqa: ANN401  a generator
    with override_settings(REDRIVE={"OUTBOUND_HOSTS": ["shop.example.com"], "SECRETS": {"shop": SECRET}}):
        yield


def test_a_dry_run_tells_everything_and_writes_nothing(ask: Ask) -> None:
    said = ask("add_target", URL)
    assert f"{URL}: HTTP endpoint" in said
    assert f"{URL}.timeout: 30 s" in said
    assert f"This was a dry run: {URL} is added with --confirm." in said
    assert not Target.objects.exists()


def test_an_endpoint_is_remembered_with_who_and_why(ask: Ask) -> None:
    said = ask(
        "add_target", URL, "--timeout", "5", "--answers", "4xx=retry, 409=success", "--content-type",
        "application/cloudevents+json", "--secret", "shop", "--rate", "50", "--burst", "7", "--window", "60",
        "--outcome", "acknowledged", "--advance", "settled", "--breaker-threshold", "9", "--by", "ann", "--reason",
        "the shop moves", "--confirm",
    )  # fmt: skip
    assert f"add_dlq NAME --to {URL}" in said
    row = Target.objects.get()
    assert (row.kind, row.arn, row.url, row.region, row.fifo) == ("http", URL, URL, configured_region(), False)
    assert (row.timeout, row.answers, row.content_type, row.secret) == (
        5, "409=success 4xx=retry", "application/cloudevents+json", "shop",
    )  # fmt: skip
    assert (row.proof, row.advance, row.rate, row.burst, row.window) == ("acknowledged", "settled", 50, 7, 60)
    assert (row.size_limit, row.confirmed_fanout, row.breakers.get().threshold) == (10_485_760, None, 9)
    review = AuditEntry.objects.get()
    assert (review.act, review.target, review.by, review.reason, review.before) == (
        AuditAct.ADDED, row, "ann", "the shop moves", {},
    )  # fmt: skip
    assert review.after["answers"] == "409=success 4xx=retry"


@pytest.mark.parametrize(("qualified", "kept"), [("", ""), (":prod", ":prod"), (":$LATEST", "")])
def test_a_function_has_a_minute_and_six_megabytes_and_its_latest_version_is_itself(
    ask: Ask, qualified: str, kept: str
) -> None:
    arn, role = function("ship") + kept, "arn:aws:iam::111122223333:role/redrive"
    ask("add_target", function("ship") + qualified, "--role", role, "--confirm")
    row = Target.objects.get()
    assert (row.kind, row.arn, row.region, row.timeout, row.size_limit) == ("lambda", arn, "us-east-1", 60, 6_291_456)
    assert (row.role_arn, row.proof, row.advance, row.rate) == (role, "accepted", "accepted", 10)
    assert str(row) == f"ship{kept}"


def test_what_was_added_changes_only_by_what_is_said(ask: Ask, ask_json: AskJson) -> None:
    ask("add_target", URL, "--rate", "5", "--secret", "shop", "--confirm")
    dry = ask_json("add_target", URL, "--rate", "6")
    assert dry["changes"] == [{"of": URL, "field": "rate", "before": 5, "after": 6}]
    assert (dry["dry_run"], dry["new"], Target.objects.get().rate) == (True, False, 5)
    ask("add_target", URL, "--rate", "6", "--secret", "off", "--confirm")
    assert (Target.objects.get().rate, Target.objects.get().secret) == (6, "")
    assert AuditEntry.objects.get(act=AuditAct.CHANGED).before == {"rate": 5, "secret": "shop"}
    assert "nothing to change" in ask("add_target", URL, "--rate", "6", "--confirm")
    assert AuditEntry.objects.count() == 2


def test_a_known_one_can_be_called_by_its_name(ask: Ask) -> None:
    ask("add_target", function("ship"), "--confirm")
    ask("add_target", "ship", "--timeout", "900", "--confirm")
    assert Target.objects.get().timeout == 900


def test_a_queue_is_described_by_sqs(ask: Ask, make_queue: MakeQueue) -> None:
    queue = make_queue(VisibilityTimeout="45")
    ask("add_target", queue.arn, "--confirm")
    row = Target.objects.get()
    assert (row.kind, row.arn, row.visibility, row.proof, row.rate) == ("sqs", queue.arn, 45, "accepted", 10)
    assert row.url.endswith(f"/{queue.name}")


@pytest.mark.parametrize(
    ("what", "sentence"),
    [
        ("arn:aws:sns:us-east-1:111122223333:orders:0b7f", "is an SNS subscription, and no target by itself. Name"),
        ("arn:aws:events:us-east-1:111122223333:rule/orders", "is an EventBridge rule, and no target by itself"),
        ("arn:aws:states:us-east-1:111122223333:stateMachine:a", "is a resource to which this service cannot send"),
        ("orders", 'No target is named "orders". Give the URL of an endpoint'),
    ],
)
def test_what_is_no_target_is_refused_in_one_sentence(ask: Ask, what: str, sentence: str) -> None:
    with pytest.raises(CommandError, match=re.escape(sentence)):
        ask("add_target", what)


def test_a_name_that_means_two_targets_asks_for_the_arn(ask: Ask) -> None:
    for region in ("us-east-1", "eu-west-1"):
        ask("add_target", function("ship").replace("us-east-1", region), "--confirm")
    with pytest.raises(CommandError, match=r"Several targets are named ship\. Give the ARN: arn:aws:lambda:eu-west-1"):
        ask("add_target", "ship", "--rate", "1")


def test_a_host_that_is_not_listed_is_refused_with_the_line_to_set() -> None:
    url = "http://127.0.0.1:8199/hook"
    why = "Messages may not be sent there: 127.0.0.1:8199 is not listed in REDRIVE_OUTBOUND_HOSTS."
    line = "REDRIVE_OUTBOUND_HOSTS=shop.example.com,127.0.0.1:8199"
    cure = f"Set {line} for the workers and for this process, and restart them."
    assert (refused(url), refused(url, part="cure")) == ([why], [cure])


@pytest.mark.parametrize(
    ("url", "cure"),
    [
        ("https://SHOP.example.com/hook", "Write https://shop.example.com/hook"),
        ("https://shop.example.com:443/hook", "Write https://shop.example.com/hook"),
        ("https://shop.example.com", "Write https://shop.example.com/"),
        ("https://u:p@shop.example.com/", "Correct the URL: https://HOST/PATH."),
    ],
)
def test_one_endpoint_is_one_target_however_it_is_written_and_one_that_cannot_be_read_is_none(
    url: str, cure: str
) -> None:
    assert refused(url, part="cure") == [cure]
    assert not Target.objects.exists()


PLAIN = "Messages go there in plain text, and nothing proves who answers"


def test_an_endpoint_without_tls_is_warned_of(ask_json: AskJson) -> None:
    found = ask_json("add_target", "http://shop.example.com/hook")
    [what] = findings(found, "warn")
    assert what == (
        f"{PLAIN}: REDRIVE_OUTBOUND_HOSTS lists the name shop.example.com; messages are sent only "
        "if its address is in a listed network too."
    )


@pytest.mark.parametrize("entry", ["10.1.2.3:8080", "10.1.0.0/16"])
def test_an_endpoint_without_tls_that_is_listed_is_said_to_be_allowed_and_by_what(
    ask_json: AskJson, settings: Settings, entry: str
) -> None:
    settings.REDRIVE = {**settings.REDRIVE, "OUTBOUND_HOSTS": ["192.0.2.1:8080", entry]}
    port = ":8080" if entry.endswith(":8080") else ""
    found = ask_json("add_target", f"http://10.1.2.3{port}/hook")
    assert findings(found, "warn") == [f"{PLAIN}. It is allowed: REDRIVE_OUTBOUND_HOSTS lists {entry}."]


def test_a_secret_that_nobody_has_is_refused_and_none_is_shown() -> None:
    asked = (URL, "--secret", "mails")
    (why,), (cure,) = refused(*asked), refused(*asked, part="cure")
    assert why == 'No secret is named "mails". There are: shop.'
    assert "Put mails=whsec_… into REDRIVE_SECRETS" in cure
    assert SECRET not in why + cure


@pytest.mark.parametrize(
    ("what", "option", "sentence"),
    [
        (URL, ("--outcome", "absence"), "The outcome absence cannot be proved here: nothing comes back from there."),
        (URL, ("--outcome", "acknowledged"), "Its consumer must report the outcome of each message, but no time"),
        (URL, ("--refire", "1"), "--refire means nothing for endpoints: it is for topics and buses."),
        (URL, ("--role", "arn:aws:iam::111122223333:role/r"), "--role means nothing for endpoints: it is for"),
        (function("ship"), ("--secret", "shop"), "--secret means nothing for functions: it is for endpoints."),
        (function("ship"), ("--answers", "4xx=retry"), "--answers means nothing for functions"),
        (function("ship"), ("--outcome", "absence"), "The outcome absence cannot be proved here"),
        (function("ship"), ("--region", "eu-west-3"), f"{function('ship')} is in us-east-1, not in eu-west-3."),
    ],
)
def test_what_means_nothing_there_is_refused(what: str, option: tuple[str, str], sentence: str) -> None:
    [said] = refused(what, *option)
    assert said.startswith(sentence)
    assert "carries credentials" in refused("https://shop.example.com@evil.example.net/")[0]


@pytest.mark.parametrize(
    ("option", "value", "sentence"),
    [
        ("--timeout", "901", "not a number of at least 0.1 and at most 900"),
        ("--answers", "409=maybe", "is not a meaning of an answer"),
        ("--content-type", "a\r\nX: y", "is not a content type"),
        ("--role", "redrive", "is not the ARN of a role"),
        ("--region", "Ireland", "is not a region"),
        ("--refire", "-1", "not a whole number"),
        ("--rate", "0", "not a number of at least 0.001"),
    ],
)
def test_what_an_option_cannot_mean_is_said(ask: Ask, option: str, value: str, sentence: str) -> None:
    with pytest.raises(CommandError, match=re.escape(sentence)):
        ask("add_target", URL, f"{option}={value}")


def test_a_watched_dlq_is_no_target(make_queue: MakeQueue, add_row: AddRow) -> None:
    queue = make_queue()
    row = add_row("orders")
    type(row).objects.update(arn=queue.arn)
    assert refused(queue.arn) == ["This queue is watched, as orders: messages sent there would be captured as failed."]


@pytest.mark.soak
def test_publishing_again_takes_the_number_of_those_who_get_it_again(ask: Ask, listeners: Listeners) -> None:
    topic, _ = listeners.topic(("lambda", function("a")), ("lambda", function("b")), ("lambda", function("c")))
    what = "A message that is published again goes to all subscribers, not only to the one that failed: 2 besides the"
    assert refused(topic)[0].startswith(what)
    assert refused(topic, "--refire", "1")[0].startswith(what)
    said = ask("add_target", topic, "--refire", "2", "--confirm")
    assert "WARN    Each message goes again to 2 subscribers that had it already." in said
    row = Target.objects.get()
    assert (row.kind, row.confirmed_fanout, row.size_limit) == ("topic", 2, 262_144)


def test_of_a_bus_the_targets_of_its_rules_are_counted(ask: Ask, listeners: Listeners) -> None:
    bus = listeners.bus(function("a"), function("b"))
    assert "1 besides the one that failed" in refused(bus)[0]
    ask("add_target", bus, "--refire", "1", "--confirm")
    row = Target.objects.get()
    assert (row.kind, row.confirmed_fanout, row.size_limit, row.region) == ("bus", 1, 262_143, "us-east-1")


@pytest.mark.soak
def test_where_nobody_can_be_asked_who_listens_the_number_is_taken_and_doubted(
    ask_json: AskJson, listeners: Listeners
) -> None:
    found = ask_json("add_target", "arn:aws:sns:us-east-1:123456789012:gone", "--refire", "4")
    first, second = findings(found, "warn")
    assert first == "Each message goes again to 4 subscribers that had it already."
    assert second.startswith("Whether there are more is unknown: ")
