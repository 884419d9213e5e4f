"""Run one server of the sandbox, and stop it when the process that started this guard has ended for any reason.

Run this file as a script, by its path. So it starts in a few milliseconds, and needs only the standard library:

    python -I -S guard.py PARENT_PID STOP_SIGNALS USER -- COMMAND [ARG ...]

To stop the server, the signals in `STOP_SIGNALS` (such as "INT,QUIT") are sent from left to right, then KILL. `USER` is
the user that runs the command, or "-" for the current user.

A parent that was killed with SIGKILL cannot stop its servers. So five times a second, the guard checks the id of its
parent process, which changes when the parent ends. Other ways are worse. `PR_SET_PDEATHSIG` exists only on Linux, and
depends on the parent's thread. A closed pipe is not noticed if another process has inherited the pipe.

Children of a server may leave its process group, as PostgreSQL's backends do. A busy backend does not notice that
PostgreSQL's main process has ended. So on Linux, the guard becomes the parent of such orphans, and ends them, too.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable

LOOK_EVERY = 0.2  # seconds between two checks of the parent
TIMEOUT_ORDERLY = 10.0  # seconds for which the guard waits after a stop signal
TIMEOUT_ORPHANED = 0.6  # seconds after a stop signal if the parent has ended: all must end within 2 s
TIMEOUT_KILLED = 5.0  # max seconds until the kernel has ended killed processes
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36


def die_with_the_guard() -> None:
    """On Linux, let the kernel end the server if its parent, the guard, is killed. Other systems cannot do this."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGINT)


def adopt_orphans() -> None:
    """On Linux, make the guard the parent of each descendant whose own parent ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)


def start(command: list[str], user: str) -> subprocess.Popen[bytes]:
    """Start the server in a new process group, so that its children can be ended with it."""
    identity = {} if user == "-" else {"user": user, "group": group_of(user), "extra_groups": []}
    return subprocess.Popen(  # type: ignore[call-overload,no-any-return]  # identity is Popen's own keywords
        command,
        stdin=subprocess.DEVNULL,
        process_group=0,
        preexec_fn=die_with_the_guard,  # noqa: PLW1509  # this process has one thread
        **identity,
    )


def group_of(user: str) -> int:
    """Return the id of the user's primary group. The group of "nobody" has different names on different systems."""
    import pwd  # noqa: PLC0415  # needed only as root

    return pwd.getpwnam(user).pw_gid


def stop(server: subprocess.Popen[bytes], signals: list[str], timeout: float) -> None:
    """Send the signals in order, then KILL, until the server has ended. Wait `timeout` seconds after each."""
    for name in (*signals, "KILL"):
        server.send_signal(signal.Signals[f"SIG{name}"])
        try:
            server.wait(timeout)
        except subprocess.TimeoutExpired:
            continue
        return


def end_stragglers(server: subprocess.Popen[bytes]) -> None:
    """Kill processes that are left after the server's end: its process group and, on Linux, the guard's descendants."""
    with contextlib.suppress(ProcessLookupError, PermissionError):  # no process is left (macOS raises the second error)
        os.killpg(server.pid, signal.SIGKILL)
    deadline = time.monotonic() + TIMEOUT_KILLED
    while time.monotonic() < deadline:
        for pid in children():
            os.kill(pid, signal.SIGKILL)
        try:
            ended, _ = os.waitpid(-1, os.WNOHANG)  # its children are now the guard's, and end in the next round
        except ChildProcessError:
            return
        if not ended:
            time.sleep(0.01)


def children() -> list[int]:
    """Return the process ids of the guard's children, from Linux's /proc. On other systems, return an empty list."""
    if sys.platform != "linux":
        return []
    with os.scandir("/proc") as entries:
        numbers = [entry.name for entry in entries if entry.name.isdecimal()]
    return [int(number) for number in numbers if parent_of(number) == os.getpid()]


def parent_of(number: str) -> int | None:
    """Return the id of a process's parent, or None if the process has ended."""
    try:
        with open(f"/proc/{number}/stat", "rb") as status:  # noqa: PTH123  # pathlib takes longer to import than we to start
            return int(status.read().rpartition(b") ")[2].split()[1])
    except (ProcessLookupError, FileNotFoundError):
        return None


def watch(server: subprocess.Popen[bytes], parent: int, asked: Callable[[], bool], wakeup: int) -> float | None:
    """Wait until the server ends or must be stopped.

    Return None if the server has ended, else the seconds to wait after each stop signal.

    Args:
        server: the process of the server.
        parent: the process id of the guard's parent.
        asked: returns true if a signal has asked the guard to stop.
        wakeup: a pipe to which arriving signals write, so that the guard wakes up.
    """
    while server.poll() is None:
        if os.getppid() != parent:
            return TIMEOUT_ORPHANED
        if asked():
            return TIMEOUT_ORDERLY
        select.select([wakeup], [], [], LOOK_EVERY)
        drain(wakeup)
    return None


def drain(wakeup: int) -> None:
    """Read all bytes from the pipe to which signals write, so that the next `select` waits."""
    try:
        os.read(wakeup, 512)
    except BlockingIOError:
        return


def main(arguments: list[str]) -> int:
    """Run a server until it ends, and return its exit status. Stop it if the guard's parent process ends."""
    parent, signals, user, _, *command = arguments
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    asked: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD):
        signal.signal(number, lambda sent, _frame: asked.append(sent) if sent != signal.SIGCHLD else None)
    adopt_orphans()
    server = start(command, user)
    timeout = watch(server, int(parent), lambda: bool(asked), reader)
    if timeout is not None:
        stop(server, signals.split(","), timeout)
    end_stragglers(server)
    return server.returncode if server.returncode >= 0 else 128 - server.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
