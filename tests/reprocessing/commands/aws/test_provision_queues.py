"""Queues are shown as they are and as they are wanted; nothing is done without --confirm, and nothing is weakened."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from io import StringIO
from typing import Any
from uuid import uuid4

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.test import override_settings

from reprocessing.domain.aws.queue_spec import AttributeDiffers, QueueMissing, WantedQueue, queue_family
from reprocessing.gateways.sqs.provisioning import QueueLocation
from reprocessing.pipeline.aws import provision
from reprocessing.pipeline.aws.provision import QueueComparison, Step
from tests.contract.endpoints import Endpoint, Sandbox
from tests.reprocessing.commands.conftest import Ask, AskJson
from tests.reprocessing.commands.refusals import refusal
from tests.reprocessing.gateways.aws_endpoint import MakeQueue

_MOVING = re.compile(r"Approximate|Timestamp|QueueArn|MaximumMessageSize|DelaySeconds|Scope|Limit")
#: Arguments of aws_sqs_queue by the attributes that they set.
_ARGUMENTS = {
    "visibility_timeout_seconds": "VisibilityTimeout",
    "message_retention_seconds": "MessageRetentionPeriod",
    "receive_wait_time_seconds": "ReceiveMessageWaitTimeSeconds",
    "sqs_managed_sse_enabled": "SqsManagedSseEnabled",
    "kms_master_key_id": "KmsMasterKeyId",
    "fifo_queue": "FifoQueue",
    "content_based_deduplication": "ContentBasedDeduplication",
}


class Shelf:
    def __init__(self, endpoint: Endpoint) -> None:
        self.client = endpoint.client

    def names(self, prefix: str) -> set[str]:
        urls = self.client.list_queues(QueueNamePrefix=prefix).get("QueueUrls", [])
        return {url.rpartition("/")[2] for url in urls}

    def url(self, name: str) -> str:
        return self.client.get_queue_url(QueueName=name)["QueueUrl"]

    def settings(self, name: str) -> dict[str, Any]:
        said = self.client.get_queue_attributes(QueueUrl=self.url(name), AttributeNames=["All"])["Attributes"]
        return {
            key: json.loads(value) if key.startswith("Redrive") else value
            for key, value in said.items()
            if not _MOVING.search(key)
        }

    def set(self, name: str, **attributes: str) -> None:
        self.client.set_queue_attributes(QueueUrl=self.url(name), Attributes=attributes)  # type: ignore[arg-type]  # texts


@pytest.fixture
def shelf(endpoint: Endpoint) -> Shelf:
    return Shelf(endpoint)


@pytest.fixture
def name() -> str:
    return f"shop-{uuid4().hex[:12]}"


def arn(name: str) -> str:
    return f"arn:aws:sqs:us-east-1:000000000000:{name}"


def test_a_check_shows_what_is_missing_and_makes_nothing(ask: Ask, shelf: Shelf, name: str) -> None:
    said = ask("provision_queues", name)
    assert f"{name}: missing" in said
    assert f"redrive policy to {name}-dlq after 5 receives" in said
    assert "This was a dry run: nothing was changed." in said
    assert shelf.names(name) == set()


@pytest.mark.soak
@pytest.mark.parametrize("ending", ["", ".fifo"])
def test_what_is_missing_is_made_whole_and_a_second_time_changes_nothing(
    ask: Ask, shelf: Shelf, sandbox: Sandbox, name: str, ending: str
) -> None:
    said = ask("provision_queues", name + ending, "--max-receives", "3", "--visibility", "45", "--confirm")
    assert f"{name}{ending}: created" in said
    of_fifo = {"FifoQueue": "true", "ContentBasedDeduplication": "false"} if ending else {}
    common = {"ReceiveMessageWaitTimeSeconds": "20", "SqsManagedSseEnabled": "true", **of_fifo}
    longest = {**common, "MessageRetentionPeriod": "1209600", "VisibilityTimeout": "30"}
    assert shelf.settings(name + ending) == {
        **common, "MessageRetentionPeriod": "345600", "VisibilityTimeout": "45",
        "RedrivePolicy": {"deadLetterTargetArn": arn(f"{name}-dlq{ending}"), "maxReceiveCount": 3},
    }  # fmt: skip
    assert shelf.settings(f"{name}-parking{ending}") == longest
    assert shelf.settings(f"{name}-dlq{ending}") == {
        **longest,
        "RedriveAllowPolicy": {"redrivePermission": "byQueue", "sourceQueueArns": [arn(name + ending)]},
    }
    before = len(sandbox.calls())
    assert (
        ask("provision_queues", name + ending, "--confirm")
        .rpartition("URL of the DLQ: ")[0]
        .endswith("All queues are as wanted: nothing to change.\n")
    )
    assert {one["action"] for one in sandbox.calls()[before:]} == {
        "GetQueueUrl", "GetQueueAttributes", "ListDeadLetterSourceQueues"
    }  # fmt: skip


@pytest.mark.parametrize(("said", "endings"), [("off", ["", "-dlq"]), ("on", ["", "-dlq", "-parking"])])
def test_a_parking_queue_is_made_unless_it_is_off(
    ask: Ask, shelf: Shelf, name: str, said: str, endings: list[str]
) -> None:
    ask("provision_queues", name, "--parking", said, "--confirm")
    assert shelf.names(name) == {name + ending for ending in endings}
    assert shelf.names("on") == set()


@pytest.mark.parametrize("said", ["of", "offf", "onn"])
def test_a_mistyped_on_or_off_is_no_name_of_a_parking_queue(said: str) -> None:
    assert f"{said!r} is ambiguous; give on" in refusal("provision_queues", "shop", "--parking", said)


@pytest.mark.parametrize("said", ["On", "OFF", "yes", "no", "true", "none", "default", "off.fifo", "0"])
def test_a_parking_queue_s_name_that_reads_as_a_yes_or_a_no_is_refused(said: str) -> None:
    assert f"{said!r} is ambiguous; give on" in refusal("provision_queues", "shop", "--parking", said)
    why = f"{said!r} means yes or no; give the name of a queue"
    assert why in refusal("provision_queues", "shop", "--dlq", said)


@pytest.mark.soak
def test_what_is_better_stays_and_is_told(ask: Ask, shelf: Shelf, name: str) -> None:
    ask("provision_queues", name, "--confirm")
    shelf.set(name, MessageRetentionPeriod="864000", VisibilityTimeout="77", KmsMasterKeyId="alias/shop")
    before = shelf.settings(name)
    said = ask("provision_queues", name, "--confirm")
    assert "retention: stays 10 days, instead of 4 days: an existing queue keeps its value" in said
    assert "visibility timeout: stays 77 s, instead of 30 s" in said
    assert "KMS key: stays alias/shop" in said
    assert shelf.settings(name) == before


@pytest.mark.soak
def test_what_differs_is_told_before_it_is_changed(ask: Ask, shelf: Shelf, name: str) -> None:
    ask("provision_queues", name, "--confirm")
    shelf.set(f"{name}-dlq", MessageRetentionPeriod="3600", ReceiveMessageWaitTimeSeconds="0")
    arguments = ("provision_queues", name, "--max-receives", "9", "--kms", "alias/shop")
    said = ask(*arguments)
    assert "  retention: 60 minutes -> 14 days" in said
    assert "  long poll: 0 s -> 20 s" in said
    assert "  KMS key: none -> alias/shop" in said
    assert shelf.settings(f"{name}-dlq")["MessageRetentionPeriod"] == "3600"
    told = ask(*arguments, "--confirm")
    assert f"{name}-dlq: retention changed: 60 minutes -> 14 days; long poll changed: 0 s -> 20 s" in told
    assert shelf.settings(f"{name}-dlq")["MessageRetentionPeriod"] == "1209600"
    assert shelf.settings(name)["RedrivePolicy"]["maxReceiveCount"] == 9
    assert shelf.settings(name)["KmsMasterKeyId"] == "alias/shop"


@pytest.mark.soak
def test_a_second_queue_dies_into_the_same_dlq_and_the_first_still_may(ask: Ask, shelf: Shelf, name: str) -> None:
    ask("provision_queues", name, "--confirm")
    ask("provision_queues", f"{name}-b", "--dlq", f"{name}-dlq", "--parking", "off", "--confirm")
    assert shelf.settings(f"{name}-dlq")["RedriveAllowPolicy"]["sourceQueueArns"] == [arn(name), arn(f"{name}-b")]
    assert shelf.settings(f"{name}-b")["RedrivePolicy"]["deadLetterTargetArn"] == arn(f"{name}-dlq")


def test_a_dlq_that_was_open_to_all_keeps_everyone_who_dies_into_it(ask: Ask, shelf: Shelf, name: str) -> None:
    client = shelf.client
    client.create_queue(QueueName=f"{name}-dlq")
    policy = json.dumps({"deadLetterTargetArn": arn(f"{name}-dlq"), "maxReceiveCount": "2"})
    for other in ("x", "y"):
        client.create_queue(QueueName=f"{name}-{other}", Attributes={"RedrivePolicy": policy})
    ask("provision_queues", name, "--confirm")
    allow = shelf.settings(f"{name}-dlq")["RedriveAllowPolicy"]
    assert allow == {
        "redrivePermission": "byQueue", "sourceQueueArns": [arn(name), arn(f"{name}-x"), arn(f"{name}-y")]
    }  # fmt: skip


def test_a_queue_that_dies_elsewhere_stops_everything(ask: Ask, ask_json: AskJson, shelf: Shelf, name: str) -> None:
    ask("provision_queues", name, "--confirm")
    with pytest.raises(CommandError, match=f"Nothing was done. Fix what is REFUSED above first: {name}"):
        ask("provision_queues", name, "--dlq", f"{name}-other", "--confirm")
    assert shelf.names(f"{name}-other") == set()
    with pytest.raises(CommandError):
        ask_json("provision_queues", name, "--dlq", f"{name}-other")


def test_a_circle_of_queues_is_refused(ask: Ask, shelf: Shelf, name: str) -> None:
    ask("provision_queues", name, "--parking", "off", "--confirm")
    before = shelf.settings(f"{name}-dlq")
    with pytest.raises(CommandError, match=f"Fix what is REFUSED above first: {name}"):
        ask("provision_queues", f"{name}-dlq", "--dlq", name, "--confirm")
    assert shelf.settings(f"{name}-dlq") == before


def test_a_dlq_gets_a_dlq_of_its_own_only_where_that_is_named(ask: Ask, shelf: Shelf, name: str) -> None:
    ask("provision_queues", name, "--parking", "off", "--confirm")
    out = StringIO()
    with pytest.raises(CommandError, match=f"Fix what is REFUSED above first: {name}-dlq"):
        call_command("provision_queues", f"{name}-dlq", "--parking", "off", "--confirm", stdout=out)
    assert f"it is itself the DLQ of {name}" in out.getvalue()
    assert shelf.names(name) == {name, f"{name}-dlq"}
    further = ("provision_queues", f"{name}-dlq", "--parking", "off")
    ask(*further, "--dlq", f"{name}-dlq-dlq", "--confirm")
    assert shelf.settings(f"{name}-dlq")["RedrivePolicy"]["deadLetterTargetArn"] == arn(f"{name}-dlq-dlq")
    assert ask(*further).endswith("nothing to change.\n")


@pytest.mark.parametrize("ending", ["", "-dlq"])
def test_a_queue_of_the_service_is_made_by_own_alone(ask: Ask, shelf: Shelf, name: str, ending: str) -> None:
    url = f"http://127.0.0.1:9/000000000000/{name}"
    with (
        override_settings(REDRIVE={"OWN_QUEUES": [url]}),
        pytest.raises(CommandError, match="belongs to the service itself, which sets its attributes"),
    ):
        ask("provision_queues", name + ending, "--visibility", "1", "--confirm")
    assert shelf.names(name) == set()


def test_a_name_that_was_deleted_a_moment_ago_is_explained(ask: Ask, shelf: Shelf, name: str) -> None:
    ask("provision_queues", name, "--confirm")
    shelf.client.delete_queue(QueueUrl=shelf.url(f"{name}-parking"))
    with pytest.raises(CommandError, match=r"was deleted less than 60 s ago. Run this again in a minute"):
        ask("provision_queues", name, "--confirm")


def compared(queues: Iterable[WantedQueue]) -> list[QueueComparison]:
    return provision.compare_queues([(QueueLocation("us-east-1"), one) for one in queues])


def steps_of(queues: Iterable[WantedQueue]) -> Iterator[Step]:
    return iter(provision.apply_steps(compared(queues), pause=lambda _: None))


def test_two_at_once_make_the_same_and_lose_nobodys_dlq(shelf: Shelf, name: str) -> None:
    """Both have looked before either acts, and each step of the one comes between two of the other."""
    families = [queue_family(WantedQueue(name=f"{name}-{one}", dlq=f"{name}-dlq")) for one in "ab"]
    looks = [compared(wanted) for wanted in families]
    both = [iter(provision.apply_steps(one, pause=lambda _: None)) for one in looks]
    while both:
        both = [one for one in both if next(one, None) is not None]
    allow = shelf.settings(f"{name}-dlq")["RedriveAllowPolicy"]
    assert sorted(allow["sourceQueueArns"]) == [arn(f"{name}-a"), arn(f"{name}-b")]
    assert [one.is_to_be_changed for wanted in families for one in compared(wanted)] == [False] * 4


@pytest.mark.parametrize(
    ("status", "code", "told"),
    [
        (400, "QueueNameExists", "somebody created it meanwhile, with other settings. Run this again"),
        (403, "AccessDenied", "Allow sqs:CreateQueue on it"),
    ],
)
def test_a_queue_that_cannot_be_made_is_explained(
    sandbox: Sandbox, name: str, status: int, code: str, told: str
) -> None:
    sandbox.plan({"kind": "error", "action": "CreateQueue", "status": status, "code": code, "message": "no"})
    assert told in refusal("provision_queues", name, "--confirm")


@pytest.mark.soak
def test_what_sqs_does_not_show_yet_is_waited_for_and_then_told(
    monkeypatch: pytest.MonkeyPatch, sandbox: Sandbox, name: str
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("reprocessing.management.commands.provision_queues.time.sleep", pauses.append)
    sandbox.plan({
        "kind": "error", "action": "GetQueueUrl", "status": 400, "code": "AWS.SimpleQueueService.NonExistentQueue",
        "message": "no",
    })  # fmt: skip
    said = refusal("provision_queues", name, "--confirm")
    assert re.match(r"SQS does not show all changes of .* yet: this takes up to 60 s", said)
    assert pauses == [1.0] * 7
    assert {one["action"] for one in sandbox.calls() if one["queue"] == name} == {"GetQueueUrl", "CreateQueue"}
    assert [one.name for one in steps_of([WantedQueue(name=name)])] == [name]


def test_the_services_own_queues_are_those_of_the_settings(ask: Ask, shelf: Shelf, name: str) -> None:
    urls = [f"http://127.0.0.1:9/000000000000/{name}-{one}" for one in ("control", "replay")]
    with override_settings(REDRIVE={"OWN_QUEUES": urls}):
        ask("provision_queues", "--own", "--confirm")
        assert ask("provision_queues", "--own").endswith("nothing to change.\n")
    assert shelf.names(name) == {f"{name}-{one}{of}" for one in ("control", "replay") for of in ("", "-dlq")}
    settings = shelf.settings(f"{name}-replay")
    assert (settings["VisibilityTimeout"], settings["RedrivePolicy"]) == (
        "900", {"deadLetterTargetArn": arn(f"{name}-replay-dlq"), "maxReceiveCount": 5}
    )  # fmt: skip


def test_a_queue_of_the_service_in_another_account_is_not_taken_for_it(name: str) -> None:
    with override_settings(REDRIVE={"OWN_QUEUES": [f"http://127.0.0.1:9/111122223333/{name}"]}):
        said = refusal("provision_queues", "--own", "--confirm")
    assert "its configured URL names account 111122223333" in said


def as_made(value: object, arns: Mapping[str, str]) -> Any:  # noqa: ANN401  JSON
    """A property of a CloudFormation template, as SQS has it once the template is applied."""
    match value:
        case {"Fn::GetAtt": [str(of), "Arn"]}:
            return arns[of]
        case {"Fn::Sub": str(text)}:
            known = {"Partition": "aws", "Region": "us-east-1", "AccountId": "000000000000"}
            return re.sub(r"\$\{AWS::(\w+)\}", lambda found: known[found[1]], text)
        case dict():
            return {key: as_made(one, arns) for key, one in value.items()}
        case list():
            return [as_made(one, arns) for one in value]
        case bool():
            return str(value).lower()
        case _:
            return value


def texts(said: dict[str, Any]) -> dict[str, Any]:
    return {key: value if isinstance(value, dict) else str(value) for key, value in said.items()}


def of_cloudformation(template: Any) -> dict[str, Any]:  # noqa: ANN401  JSON
    said = {of: one["Properties"] for of, one in template["Resources"].items()}
    arns = {of: arn(one["QueueName"]) for of, one in said.items()}
    return {one.pop("QueueName"): texts(as_made(one, arns)) for one in said.values()}


def of_terraform(template: Any) -> dict[str, Any]:  # noqa: ANN401  JSON
    queues = template["resource"]["aws_sqs_queue"]

    def policy(text: str) -> Any:  # noqa: ANN401  JSON
        return json.loads(re.sub(r"\$\{aws_sqs_queue\.([^.]+)\.arn\}", lambda of: arn(queues[of[1]]["name"]), text))

    told = {}
    for of, one in queues.items():
        said = {_ARGUMENTS[key]: as_made(value, {}) for key, value in one.items() if key in _ARGUMENTS}
        if "redrive_policy" in one:
            said["RedrivePolicy"] = policy(one["redrive_policy"])
        for allow in template["resource"]["aws_sqs_queue_redrive_allow_policy"].values():
            if allow["queue_url"] == f"${{aws_sqs_queue.{of}.id}}":
                said["RedriveAllowPolicy"] = policy(allow["redrive_allow_policy"])
        told[one["name"]] = texts(said)
    return told


@pytest.mark.parametrize("form", ["cloudformation", "terraform"])
@pytest.mark.parametrize("options", [[], ["--fifo"], ["--kms", "alias/shop", "--parking", "off", "--visibility", "7"]])
def test_a_template_says_what_confirm_makes(ask: Ask, shelf: Shelf, name: str, options: list[str], form: str) -> None:
    template = json.loads(ask("provision_queues", name, *options, "--as", form))
    assert shelf.names(name) == set()
    ask("provision_queues", name, *options, "--confirm")
    told = of_cloudformation(template) if form == "cloudformation" else of_terraform(template)
    assert {one: made(shelf, one) for one in shelf.names(name)} == told


def made(shelf: Shelf, name: str) -> dict[str, Any]:
    """A queue's settings, without that SQS's own encryption is off where a key encrypts."""
    said = shelf.settings(name)
    return {key: value for key, value in said.items() if not (key == "SqsManagedSseEnabled" and value == "false")}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "Give the name of the source queue, or --own"),
        (["orders", "--dlq", "orders"], "two queues have the same name"),
        (["orders", "--dlq", "dead.fifo"], "--dlq dead.fifo is a FIFO queue, and orders is not"),
        (["o" * 79], "-dlq has 83 characters, more than 80. Give it a shorter name."),
        (["o" * 81], "has 81 characters; a queue name has at most 80"),
        (["orders/x"], "is not a queue name"),
        (["orders", "--kms", "${x}"], "is not a KMS key"),
        (["orders", "--region", "mars"], "is not a region"),
        (["orders", "--as", "terraform", "--confirm"], "--as prints a template, --confirm changes queues"),
        (["--own"], "OWN_QUEUES of settings.REDRIVE is empty"),
    ],
)
def test_what_was_said_wrong_is_told_with_its_cure(arguments: list[str], told: str) -> None:
    with override_settings(REDRIVE={}):
        assert told in refusal("provision_queues", *arguments)


def test_a_program_reads_each_difference(ask_json: AskJson, make_queue: MakeQueue) -> None:
    queue = make_queue(VisibilityTimeout="0")
    found = ask_json("provision_queues", queue.name, "--visibility", "30")
    assert (found["dry_run"], found["refused"], found["done"]) == (True, False, [])
    (told,) = [one["differences"] for one in found["queues"] if one["queue"] == queue.name]
    assert told[0] == {"is": "to be changed", "attribute": "VisibilityTimeout", "found": "0", "wanted": "30"}


def test_steps_are_told_one_by_one(name: str) -> None:
    steps = list(steps_of(queue_family(WantedQueue(name=name, dlq=f"{name}-dlq"))))
    assert [(one.name, [type(each) for each in one.differences]) for one in steps] == [
        (f"{name}-dlq", [QueueMissing]),
        (name, [QueueMissing]),
        (name, [AttributeDiffers]),
        (f"{name}-dlq", [AttributeDiffers]),
    ]
