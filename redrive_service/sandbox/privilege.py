"""PostgreSQL refuses to run as root. This is how a sandbox started by root gives its servers another identity.

Preferred: a user namespace in which root is called nobody. The files stay ours, and folders that only root may enter
(a private home with the virtual environment in it) stay reachable. Where namespaces are forbidden, as in most
containers, the server runs as the real user nobody, from copies of programs and data that nobody can reach. No user is
added and no folder's rights are changed either way.
"""

from __future__ import annotations

import os
import pwd
import shutil
import stat
import subprocess
import tempfile
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from redrive_service.sandbox.errors import SandboxError

NAMESPACE = ("unshare", "--user", "--map-user=65534", "--map-group=65534")
NOBODY = "nobody"


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Whom a server runs as: behind a command prefix, as another user, or (neither) as ourselves."""

    prefix: tuple[str, ...] = ()
    user: str | None = None


def unprivileged_identity() -> Identity:
    """The identity for a server that must not be root."""
    if os.geteuid() != 0:
        return Identity()
    return Identity(prefix=NAMESPACE) if namespaces_work() else Identity(user=NOBODY)


def namespaces_work() -> bool:
    """Whether a user namespace can be made here."""
    if shutil.which(NAMESPACE[0]) is None:
        return False
    return subprocess.run([*NAMESPACE, "true"], check=False, capture_output=True).returncode == 0


def folder_within_reach(folder: Path, identity: Identity) -> Path:
    """`folder` itself; for another user a folder in the system's temporary one, the same at every start.

    Raises:
        SandboxError: somebody else made the folder we would use.
    """
    if identity.user is None:
        return folder
    digest = sha256(os.fsencode(folder.resolve())).hexdigest()[:16]
    reachable = Path(tempfile.gettempdir()) / f"redrive-sandbox-{digest}"
    reachable.mkdir(mode=0o755, exist_ok=True)
    status = reachable.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
        raise SandboxError(f"{reachable} is not ours. Remove it, or set TMPDIR to a folder of your own.")
    return reachable


def give(folder: Path, identity: Identity) -> None:
    """Make `folder` for the identity, private to it."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if identity.user is not None:
        shutil.chown(folder, user=identity.user)


def run(command: list[str], identity: Identity) -> None:
    """Run a program as the identity and wait for its end.

    Raises:
        SandboxError: it failed; the message ends with what it wrote.
    """
    done = subprocess.run(
        [*identity.prefix, *command],
        check=False,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        user=identity.user,
        group=None if identity.user is None else pwd.getpwnam(identity.user).pw_gid,
        extra_groups=None if identity.user is None else [],
        cwd="/",
        start_new_session=True,  # Ctrl-C is ours to heed, when it is done
    )
    if done.returncode != 0:
        raise SandboxError(f"{command[0]} failed:\n{done.stdout.decode(errors='replace').strip()}")
