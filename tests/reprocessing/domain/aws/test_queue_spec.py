"""Every difference of a queue is found; applying the changes leaves none, and weakens nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reprocessing.domain.aws import queue_spec
from reprocessing.domain.aws.queue_diff import differences
from reprocessing.domain.aws.queue_spec import (
    ALLOW,
    BY_CONTENT,
    FORTNIGHT,
    KEY,
    REDRIVE,
    SSE,
    WAIT,
    AttributeContradicts,
    AttributeDiffers,
    AttributeKept,
    Difference,
    ExistingQueue,
    Precedence,
    QueueMissing,
    WantedNumber,
    WantedQueue,
    queue_family,
)

ACCOUNT = "arn:aws:sqs:eu-west-1:111122223333:"
DLQS = [ACCOUNT + "q1", ACCOUNT + "q2"]
NAMES = [f"q{number}" for number in range(14)]
ARNS = st.lists(st.sampled_from([ACCOUNT + name for name in NAMES]), unique=True, max_size=12).map(tuple)
WANTS = st.builds(WantedNumber, st.integers(0, 43_200), st.sampled_from(Precedence))
KEYS = st.sampled_from(["", "alias/redrive", "1234-abcd", f"{ACCOUNT}key/1234-abcd"])


@st.composite
def wanted_queues(draw: st.DrawFn) -> WantedQueue:
    return WantedQueue(
        name="orders" + draw(st.sampled_from(["", ".fifo"])), visibility=draw(WANTS), retention=draw(WANTS),
        wait=WantedNumber(draw(st.integers(0, 20)), draw(st.sampled_from(Precedence))), by_content=draw(st.booleans()),
        key=draw(KEYS), dlq=draw(st.sampled_from(["", "q1", "q2"])), receives=draw(WANTS),
        sources=tuple(draw(st.lists(st.sampled_from(NAMES), unique=True, max_size=2))),
    )  # fmt: skip


@st.composite
def found_queues(draw: st.DrawFn) -> ExistingQueue:
    permission = draw(st.sampled_from(["allowAll", "byQueue", "denyAll"]))
    allowed = draw(ARNS)[:10] if permission == "byQueue" else ()
    sources = draw(ARNS)
    return ExistingQueue(
        arn=f"{ACCOUNT}orders", visibility=draw(st.integers(0, 43_200)), retention=draw(st.integers(60, FORTNIGHT)),
        wait=draw(st.integers(0, 20)), by_content=draw(st.booleans()), sse=draw(st.booleans()), key=draw(KEYS),
        redrive_policy=draw(st.none() | st.tuples(st.sampled_from(DLQS), st.integers(1, 1_000))),
        permission=permission if allowed or permission != "byQueue" else "allowAll", allowed=allowed,
        sources=tuple(one for one in sources if not allowed or one in allowed) if permission != "denyAll" else (),
    )  # fmt: skip


def taken(found: ExistingQueue, attributes: Mapping[str, str]) -> ExistingQueue:
    """Return the queue after SQS has accepted these attributes."""
    redrive = json.loads(attributes.get(REDRIVE, "null"))
    allow = json.loads(attributes.get(ALLOW, "null"))
    key = attributes.get(queue_spec.KEY, found.key)
    return replace(
        found, visibility=int(attributes.get(queue_spec.VISIBILITY, found.visibility)),
        retention=int(attributes.get(queue_spec.RETENTION, found.retention)),
        wait=int(attributes.get(WAIT, found.wait)),
        by_content=attributes[BY_CONTENT] == "true" if BY_CONTENT in attributes else found.by_content, key=key,
        sse=False if key else attributes.get(queue_spec.SSE, str(found.sse)).lower() == "true",
        redrive_policy=(
            (redrive["deadLetterTargetArn"], redrive["maxReceiveCount"]) if redrive else found.redrive_policy
        ),
        permission=allow["redrivePermission"] if allow else found.permission,
        allowed=tuple(allow["sourceQueueArns"]) if allow else found.allowed,
    )  # fmt: skip


def changes(told: tuple[Difference, ...]) -> dict[str, str]:
    return {one.attribute: one.wanted for one in told if isinstance(one, AttributeDiffers)}


@pytest.mark.soak
@given(wanted_queues(), found_queues())
def test_a_changed_queue_has_no_more_differences(wanted: WantedQueue, found: ExistingQueue) -> None:
    assert changes(differences(wanted, taken(found, changes(differences(wanted, found))))) == {}


@pytest.mark.soak
@given(wanted_queues())
def test_a_new_queue_lacks_only_its_policies(wanted: WantedQueue) -> None:
    (missing,) = differences(wanted, None)
    assert isinstance(missing, QueueMissing)
    made = taken(ExistingQueue(arn=f"{ACCOUNT}{wanted.name}", sse=False), missing.attributes)
    by_content = {BY_CONTENT} if wanted.by_content and not wanted.fifo else set()
    policies = ({REDRIVE} if wanted.dlq else set()) | ({ALLOW} if wanted.sources else set())
    assert changes(differences(wanted, made)).keys() == policies | by_content


@pytest.mark.soak
@given(wanted_queues(), found_queues())
def test_nothing_is_weakened_unless_a_person_asked_for_it(wanted: WantedQueue, found: ExistingQueue) -> None:
    after = taken(found, changes(differences(wanted, found)))
    for name in ("visibility", "retention", "wait"):
        asked = getattr(wanted, name).precedence is Precedence.EXACTLY
        assert asked or getattr(after, name) >= getattr(found, name)
    assert (bool(after.key), after.sse or bool(after.key)) >= (bool(found.key), found.sse or bool(found.key))
    assert found.key in {"", after.key}
    assert after.by_content >= found.by_content
    assert found.redrive_policy is None or (after.redrive_policy or ("",))[0] == found.redrive_policy[0]
    assert after.permission == found.permission or (found.permission, after.permission) == ("allowAll", "byQueue")
    assert set(found.allowed) <= set(after.allowed)
    assert after.permission != "byQueue" or not wanted.sources or set(found.sources) <= set(after.allowed)


@pytest.mark.soak
@given(wanted_queues(), found_queues())
def test_no_more_queues_are_allowed_by_name_than_sqs_accepts(wanted: WantedQueue, found: ExistingQueue) -> None:
    policy = changes(differences(wanted, found)).get(ALLOW)
    assert policy is None or 1 <= len(json.loads(policy)["sourceQueueArns"]) <= 10


def test_equivalent_policies_are_no_difference() -> None:
    dlq, source = queue_family(WantedQueue(name="orders", dlq="orders-dlq"))
    allowing = ExistingQueue(
        arn=f"{ACCOUNT}orders-dlq", retention=FORTNIGHT, wait=20, permission="byQueue",
        allowed=(f"{ACCOUNT}b", f"{ACCOUNT}orders", f"{ACCOUNT}a"),
    )  # fmt: skip
    assert differences(dlq, allowing) == ()
    dying = ExistingQueue(arn=f"{ACCOUNT}orders", wait=20, redrive_policy=(f"{ACCOUNT}orders-dlq", 5))
    assert differences(source, dying) == ()


ORDERS = ExistingQueue(arn=f"{ACCOUNT}orders", wait=20)
MANY = tuple(ACCOUNT + name for name in NAMES[:10])
POLICY = f'{{{{"deadLetterTargetArn": "{ACCOUNT}{{}}", "maxReceiveCount": {{}}}}}}'
ALLOWING = f'{{{{"redrivePermission": "byQueue", "sourceQueueArns": ["{ACCOUNT}{{}}"]}}}}'


@pytest.mark.parametrize(
    ("wanted", "found", "told"),
    [
        (
            {"visibility": WantedNumber(60), "wait": WantedNumber(10, Precedence.AT_LEAST), "by_content": True}, ORDERS,
            [
                AttributeKept("VisibilityTimeout", "30", "60", Precedence.AT_FIRST.value),
                AttributeKept(WAIT, "20", "10", Precedence.AT_LEAST.value),
                AttributeDiffers(BY_CONTENT, "false", "true"),
            ],
        ),
        (
            {"retention": WantedNumber(60, Precedence.EXACTLY)}, ORDERS,
            [AttributeDiffers("MessageRetentionPeriod", "345600", "60")],
        ),
        ({"key": "alias/redrive"}, replace(ORDERS, key="arn:aws:kms:eu-west-1:1:alias/redrive"), []),
        ({"key": "arn:aws:kms:eu-west-1:1:key/12"}, replace(ORDERS, key="12"), []),
        (
            {"key": "alias/redrive"}, replace(ORDERS, key="alias/aws/sqs"),
            [AttributeKept(KEY, "alias/aws/sqs", "alias/redrive",
                           "its consumers may have no permission for another key; change the key by hand")],
        ),
        ({"key": "alias/redrive"}, replace(ORDERS, sse=False), [AttributeDiffers(KEY, "", "alias/redrive")]),
        (
            {}, replace(ORDERS, key="k"),
            [AttributeKept(KEY, "k", "", "a KMS key protects the queue better than SQS's own key")],
        ),
        ({}, replace(ORDERS, sse=False), [AttributeDiffers(SSE, "false", "true")]),
        (
            {"sources": ("a",)},
            replace(ORDERS, redrive_policy=(f"{ACCOUNT}a", 5), permission="byQueue", allowed=(f"{ACCOUNT}a",)),
            [AttributeContradicts(
                REDRIVE,
                "its DLQ is a, and it would be the DLQ of a: failed messages would circulate between both",
                "Name another queue than orders with --dlq.",
            )],
        ),
        (
            {"dlq": "q2", "chains": False}, replace(ORDERS, sources=(f"{ACCOUNT}a", f"{ACCOUNT}b")),
            [
                AttributeContradicts(
                    ALLOW, "it is itself the DLQ of a, b",
                    "Name its source queue instead; or, if the DLQ needs a DLQ of its own, add --dlq q2.",
                ),
                AttributeDiffers(REDRIVE, "", POLICY.format("q2", 5)),
            ],
        ),
        (
            {"dlq": "q2", "chains": False},
            replace(ORDERS, redrive_policy=(f"{ACCOUNT}q2", 5), sources=(f"{ACCOUNT}a",)), [],
        ),
        (
            {"dlq": "q2"}, replace(ORDERS, redrive_policy=(f"{ACCOUNT}other-dlq", 5)),
            [AttributeContradicts(
                REDRIVE, f"its DLQ is already {ACCOUNT}other-dlq",
                "Use that DLQ (--dlq other-dlq), or change the redrive policy by hand.",
            )],
        ),
        (
            {"dlq": "q2"}, replace(ORDERS, redrive_policy=(f"{ACCOUNT}q2", 3)),
            [AttributeKept(REDRIVE, POLICY.format("q2", 3), POLICY.format("q2", 5), Precedence.AT_FIRST.value)],
        ),
        (
            {"dlq": "q2", "receives": WantedNumber(9, Precedence.EXACTLY)},
            replace(ORDERS, redrive_policy=(f"{ACCOUNT}q2", 3)),
            [AttributeDiffers(REDRIVE, POLICY.format("q2", 3), POLICY.format("q2", 9))],
        ),
        (
            {"sources": ("a",)}, replace(ORDERS, permission="denyAll"),
            [AttributeContradicts(
                ALLOW, "its redrive allow policy forbids its use as a DLQ (denyAll)",
                "Name another queue with --dlq, or change the redrive allow policy by hand.",
            )],
        ),
        (
            {"sources": ("a",)}, replace(ORDERS, permission="byQueue", allowed=(f"{ACCOUNT}b",)),
            [AttributeDiffers(ALLOW, ALLOWING.format("b"), ALLOWING.format(f'b", "{ACCOUNT}a'))],
        ),
        (
            {"sources": ("a",)}, replace(ORDERS, permission="byQueue", allowed=MANY),
            [AttributeContradicts(
                ALLOW, "it names 10 source queues, and SQS accepts at most 10",
                "Name another queue with --dlq, or remove unused queues from the policy by hand.",
            )],
        ),
        (
            {"sources": ("a",)}, replace(ORDERS, sources=MANY),
            [AttributeKept(ALLOW, "allowAll", "byQueue",
                           "it is the DLQ of 11 queues, and SQS accepts at most 10 by name")],
        ),
        ({"sources": ("a",)}, ORDERS, [AttributeDiffers(ALLOW, "allowAll", ALLOWING.format("a"))]),
    ],
)  # fmt: skip
def test_each_difference_with_its_values_and_its_reason(
    wanted: dict[str, Any], found: ExistingQueue, told: list[Difference]
) -> None:
    assert list(differences(WantedQueue(name="orders", **wanted), found)) == told


def test_the_attributes_of_a_new_queue() -> None:
    numbers = {"VisibilityTimeout": "30", "MessageRetentionPeriod": "345600", WAIT: "20"}
    assert differences(WantedQueue(name="a"), None) == (QueueMissing({**numbers, SSE: "true"}),)
    fifo = {"FifoQueue": "true", BY_CONTENT: "false", KEY: "k"}
    assert differences(WantedQueue(name="a.fifo", key="k"), None) == (QueueMissing({**numbers, **fifo}),)


@pytest.mark.parametrize(
    ("asked", "number"), [(None, WantedNumber(7, Precedence.AT_FIRST)), (9, WantedNumber(9, Precedence.EXACTLY))]
)
def test_a_default_is_for_new_queues_alone(asked: int | None, number: WantedNumber) -> None:
    assert queue_spec.number_or_default(asked, 7) == number


def test_a_dlq_has_its_source_queues_content_based_deduplication() -> None:
    dlq, source = queue_family(WantedQueue(name="orders.fifo", dlq="orders-dlq.fifo"))
    found = {"orders.fifo": ExistingQueue(arn=f"{ACCOUNT}orders.fifo", by_content=True), "orders-dlq.fifo": None}
    assert [one.by_content for one in queue_spec.with_source_deduplication((dlq, source), found)] == [True, False]
    assert queue_spec.with_source_deduplication((dlq, source), {}) == (dlq, source)


def test_the_services_own_queues_hide_tasks_for_900_seconds_and_keep_their_long_poll() -> None:
    dlq, queue = queue_spec.service_queues("redrive-replay")
    assert (dlq.key, queue.key) == ("", "")
    assert (dlq.name, queue.dlq, dlq.sources) == ("redrive-replay-dlq", "redrive-replay-dlq", ("redrive-replay",))
    assert (queue.visibility, queue.receives.value, dlq.retention.value) == (
        WantedNumber(900, Precedence.AT_LEAST),
        5,
        FORTNIGHT,
    )
    for wanted in (dlq, queue):
        is_ = ExistingQueue(arn=f"{ACCOUNT}{wanted.name}", visibility=900, wait=0)
        told = [
            one
            for one in differences(wanted, is_)
            if isinstance(one, AttributeDiffers | AttributeKept) and one.attribute == WAIT
        ]
        assert told == [AttributeKept(WAIT, "0", "20", Precedence.AT_FIRST.value)]


def test_a_family_is_a_dlq_a_parking_queue_and_a_source_queue() -> None:
    source = WantedQueue(name="orders", dlq="orders-dlq", key="k")
    longest = WantedNumber(FORTNIGHT, Precedence.AT_LEAST)
    dlq = WantedQueue(name="orders-dlq", key="k", retention=longest, sources=("orders",))
    assert queue_family(source) == (dlq, source)
    assert queue_family(source, parking="lot") == (dlq, WantedQueue(name="lot", key="k", retention=longest), source)
