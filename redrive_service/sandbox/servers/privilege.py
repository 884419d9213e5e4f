"""Run a server as another user if root started the sandbox, because PostgreSQL refuses to run as root.

The first choice is a Linux user namespace in which root appears as the user nobody. Files keep their owner, and the
server can enter folders that only root may enter. But most containers forbid namespaces, and in a namespace, another
user's private home cannot be read. Then the server runs as the real user nobody, with copies of programs and data that
this user can read. In both cases, no user is added, and the permissions of existing folders stay.
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from redrive_service.sandbox.errors import SandboxError

NAMESPACE = ("unshare", "--user", "--map-user=65534", "--map-group=65534")
NOBODY = "nobody"


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """The user that a server runs as. By default, this is the current user.

    `prefix` is the beginning of a command that runs the server in a user namespace. `user` is the name of another user.
    At most one of the two is set.
    """

    prefix: tuple[str, ...] = ()
    user: str | None = None


def unprivileged_identity(*trials: Sequence[str]) -> Identity:
    """Return the identity of a server that must not run as root.

    A user namespace is used only if the commands `trials` succeed in it.
    """
    if os.geteuid() != 0:
        return Identity()
    return Identity(prefix=NAMESPACE) if namespaces_work(*trials) else Identity(user=NOBODY)


def namespaces_work(*trials: Sequence[str]) -> bool:
    """Return whether a user namespace can be created on this machine, and the commands `trials` succeed in it."""
    if shutil.which(NAMESPACE[0]) is None:
        return False
    return all(_succeeds([*NAMESPACE, *trial]) for trial in (("true",), *trials))


def folder_within_reach(folder: Path, identity: Identity, token: str) -> Path:
    """Return the folder of a server's data: `folder` or, for another user, a temporary folder named with `token`."""
    return folder if identity.user is None else Path(tempfile.gettempdir()) / f"redrive-sandbox-{token}"


def open_to_all(folder: Path, identity: Identity) -> None:
    """If the identity is another user, create a folder that this user may enter.

    Raises:
        SandboxError: another user created the folder, or a parent folder is private.
    """
    if identity.user is None:
        return
    with suppress(FileExistsError):
        folder.mkdir()
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
        raise SandboxError(f"{folder} is not a folder of this user. Remove it, or set TMPDIR to a folder of your own.")
    folder.chmod(0o755)
    if not _succeeds(("test", "-x", str(folder)), user=identity.user):
        raise SandboxError(
            f"The user {identity.user}, who runs PostgreSQL for root here, may not enter {folder}. "
            "Set TMPDIR to a folder that everybody may enter, such as /tmp."
        )


def let_all_read(folder: Path) -> None:
    """Let everybody read the files in `folder` and run its programs."""
    for path in (folder, *folder.rglob("*")):
        mode = path.lstat().st_mode
        if not stat.S_ISLNK(mode):
            path.chmod(stat.S_IMODE(mode) | (0o555 if mode & stat.S_IXUSR else 0o444))


def give(folder: Path, identity: Identity) -> None:
    """Create a folder that only the user of the identity may enter."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if identity.user is not None:
        shutil.chown(folder, user=identity.user)


def _succeeds(command: Sequence[str], user: str | None = None) -> bool:
    groups: list[int] | None = None if user is None else []
    done = subprocess.run(command, check=False, capture_output=True, cwd="/", user=user, extra_groups=groups)
    return done.returncode == 0
