"""Bodies arrive byte for byte, and attributes of every type with their types."""

from __future__ import annotations

import pytest

from reprocessing.models import Target
from tests.reprocessing.pipeline.bench import Clock, Workbench
from tests.reprocessing.pipeline.targets.gateway import Does
from tests.reprocessing.pipeline.targets.kinds import Kind, Queue, Topic, World, bury
from tests.reprocessing.pipeline.targets.wire import Sent, Typed

pytestmark = pytest.mark.django_db(transaction=True)

QUEUES = ["sqs", "sqs-fifo", "celery"]
MARKS = {"RedriveId", "IdempotencyKey", "OriginalMessageId", "ReprocessedFrom"}
TEXT = '\t {"who": "Zo\u00eb \U0001f600 \u65e5\u672c", "n": 1.00,"n": 2}  \r\n\n'
TRACE = "Root=1-5759e988-bd862e3fe1be46a994272793;Sampled=1"


def made(kind: Kind) -> Workbench:
    single = {} if kind.fifo else {"ordering_key": "none", "sequence": "system:SentTimestamp"}
    return kind.bench(**single)


def gone(kind: Kind, bench: Workbench, body: str, attributes: Typed | None = None, trace: str | None = None) -> Sent:
    """One letter, replayed, as it was put on the wire."""
    bury(bench, body, attributes or {}, group="tenant-7" if bench.target.kind in QUEUES else None, trace=trace)
    bench.ready()
    assert bench.replay().taken == 1
    [[one]] = kind.sent()
    return one


def test_a_body_arrives_byte_for_byte_a_large_one_too(kind: Kind) -> None:
    bench = made(kind)
    bodies = [kind.letter(TEXT), kind.letter(TEXT + "\u00e9" * 100_000)]
    for body in bodies:
        bury(bench, body, {}, group="g")
    bench.ready()
    assert bench.replay().taken == 2
    wanted = sorted(kind.parcel(body) for body in bodies)
    assert sorted(one.text for request in kind.sent() for one in request) == wanted
    assert sorted(message.text for message in kind.heard()) == wanted
    assert max(len(one.encode()) for one in wanted) > 200_000


@pytest.mark.parametrize("kind", ["topic"], indirect=True)
def test_attributes_of_every_type_are_published(kind: Kind) -> None:
    bench = made(kind)
    own: Typed = {
        "kind": ("String", "\u00fc \U0001f600 "),
        "sum": ("Number", "1.50"),
        "raw": ("Binary", b"\x00\xff\x02"),
    }
    arrived = gone(kind, bench, kind.letter("apple"), own).attributes
    assert {name: one for name, one in arrived.items() if name not in MARKS} == own
    assert arrived.keys() - own.keys() == MARKS


@pytest.mark.parametrize("kind", QUEUES, indirect=True)
def test_the_group_and_the_trace_header_go_along(kind: Kind) -> None:
    bench = made(kind)
    gone(kind, bench, kind.letter("apple"), trace=TRACE)
    assert [(message.group, message.trace) for message in kind.heard()] == [("tenant-7", TRACE)]


@pytest.mark.parametrize("kind", ["http"], indirect=True)
def test_an_endpoint_is_told_what_the_letter_is_in_headers(kind: Kind) -> None:
    bench = made(kind)
    died = bury(bench, "<order/>", {"Content-Type": ("String", "application/xml"), "other": ("String", "x")})
    bench.ready()
    bench.replay()
    [one] = kind.heard()
    expected = {
        "content-type": "application/xml", "idempotency-key": died, "redrive-id": f"{bench.letter().public_id}:1",
        "redrive-attempt": "1", "original-message-id": died, "reprocessed-from": bench.name,
    }  # fmt: skip
    assert {name: one.headers.get(name) for name in expected} == expected
    assert (one.text, one.headers.get("other")) == ("<order/>", None)


def test_from_a_standard_dlq_to_a_fifo_queue_a_letter_is_a_group_of_its_own_unless_it_had_one(world: World) -> None:
    kind = Queue(world)
    bench = made(kind)
    url = bench.queue(f"{bench.name}-ordered.fifo")
    Target.objects.filter(pk=bench.target.pk).update(url=url, arn=bench.arn(url), fifo=True)
    died = bury(bench, "alone", {})
    bury(bench, "grouped", {}, group="tenant-7")
    bench.ready()
    assert bench.replay().taken == 2
    arrived = {message["Body"]: message["Attributes"]["MessageGroupId"] for message in bench.delivered(url)}
    assert arrived == {"alone": died, "grouped": "tenant-7"}


def test_a_fifo_topic_is_told_the_group_and_a_deduplication_id_and_swallows_a_repeat(
    world: World, clock: Clock
) -> None:
    kind = Topic(world)
    bench = made(kind)
    topic, queue = world.aws.topic(fifo=True), world.aws.queue(fifo=True)
    world.aws.subscribe(topic, queue)
    Target.objects.filter(pk=bench.target.pk).update(arn=topic, fifo=True)
    kind.arn, kind.subscriber = topic, queue
    bury(bench, "apple", {}, group="tenant-7")
    bench.ready()
    for does in (Does.LOSES, Does.TAKES):
        world.gateway.does["apple"] = does
        bench.replay()
        clock.advance(61)
    [[first], [second]] = kind.sent()
    assert (first.group, first.deduplication) == (second.group, second.deduplication)
    assert (first.group, len(first.deduplication or "")) == ("tenant-7", 64)
    assert [message.text for message in kind.heard()] == ["apple"]
