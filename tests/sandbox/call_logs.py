"""Small call logs and consumer's logs, written by hand, for the judge."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any, TypeAlias

import pytest

from redrive_service.sandbox.judge import Experiment, Judgement, Offence, ServiceRecords, judge

Told: TypeAlias = Any
"""A field of the log as it is to stand there."""

Line = dict[str, Told]


class Story:
    """What happens to the queues `orders` and `orders-dlq`, told in order.

    A letter's words are "event account sequence": `e1 anna 1`; a message's id is free. Every call takes a second.
    """

    def __init__(self) -> None:
        self.calls: list[Line] = []
        self.consumed: list[Line] = []

    def tell(self, *sentences: str) -> None:
        """Several steps: "die m1 e1 anna 1; redrive r1 e1 anna 1 letter-1:1; consume r1; settle m1"."""
        for sentence in "; ".join(sentences).split("; "):
            verb, name, *words = sentence.split()
            match verb:
                case "die" | "publish":
                    getattr(self, verb)(name, " ".join(words))
                case "redrive":  # several of one request have a + between them
                    entries = [entry.split() for entry in " ".join([name, *words]).split(" + ")]
                    self.redrive_batch(*((one[0], " ".join(one[1:4]), one[4]) for one in entries))
                case _:
                    getattr(self, verb)(name, *words)

    def call(self, action: str, queue: str = "orders", **told: Told) -> Line:
        empty: Line = {"sent": [], "received": [], "deleted": [], "dead_lettered": []}
        n = len(self.calls)
        common = {"n": n, "at": float(n), "status": 200, "code": None, "fault": None, "answered": True}
        self.calls.append({**common, **empty, "action": action, "queue": queue, **told})
        return self.calls[-1]

    def publish(self, message_id: str, words: str, queue: str = "orders", **more: Told) -> None:
        self.call("SendMessage", queue, sent=[sent(message_id, words, **more)])

    def bury(self, *message_ids: str, source: str = "orders") -> None:
        moves = [{"message_id": one, "from": source, "to": "orders-dlq"} for one in message_ids]
        self.call("ReceiveMessage", source, dead_lettered=moves)

    def capture(self, *message_ids: str, answered: bool = True) -> None:
        received = [{"message_id": one, "receive_count": 3, "extra": False} for one in message_ids]
        self.call("ReceiveMessage", "orders-dlq", received=received, answered=answered)

    def die(self, message_id: str, words: str, **more: Told) -> None:
        self.publish(message_id, words, **more)
        self.bury(message_id)
        self.capture(message_id)

    def redrive(self, message_id: str | None, words: str, mark: str, queue: str = "orders", **more: Told) -> None:
        self.redrive_batch((message_id, words, mark), queue=queue, **more)

    def redrive_batch(self, *entries: tuple[str | None, str, str], queue: str = "orders", **more: Told) -> None:
        at = {"at": more.pop("at")} if "at" in more else {}
        sends = [sent(message_id, words, mark=mark, **more) for message_id, words, mark in entries]
        self.call("SendMessageBatch", queue, sent=sends, **at)

    def delete(self, *message_ids: str, queue: str = "orders", took_effect: bool = True) -> None:
        gone = [{"message_id": one, "took_effect": took_effect} for one in message_ids]
        self.call("DeleteMessageBatch", queue, deleted=gone)

    def settle(self, *message_ids: str) -> None:
        self.delete(*message_ids, queue="orders-dlq")

    def consume(self, message_id: str, outcome: str = "ok", *, lasts: float = 0.5, after: float = 0.0) -> None:
        """The consumer processes a message; what it processed it deletes."""
        started = float(len(self.calls)) + after
        self.consumed.append(
            {"message_id": message_id, "started": started, "ended": started + lasts, "outcome": outcome}
        )
        if outcome == "ok":
            self.delete(message_id)
        else:
            self.call("ReceiveMessage")  # of something else: time passes

    def come_back(self, message_id: str) -> None:
        """The consumer fails, the message dies again and is captured."""
        self.consume(message_id, "failed")
        self.bury(message_id)
        self.capture(message_id)


def sent(message_id: str | None, words: str, *, mark: str | None = None, **more: Told) -> Line:
    """One entry of a send; `message_id` None when it was refused."""
    event, account, sequence = words.split()
    attributes = {"event_id": event, "account": account, "sequence": sequence}
    if mark is not None:
        attributes["RedriveId"] = mark
    common: Line = {"group": None, "deduplication_id": None, "sequence_number": None, "md5": f"md5 of {event}"}
    fate = {"accepted": message_id is not None, "duplicate": False, "code": None}
    return {**common, **fate, "message_id": message_id, "attributes": attributes, **more}


SHOP = Experiment(
    sources=frozenset({"orders"}),
    dlqs=frozenset({"orders-dlq"}),
    identity="event_id",
    ordering="account",
    sequence="sequence",
)
ACCEPTED = replace(SHOP, advance="accepted")


def judged(story: Story, experiment: Experiment = SHOP, **books: Collection[object]) -> Judgement:
    frozen: dict[str, Any] = {name: frozenset(ids) for name, ids in books.items()}
    return judge(experiment, story.calls, story.consumed, ServiceRecords(**frozen))


def offences(story: Story, experiment: Experiment = SHOP, **books: Collection[object]) -> list[tuple[Offence, str]]:
    return [(finding.offence, finding.event) for finding in judged(story, experiment, **books).findings]


def dead_lane(story: Story) -> None:
    story.tell("die m2 e2 anna 2; die m10 e10 anna 10; die m1 e1 berta 1")


EXPERIMENTS = {
    "shop": SHOP,
    "accepted": ACCEPTED,
    "fifo": replace(ACCEPTED, fifo=True),
    "once": replace(SHOP, max_attempts=1),
    "wave_of_1": replace(SHOP, first_wave=1),
    "wave_of_2": replace(SHOP, first_wave=2),
}


def tales(text: str) -> pytest.MarkDecorator:
    """Parametrize a test with `tale`: its name, and indented below it the steps and what the judge says of them.

    A line `shop parked=m1,m2 -> m1 lost, LOST e1` says of which experiment, and with which records of the service, the
    judge finds which fates and which offences, all of them. No fate there: they are not looked at.
    """
    found = [part.split("\n  ") for part in text.strip("\n").split("\n\n")]
    return pytest.mark.parametrize("tale", [pytest.param(lines, id=name) for name, *lines in found])


def follow(tale: list[str]) -> None:
    """Tell the tale, and compare what the judge says at each of its arrows."""
    story = Story()
    for line in tale:
        head, arrow, said = line.partition(" -> ")
        if not arrow:
            story.tell(line)
            continue
        name, *given = head.split()
        books = {book: ids.split(",") for book, _, ids in (one.partition("=") for one in given)}
        words = [one.split() for one in said.split(", ") if one != "nothing"]
        judgement = judged(story, EXPERIMENTS[name], **books)
        found = [[one.offence.name, one.event] for one in judgement.findings]
        fates = {one[0]: one[1] for one in words if not one[0].isupper()}
        offences = [one for one in words if one[0].isupper()]
        assert (line, found, judgement.fates) == (line, offences, fates or judgement.fates)
