"""The guard ends its server when the parent is gone, and never leaves one behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from redrive_service.sandbox.servers import guard
from redrive_service.sandbox.servers.process import RunningServer, Server
from tests.conditions import eventually

PROMISED = 2.0  # seconds from the parent's death to the last server's


def test_a_look_and_two_orderly_requests_take_less_than_was_promised() -> None:
    # How soon a machine does the rest is its own affair: the others wait ten times as long.
    assert guard.LOOK_EVERY + 2 * guard.TIMEOUT_ORPHANED < PROMISED


# A server that stops only when told the hard way, and has a child of its own.
STUBBORN = """
import os, signal, sys, time
for number in (signal.SIGTERM, signal.SIGINT):
    signal.signal(number, signal.SIG_IGN)
child = os.fork()
if child:
    open(sys.argv[1], "w").write(f"{os.getpid()} {child}")
while True:
    time.sleep(60)
"""

# A terminal that hangs up is heard here also by what `nohup` started.
PARENT = """
import signal, sys, time
from pathlib import Path
signal.signal(signal.SIGHUP, signal.SIG_DFL)
from redrive_service.sandbox.servers import guard
from redrive_service.sandbox.servers.process import RunningServer, Server
command = [sys.executable, "-c", sys.argv[1], sys.argv[2]]
RunningServer(Server(name="stubborn", command=command, log=Path(sys.argv[3]), stop_signals=("TERM", "INT")))
time.sleep(60)
"""


def is_alive(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def pids_in(file: Path) -> list[int]:
    return [int(word) for word in file.read_text().split()] if file.exists() else []


@pytest.mark.soak
@pytest.mark.parametrize(
    "number", [signal.SIGKILL, signal.SIGTERM, pytest.param(signal.SIGHUP, marks=pytest.mark.soak)]
)
def test_a_stubborn_server_and_its_child_are_gone_two_seconds_after_their_parent(
    tmp_path: Path, number: signal.Signals
) -> None:
    pids = tmp_path / "pids"
    parent = subprocess.Popen([sys.executable, "-c", PARENT, STUBBORN, str(pids), str(tmp_path / "log")])
    both = eventually(lambda: pids_in(pids), within=30)
    parent.send_signal(number)
    assert parent.wait() == -number
    eventually(lambda: not any(is_alive(pid) for pid in both), within=10 * PROMISED)


# A server whose child, and the child's child, leave its process group.
SCATTERED = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
pids = [os.getpid()]
for _ in range(2):
    if os.fork():
        time.sleep(60)
    os.setsid()
    pids.append(os.getpid())
open(sys.argv[1], "w").write(" ".join(map(str, pids)))
time.sleep(60)
"""


@pytest.mark.soak
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux gives the guard its orphans")
@pytest.mark.parametrize("killed", ["parent", "server"])
def test_children_that_left_the_group_are_gone_two_seconds_after(tmp_path: Path, killed: str) -> None:
    pids = tmp_path / "pids"
    parent = subprocess.Popen([sys.executable, "-c", PARENT, SCATTERED, str(pids), str(tmp_path / "log")])
    everyone = eventually(lambda: pids_in(pids), within=30)
    os.kill(parent.pid if killed == "parent" else everyone[0], signal.SIGKILL)
    eventually(lambda: not any(is_alive(pid) for pid in everyone), within=10 * PROMISED)
    parent.kill()
    parent.wait()


def test_a_killed_guard_takes_its_server_along(tmp_path: Path) -> None:
    if sys.platform != "linux":
        pytest.skip("only Linux ends a process together with its parent")
    pids = tmp_path / "pids"
    quiet = "import os, sys, time; open(sys.argv[1], 'w').write(str(os.getpid())); time.sleep(60)"
    server = RunningServer(Server(name="quiet", command=[sys.executable, "-c", quiet, str(pids)], log=tmp_path / "log"))
    (pid,) = eventually(lambda: pids_in(pids), within=30)
    server._guard.kill()
    server._guard.wait()
    eventually(lambda: not is_alive(pid), within=10 * PROMISED)


def test_a_server_that_ends_at_once_is_reported_with_its_last_words(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "import sys; sys.exit('the disk is full')"]
    server = RunningServer(Server(name="Brief", command=command, log=tmp_path / "brief.log"))
    with pytest.raises(Exception, match="Brief ended before it was ready") as caught:
        server.await_ready(lambda: False)
    assert str(caught.value).splitlines()[-1].strip() == "the disk is full"


def test_a_server_that_is_never_ready_is_stopped_and_reported(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "import time; time.sleep(60)"]
    server = RunningServer(Server(name="Slow", command=command, log=tmp_path / "slow.log"))
    with pytest.raises(Exception, match=r"Slow was not ready within 0\.1 s"):
        server.await_ready(lambda: False, within=0.1)
    assert server.has_ended() is True
