"""Workers of two versions share queues and tables: a deployment that rolls forward and back loses nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import boto3
import pytest

from tests.conditions import eventually
from tests.faults.versions import Version, Witness, newest_tag, shared_servers
from tests.reprocessing.pipeline.bench import sandbox_calls
from tests.stories.scene import lettered, published

pytestmark = [pytest.mark.soak, pytest.mark.long, pytest.mark.timeout(900)]

KEYS, CHUNK = 50, 200
KILLS, SLOTS, INTENT = 2, 2, 50  # a killed worker repeats at most one group of each of its processes
OPTIONS: Final = (
    "--mode automatic --every 1 --at-once --outcome accepted --advance accepted --rate 150 --ramp-from off --no-waves "
    "--ordering-key attribute:key --sequence attribute:n --new-key-delay 0 --backoff-base 1 --max-attempts 10 --confirm"
)


#: A later version's message with an argument and a header that others do not know, and one of a task of its own.
OF_A_LATER_VERSION: Final = """
from celery import current_app
from reprocessing.tasks import tick
words = {"queue": "redrive-control", "headers": {"of_a_later_version": "x"}}
tick.apply_async(kwargs={"of_a_later_version": 1}, task_id="later-argument", **words)
current_app.send_task("reprocessing.of_a_later_version", task_id="later-task", **words)
"""


@dataclass
class Roll:
    """A DLQ that both versions drain."""

    previous: Version
    this: Version
    witness: Witness
    queue: str
    sqs: Any = field(default_factory=lambda: boto3.client("sqs"))
    sent: int = 0

    def add_dlq(self) -> None:
        self.dlq = self.sqs.create_queue(QueueName=f"{self.queue}-dlq")["QueueUrl"]
        arn = self.sqs.get_queue_attributes(QueueUrl=self.dlq, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
        policy = f'{{"deadLetterTargetArn": "{arn}", "maxReceiveCount": "1"}}'
        self.sqs.create_queue(QueueName=self.queue, Attributes={"RedrivePolicy": policy})
        self.previous.manage("add_dlq", "rolling", "--url", self.dlq, *OPTIONS.split())

    def bury(self) -> None:
        numbers = range(self.sent, self.sent + CHUNK)
        published(
            self.sqs, self.dlq,
            (lettered(f"{n}", key=f"key-{n % KEYS}", n=f"{n // KEYS}", event=f"{n}") for n in numbers),
        )  # fmt: skip
        self.sent += CHUNK

    def await_attempts(self, *versions: Version) -> None:
        """Messages are sent until each of these versions, and no other, has sent some."""
        wanted = {version.name for version in versions}
        self.witness.begin()

        def seen() -> bool:
            if self.witness.delivered() > self.sent - CHUNK // 2:
                self.bury()
            return self.witness.versions() >= wanted

        eventually(seen, within=180, every=0.1)
        assert self.witness.versions() == wanted

    def await_logged(self, text: str) -> None:
        logs = [path for version in (self.previous, self.this) for path in version.folder.glob("*.log")]
        eventually(lambda: any(text in path.read_text() for path in logs), within=120, every=0.2)

    def await_sends_in_progress(self) -> None:
        self.witness.begin()
        self.bury()
        eventually(self.witness.versions, within=120, every=0.01)

    def await_delivered(self) -> None:
        eventually(lambda: self.witness.delivered() >= self.sent, within=180, every=0.1)

    def judge(self) -> None:
        """By what the source took: everything arrived, in order per key; repeats are few, with the same redrive id."""
        marks: dict[str, set[str]] = defaultdict(set)
        by_key: dict[str, list[int]] = defaultdict(list)
        calls = [entry for call in sandbox_calls(self.queue) for entry in call["sent"] if entry["accepted"]]
        for attributes in [entry["attributes"] for entry in calls]:
            marks[attributes["event"]].add(attributes["RedriveId"].split(":")[0])
            by_key[attributes["key"]].append(int(attributes["n"]))
        assert sorted(map(int, marks)) == list(range(self.sent))
        assert {len(ids) for ids in marks.values()} == {1}
        assert len(calls) - self.sent <= KILLS * SLOTS * INTENT
        assert [key for key, numbers in by_key.items() if not all(a <= b for a, b in pairwise(numbers))] == []


@pytest.fixture(params=["HEAD", "the newest tag"])
def roll(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Roll]:
    commit = newest_tag() if request.param != "HEAD" else "HEAD"
    if not commit:
        pytest.skip("no release is tagged v… in this clone: only HEAD stands in for the previous version")
    name = f"rolling_{uuid4().hex[:8]}"
    with shared_servers(name, redis_database=14) as environment:
        previous = Version.of_git("previous", commit, tmp_path, environment)
        this = Version.of_this_tree("this", tmp_path, environment)
        this.plant_migration()
        previous.manage("migrate")
        with closing(Witness(environment)) as witness:
            yield Roll(previous, this, witness, name.replace("_", "-"))


def test_a_deployment_rolls_forward_and_back_while_messages_are_sent(roll: Roll) -> None:
    previous, this = roll.previous, roll.this
    roll.add_dlq()
    with ExitStack() as ends:
        old_beat = ends.enter_context(ExitStack())
        old_beat.enter_context(previous.beat())
        first, second = (ends.enter_context(closing(previous.worker(f"old-{n}"))) for n in (1, 2))
        roll.await_attempts(previous)

        roll.bury()
        this.manage("migrate")  # while workers of the previous version send
        roll.await_attempts(previous)

        new_beat = ends.enter_context(ExitStack())
        new_beat.enter_context(this.beat())
        third = ends.enter_context(closing(this.worker("new-1")))
        roll.await_attempts(previous, this)

        this.manage("shell", "-c", OF_A_LATER_VERSION)
        roll.await_logged("Task reprocessing.tick[later-argument] succeeded")
        roll.await_logged("redrive.broker.message_refused queue=redrive-control")

        fourth = ends.enter_context(closing(this.worker("new-2")))
        fourth.await_ready()
        roll.await_attempts(previous, this)
        roll.await_sends_in_progress()
        first.kill()
        third.kill()
        roll.await_attempts(previous, this)

        second.ask_to_stop()  # forward: only this version is left
        old_beat.close()
        assert second.process.wait(120) == 0
        roll.await_attempts(this)

        previous.manage("migrate", "--check")  # and back, on the newer tables
        fifth = ends.enter_context(closing(previous.worker("old-3")))
        ends.enter_context(previous.beat())
        fifth.await_ready()
        new_beat.close()
        fourth.ask_to_stop()
        assert fourth.process.wait(120) == 0
        roll.await_attempts(previous)
        roll.await_delivered()
    roll.judge()
