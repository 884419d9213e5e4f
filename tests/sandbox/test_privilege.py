"""PostgreSQL never runs as root, and reaches its programs and data all the same."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from redrive_service.sandbox.errors import SandboxError
from redrive_service.sandbox.folder import Ports, SavedSettings
from redrive_service.sandbox.servers import binaries, privilege
from redrive_service.sandbox.servers.postgres import Postgres
from redrive_service.sandbox.servers.privilege import Identity
from redrive_service.sandbox.servers.process import free_port
from redrive_service.sandbox.stack import Stack
from tests.sandbox.launching import refusal, sandbox

ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="only root starts PostgreSQL as somebody else")
SOMEBODY = 54_321  # no user of this machine has this number
AS_NOBODY = Identity(user=privilege.NOBODY)


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@contextmanager
def reachable_folder() -> Iterator[Path]:
    """A temporary folder that everybody may enter: those of pytest are their owner's alone."""
    with tempfile.TemporaryDirectory(prefix="redrive-tests-", dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.mark.soak
@ROOT_ONLY
def test_postgres_started_by_root_runs_as_nobody_where_namespaces_are_forbidden(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    with reachable_folder() as temporary:
        monkeypatch.setattr(tempfile, "tempdir", str(temporary))
        postgres = Postgres(folder=private, port=free_port(), password="secret", identity=AS_NOBODY, token="ours")
        umask = os.umask(0o077)
        try:
            server = postgres.start(tmp_path / "postgres.log")
        finally:
            os.umask(umask)
        try:
            with psycopg.connect(postgres.url) as connection:
                assert connection.execute("SELECT current_user::text").fetchone() == ("postgres",)
            assert oct(private.stat().st_mode & 0o777) == "0o700"
            assert [path.name for path in temporary.iterdir()] == ["redrive-sandbox-ours"]
        finally:
            server.stop()
        postgres.forget()
        assert list(temporary.iterdir()) == []


@pytest.mark.long
@pytest.mark.soak
@ROOT_ONLY
def test_a_sandbox_of_root_in_somebodys_private_home_runs(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    os.chown(home, SOMEBODY, SOMEBODY)
    folder = home / "sandbox"
    with reachable_folder() as temporary, pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(temporary))
        with sandbox(folder) as (_, environment), psycopg.connect(environment["DATABASE_URL"]) as connection:
            assert connection.execute("SELECT current_user::text").fetchone() == ("postgres",)
        token = json.loads((folder / "settings.json").read_text())["secrets"]["token"]
        assert [path.name for path in temporary.iterdir()] == [f"redrive-sandbox-{token}"]


@pytest.mark.soak
@ROOT_ONLY
def test_a_private_temporary_folder_is_refused_in_a_sentence_when_nobody_needs_it(tmp_path: Path) -> None:
    home, temporary = tmp_path / "home", tmp_path / "temporary"
    home.mkdir(mode=0o700)
    temporary.mkdir(mode=0o700)
    os.chown(home, SOMEBODY, SOMEBODY)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(temporary))
        status, told = refusal("--folder", str(home / "sandbox"))
    (folder,) = temporary.iterdir()
    assert status == 1
    assert told == (
        f"CommandError: The user nobody, who runs PostgreSQL for root here, may not enter {folder}. "
        "Set TMPDIR to a folder that everybody may enter, such as /tmp."
    )


@pytest.mark.skipif(shutil.which("unshare") is None, reason="there are no namespaces here")
def test_a_namespace_that_cannot_run_the_program_is_none(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    before = privilege.namespaces_work([str(program)])
    program.chmod(0o644)
    assert before is privilege.namespaces_work()
    assert privilege.namespaces_work([str(program)]) is False


@pytest.mark.parametrize("squatter", ["link", "file", "dangling link"])
def test_a_temporary_folder_that_is_none_is_refused_in_a_sentence(temporary: Path, squatter: str) -> None:
    (temporary / "elsewhere").mkdir()
    squatted = temporary / "squatted"
    if squatter == "file":
        squatted.touch()
    else:
        squatted.symlink_to(temporary / ("elsewhere" if squatter == "link" else "nowhere"))
    with pytest.raises(SandboxError, match=f"{squatted} is not a folder of this user"):
        privilege.open_to_all(squatted, AS_NOBODY)


@ROOT_ONLY
def test_a_temporary_folder_of_somebody_else_is_refused_in_a_sentence(temporary: Path) -> None:
    squatted = temporary / "squatted"
    squatted.mkdir()
    os.chown(squatted, SOMEBODY, SOMEBODY)
    with pytest.raises(SandboxError, match=f"{squatted} is not a folder of this user"):
        privilege.open_to_all(squatted, AS_NOBODY)


def test_make_clean_removes_what_lies_outside_the_sandboxs_folder(tmp_path: Path) -> None:
    make = shutil.which("make")
    if make is None:
        pytest.skip("there is no make here")
    project, temporary = tmp_path / "project", tmp_path / "temporary"
    for folder in (project / ".sandbox", temporary / "redrive-sandbox-0", temporary / "strangers"):
        folder.mkdir(parents=True)
    shutil.copy(Path(__file__).parents[2] / "Makefile", project)
    secrets = SavedSettings.load(project / ".sandbox", Ports()).secrets
    (temporary / f"redrive-sandbox-{secrets.token}" / "programs").mkdir(parents=True)
    subprocess.run([make, "-C", str(project), "clean"], check=True, env={**os.environ, "TMPDIR": str(temporary)})
    assert sorted(path.name for path in temporary.iterdir()) == ["redrive-sandbox-0", "strangers"]
    assert [path.name for path in project.iterdir()] == ["Makefile"]


@ROOT_ONLY
def test_programs_that_a_namespace_cannot_run_make_postgres_run_as_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "postgres").touch()  # not to be run by anybody
    monkeypatch.setattr(binaries, "postgres_programs", lambda: tmp_path)
    assert Stack(tmp_path)._identity() == AS_NOBODY
