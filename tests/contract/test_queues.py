"""Queues themselves: names, attributes, creation and deletion, listing, tags, purging."""

from __future__ import annotations

import pytest

from tests.contract.conftest import Advance, MakeQueue, fresh_name
from tests.contract.endpoints import Endpoint
from tests.contract.queues import Boto, Counts, Queue, refused

NO_QUEUE = "AWS.SimpleQueueService.NonExistentQueue"


def test_a_queue_has_the_documented_defaults(queue: Queue) -> None:
    defaults = {
        "DelaySeconds": "0",
        "MaximumMessageSize": "1048576",
        "MessageRetentionPeriod": "345600",
        "ReceiveMessageWaitTimeSeconds": "0",
        "VisibilityTimeout": "30",
    }
    assert queue.attributes(*defaults) == defaults


def test_a_fifo_queue_has_the_documented_defaults(fifo: Queue) -> None:
    defaults = {
        "FifoQueue": "true",
        "ContentBasedDeduplication": "false",
        "DeduplicationScope": "queue",
        "FifoThroughputLimit": "perQueue",
    }
    assert fifo.attributes(*defaults) == defaults


def test_a_standard_queue_shows_no_fifo_attributes(queue: Queue) -> None:
    fifo_only = {"FifoQueue", "ContentBasedDeduplication", "DeduplicationScope", "FifoThroughputLimit"}
    assert fifo_only & set(queue.attributes("All")) == set()


def test_an_arn_names_region_account_and_queue(queue: Queue) -> None:
    account = queue.url.split("/")[-2]
    assert queue.arn == f"arn:aws:sqs:us-east-1:{account}:{queue.name}"


def test_a_queue_is_found_by_its_name(queue: Queue) -> None:
    assert queue.client.get_queue_url(QueueName=queue.name)["QueueUrl"] == queue.url


def test_asking_for_no_attribute_answers_none(queue: Queue) -> None:
    assert queue.attributes() == {}


def test_an_unknown_attribute_name_is_refused(queue: Queue) -> None:
    assert refused(queue.attributes, "MessageColour") == "InvalidAttributeName"
    assert refused(queue.set, MessageColour="blue") == "InvalidAttributeName"


def test_setting_one_attribute_leaves_the_others(make_queue: MakeQueue) -> None:
    queue = make_queue(VisibilityTimeout="77", DelaySeconds="3")
    queue.set(DelaySeconds="9")
    assert queue.attributes("VisibilityTimeout", "DelaySeconds") == {"VisibilityTimeout": "77", "DelaySeconds": "9"}


def test_a_change_moves_the_modified_timestamp_and_not_the_created_one(queue: Queue, advance: Advance) -> None:
    before = queue.attributes("CreatedTimestamp", "LastModifiedTimestamp")
    advance(1000)
    queue.set(VisibilityTimeout="31")
    after = queue.attributes("CreatedTimestamp", "LastModifiedTimestamp")
    assert after["CreatedTimestamp"] == before["CreatedTimestamp"]
    assert float(after["LastModifiedTimestamp"]) - float(before["LastModifiedTimestamp"]) >= 999


def test_timestamps_of_a_queue_are_whole_seconds(queue: Queue) -> None:
    stamps = queue.attributes("CreatedTimestamp", "LastModifiedTimestamp")
    assert {name: stamp.isdecimal() for name, stamp in stamps.items()} == {
        "CreatedTimestamp": True,
        "LastModifiedTimestamp": True,
    }


@pytest.mark.parametrize(
    ("attribute", "value"),
    [
        ("DelaySeconds", "-1"),
        ("DelaySeconds", "901"),
        ("MaximumMessageSize", "1023"),
        ("MaximumMessageSize", "1048577"),
        ("MessageRetentionPeriod", "59"),
        ("MessageRetentionPeriod", "1209601"),
        ("ReceiveMessageWaitTimeSeconds", "21"),
        ("VisibilityTimeout", "43201"),
        ("VisibilityTimeout", "soon"),
    ],
)
def test_an_attribute_beyond_its_range_is_refused(queue: Queue, attribute: str, value: str) -> None:
    before = queue.attributes(attribute)
    assert refused(queue.set, **{attribute: value}) == "InvalidAttributeValue"
    assert queue.attributes(attribute) == before


@pytest.mark.parametrize(
    "bounds",
    [
        {
            "DelaySeconds": "0",
            "MaximumMessageSize": "1024",
            "MessageRetentionPeriod": "60",
            "ReceiveMessageWaitTimeSeconds": "0",
            "VisibilityTimeout": "0",
        },
        {
            "DelaySeconds": "900",
            "MaximumMessageSize": "1048576",
            "MessageRetentionPeriod": "1209600",
            "ReceiveMessageWaitTimeSeconds": "20",
            "VisibilityTimeout": "43200",
        },
    ],
    ids=["lowest", "highest"],
)
def test_an_attribute_may_lie_on_the_bounds_of_its_range(queue: Queue, bounds: dict[str, str]) -> None:
    queue.set(**bounds)
    assert queue.attributes(*bounds) == bounds


def test_the_type_of_a_queue_cannot_change(queue: Queue, fifo: Queue) -> None:
    refused(queue.set, FifoQueue="true")
    refused(fifo.set, FifoQueue="false")
    assert fifo.attributes("FifoQueue") == {"FifoQueue": "true"}


@pytest.mark.parametrize(
    ("name", "attributes"),
    [
        ("with space", {}),
        ("dot.ted", {}),
        ("slash/ed", {}),
        ("a" * 81, {}),
        ("standard.fifo", {}),
        ("no-suffix", {"FifoQueue": "true"}),
        ("a" * 76 + ".fifo", {"FifoQueue": "true"}),
    ],
    ids=["space", "dot", "slash", "81", "fifo-suffix-on-standard", "fifo-without-suffix", "81-with-suffix"],
)
def test_a_name_that_breaks_the_rules_is_refused(endpoint: Endpoint, name: str, attributes: Boto) -> None:
    assert refused(endpoint.client.create_queue, QueueName=name, Attributes=attributes) == "InvalidParameterValue"


def test_a_name_may_have_eighty_characters_with_its_suffix(endpoint: Endpoint) -> None:
    long_name = fresh_name().ljust(75, "_") + ".fifo"
    endpoint.client.create_queue(QueueName=long_name, Attributes={"FifoQueue": "true"})
    assert endpoint.client.get_queue_url(QueueName=long_name)["QueueUrl"].endswith(f"/{long_name}")


def test_creating_a_queue_again_answers_the_same_url(make_queue: MakeQueue) -> None:
    queue = make_queue(VisibilityTimeout="77")
    again = queue.client.create_queue(QueueName=queue.name, Attributes={"VisibilityTimeout": "77"})
    unspecific = queue.client.create_queue(QueueName=queue.name)
    assert (again["QueueUrl"], unspecific["QueueUrl"]) == (queue.url, queue.url)


def test_creating_a_queue_again_with_another_value_is_refused(make_queue: MakeQueue) -> None:
    queue = make_queue(VisibilityTimeout="77")
    create = queue.client.create_queue
    assert refused(create, QueueName=queue.name, Attributes={"VisibilityTimeout": "78"}) == "QueueAlreadyExists"
    assert queue.attributes("VisibilityTimeout") == {"VisibilityTimeout": "77"}


def test_a_deleted_name_is_free_after_sixty_seconds(queue: Queue, advance: Advance) -> None:
    queue.client.delete_queue(QueueUrl=queue.url)
    advance(50)
    too_soon = refused(queue.client.create_queue, QueueName=queue.name)
    advance(11)
    queue.client.create_queue(QueueName=queue.name)
    assert too_soon == "AWS.SimpleQueueService.QueueDeletedRecently"


def test_messages_do_not_survive_their_queue(queue: Queue, advance: Advance) -> None:
    queue.send("m")
    queue.client.delete_queue(QueueUrl=queue.url)
    advance(61)
    queue.client.create_queue(QueueName=queue.name)
    assert queue.bodies() == []


@pytest.mark.parametrize(
    "action",
    [
        "delete_queue",
        "get_queue_attributes",
        "list_dead_letter_source_queues",
        "list_queue_tags",
        "purge_queue",
        "receive_message",
    ],
)
def test_a_queue_that_does_not_exist_is_named_so(endpoint: Endpoint, queue: Queue, action: str) -> None:
    nowhere = queue.url.replace(queue.name, fresh_name())
    assert refused(getattr(endpoint.client, action), QueueUrl=nowhere) == NO_QUEUE


def test_a_deleted_queue_takes_nothing(queue: Queue, advance: Advance) -> None:
    queue.client.delete_queue(QueueUrl=queue.url)
    advance(61)
    assert refused(queue.send, "m") == NO_QUEUE
    assert refused(queue.client.get_queue_url, QueueName=queue.name) == NO_QUEUE


def test_queues_are_listed_by_prefix(endpoint: Endpoint) -> None:
    prefix = fresh_name()
    urls = [endpoint.client.create_queue(QueueName=f"{prefix}-{n}")["QueueUrl"] for n in range(3)]
    answer = endpoint.client.list_queues(QueueNamePrefix=f"{prefix}-")
    assert sorted(answer["QueueUrls"]) == urls
    assert "NextToken" not in answer


def test_queues_are_listed_in_pages(endpoint: Endpoint) -> None:
    prefix = fresh_name()
    urls = [endpoint.client.create_queue(QueueName=f"{prefix}-{n}")["QueueUrl"] for n in range(5)]
    pages = endpoint.client.get_paginator("list_queues").paginate(
        QueueNamePrefix=prefix, PaginationConfig={"PageSize": 2}
    )
    listed = [page.get("QueueUrls", []) for page in pages]
    assert [len(page) for page in listed] == [2, 2, 1]
    assert sorted(url for page in listed for url in page) == urls


@pytest.mark.parametrize("most", [0, 1001])
def test_a_page_has_one_to_a_thousand_queues(queue: Queue, most: int) -> None:
    refused(queue.client.list_queues, MaxResults=most)
    refused(queue.client.list_dead_letter_source_queues, QueueUrl=queue.url, MaxResults=most)


def test_tags_are_kept_overwritten_and_removed(endpoint: Endpoint) -> None:
    client = endpoint.client
    url = client.create_queue(QueueName=fresh_name(), tags={"team": "red", "Team": "capital", "old": "1"})["QueueUrl"]
    client.tag_queue(QueueUrl=url, Tags={"team": "blue", "empty": ""})
    client.untag_queue(QueueUrl=url, TagKeys=["old", "never-there"])
    assert client.list_queue_tags(QueueUrl=url)["Tags"] == {"team": "blue", "Team": "capital", "empty": ""}


def test_a_purge_removes_visible_in_flight_and_delayed_messages(queue: Queue, advance: Advance) -> None:
    queue.send("in flight")
    queue.receive_one()
    queue.send("visible")
    queue.send("delayed", DelaySeconds=60)
    queue.client.purge_queue(QueueUrl=queue.url)
    advance(61)
    assert (queue.counts(), queue.bodies()) == (Counts(0, 0, 0), [])


def test_a_second_purge_within_sixty_seconds_is_refused(queue: Queue, advance: Advance) -> None:
    queue.client.purge_queue(QueueUrl=queue.url)
    advance(50)
    code = refused(queue.client.purge_queue, QueueUrl=queue.url)
    advance(11)
    queue.client.purge_queue(QueueUrl=queue.url)
    assert code == "AWS.SimpleQueueService.PurgeQueueInProgress"


def test_deduplication_settings_belong_to_fifo_queues(queue: Queue) -> None:
    assert refused(queue.set, DeduplicationScope="messageGroup") == "InvalidAttributeName"
    assert refused(queue.set, ContentBasedDeduplication="true") == "InvalidAttributeName"


def test_a_throughput_per_group_needs_deduplication_per_group(fifo: Queue) -> None:
    refused(fifo.set, FifoThroughputLimit="perMessageGroupId")
    both = {"DeduplicationScope": "messageGroup", "FifoThroughputLimit": "perMessageGroupId"}
    fifo.set(**both)
    assert fifo.attributes(*both) == both


def test_counts_tell_visible_in_flight_and_delayed_apart(queue: Queue) -> None:
    for _ in range(3):
        queue.send("m")
    queue.send("later", DelaySeconds=60)
    queue.receive(1)
    assert queue.counts() == Counts(visible=2, in_flight=1, delayed=1)
