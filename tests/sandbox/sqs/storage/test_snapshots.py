from __future__ import annotations

import pickle
import re
import zlib
from pathlib import Path

import pytest

from redrive_service.sandbox.sqs.storage.journal import JournalIsUnusable
from redrive_service.sandbox.sqs.storage.snapshot import HEADLINE
from tests.sandbox.sqs.kept import OPEN, KeptWorld


def snapshot(content: bytes) -> bytes:
    return HEADLINE + b"%08x\n" % zlib.crc32(content) + content


def test_an_unfinished_snapshot_is_ignored(tmp_path: Path) -> None:
    world = KeptWorld(tmp_path)
    world.send(world.queue("q"), "x")
    world.journal.close()
    (tmp_path / "snapshot-00000002.unfinished").write_bytes(b"half")
    assert KeptWorld(tmp_path).bodies("q") == ["x"]


@pytest.mark.parametrize(
    "content",
    [b"", b"something else", b"local SQS snapshot 1\n", snapshot(pickle.dumps(Path("x"))), snapshot(pickle.dumps({}))],
)
def test_a_snapshot_of_somebody_else_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "snapshot-00000001").write_bytes(content)
    with pytest.raises(JournalIsUnusable, match="was not written by this version of the local SQS"):
        KeptWorld(tmp_path)


class Intruder:
    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (self.trace,)


def test_a_snapshot_of_somebody_else_cannot_run_anything(tmp_path: Path) -> None:
    trace = tmp_path / "was here"
    (tmp_path / "snapshot-00000001").write_bytes(snapshot(pickle.dumps(Intruder(trace))))
    with pytest.raises(JournalIsUnusable, match="was not written by this version"):
        KeptWorld(tmp_path)
    assert not trace.exists()


@pytest.mark.soak
def test_every_flipped_byte_of_a_snapshot_is_noticed(tmp_path: Path) -> None:
    world = KeptWorld(tmp_path)
    world.send(world.queue("q"), "x")
    world.journal.start_over(world.sqs)
    world.journal.close()
    path = tmp_path / "snapshot-00000002"
    content = path.read_bytes()
    for place in range(0, len(content), 7):
        path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        trouble = "was not written by this version" if place < len(HEADLINE) else "does not fit its checksum"
        with pytest.raises(JournalIsUnusable, match=f"^{re.escape(str(path))} .*{trouble}"):
            KeptWorld(tmp_path)
        OPEN.pop().close()
    path.write_bytes(content[:-1])
    with pytest.raises(JournalIsUnusable, match="does not fit its checksum"):
        KeptWorld(tmp_path)
