from __future__ import annotations

from tests.sandbox.sqs.world import World


def test_a_stale_handle_takes_the_message_away_from_the_other_consumer_but_never_deletes_it(world: World) -> None:
    url = world.queue("q")
    world.send(url, "one")
    (mine,) = world.receive(url)
    world.later(30)
    (yours,) = world.receive(url)
    stale = mine["ReceiptHandle"]
    assert stale != yours["ReceiptHandle"]
    world.delete(url, mine)
    assert world.counts(url) == (0, 1, 0)
    world.call("ChangeMessageVisibility", QueueUrl=url, ReceiptHandle=stale, VisibilityTimeout=0)
    assert world.counts(url) == (1, 0, 0)
    world.delete(url, yours)
    assert world.counts(url) == (0, 0, 0)


def test_text_that_never_was_a_handle_of_this_queue_is_refused(world: World) -> None:
    url, other = world.queue("q"), world.queue("other")
    world.send(other, "one")
    (message,) = world.receive(other)
    foreign = message["ReceiptHandle"]
    forged = foreign[:-1] + ("0" if foreign[-1] != "0" else "1")
    for handle, queue in (("garbage", url), (foreign, url), (forged, other), ("é" * len(foreign), url)):
        assert world.code("DeleteMessage", QueueUrl=queue, ReceiptHandle=handle) == "ReceiptHandleIsInvalid"


def test_a_full_standard_queue_says_so(world: World) -> None:
    world = World(in_flight_limit=2)
    url = world.queue("q")
    for body in "abc":
        world.send(url, body)
    assert world.bodies(url) == ["a", "b"]
    assert world.code("ReceiveMessage", QueueUrl=url) == "OverLimit"
    world.later(30)
    assert world.bodies(url, 1) == ["c"]
