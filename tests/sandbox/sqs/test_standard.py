from __future__ import annotations

from tests.sandbox.sqs.world import World


def test_a_message_is_handed_out_until_it_is_deleted(world: World) -> None:
    url = world.queue("q")
    world.send(url, "one")
    assert world.bodies(url) == ["one"]
    assert world.bodies(url) == []
    world.later(30)
    (message,) = world.receive(url)
    assert message["Attributes"]["ApproximateReceiveCount"] == "2"
    world.delete(url, message)
    world.later(30)
    assert world.bodies(url) == []
    assert world.counts(url) == (0, 0, 0)


def test_the_visibility_timeout_of_a_receive_comes_before_the_queues(world: World) -> None:
    url = world.queue("q", VisibilityTimeout="100")
    world.send(url, "one")
    assert world.bodies(url, VisibilityTimeout=5) == ["one"]
    world.later(4.9)
    assert world.bodies(url) == []
    world.later(0.1)
    assert world.bodies(url) == ["one"]
    world.later(99.9)
    assert world.bodies(url) == []


def test_a_changed_visibility_counts_from_the_change_and_is_forgotten_afterwards(world: World) -> None:
    url = world.queue("q")
    world.send(url, "one")
    (message,) = world.receive(url)
    world.later(15)
    world.hide(url, message, 10)
    world.later(9.9)
    assert world.bodies(url) == []
    world.later(0.1)
    assert world.bodies(url) == ["one"]
    world.later(29.9)
    assert world.bodies(url) == []


def test_visibility_zero_hands_a_message_back_at_once(world: World) -> None:
    url = world.queue("q")
    world.send(url, "one")
    (message,) = world.receive(url)
    world.hide(url, message, 0)
    assert world.counts(url) == (1, 0, 0)
    assert world.bodies(url, VisibilityTimeout=0) == ["one"]
    assert world.bodies(url) == ["one"]


def test_twelve_hours_from_the_receive_is_the_end_of_extending(world: World) -> None:
    url = world.queue("q")
    world.send(url, "one")
    (message,) = world.receive(url, VisibilityTimeout=43_200)
    world.later(3_600)
    world.hide(url, message, 39_600)
    code, sentence = world.refusal(
        "ChangeMessageVisibility", QueueUrl=url, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=39_601
    )
    assert code == "InvalidParameterValue"
    assert sentence == (
        "Value 39601 for parameter VisibilityTimeout is invalid. Reason: Total VisibilityTimeout for the message is "
        "beyond the limit [43200 seconds]."
    )


def test_only_what_is_in_flight_can_be_hidden_again(world: World) -> None:
    url = world.queue("q")
    world.send(url, "one")
    (message,) = world.receive(url)
    world.later(30)
    assert world.code(
        "ChangeMessageVisibility", QueueUrl=url, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=5
    ) == "AWS.SimpleQueueService.MessageNotInflight"  # fmt: skip


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


def test_the_most_recent_handle_deletes_after_its_timeout_too(world: World) -> None:
    url = world.queue("q")
    world.send(url, "one")
    (message,) = world.receive(url)
    world.later(31)
    world.delete(url, message)
    assert world.counts(url) == (0, 0, 0)
    assert world.bodies(url) == []


def test_deleting_twice_is_fine_but_hiding_what_is_deleted_is_not(world: World) -> None:
    url = world.queue("q")
    world.send(url, "one")
    (message,) = world.receive(url)
    world.delete(url, message)
    world.delete(url, message)
    handle = message["ReceiptHandle"]
    code, sentence = world.refusal("ChangeMessageVisibility", QueueUrl=url, ReceiptHandle=handle, VisibilityTimeout=1)
    assert (code, sentence) == (
        "InvalidParameterValue",
        (
            f"Value {handle} for parameter ReceiptHandle is invalid. Reason: Message does not exist or is not "
            "available for visibility timeout change."
        ),
    )


def test_text_that_never_was_a_handle_of_this_queue_is_refused(world: World) -> None:
    url, other = world.queue("q"), world.queue("other")
    world.send(other, "one")
    (message,) = world.receive(other)
    foreign = message["ReceiptHandle"]
    forged = foreign[:-1] + ("0" if foreign[-1] != "0" else "1")
    for handle, queue in (("garbage", url), (foreign, url), (forged, other), ("é" * len(foreign), url)):
        assert world.code("DeleteMessage", QueueUrl=queue, ReceiptHandle=handle) == "ReceiptHandleIsInvalid"


def test_delays_hold_a_message_back_once(world: World) -> None:
    url = world.queue("q", DelaySeconds="10")
    world.send(url, "queue's")
    world.send(url, "own", DelaySeconds=20)
    world.send(url, "none", DelaySeconds=0)
    assert world.bodies(url) == ["none"]
    assert world.counts(url) == (0, 1, 2)
    world.set(url, DelaySeconds="900")
    world.later(10)
    assert world.bodies(url) == ["queue's"]
    world.later(10)
    assert world.bodies(url) == ["own"]


def test_a_full_standard_queue_says_so(world: World) -> None:
    world = World(in_flight_limit=2)
    url = world.queue("q")
    for body in "abc":
        world.send(url, body)
    assert world.bodies(url) == ["a", "b"]
    assert world.code("ReceiveMessage", QueueUrl=url) == "OverLimit"
    world.later(30)
    assert world.bodies(url, 1) == ["c"]


def test_retention_ends_messages_by_the_present_setting_in_flight_or_not(world: World) -> None:
    url = world.queue("q", MessageRetentionPeriod="3600")
    world.send(url, "old")
    world.later(100)
    world.send(url, "young")
    (old,) = world.receive(url, 1, VisibilityTimeout=43_200)
    assert old["Body"] == "old"
    world.set(url, MessageRetentionPeriod="60")
    assert world.counts(url) == (1, 0, 0)
    world.delete(url, old)
    world.later(59.9)
    assert world.counts(url) == (1, 0, 0)
    world.later(0.1)
    assert world.counts(url) == (0, 0, 0)


def test_a_group_id_is_carried_and_blocks_nothing(world: World) -> None:
    url = world.queue("q")
    for body in "abc":
        world.send(url, body, MessageGroupId="tenant")
    assert world.bodies(url, 1) == ["a"]
    messages = world.receive(url)
    assert [(m["Body"], m["Attributes"]["MessageGroupId"]) for m in messages] == [("b", "tenant"), ("c", "tenant")]


def test_purging_takes_everything_and_rests_sixty_seconds(world: World) -> None:
    url = world.queue("q")
    world.send(url, "visible")
    world.send(url, "in flight")
    world.send(url, "delayed", DelaySeconds=5)
    (taken,) = world.receive(url, 1)
    world.call("PurgeQueue", QueueUrl=url)
    assert world.counts(url) == (0, 0, 0)
    world.delete(url, taken)
    world.later(59.9)
    assert world.code("PurgeQueue", QueueUrl=url) == "AWS.SimpleQueueService.PurgeQueueInProgress"
    world.send(url, "after")
    assert world.bodies(url) == ["after"]
    world.later(0.1)
    world.call("PurgeQueue", QueueUrl=url)


def test_the_timestamps_of_a_message_are_milliseconds(world: World) -> None:
    url = world.queue("q")
    world.send(url, "one")
    world.later(1.25)
    (first,) = world.receive(url, VisibilityTimeout=1)
    world.later(1)
    (second,) = world.receive(url)
    seen = [
        (m["Attributes"]["SentTimestamp"], m["Attributes"]["ApproximateFirstReceiveTimestamp"]) for m in (first, second)
    ]
    assert seen == [("1800000000000", "1800000001250")] * 2
