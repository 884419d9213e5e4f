"""What is received and sent on is, byte for byte, what was there."""

from __future__ import annotations

from reprocessing.domain.message.envelope import Attribute, OutgoingMessage
from reprocessing.domain.replay.verdicts import Taken
from reprocessing.gateways import sqs
from reprocessing.gateways.sqs import QueueAddress
from tests.reprocessing.gateways.letters import arrivals, letter, send


def test_attributes_of_every_type_and_a_body_of_every_letter_come_through(address: QueueAddress) -> None:
    body = "Ünïcödé 💌 \t\r\n  \"{'quoted'}\" \ufffd".encode()
    attributes = {
        "text": Attribute("String", "späť 💌"),
        "label": Attribute("String.uuid", "a"),
        "number": Attribute("Number", "-1.50"),
        "custom.number": Attribute("Number.int", "7"),
        "bytes": Attribute("Binary", bytes(range(256))),
        "picture": Attribute("Binary.png", b"\x89PNG\x00\xff"),
        **{f"more-{number}": Attribute("String", str(number)) for number in range(4)},
    }
    trace = "Root=1-5759e988-bd862e3fe1be46a994272793"
    sent = OutgoingMessage(1, body, attributes, group_id="tenant", trace_header=trace)
    assert isinstance(send(address, sent)[1], Taken)
    (arrived,) = arrivals(address)
    assert (arrived.body, arrived.attributes) == (body, attributes)
    assert (arrived.system["AWSTraceHeader"], arrived.system["MessageGroupId"]) == (trace, "tenant")


def test_a_letter_of_a_whole_mebibyte_comes_through_beside_others(address: QueueAddress) -> None:
    attributes = {"key": Attribute("Binary", bytes(1000))}
    body = b"x" * (sqs.LARGEST - len("key") - len("Binary") - 1000)
    outcomes = send(address, letter(1), letter(2, body, attributes), letter(3))
    assert {number for number, fate in outcomes.items() if isinstance(fate, Taken)} == {1, 2, 3}
    assert sorted(one.body for one in arrivals(address)) == sorted([b"1", body, b"3"])
