"""Letters of functions, subscriptions and rules go to the one target that failed, with its original payload."""

from __future__ import annotations

import json

import pytest

from reprocessing.models import Source, Target
from tests.reprocessing.domain import dead
from tests.reprocessing.domain.dead import LETTERS, Dead
from tests.reprocessing.pipeline.bench import Workbench
from tests.reprocessing.pipeline.targets.gateway import HOOKS
from tests.reprocessing.pipeline.targets.kinds import Bus, Endpoint, Function, Kind, Queue, Topic, World, bury, typed
from tests.reprocessing.pipeline.targets.wire import Sent

pytestmark = pytest.mark.django_db(transaction=True)

SINGLE = {"ordering_key": "none", "sequence": "system:SentTimestamp"}
MARKS = {"RedriveId", "IdempotencyKey", "OriginalMessageId", "ReprocessedFrom"}


def made(kind: Kind, source: str) -> Workbench:
    bench = kind.bench(**SINGLE)
    Source.objects.filter(pk=bench.source.pk).update(arn=source)
    return bench


def another(bench: Workbench, world: World, source: str) -> str:
    """A second source of its dlq, with an endpoint that is well; the path at which it would hear."""
    path = f"{HOOKS}another-{bench.name}"
    url = f"{world.gateway.url}{path}"
    target = Target.objects.create(kind="http", arn=url, url=url, region="")
    Source.objects.create(dlq=bench.dlq, arn=source, target=target)
    return path


def replayed(bench: Workbench, one: Dead) -> None:
    bury(bench, one.body.decode(), typed(one.attributes))
    bench.ready()
    bench.replay()


def paths(world: World) -> list[str]:
    """Where anything was sent; of AWS's services `/`."""
    return [request.path for request in world.gateway.asked]


def parked(bench: Workbench) -> tuple[str, str]:
    letter = bench.letter()
    assert letter.state == "parked"
    return letter.reason, letter.detail


def test_an_asynchronous_event_goes_to_its_function_as_it_was(world: World) -> None:
    function = Function(world)
    bench = function.bench(**SINGLE)
    replayed(bench, LETTERS["lambda"])
    assert [message.text for message in function.heard()] == [dead.PAYLOAD.decode()]
    assert bench.letter().state == "delivered"


def test_of_a_record_for_its_destination_the_function_gets_the_event_alone_as_it_was(world: World) -> None:
    function = Function(world)
    bench = made(function, dead.FUNCTION)
    healthy = another(bench, world, f"{dead.FUNCTION}-2")
    replayed(bench, LETTERS["lambda_destination"])
    assert [message.text for message in function.heard()] == [dead.PAYLOAD.decode()]
    assert healthy not in paths(world)
    assert len(paths(world)) == 1


def notification(topic: str, subscription: str) -> Dead:
    """The page's notification, as this topic would have it."""
    text = dead.NOTIFICATION.decode().replace(dead.SUBSCRIPTION, subscription).replace(dead.TOPIC, topic)
    return Dead(text.encode())


def two_subscribers(world: World) -> tuple[str, str, str]:
    """A topic, the subscription that failed, and a queue that is subscribed and well."""
    topic, failed, well = world.aws.topic(), world.aws.queue(), world.aws.queue()
    subscription = world.aws.subscribe(topic, failed)
    world.aws.subscribe(topic, well)
    return topic, subscription, well


@pytest.mark.parametrize("which", [Function, Endpoint, Queue])
def test_a_notification_goes_to_the_one_subscriber_that_failed(world: World, which: type[Kind]) -> None:
    topic, subscription, well = two_subscribers(world)
    kind = which(world)
    bench = made(kind, subscription)
    healthy = another(bench, world, f"{topic}:11111111-2222-4333-8444-555555555555")
    one = notification(topic, subscription)
    replayed(bench, one)
    [heard] = kind.heard()
    assert bench.letter().state == "delivered"
    assert (len(paths(world)), healthy in paths(world), world.aws.heard(well)) == (1, False, [])
    if which is Function:
        [record] = json.loads(heard.text)["Records"]
        assert (record["EventSource"], record["EventSubscriptionArn"]) == ("aws:sns", subscription)
        assert record["Sns"]["Message"] == json.loads(one.body)["Message"]
        assert '"Message":"Hello \\u0077orld! \\"caf\u00e9\\""' in heard.text  # its bytes
    else:
        assert heard.text == one.body.decode()
    if which is Endpoint:
        assert {name: text for name, text in heard.headers.items() if name.startswith("x-amz-sns")} == {
            "x-amz-sns-message-type": "Notification",
            "x-amz-sns-message-id": "22b80b92-fdea-4c2c-8f9d-bdfb0c7bf324",
            "x-amz-sns-topic-arn": topic,
            "x-amz-sns-subscription-arn": subscription,
        }
        assert heard.headers["content-type"] == "text/plain; charset=UTF-8"


def at_target(arn: str) -> Dead:
    return Dead(dead.EVENT, {**dead.OF_A_RULE, **dead.texts(TARGET_ARN=arn), **dead.texts(own="kept")})


@pytest.mark.parametrize("which", [Function, Queue, Endpoint])
def test_an_event_goes_to_the_target_that_failed_without_what_aws_said_of_its_death(
    world: World, which: type[Kind]
) -> None:
    kind = which(world)
    bench = made(kind, dead.TARGET)
    healthy = another(bench, world, f"{dead.TARGET}-2")
    replayed(bench, at_target(dead.TARGET))
    [heard] = kind.heard()
    assert heard.text == dead.EVENT.decode()
    assert (len(paths(world)), healthy in paths(world)) == (1, False)
    if which is Queue:
        assert heard.attributes.keys() == {"own", *MARKS}


def test_a_schedule_s_message_goes_to_its_queue_without_what_aws_said_of_its_death(world: World) -> None:
    queue = Queue(world)
    bench = made(queue, "arn:aws:sqs:us-west-2:123456789012:does-not-exist")
    replayed(bench, LETTERS["scheduler"])
    [heard] = queue.heard()
    assert heard.text == 'Hello, "w\u00f6rld"!'
    assert heard.attributes.keys() == MARKS


def test_what_aws_cut_short_is_parked_and_goes_nowhere(world: World) -> None:
    queue = Queue(world)
    bench = made(queue, "arn:aws:sqs:us-west-2:123456789012:does-not-exist")
    replayed(bench, Dead(dead.REQUEST, {**dead.OF_A_SCHEDULE, **dead.texts(IS_PAYLOAD_TRUNCATED="true")}))
    assert parked(bench)[0] == "unsupported_target"
    assert paths(world) == []


def test_where_it_was_agreed_to_a_notification_is_published_again_as_it_was_for_everybody(world: World) -> None:
    kind = Topic(world)
    bench = kind.bench(**SINGLE)
    subscription = world.aws.subscribe(kind.arn, world.aws.queue())
    Source.objects.filter(pk=bench.source.pk).update(arn=subscription)
    replayed(bench, notification(kind.arn, subscription))
    [[sent]] = kind.sent()
    assert {name: one for name, one in sent.attributes.items() if name not in MARKS} == {
        "kind": ("String", "order"),
        "sum": ("Number", "12.50"),
        "tags": ("String.Array", '["a"]'),
        "raw": ("Binary", b"\x02\x03\x04"),
    }
    assert sent.text == 'Hello world! "caf\u00e9"'
    assert "Subject=My+First+Message" in world.gateway.taken[0].body.decode()


def test_where_it_was_agreed_to_an_event_is_put_on_its_bus_again_with_all_that_it_had(world: World) -> None:
    kind = Bus(world)
    bench = made(kind, dead.TARGET)
    replayed(bench, LETTERS["eventbridge"])
    assert kind.heard() == [Sent(dead.PAYLOAD.decode())]
    [entry] = json.loads(world.gateway.taken[0].body)["Entries"]
    seen = entry["Source"], entry["DetailType"], entry["Resources"]
    assert seen == ("shop.orders", "order.paid", ["arn:aws:s3:::a"])
    assert bench.letter().state == "delivered"
