"""Random lives of a queue with a dead-letter queue, compared with a model that looks through plain lists."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, MultipleResults, RuleBasedStateMachine, consumes, invariant, multiple, rule

from redrive_service.sandbox.sqs.api.errors import SqsError
from redrive_service.sandbox.sqs.storage.journal import Journal
from tests.sandbox.sqs.world import World, arn

RECEIVES = 3
VISIBILITY = 30
RETENTION = 600


@dataclass
class Letter:
    message_id: str
    group: str
    sent_at: float
    hidden_until: float = 0
    handle: str = ""
    count: int = 0
    dead: bool = False

    def visible(self, now: float) -> bool:
        return self.hidden_until <= now


class Lives(RuleBasedStateMachine):
    """A standard queue; the FIFO one below differs in what a receive may give."""

    suffix = ""
    receipts: Bundle[tuple[str, dict[str, Any]]] = Bundle("receipts")

    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        name, dead = f"q{self.suffix}", f"dlq{self.suffix}"
        self.url, self.dlq = self.world.dead_letter_pair(name, dead, RECEIVES, MessageRetentionPeriod=str(RETENTION))
        self.letters: list[Letter] = []
        self.sent = 0
        self.gone = 0
        self._folder = TemporaryDirectory()
        self._journal = Journal(Path(self._folder.name))
        self._journal.start_over(self.world.sqs)

    def teardown(self) -> None:
        self._journal.close()
        again = World()
        journal = Journal(Path(self._folder.name))
        again.sqs = journal.recover(lambda: World().sqs)
        journal.close()
        self._folder.cleanup()
        self.world.later(VISIBILITY)
        again.now = self.world.now
        assert [again.receive(url) for url in (self.url, self.dlq)] == [
            self.world.receive(url) for url in (self.url, self.dlq)
        ]

    def call(self, action: str, **parameters: object) -> dict[str, Any]:
        try:
            return self.world.call(action, **parameters)
        finally:
            if self.world.sqs.record.changed:
                self._journal.keep(self.world.now, action, orjson.dumps(parameters))

    # -- the model

    def living(self) -> list[Letter]:
        now = self.world.now
        for letter in [letter for letter in self.letters if not letter.dead and letter.sent_at + RETENTION <= now]:
            self.letters.remove(letter)
            self.gone += 1
        return [letter for letter in self.letters if not letter.dead]

    def offered(self) -> list[list[Letter]]:
        return [[letter] for letter in self.living() if letter.visible(self.world.now)]

    def find(self, message_id: str) -> Letter:
        (letter,) = (letter for letter in self.letters if letter.message_id == message_id)
        return letter

    # -- what happens

    @rule(group=st.sampled_from("abc"))
    def send(self, group: str) -> None:
        self.sent += 1
        parameters = {"MessageGroupId": group}
        if self.suffix:
            parameters["MessageDeduplicationId"] = str(self.sent)
        answer = self.call("SendMessage", QueueUrl=self.url, MessageBody=str(self.sent), **parameters)
        self.letters.append(Letter(answer["MessageId"], group, self.world.now))

    @rule(target=receipts, most=st.integers(1, 10), visibility=st.sampled_from([1, VISIBILITY, 100]))
    def receive(self, most: int, visibility: int) -> MultipleResults[tuple[str, dict[str, Any]]]:
        offered = self.offered()
        answer = self.call("ReceiveMessage", QueueUrl=self.url, MaxNumberOfMessages=most, VisibilityTimeout=visibility)
        messages = answer.get("Messages", [])
        fresh = [letter for group in offered for letter in group if letter.count < RECEIVES]
        assert len(messages) == min(most, len(fresh))
        received = [self.find(message["MessageId"]) for message in messages]
        for group in offered:
            mine = [letter for letter in received if letter.group == group[0].group and letter in group]
            assert mine == [letter for letter in group if letter.count < RECEIVES][: len(mine)]
        for letter, message in zip(received, messages, strict=True):
            letter.count += 1
            letter.handle = message["ReceiptHandle"]
            letter.hidden_until = self.world.now + visibility
        self.bury(offered)
        return multiple(*((message["MessageId"], message) for message in messages))

    def bury(self, offered: list[list[Letter]]) -> None:
        """What the receive met and found spent is dead now; which it met is the queue's business."""
        spent = [
            letter
            for group in offered
            for letter in group
            if letter.count >= RECEIVES and letter.visible(self.world.now)
        ]
        before = sum(letter.dead for letter in self.letters)
        buried = sum(self.world.counts(self.dlq)) - before
        assert 0 <= buried <= len(spent)
        if buried == len(spent):
            for letter in spent:
                letter.dead = True
            return
        dead = {message["MessageId"] for message in self.look_at_the_dead()}
        for letter in spent:
            letter.dead = letter.message_id in dead

    def look_at_the_dead(self) -> list[dict[str, Any]]:
        """All dead letters, by a look that changes nothing anybody else can see but their receive counts."""
        seen: dict[str, dict[str, Any]] = {}
        for _ in range(sum(self.world.counts(self.dlq))):
            answer = self.call("ReceiveMessage", QueueUrl=self.dlq, MaxNumberOfMessages=10, VisibilityTimeout=0)
            seen |= {message["MessageId"]: message for message in answer.get("Messages", [])}
        return list(seen.values())

    @rule(receipt=consumes(receipts))
    def delete(self, receipt: tuple[str, dict[str, Any]]) -> None:
        message_id, message = receipt
        known = [letter for letter in self.living() if letter.message_id == message_id]
        current = bool(known) and known[0].handle == message["ReceiptHandle"]
        in_flight = bool(known) and not known[0].visible(self.world.now)
        try:
            self.call("DeleteMessage", QueueUrl=self.url, ReceiptHandle=message["ReceiptHandle"])
        except SqsError:
            assert self.suffix
            assert known
            assert not (current and in_flight)
        else:
            assert not self.suffix or not known or (current and in_flight)
            if current:
                self.letters.remove(known[0])
                self.gone += 1

    @rule(receipt=receipts, visibility=st.sampled_from([0, 1, 200]))
    def hide(self, receipt: tuple[str, dict[str, Any]], visibility: int) -> None:
        message_id, message = receipt
        handle = message["ReceiptHandle"]
        known = [letter for letter in self.living() if letter.message_id == message_id]
        if self.suffix:  # there an older handle has expired; a standard queue takes it
            known = [letter for letter in known if letter.handle == handle]
        possible = bool(known) and not known[0].visible(self.world.now)
        try:
            self.call("ChangeMessageVisibility", QueueUrl=self.url, ReceiptHandle=handle, VisibilityTimeout=visibility)
        except SqsError:
            assert not possible
        else:
            assert possible
            known[0].hidden_until = self.world.now + visibility

    @rule(seconds=st.sampled_from([0.5, 1, 29, 31, 300]))
    def wait(self, seconds: float) -> None:
        self.world.later(seconds)

    # -- what always holds

    @invariant()
    def counts_are_exact(self) -> None:
        living = self.living()
        visible = sum(letter.visible(self.world.now) for letter in living)
        assert self.world.counts(self.url) == (visible, len(living) - visible, 0)

    @invariant()
    def nothing_is_lost(self) -> None:
        dead = sum(letter.dead for letter in self.letters)
        assert sum(self.world.counts(self.dlq)) == dead
        assert len(self.living()) + dead + self.gone == self.sent


class OrderedLives(Lives):
    suffix = ".fifo"

    def offered(self) -> list[list[Letter]]:
        groups: dict[str, list[Letter]] = {}
        closed = set()
        for letter in self.living():
            if not letter.visible(self.world.now):
                closed.add(letter.group)
            elif letter.group not in closed:
                groups.setdefault(letter.group, []).append(letter)
        return list(groups.values())


def test_the_names_of_the_pair_are_what_the_policy_says() -> None:
    lives = Lives()
    policy = json.loads(lives.world.attribute(lives.url, "RedrivePolicy") or "")
    assert policy == {"deadLetterTargetArn": arn("dlq"), "maxReceiveCount": RECEIVES}
    lives.teardown()


TestLives = pytest.mark.soak(Lives.TestCase)
TestLives.settings = settings(max_examples=60, stateful_step_count=60, deadline=None)
TestOrderedLives = pytest.mark.soak(OrderedLives.TestCase)
TestOrderedLives.settings = settings(max_examples=60, stateful_step_count=60, deadline=None)
