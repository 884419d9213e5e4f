"""Find out whether a sandbox runs in the project's folder, and write how to use the sandbox or how to start it."""

from __future__ import annotations

import fcntl
import os
import shlex
from pathlib import Path

#: Folder in which `make demo` and `manage.py sandbox` keep their data, unless --folder names another folder.
FOLDER = Path(__file__).parents[2] / ".sandbox"


def with_first_look(problems: str, folder: Path = FOLDER) -> str:
    """Add to the problems of the environment a command with which the user can go on.

    If a sandbox runs in the folder, the command sets the sandbox's environment variables. If not, it starts the demo.
    """
    file = folder / "environment"
    if not (file.is_file() and _is_locked(folder / "lock")):
        return f"{problems}\nFor a first look without any of this: make demo"
    return f"A sandbox runs in this folder. Run first:  . {shlex.quote(os.path.relpath(file))}\n{problems}"


def _is_locked(lock: Path) -> bool:
    """Return whether a running sandbox holds the lock. The lock file alone says nothing: it stays after the end."""
    try:
        with lock.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)  # closing the file releases this lock
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False
