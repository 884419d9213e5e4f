"""What nobody should send, and somebody does: it is kept byte for byte, and arrives so, or waits with its reason."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from reprocessing.domain.lifecycle import ParkedReason
from reprocessing.domain.message.envelope import Attribute, unpack
from reprocessing.gateways.sqs import receiving
from reprocessing.models import Attempt, DeadLetter, Payload, Target
from reprocessing.pipeline.maintenance import recover
from reprocessing.pipeline.replay import send_batches
from reprocessing.store.replay.intent import Intended
from tests.conditions import eventually
from tests.reprocessing.pipeline.bench import Clock, Workbench

pytestmark = pytest.mark.django_db(transaction=True)

MIB = 1_048_576
TEN = 10
# In the middle; at the ends the whole corpus stands in the long form of the proof.
PLACES = pytest.mark.parametrize("place", [4], ids=["middle"])


@dataclass(frozen=True)
class Odd:
    """One message that is odd somehow; attributes by name: type and value."""

    body: str
    attributes: dict[str, tuple[str, str | bytes]] = field(default_factory=dict)

    @property
    def bytes(self) -> tuple[bytes, dict[str, Attribute]]:
        """What is to be kept, and to arrive."""
        return self.body.encode(), {name: Attribute(*one) for name, one in self.attributes.items()}

    def sent(self) -> dict[str, Any]:
        return {
            "MessageBody": self.body,
            "MessageAttributes": {
                name: {"DataType": kind, "BinaryValue" if isinstance(value, bytes) else "StringValue": value}
                for name, (kind, value) in self.attributes.items()
            },
        }


ODD = {
    "not JSON": Odd("{'neither': this}"),
    "blank": Odd(" "),
    "line ends": Odd("\r\n\t\n\r"),
    "byte order mark": Odd("\ufeff{}"),
    "last characters of Unicode": Odd("\ufffd\U0010ffff\ue000\ud7ff"),
    "depth 10,000": Odd("[" * 10_000 + "]" * 10_000),
    "NaN": Odd('{"key": NaN, "n": Infinity}'),
    "1e999": Odd('{"key": 1e999, "n": -1e999}'),
    "huge number": Odd(f'{{"key": {"9" * 5_000}}}'),
    "equal names": Odd('{"key": 1, "key": 2, "key": {}}'),
    "half a surrogate pair": Odd('{"key": "\\ud800"}'),
    "NUL, escaped": Odd('{"key": "a\\u0000b"}'),
    "an empty key": Odd('{"key": ""}'),
    "no object": Odd("null"),
    "a key of a megabyte": Odd(json.dumps({"key": "k" * 500_000})),
    "binary that is no UTF-8": Odd("b", {"raw": ("Binary", b"\xff\xfe\x00\xc3\x28" * 20)}),
    "all bytes": Odd("b", {"raw": ("Binary.png", bytes(range(256)))}),
    "types of their own": Odd("t", {"a": ("String.uuid", "x"), "b": ("Number.int", "7"), "c": ("Binary.gz", b"\x1f")}),
    "numbers": Odd("n", {"a": ("Number", "-0"), "b": ("Number", "1e-128"), "c": ("Number", "9" * 38)}),
    "numbers as they were written": Odd("n", {"a": ("Number", "007.500"), "b": ("Number", "+1E5")}),
    "blank attribute": Odd("n", {"a": ("String", " "), "b": ("String", "\t")}),
    "ten attributes": Odd("ten", {f"a{number}": ("String", f"{number}") for number in range(TEN)}),
    "names alike": Odd("names", {"a.b-c_D": ("String", "1"), "A.b-c_D": ("String", "2")}),
    "a mark of nobody's": Odd("m", {"RedriveId": ("String", "not one"), "IdempotencyKey": ("Number", "5")}),
    "counters of earlier tools": Odd("c", {"redrive_attempt": ("String", "x"), "sqs-dlq-replay-nb": ("Number", "0")}),
    "a MiB": Odd("x" * MIB),
    "a MiB with attributes": Odd("é" * ((MIB - 108) // 2), {"name": ("String", "v" * 98)}),
}


@pytest.fixture
def trips(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The message ids of each trip to the wire, whose letters go in the order in which they died."""
    made: list[list[str]] = []
    post = send_batches.letters

    def ordered(intended: Sequence[Intended], *args: Any, **options: Any) -> Any:  # noqa: ANN401  # handed through
        going = sorted(intended, key=lambda one: one.letter_id)
        made.append([one.message_id for one in going])
        return post(going, *args, **options)

    monkeypatch.setattr(send_batches, "letters", ordered)
    return made


@pytest.mark.soak
@PLACES
def test_what_is_odd_arrives_byte_for_byte_with_its_batch_mates(place: int, trips: list[list[str]]) -> None:
    bench = _bench()
    ids = {_bury_among_nine(bench, odd, place): name for name, odd in ODD.items()}
    bench.ready()
    assert {name: _kept(one) for one, name in ids.items()} == {name: odd.bytes for name, odd in ODD.items()}
    report = bench.replay(seconds=60)
    assert (report.taken, report.failed, report.parked) == (TEN * len(ODD), 0, 0)
    arrived = _arrived(bench)
    assert len(arrived) == TEN * len(ODD)
    for message_id, name in ids.items():
        body, attributes = arrived[message_id]
        assert body == ODD[name].body.encode(), name
        assert attributes.items() >= ODD[name].bytes[1].items(), name
        assert len(attributes) <= TEN, name
    assert [trip[place] for trip in trips] == list(ids)
    assert {len(trip) for trip in trips} == {TEN}
    assert bench.left() == 0


@PLACES
def test_what_the_target_refuses_is_parked_with_the_reason_and_its_batch_mates_arrive(
    place: int, trips: list[list[str]]
) -> None:
    bench = _bench()
    bench.sqs.set_queue_attributes(QueueUrl=bench.origin_url, Attributes={"MaximumMessageSize": "1024"})
    poison = _bury_among_nine(bench, Odd("p" * 1_025), place)
    bench.ready()
    bench.replay()
    _is_refused_among_nine(bench, poison, place, trips)
    assert "1024 bytes" in bench.letter(message_id=poison).detail
    assert bench.history().count((1, "refused", 0)) == 1


@PLACES
def test_what_is_known_to_be_too_large_for_its_target_is_not_even_tried(place: int) -> None:
    bench = _bench()
    Target.objects.update(size_limit=1_024)
    poison = _bury_among_nine(bench, Odd("p" * 1_025), place)
    bench.ready()
    bench.replay()
    recover.sweep(bench.dlq, conf=bench.conf)
    assert bench.letter(message_id=poison).detail == "1,025 bytes; its target takes 1,024"
    assert Attempt.objects.count() == TEN - 1
    assert (bench.letter(message_id=poison).state, len(_arrived(bench)), bench.left()) == ("parked", TEN - 1, 0)


@PLACES
def test_half_a_surrogate_pair_is_kept_and_parked_since_sqs_takes_it_from_nobody(
    place: int, trips: list[list[str]]
) -> None:
    """The local SQS lets none in; here it hands one over all the same."""
    bench = _bench()
    poison = _bury_among_nine(bench, Odd("half"), place)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(receiving, "client", lambda *_, **__: _Halving(bench.sqs))
        bench.capture()
    bench.enlist()
    assert _kept(poison) == (b"\xed\xa0\x80", {})
    bench.replay()
    _is_refused_among_nine(bench, poison, place, trips)
    assert bench.letter(message_id=poison).detail.startswith("InvalidMessageContents: ")


KEYS = {
    "not JSON": ("parked", ParkedReason.UNREADABLE_BODY),
    "blank": ("parked", ParkedReason.UNREADABLE_BODY),
    "byte order mark": ("parked", ParkedReason.UNREADABLE_BODY),
    "depth 10,000": ("parked", ParkedReason.UNREADABLE_BODY),
    "NaN": ("parked", ParkedReason.UNREADABLE_BODY),
    "half a surrogate pair": ("parked", ParkedReason.UNREADABLE_BODY),
    "a MiB": ("parked", ParkedReason.UNREADABLE_BODY),
    "1e999": ("delivered", ""),
    "huge number": ("parked", ParkedReason.NO_ORDERING_KEY),
    "a key of a megabyte": ("parked", ParkedReason.NO_ORDERING_KEY),
    "equal names": ("parked", ParkedReason.NO_ORDERING_KEY),
    "NUL, escaped": ("parked", ParkedReason.UNREADABLE_BODY),
    "an empty key": ("parked", ParkedReason.NO_ORDERING_KEY),
    "no object": ("parked", ParkedReason.NO_ORDERING_KEY),
}


@pytest.mark.soak
@PLACES
def test_a_key_that_is_read_from_bodies_parks_those_that_have_none(place: int) -> None:
    bench = _bench(ordering_key="body:key")
    mate = Odd('{"key": "mate"}')
    ids = {name: _bury_among_nine(bench, ODD[name], place, mate) for name in KEYS}
    bench.ready()
    bench.replay(seconds=30)
    recover.sweep(bench.dlq, conf=bench.conf)
    found = {name: bench.letter(message_id=one) for name, one in ids.items()}
    assert {name: (one.state, one.reason) for name, one in found.items()} == KEYS
    assert found["1e999"].ordering_key == "1E999"
    assert all(one.detail for one in found.values() if one.state == "parked")
    assert DeadLetter.objects.filter(state="delivered", ordering_key="mate").count() == (TEN - 1) * len(KEYS)
    assert bench.left() == 0


@pytest.mark.soak
def test_equal_bytes_are_one_letter_where_the_content_is_the_key(clock: Clock) -> None:
    bench = _bench(idempotency_key="content-hash")
    bodies = sorted({odd.body for odd in ODD.values()})
    for _ in range(2):
        for body in bodies:
            bench.sqs.send_message(QueueUrl=bench.dlq_url, MessageBody=body)
    bench.ready()
    bench.replay(seconds=30)
    clock.advance(3)  # a twin asks again whether the first has arrived
    bench.replay(seconds=30)
    assert sorted(body.decode() for body, _ in _arrived(bench).values()) == bodies
    assert DeadLetter.objects.filter(state="duplicate", duplicate_of__state="delivered").count() == len(bodies)


@pytest.mark.parametrize(
    "odd",
    [Odd("a\x00b"), Odd("a\x1fb"), Odd("\ufffe"), Odd(""), Odd("a", {"a": ("String", "")}), Odd("x" * (MIB + 1))],
    ids=["NUL", "a control character", "no character", "empty", "empty attribute", "a byte too many"],
)
def test_what_sqs_takes_from_nobody_is_in_no_dlq(odd: Odd) -> None:
    bench = _bench()
    with pytest.raises(ClientError):
        bench.sqs.send_message(QueueUrl=bench.dlq_url, **odd.sent())
    assert bench.left() == 0


class _Halving:
    """A client that hands over half a surrogate pair where a body says so."""

    def __init__(self, client: Any) -> None:  # noqa: ANN401  # boto3's
        self._client = client

    def receive_message(self, **asked: Any) -> dict[str, Any]:  # noqa: ANN401  # boto3's
        answer: dict[str, Any] = self._client.receive_message(**asked)
        for one in answer.get("Messages", []):
            one["Body"] = one["Body"].replace("half", "\ud800")
        return answer


def _bench(**fields: object) -> Workbench:  # a dlq's
    bench = Workbench(fields=fields)
    bench.conf = replace(bench.conf, intent_size=TEN)
    return bench


def _bury_among_nine(bench: Workbench, odd: Odd, place: int, mate: Odd = Odd("mate")) -> str:
    """Ten messages, each in a millisecond of its own, so that they travel in this order; the odd one's id."""
    found = ""
    for number in range(TEN):
        sent = bench.sqs.send_message(QueueUrl=bench.dlq_url, **(odd if number == place else mate).sent())
        found = sent["MessageId"] if number == place else found
        _await_the_next_millisecond()
    return found


def _await_the_next_millisecond() -> None:
    now = time.time_ns() // 1_000_000
    eventually(lambda: time.time_ns() // 1_000_000 > now, within=1, every=0.0003)


def _kept(message_id: str) -> tuple[bytes, dict[str, Attribute]]:
    payload = Payload.objects.get(letter__message_id=message_id)
    return bytes(payload.body), unpack(bytes(payload.attributes))


def _arrived(bench: Workbench) -> dict[str, tuple[bytes, dict[str, Attribute]]]:
    """What the origin holds, by the id under which it died."""
    died = dict(Attempt.objects.exclude(sent_message_id=None).values_list("sent_message_id", "letter__message_id"))
    return {
        died[one["MessageId"]]: (
            one["Body"].encode(),
            {
                name: Attribute(value["DataType"], value.get("BinaryValue", value.get("StringValue")))
                for name, value in one.get("MessageAttributes", {}).items()
            },
        )
        for one in bench.delivered()
    }


def _is_refused_among_nine(bench: Workbench, poison: str, place: int, trips: list[list[str]]) -> None:
    letter = bench.letter(message_id=poison)
    assert (letter.state, letter.reason, letter.attempts) == ("parked", ParkedReason.REFUSED, 1)
    assert [trip.index(poison) for trip in trips] == [place]
    arrived = _arrived(bench)
    assert (len(arrived), {body for body, _ in arrived.values()}) == (TEN - 1, {b"mate"})
    assert bench.left() == 0
