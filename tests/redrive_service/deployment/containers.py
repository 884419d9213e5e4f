"""Services of a compose file without Docker: a read-only root, a tmpfs at /tmp, secrets at /run/secrets, one user."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from tests.faults.fleet import MINDER

#: The file systems of a container. $0: the project; $1: the folder of secrets. The rest is the command.
_MOUNTS: Final = """
set -e
project=$0 secrets=$1; shift
mount --make-rprivate /
mount -o remount,bind,ro /
mount --bind "$project" /mnt
mount -o remount,bind,ro /mnt
mount -t tmpfs none /run
mkdir /run/secrets
mount --bind "$secrets" /run/secrets
mount -o remount,bind,ro /run/secrets
mount -t tmpfs -o size=64m,mode=1777 none /tmp
cd /mnt
exec unshare --user --map-user=10001 --map-group=10001 -- "$@"
"""
_NAMESPACE: Final = ("unshare", "--mount") if os.geteuid() == 0 else ("unshare", "--user", "--map-root-user", "--mount")


def run_in(project: Path, secrets: Path, command: list[str], **options: Any) -> subprocess.Popen[str]:  # noqa: ANN401
    words = [*_NAMESPACE, "sh", "-c", _MOUNTS, str(project), str(secrets), *command]
    return subprocess.Popen(words, start_new_session=True, text=True, **options)


def why_not(project: Path) -> str:
    """Why there can be no such container here; empty if there can."""
    if sys.platform != "linux" or not all(map(shutil.which, ("unshare", "nsenter", "mount"))):
        return "containers need Linux with unshare, nsenter and mount"
    tried = run_in(project, project, ["sh", "-c", "! touch /mnt/x"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    said, _ = tried.communicate(timeout=30)
    return f"no mount namespace can be made here: {said.strip()}" if tried.returncode else ""


class Container:
    """One service with what its file gives it; killed with this process."""

    def __init__(
        self, service: Mapping[str, Any], project: Path, secrets: Path, log: Path, more: dict[str, str]
    ) -> None:
        self.service, self.log = service, log
        image = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "PYTHONDONTWRITEBYTECODE": "1"}
        self.environment = {**image, **service["environment"], **more}
        with log.open("w") as out:
            self.process = run_in(
                project, secrets, service["command"], env=self.environment, stdout=out, stderr=subprocess.STDOUT
            )
        self._minder = subprocess.Popen(
            ["/bin/sh", "-c", MINDER, "sh", str(os.getpid()), str(self.process.pid)], start_new_session=True
        )

    def is_healthy(self) -> bool:
        """What the health check of the file says, asked inside."""
        kind, *words = self.service["healthcheck"]["test"]
        assert kind == "CMD"
        inside = ["nsenter", "--mount", "--target", str(self.process.pid), "--wd=/mnt", "--", *words]
        done = subprocess.run(inside, env=self.environment, capture_output=True, check=False, timeout=20)
        return done.returncode == 0

    def ends(self, *, within: float) -> int:
        return self.process.wait(within)

    def ask_to_stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)

    def close(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(10)
        self._minder.kill()
        self._minder.wait()
