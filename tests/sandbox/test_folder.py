"""A folder is one sandbox's at a time, and remembers what must be the same at the next start."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from redrive_service.sandbox import folder as folders
from redrive_service.sandbox.errors import SandboxIsRunning
from redrive_service.sandbox.folder import Ports, SavedSettings, lock_folder
from redrive_service.sandbox.servers.process import RunningServer, Server, free_port

GONE_AT_ONCE = "import sys, time; time.sleep(0.5)"


def number_of_somebody_dead() -> int:
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    return dead.pid


def left_by_a_killed_launcher(folder: Path, program: str) -> RunningServer:
    """A server that still runs under its guard, in a folder whose launcher is no more."""
    lock = lock_folder(folder)
    command = [sys.executable, "-c", program]
    server = RunningServer(Server(name="left", command=command, log=folder / "log", lock=lock))
    os.pwrite(lock, f"{number_of_somebody_dead():<32}".encode(), 0)
    os.close(lock)
    return server


@pytest.mark.soak
def test_the_folder_of_a_killed_sandbox_is_taken_when_its_last_server_has_ended(tmp_path: Path) -> None:
    server = left_by_a_killed_launcher(tmp_path, GONE_AT_ONCE)
    os.close(lock_folder(tmp_path))
    server._guard.wait(10)  # the lock is let go of by its very end
    assert server.has_ended() is True


def test_the_folder_of_a_killed_sandbox_whose_servers_go_on_is_refused_after_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = left_by_a_killed_launcher(tmp_path, "import time; time.sleep(60)")
    monkeypatch.setattr(folders, "FREE_WITHIN", 0.2)
    try:
        with pytest.raises(SandboxIsRunning):
            lock_folder(tmp_path)
    finally:
        server.stop()


def test_the_folder_of_a_running_sandbox_is_refused_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = lock_folder(tmp_path)
    monkeypatch.setattr(time, "sleep", lambda _: pytest.fail("it waits"))
    try:
        with pytest.raises(SandboxIsRunning, match=f"process {os.getpid()}"):
            lock_folder(tmp_path)
    finally:
        os.close(lock)


@pytest.mark.parametrize("word", [b"\xff\xfe", b"9" * 32, b""])
def test_a_lock_with_a_strangers_word_in_it_is_refused_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, word: bytes
) -> None:
    lock = lock_folder(tmp_path)
    (tmp_path / "lock").write_bytes(word)
    monkeypatch.setattr(folders, "FREE_WITHIN", 0.1)
    try:
        with pytest.raises(SandboxIsRunning):
            lock_folder(tmp_path)
    finally:
        os.close(lock)


def test_a_remembered_port_that_a_stranger_has_taken_is_replaced() -> None:
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        taken = stranger.getsockname()[1]
        settled = Ports().settled(Ports(postgres=taken))
    assert 0 not in {settled.postgres, settled.postgres - taken}


def test_a_remembered_port_that_is_free_is_used_again(tmp_path: Path) -> None:
    port = free_port()
    SavedSettings.load(tmp_path, Ports(sqs=port))
    assert SavedSettings.load(tmp_path, Ports()).ports.sqs == port


def test_two_folders_have_nothing_secret_in_common(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir()
    other.mkdir()
    first, second = SavedSettings.load(one, Ports()).secrets, SavedSettings.load(other, Ports()).secrets
    assert SavedSettings.load(one, Ports()).secrets == first
    names = ("data", "django", "admin", "token")
    assert [getattr(first, name) == getattr(second, name) for name in names] == [False] * 4
