from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import orjson
import pytest

from redrive_service.sandbox.sqs.core import LocalSqs
from redrive_service.sandbox.sqs.journal import Journal, JournalIsUnusable
from tests.sandbox.sqs.world import START, World, arn

OPEN: list[Journal] = []


@pytest.fixture(autouse=True)
def _close_journals() -> Iterator[None]:
    yield
    while OPEN:
        OPEN.pop().close()


class KeptWorld(World):
    """A world whose changes are kept the way the server keeps them."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.journal = Journal(folder)
        OPEN.append(self.journal)
        self.sqs = self.journal.recover(lambda: LocalSqs(Random(1)))
        self.now = max(START, self.sqs.now)

    def call(self, action: str, **parameters: object) -> dict[str, Any]:
        try:
            return super().call(action, **parameters)
        finally:
            if self.sqs.record.changed:
                self.journal.keep(self.now, action, orjson.dumps(parameters))


def view(world: World) -> list[object]:
    """Everything a client could learn, including what happens by itself in the next hours."""
    seen: list[object] = [world.sqs.now]
    for step in (0, 29, 400, 4_000):
        world.later(step)
        for url in world.call("ListQueues").get("QueueUrls", []):
            seen += [world.call("GetQueueAttributes", QueueUrl=url, AttributeNames=["All"])]
            seen += [world.call("ListQueueTags", QueueUrl=url)]
            seen += [World.call(world, "ReceiveMessage", QueueUrl=url, MaxNumberOfMessages=10, AttributeNames=["All"])]
            seen += [World.call(world, "ListMessageMoveTasks", SourceArn=arn(url.rpartition("/")[2]), MaxResults=10)]
    return seen


def live(world: World) -> None:
    """A bit of everything."""
    url, dlq = world.dead_letter_pair("q", "dlq", VisibilityTimeout="5")
    fifo = world.queue("q.fifo", VisibilityTimeout="60")
    world.call("TagQueue", QueueUrl=dlq, Tags={"a": "b"})
    for body in "abcdef":
        world.send(url, body)
    world.send(url, "late", DelaySeconds=300)
    world.send_group(fifo, "g", "1", "2", "3")
    world.receive(url, 3)
    (first, _) = world.receive(fifo, 2, ReceiveRequestAttemptId="try")
    world.later(5)
    world.receive(url, 10)
    world.delete(fifo, first)
    world.call("StartMessageMoveTask", SourceArn=arn("dlq"), MaxNumberOfMessagesPerSecond=1)
    world.later(1.5)
    world.call("PurgeQueue", QueueUrl=world.queue("purged"))


def test_doing_everything_again_gives_the_state_before(tmp_path: Path) -> None:
    world = KeptWorld(tmp_path)
    live(world)
    world.journal.close()
    again = KeptWorld(tmp_path)
    assert view(again) == view(world)


def test_a_snapshot_is_the_state_and_so_is_the_snapshot_of_it(tmp_path: Path) -> None:
    world = KeptWorld(tmp_path)
    live(world)
    world.journal.start_over(world.sqs)
    world.send("q", "after")
    world.journal.close()
    KeptWorld(tmp_path).journal.close()
    again = KeptWorld(tmp_path)
    assert view(again) == view(world)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["journal-00000004", "lock", "snapshot-00000004"]


def test_a_torn_last_record_is_dropped_wherever_it_is_torn(tmp_path: Path) -> None:
    world = KeptWorld(tmp_path)
    url = world.queue("q")
    world.send(url, "kept")
    path = next(tmp_path.glob("journal-*"))
    whole = path.stat().st_size
    world.send(url, "torn")
    content = path.read_bytes()
    world.journal.close()
    snapshot = next(tmp_path.glob("snapshot-*")).read_bytes()
    for length in range(whole, len(content)):
        folder = tmp_path / str(length)
        folder.mkdir()
        (folder / "snapshot-00000001").write_bytes(snapshot)
        (folder / "journal-00000001").write_bytes(content[:length])
        again = KeptWorld(folder)
        assert again.bodies("q") == ["kept"]
        again.journal.close()


def test_a_record_that_is_damaged_in_the_middle_is_not_passed_over(tmp_path: Path) -> None:
    world = KeptWorld(tmp_path)
    world.queue("q")
    world.queue("r")
    world.journal.close()
    path = next(tmp_path.glob("journal-*"))
    content = bytearray(path.read_bytes())
    content[20] ^= 1
    path.write_bytes(content)
    with pytest.raises(JournalIsUnusable, match="is damaged at byte 0"):
        KeptWorld(tmp_path)


def test_an_unfinished_snapshot_is_ignored(tmp_path: Path) -> None:
    world = KeptWorld(tmp_path)
    world.send(world.queue("q"), "x")
    world.journal.close()
    (tmp_path / "snapshot-00000002.unfinished").write_bytes(b"half")
    assert KeptWorld(tmp_path).bodies("q") == ["x"]


@pytest.mark.parametrize(
    "content",
    [b"", b"something else", b"local SQS snapshot 1\n", b"local SQS snapshot 1\n" + pickle.dumps(Path("x")),
     b"local SQS snapshot 1\n" + pickle.dumps({})],
)  # fmt: skip
def test_a_snapshot_of_somebody_else_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "snapshot-00000001").write_bytes(content)
    with pytest.raises(JournalIsUnusable, match="was not written by this version of the local SQS"):
        KeptWorld(tmp_path)


class Intruder:
    """Something that acts when it is unpickled."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (self.trace,)


def test_a_snapshot_of_somebody_else_cannot_run_anything(tmp_path: Path) -> None:
    trace = tmp_path / "was here"
    (tmp_path / "snapshot-00000001").write_bytes(b"local SQS snapshot 1\n" + pickle.dumps(Intruder(trace)))
    with pytest.raises(JournalIsUnusable):
        KeptWorld(tmp_path)
    assert not trace.exists()


def test_a_journal_without_its_snapshot_is_refused(tmp_path: Path) -> None:
    (tmp_path / "journal-00000001").write_bytes(b"")
    with pytest.raises(JournalIsUnusable, match="a journal but no snapshot"):
        KeptWorld(tmp_path)


def test_a_journal_that_has_grown_is_replaced_by_a_snapshot(tmp_path: Path) -> None:
    world = KeptWorld(tmp_path)
    url = world.queue("q")
    assert not world.journal.has_grown()
    for _ in range(70):
        world.send(url, "x" * 1_000_000)
    assert world.journal.has_grown()
    world.journal.start_over(world.sqs)
    assert not world.journal.has_grown()
    world.journal.close()
    assert KeptWorld(tmp_path).counts("q") == (70, 0, 0)
