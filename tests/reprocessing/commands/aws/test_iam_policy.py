"""The policy that is printed allows the calls that are made, one by one, and no others."""

from __future__ import annotations

import json
import re
import threading
from base64 import b64encode
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, TypeAlias
from uuid import uuid4

import boto3
import pytest
from botocore.client import BaseClient
from botocore.credentials import AssumeRoleCredentialFetcher
from celery.app.task import Task
from django.core.management.base import CommandError
from django.test import override_settings

from reprocessing import tasks
from reprocessing.conf import current
from reprocessing.domain.aws.iam_policy import KMS_CONTEXT, iam_action
from reprocessing.gateways import aws
from reprocessing.gateways.aws import clients, lean_requests
from reprocessing.gateways.sqs import QueueAddress
from reprocessing.models import DeadLetterQueue, Letter
from reprocessing.store.payloads import payload_keys
from tests.contract.endpoints import Endpoint, moto_endpoint
from tests.contract.queues import redrive_policy
from tests.reprocessing.commands.conftest import Ask, AskJson
from tests.reprocessing.commands.refusals import refusal
from tests.reprocessing.gateways.aws_endpoint import MakeQueue
from tests.reprocessing.gateways.stand_ins import Asked, Said, assumed, role_of, standing_in

pytestmark = pytest.mark.django_db(transaction=True)

REGION, ACCOUNT = "us-east-1", "123456789012"
FUNCTION = f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:ship"
ROLE = "arn:aws:iam::111122223333:role/abroad"
Rights: TypeAlias = dict[str, set[tuple[str, str]]]
"""By role, the empty text for the service's own: actions, each with what it was about."""


class Record:
    """The calls that the service has made, as IAM would be asked about them."""

    def __init__(self) -> None:
        self.rights: Rights = {}
        self._lock = threading.Lock()

    def note(self, role: str, call: str, said: dict[str, Any]) -> None:
        asked = {(iam_action(call), about(said)) for about in _ABOUT[call.partition(":")[0]]}
        if call == "s3:HeadObject":
            asked = {("s3:GetObject", f"{_bucket(said)}/*"), ("s3:ListBucket", _bucket(said))}
        with self._lock:
            self.rights.setdefault(role, set()).update(asked)


def _queue(said: dict[str, Any]) -> str:
    if "QueueUrl" in said:
        return QueueAddress(said["QueueUrl"], REGION).arn
    if "TaskHandle" in said:
        return "its dlq"
    if "SourceArn" in said:
        return str(said["SourceArn"])
    return f"arn:aws:sqs:{REGION}:{said.get('QueueOwnerAWSAccountId', '000000000000')}:{said['QueueName']}"


def _bus(said: dict[str, Any]) -> str:
    if "Entries" in said:
        return str(said["Entries"][0]["EventBusName"])
    return f"arn:aws:events:{REGION}:{ACCOUNT}:rule/*"


def _alarm(said: dict[str, Any]) -> str:
    if "AlarmName" in said:
        return re.sub(
            r":redrive-.*", ":redrive-*", f"arn:aws:cloudwatch:{REGION}:000000000000:alarm:{said['AlarmName']}"
        )
    return "*"


def _bucket(said: dict[str, Any]) -> str:
    return f"arn:aws:s3:::{said['Bucket']}"


_ABOUT: dict[str, list[Any]] = {
    "sqs": [_queue],
    "sns": [lambda said: said.get("SubscriptionArn") or said["TopicArn"]],
    "events": [_bus],
    "lambda": [lambda said: said["FunctionName"]],
    "cloudwatch": [_alarm],
    "s3": [_bucket],
}


@pytest.fixture
def record(monkeypatch: pytest.MonkeyPatch) -> Record:
    """What the clients of the service are asked from now on, not those of the tests."""
    made, call = Record(), BaseClient._make_api_call  # type: ignore[attr-defined]  # botocore's own, and the one place

    def noted(self: Any, name: str, said: dict[str, Any]) -> Any:  # noqa: ANN401  botocore's own
        for (service, _, role, *_), client in list(clients._clients._made.items()):
            if client is self:
                made.note(role, f"{service}:{name}", said)
        return call(self, name, said)

    def assume(self: Any) -> Any:  # noqa: ANN401  as above
        with made._lock:
            made.rights.setdefault("", set()).add(("sts:AssumeRole", self._role_arn))
        return fetch(self)

    fetch = AssumeRoleCredentialFetcher.fetch_credentials
    # Without a template botocore makes each request.
    monkeypatch.setattr(lean_requests._Action, "_template", property(lambda _: None, lambda *_: None), raising=False)
    monkeypatch.setattr(BaseClient, "_make_api_call", noted)
    monkeypatch.setattr(AssumeRoleCredentialFetcher, "fetch_credentials", assume)
    return made


def allowed(policy: Any) -> set[tuple[str, str]]:  # noqa: ANN401  decoded JSON
    return {
        (act, about)
        for one in policy["Statement"]
        for act in one["Action"]
        for about in one["Resource"]
    }  # fmt: skip


@pytest.fixture
def printed(ask_json: AskJson) -> Any:  # noqa: ANN401  a function
    def run(*arguments: str) -> Rights:
        with override_settings(REDRIVE={}):  # the service's own queues are asked by its workers
            found = ask_json("iam_policy", *arguments)
        policies = {"": found["policy"], **found["roles"]}
        return {role: rights for role, policy in policies.items() if (rights := allowed(policy))}

    return run


@pytest.fixture(autouse=True)
def _brisk(settings: Any) -> None:  # noqa: ANN401  pytest-django's
    settings.REDRIVE = {"COUNT_LAG": 0, "LONG_POLL": 0}


class Shop:
    """A dlq, and unless it is alone a queue whose messages die into it, and a parking queue."""

    def __init__(self, make_queue: MakeQueue, *, alone: bool = False) -> None:
        self.name = f"shop-{uuid4().hex[:10]}"
        self.dlq = make_queue(MessageRetentionPeriod="1209600")
        if not alone:
            self.source = make_queue(RedrivePolicy=redrive_policy(self.dlq, 3))
            self.parking = make_queue()

    def add(self, ask: Ask, *arguments: str) -> None:
        ask("add_dlq", self.name, "--url", self.dlq.url, "--new-key-delay", "0", "--no-waves", *arguments, "--confirm")


@pytest.fixture
def shop(make_queue: MakeQueue) -> Shop:
    return Shop(make_queue)


def test_observing_takes_what_is_asked_and_no_more(ask: Ask, printed: Any, record: Record, shop: Shop) -> None:  # noqa: ANN401
    shop.dlq.send()
    named = ("--source", shop.source.arn, "--parking-url", shop.parking.url)
    shop.add(ask, "--mode", "observe", *named, "--outcome", "accepted")
    tasks.capture(DeadLetterQueue.objects.get().pk)
    asked = record.rights.copy()
    assert printed("--mode", "observe", shop.name) == asked
    assert {act for rights in asked.values() for act, _ in rights} == {
        "sqs:GetQueueAttributes", "sqs:GetQueueUrl", "sqs:ListDeadLetterSourceQueues", "sqs:ListMessageMoveTasks"
    }  # fmt: skip


@pytest.fixture
def _nothing_is_enqueued(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Task, "apply_async", lambda *_, **__: None)  # the workers' queues are not asked


@pytest.mark.soak
@pytest.mark.usefixtures("_nothing_is_enqueued")
@pytest.mark.parametrize("mode", ["manual", "automatic"])
def test_redriving_takes_what_is_asked_and_no_more(
    ask: Ask, printed: Any, record: Record, shop: Shop, mode: str  # noqa: ANN401  a function
) -> None:  # fmt: skip
    """Letters are looked at, captured, sent back, parked, and told of, by commands and by what beat sends."""
    named = ("--source", shop.source.arn, "--parking-url", shop.parking.url)
    shop.add(ask, "--mode", "manual", *named, "--outcome", "accepted", "--ordering-key", "attribute:key")
    keyed = {"key": {"DataType": "String", "StringValue": "a"}}
    shop.dlq.send("sent back", MessageAttributes=keyed)
    shop.dlq.send("parked")
    ask("peek_dlq", shop.name, "--confirm")
    if mode == "manual":
        ask("drain_dlq", shop.name, "--confirm")
    else:
        shop.add(ask, "--mode", mode)
        tasks.capture(DeadLetterQueue.objects.get().pk)
        tasks.replay_lanes([])
        tasks.recover()
    assert sorted(Letter.objects.values_list("state", flat=True)) == ["delivered", "parked"]
    assert shop.parking.counts().visible == 1
    asked = record.rights.copy()
    assert printed("--mode", mode, shop.name) == asked


@dataclass
class Elsewhere:
    """What is no queue: clients of moto's server, a function that takes everything, and who assumed which role."""

    sns: Any
    events: Any
    s3: Any
    cloudwatch: Any
    assumed: list[str]


@pytest.fixture(scope="module")
def elsewhere(endpoint: Endpoint) -> Iterator[Elsewhere]:
    roles: list[str] = []

    def lets(asked: Asked) -> Said:
        roles.append(role_of(asked))
        return assumed("sandbox", datetime.now(UTC) + timedelta(hours=1))  # noqa: TID251  STS goes by the real clock

    with (
        moto_endpoint() as moto,
        standing_in(lambda _: Said()) as function,
        standing_in(lets) as sts,
        pytest.MonkeyPatch.context() as patch,
    ):
        for service in ("SNS", "EVENTBRIDGE", "S3", "CLOUDWATCH"):
            patch.setenv(f"AWS_ENDPOINT_URL_{service}", moto.url)
        patch.setenv("AWS_ENDPOINT_URL_LAMBDA", function.url)
        patch.setenv("AWS_ENDPOINT_URL_STS", sts.url)
        aws.forget_clients()
        made: Any = boto3.session.Session(region_name=REGION).client
        yield Elsewhere(made("sns"), made("events"), made("s3"), made("cloudwatch"), roles)
    aws.forget_clients()


def drained(ask: Ask, shop: Shop, *arguments: str, body: str = '{"a": 1}') -> None:
    shop.dlq.send(body)
    shop.add(ask, *arguments)
    ask("peek_dlq", shop.name, "--confirm")
    ask("drain_dlq", shop.name, "--confirm")
    assert list(Letter.objects.values_list("state", flat=True)) == ["delivered"]


@pytest.mark.soak
def test_buckets_alarms_and_ages_take_what_is_asked(
    ask: Ask, printed: Any, record: Record, elsewhere: Elsewhere, shop: Shop  # noqa: ANN401  a function
) -> None:  # fmt: skip
    elsewhere.s3.create_bucket(Bucket="bodies")
    elsewhere.s3.put_object(Bucket="bodies", Key="a", Body=b"x")
    kind = "software.amazon.payloadoffloading.PayloadS3Pointer"
    pointer = json.dumps([kind, {"s3BucketName": "bodies", "s3Key": "a"}])
    size = {"ExtendedPayloadSize": {"DataType": "Number", "StringValue": "1"}}
    elsewhere.cloudwatch.put_metric_alarm(
        AlarmName="well", MetricName="m", Namespace="n", Statistic="Sum", Period=60, EvaluationPeriods=1, Threshold=1,
        ComparisonOperator="GreaterThanThreshold",
    )  # fmt: skip
    shop.dlq.send(pointer, MessageAttributes=size)
    shop.add(ask, "--source", shop.source.arn, "--outcome", "accepted")
    ask("peek_dlq", shop.name, "--confirm")
    ask("drain_dlq", shop.name, "--confirm")
    for check in (("--alarm", "well"), ("--max-age", "60"), ("--max-depth", "9")):
        ask("check_health", shop.name, *check, "--reason", "to see", "--confirm")
    assert printed("--mode", "manual", shop.name, "--bucket", "bodies") == record.rights


@pytest.fixture
def of_none(make_queue: MakeQueue) -> Shop:
    """A dlq that no queue names."""
    return Shop(make_queue, alone=True)


@pytest.mark.soak
def test_a_function_takes_that_it_may_be_invoked(
    ask: Ask, printed: Any, record: Record, elsewhere: Elsewhere, of_none: Shop  # noqa: ANN401  as above
) -> None:  # fmt: skip
    drained(ask, of_none, "--source", FUNCTION)
    assert printed("--mode", "manual", of_none.name) == record.rights
    assert ("lambda:InvokeFunction", FUNCTION) in record.rights[""]
    assert ("lambda:InvokeFunction", FUNCTION) not in printed("--mode", "observe", of_none.name)[""]


@pytest.mark.soak
def test_a_subscription_takes_to_be_asked_and_a_topic_to_be_published_to(
    ask: Ask, printed: Any, record: Record, elsewhere: Elsewhere, of_none: Shop  # noqa: ANN401  as above
) -> None:  # fmt: skip
    topic = elsewhere.sns.create_topic(Name=of_none.name)["TopicArn"]
    subscribed = elsewhere.sns.subscribe(
        TopicArn=topic, Protocol="lambda", Endpoint=FUNCTION, ReturnSubscriptionArn=True
    )["SubscriptionArn"]
    ask("add_target", topic, "--refire", "1", "--confirm")
    of_none.add(ask, "--source", subscribed)
    elsewhere.sns.unsubscribe(SubscriptionArn=subscribed)  # moto would run the function, in Docker
    drained(ask, of_none, "--source", subscribed, "--to", topic)
    assert printed("--mode", "manual", of_none.name) == record.rights
    assert {act for act, _ in printed("--mode", "observe", of_none.name)[""] if act.startswith("sns:")} == {
        "sns:GetSubscriptionAttributes", "sns:ListSubscriptionsByTopic"
    }  # fmt: skip


@pytest.mark.soak
def test_a_bus_takes_to_be_put_to_and_its_rules_to_be_counted(
    ask: Ask, printed: Any, record: Record, elsewhere: Elsewhere, of_none: Shop  # noqa: ANN401  as above
) -> None:  # fmt: skip
    name = of_none.name
    bus = elsewhere.events.create_event_bus(Name=name)["EventBusArn"]
    elsewhere.events.put_rule(Name=name, EventBusName=name, EventPattern='{"source": ["another"]}')
    elsewhere.events.put_targets(Rule=name, EventBusName=name, Targets=[{"Id": "1", "Arn": FUNCTION}])
    ask("add_target", bus, "--refire", "0", "--confirm")
    event = json.dumps({"source": "shop", "detail-type": "sold", "detail": {}})
    drained(ask, of_none, "--source", FUNCTION, "--to", bus, body=event)
    assert printed("--mode", "manual", name) == record.rights


@pytest.mark.soak
def test_a_role_of_another_account_has_a_policy_of_its_own(
    ask: Ask, printed: Any, record: Record, elsewhere: Elsewhere, shop: Shop  # noqa: ANN401  as above
) -> None:  # fmt: skip
    named = ("--source", shop.source.arn, "--role", ROLE, "--outcome", "accepted")
    drained(ask, shop, *named)
    assert elsewhere.assumed.count(ROLE) >= 1
    found = printed("--mode", "manual", shop.name)
    assert found == record.rights
    assert found[""] == {("sts:AssumeRole", ROLE)}
    abroad = json.loads(ask("iam_policy", "--mode", "manual", "--for", ROLE, "--service-role", f"{ROLE}-home"))
    assert allowed(abroad["policy"]) == found[ROLE]
    (trusted,) = abroad["trust"]["Statement"]
    assert (trusted["Principal"], trusted["Action"]) == ({"AWS": f"{ROLE}-home"}, "sts:AssumeRole")
    assert trusted["Condition"] == {"StringEquals": {"sts:RoleSessionName": "redrive"}}
    assert f"The role {ROLE}-other is not used" in refusal("iam_policy", "--mode", "manual", "--for", f"{ROLE}-other")


def test_making_queues_takes_what_is_asked(ask: Ask, printed: Any, record: Record, shop: Shop) -> None:  # noqa: ANN401
    ask("provision_queues", shop.name, "--parking", "off", "--confirm")
    arns = [f"arn:aws:sqs:{REGION}:000000000000:{shop.name}{ending}" for ending in ("-dlq", "")]
    asked = record.rights[""].copy()
    (dlq, source) = arns
    found = printed("--mode", "observe", "--dlq", dlq, "--source", source, "--with", "provision")[""]
    without = printed("--mode", "observe", "--dlq", dlq, "--source", source)[""]
    both = {("sqs:GetQueueUrl", source)} | {
        (act, arn) for act in ("sqs:GetQueueAttributes", "sqs:ListDeadLetterSourceQueues") for arn in arns
    }
    assert found - without | (both & without) == asked


@pytest.mark.soak
def test_alarms_and_metrics_take_what_is_asked(
    ask: Ask, record: Record, elsewhere: Elsewhere, settings: Any, shop: Shop  # noqa: ANN401  pytest-django's
) -> None:  # fmt: skip
    settings.REDRIVE = {**settings.REDRIVE, "CLOUDWATCH": "Redrive/Test"}
    shop.add(ask, "--source", shop.source.arn)
    before = record.rights[""].copy()
    ask("put_alarms", shop.name, "--confirm")
    tasks.publish_to_cloudwatch()
    policy = json.loads(ask("iam_policy", "--mode", "manual", shop.name, "--with", "alarms,metrics"))
    added = record.rights[""] - before
    assert {one for one in allowed(policy) if one[0].startswith("cloudwatch:")} == added
    (told,) = [one["Condition"] for one in policy["Statement"] if one["Sid"] == "PublishMetrics"]
    assert told == {"StringEquals": {"cloudwatch:namespace": "Redrive/Test"}}


@pytest.mark.soak
def test_a_doctor_takes_what_is_asked(ask: Ask, record: Record, shop: Shop) -> None:
    shop.add(ask, "--source", shop.source.arn)
    record.rights.clear()
    with suppress(CommandError):  # no beat is at work here
        ask("redrive_doctor", shop.name)
    plain, more = (
        allowed(json.loads(ask("iam_policy", "--mode", "manual", shop.name, *also)))
        for also in ((), ("--with", "doctor"))
    )
    dead = {("sqs:GetQueueAttributes", f"{QueueAddress.of(url).arn}-dlq") for url in current().own_queues}
    assert record.rights[""] <= more  # CloudWatch has nothing of these queues, and is not asked
    assert more - plain == {*dead, ("cloudwatch:GetMetricData", "*")}
    assert dead <= record.rights[""]


def test_moves_of_aws_take_what_is_asked_and_what_it_does_in_our_name(
    ask: Ask, printed: Any, record: Record, shop: Shop  # noqa: ANN401  a function
) -> None:  # fmt: skip
    for number in range(30):  # at one a second: it is under way for as long
        shop.dlq.send(str(number))
    shop.add(ask, "--source", shop.source.arn)
    ask("native_redrive", "start", shop.name, "--per-second", "1", "--reason", "to see", "--confirm")
    ask("native_redrive", "list", shop.name)
    ask("native_redrive", "cancel", shop.name, "--reason", "to see", "--confirm")
    asked = {(act, shop.dlq.arn if about == "its dlq" else about) for act, about in record.rights[""]}
    by_aws = {(f"sqs:{act}Message", shop.dlq.arn) for act in ("Receive", "Delete")}
    by_aws |= {("sqs:SendMessage", shop.source.arn)}
    assert printed("--mode", "observe", shop.name, "--with", "native")[""] == asked | by_aws


def test_a_key_takes_what_sqs_does_with_it_in_our_name(ask: Ask, ask_json: AskJson, make_queue: MakeQueue) -> None:
    dlq = make_queue(KmsMasterKeyId="1234-abcd")
    make_queue(RedrivePolicy=redrive_policy(dlq, 3), KmsMasterKeyId="alias/shop")
    ask("add_dlq", "orders", "--url", dlq.url, "--confirm")
    found = ask_json("iam_policy", "--mode", "manual")["policy"]["Statement"]
    via = {"kms:ViaService": f"sqs.{REGION}.amazonaws.com"}
    assert [one for one in found if "Key" in one["Sid"]] == [
        {
            "Sid": "DecryptWithKeys", "Effect": "Allow", "Action": ["kms:Decrypt"],
            "Resource": [f"arn:aws:kms:{REGION}:000000000000:key/1234-abcd"], "Condition": {"StringEquals": via},
        },
        {
            "Sid": "EncryptWithKeys", "Effect": "Allow", "Action": ["kms:Decrypt", "kms:GenerateDataKey"],
            "Resource": [f"arn:aws:kms:{REGION}:000000000000:key/*"],
            "Condition": {
                "StringEquals": via, "ForAnyValue:StringEquals": {"kms:ResourceAliases": "alias/shop"}
            },
        },
    ]  # fmt: skip
    observed = ask_json("iam_policy", "--mode", "observe")["policy"]["Statement"]
    assert [one["Sid"] for one in observed if "Key" in one["Sid"]] == []


@pytest.mark.parametrize("mode", ["observe", "manual"])
def test_keys_of_payloads_take_what_the_service_does_with_them(ask_json: AskJson, mode: str) -> None:
    kms = f"arn:aws:kms:{REGION}:{ACCOUNT}"
    keys = (f"new={kms}:alias/payloads", f"old={kms}:key/1f2e", f"own={b64encode(b'k' * 32).decode()}")
    with override_settings(REDRIVE={"PAYLOAD_KEYS": keys}):
        found = ask_json("iam_policy", "--mode", mode)["policy"]["Statement"]
    context = {"StringLike": {"kms:EncryptionContext:redrive": "redrive *"}}
    assert [one for one in found if any(action.startswith("kms:") for action in one["Action"])] == [
        {
            "Sid": "WrapPayloadKeys", "Effect": "Allow", "Action": ["kms:Decrypt", "kms:Encrypt"],
            "Resource": [f"{kms}:key/*"],
            "Condition": {**context, "ForAnyValue:StringEquals": {"kms:ResourceAliases": "alias/payloads"}},
        },
        {
            "Sid": "UnwrapPayloadKeys", "Effect": "Allow", "Action": ["kms:Decrypt"], "Resource": [f"{kms}:key/1f2e"],
            "Condition": context,
        },
    ]  # fmt: skip


def test_the_context_that_the_policy_asks_for_is_that_of_every_payload_key() -> None:
    assert {payload_keys.context_of(place).partition(" ")[0] for place in ((None, None), (7, date(2026, 3, 1)))} == {
        KMS_CONTEXT
    }


def test_what_no_resource_narrows_down_a_condition_does(ask_json: AskJson) -> None:
    dlq = f"arn:aws:sqs:eu-west-1:{ACCOUNT}:orders-dlq"
    with override_settings(REDRIVE={"CLOUDWATCH": "Redrive/Shop"}):
        found = ask_json("iam_policy", "--mode", "observe", "--dlq", dlq, "--with", "metrics,alarms,native")["policy"]
    with_all = [one for one in found["Statement"] if one["Resource"] == ["*"]]
    assert [(one["Sid"], one["Condition"]["StringEquals"]) for one in with_all] == [
        ("PublishMetrics", {"cloudwatch:namespace": "Redrive/Shop"}),
        ("ListAlarms", {"aws:RequestedRegion": "eu-west-1"}),
    ]
    assert ("cloudwatch:PutMetricAlarm", f"arn:aws:cloudwatch:eu-west-1:{ACCOUNT}:alarm:redrive-*") in allowed(found)
    assert ("sqs:StartMessageMoveTask", dlq) in allowed(found)


def test_the_manual_shows_what_is_printed(ask: Ask) -> None:
    manual = (Path(__file__).parents[4] / "docs/production.md").read_text(encoding="utf-8")
    (command,) = re.findall(r"^python manage\.py (iam_policy .*)$", manual, re.MULTILINE)
    (shown,) = re.findall(r"```json\n(.*?)```", manual, re.DOTALL)
    own = [
        f"https://sqs.eu-west-1.amazonaws.com/111122223333/redrive-{one}" for one in ("control", "capture", "replay")
    ]
    with override_settings(REDRIVE={"OWN_QUEUES": own}):
        assert json.loads(ask(*command.split())) == json.loads(shown)


def test_what_could_not_be_found_out_is_said_beside_the_policy(capsys: pytest.CaptureFixture[str], ask: Ask) -> None:
    dlq = f"arn:aws:sqs:{REGION}:{ACCOUNT}:not-there-dlq"
    assert allowed(json.loads(ask("iam_policy", "--mode", "manual", "--dlq", dlq)))
    assert f"It is not known whether a KMS key encrypts {dlq} and needs further rights" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["nobody"], 'No DLQ is named "nobody"'),
        (["--dlq", "orders"], "is not the ARN of a queue"),
        (["--bucket", "a*"], "is not a bucket name"),
        (["--with", "metrics"], "Set REDRIVE_CLOUDWATCH"),
        (["--with", "everything"], "Use some of: provision, native, metrics, alarms, doctor"),
    ],
)
def test_what_was_said_wrong_is_told_with_its_cure(arguments: list[str], told: str) -> None:
    assert told in refusal("iam_policy", "--mode", "manual", *arguments)
