from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from redrive_service.sandbox.sqs.storage.journal import JournalIsUnusable
from tests.sandbox.sqs.kept import OPEN, KeptWorld
from tests.sandbox.sqs.world import World, arn


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


@pytest.mark.soak
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


@pytest.mark.parametrize(("queues", "place"), [("qr", 30), ("q", -5)], ids=["in the middle", "in the last record"])
def test_a_damaged_record_is_not_passed_over(tmp_path: Path, queues: str, place: int) -> None:
    world = KeptWorld(tmp_path)
    for name in queues:
        world.queue(name)
    world.journal.close()
    path = next(tmp_path.glob("journal-*"))
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)
    with pytest.raises(JournalIsUnusable, match="is damaged at byte 0"):
        KeptWorld(tmp_path)


@pytest.mark.parametrize("zeros", [1, 11, 12, 13, 4096])
@pytest.mark.parametrize("torn", [0, 1, 11, 12, 40])
def test_zeros_that_a_torn_last_write_left_are_cut_off(tmp_path: Path, zeros: int, torn: int) -> None:
    world = KeptWorld(tmp_path)
    url = world.queue("q")
    world.send(url, "kept")
    path = tmp_path / "journal-00000001"
    whole = path.stat().st_size
    world.send(url, "torn")
    world.journal.close()
    path.write_bytes(path.read_bytes()[: whole + torn] + b"\0" * zeros)
    again = KeptWorld(tmp_path)
    assert again.bodies("q", VisibilityTimeout=0) == ["kept"]
    again.journal.close()
    assert KeptWorld(tmp_path).bodies("q") == ["kept"]


@pytest.mark.parametrize("place", range(12))
@pytest.mark.parametrize("record", [0, 1, 2])
@pytest.mark.parametrize("flip", [1, 0x80])
def test_no_damage_to_a_header_passes_for_a_torn_end(tmp_path: Path, record: int, place: int, flip: int) -> None:
    world = KeptWorld(tmp_path)
    path, starts = tmp_path / "journal-00000001", []
    for name in "qrs":
        starts.append(path.stat().st_size)
        world.queue(name)
    world.journal.close()
    content = bytearray(path.read_bytes())
    content[starts[record] + place] ^= flip
    path.write_bytes(content)
    sentence = (
        f"{path} is damaged at byte {starts[record]}. Put a copy of it back, give the server another folder, or cut "
        f"the file off there to go on with the calls before: truncate -s {starts[record]} {path}"
    )
    with pytest.raises(JournalIsUnusable, match=f"^{re.escape(sentence)}$"):
        KeptWorld(tmp_path)
    OPEN.pop().close()
    os.truncate(path, starts[record])
    assert len(KeptWorld(tmp_path).call("ListQueues").get("QueueUrls", [])) == record


def snapshots_of_two_lives(tmp_path: Path) -> dict[str, bytes]:
    """The files of one server that started over once, each number with a queue more in its journal."""
    world = KeptWorld(tmp_path)
    world.queue("q")
    files = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    world.journal.start_over(world.sqs)
    world.queue("r")
    world.journal.close()
    return files | {path.name: path.read_bytes() for path in tmp_path.iterdir()}


@pytest.mark.parametrize(
    ("there", "trouble"),
    [
        (["journal-00000002"], "journal-00000002 has no snapshot: snapshot-00000002 is missing"),
        (["snapshot-00000001", "journal-00000001", "journal-00000002"], "snapshot-00000002 is missing"),
        (["journal-00000001"], "snapshot-00000001 is missing"),
        (["snapshot-00000002"], "journal-00000002 is missing, and with it the calls since the snapshot beside it"),
        (["snapshot-00000001", "journal-00000001", "snapshot-00000002"], "journal-00000002 is missing"),
    ],
)
def test_a_folder_that_lacks_a_file_is_refused(tmp_path: Path, there: list[str], trouble: str) -> None:
    files = snapshots_of_two_lives(tmp_path / "before")
    folder = tmp_path / "after"
    folder.mkdir()
    for name in there:
        (folder / name).write_bytes(files[name])
    with pytest.raises(JournalIsUnusable, match=trouble):
        KeptWorld(folder)
    assert sorted(path.name for path in folder.iterdir()) == sorted([*there, "lock"])


def test_an_empty_journal_without_its_snapshot_is_refused_where_something_was_before_it(tmp_path: Path) -> None:
    (tmp_path / "journal-00000002").write_bytes(b"")
    with pytest.raises(JournalIsUnusable, match="snapshot-00000002 is missing"):
        KeptWorld(tmp_path)


def test_a_death_while_starting_over_loses_nothing_wherever_it_comes(tmp_path: Path) -> None:
    files = snapshots_of_two_lives(tmp_path / "before")
    old = ["snapshot-00000001", "journal-00000001"]
    begun = {**{name: files[name] for name in old}, "journal-00000002": b""}
    renamed = {**begun, "snapshot-00000002": files["snapshot-00000002"]}
    half_removed = {name: content for name, content in renamed.items() if name != "snapshot-00000001"}
    for number, state in enumerate([begun, renamed, half_removed, {"journal-00000001": b""}]):
        folder = tmp_path / str(number)
        folder.mkdir()
        for name, content in state.items():
            (folder / name).write_bytes(content)
        world = KeptWorld(folder)
        names = [url.rpartition("/")[2] for url in world.call("ListQueues").get("QueueUrls", [])]
        assert names == ([] if number == 3 else ["q"])


@pytest.mark.soak
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
