"""A cluster is whole or not there, ours or refused, and ends with its launcher at every moment."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import psutil
import psycopg
import pytest

from redrive_service.sandbox.errors import PasswordDiffers, ServerDidNotStart
from redrive_service.sandbox.folder import lock_folder
from redrive_service.sandbox.servers import binaries, privilege
from redrive_service.sandbox.servers.postgres import Postgres
from redrive_service.sandbox.servers.process import free_port, guarded
from tests.conditions import eventually
from tests.sandbox.test_guard import PROMISED, is_alive, pids_in

# Starts PostgreSQL with the programs of a folder: FOLDER PROGRAMS.
LAUNCHER = """
import sys
from pathlib import Path
from redrive_service.sandbox.servers import binaries
from redrive_service.sandbox.folder import lock_folder
from redrive_service.sandbox.servers.postgres import Postgres
from redrive_service.sandbox.servers.privilege import Identity
folder, programs = map(Path, sys.argv[1:])
binaries.postgres_programs = lambda: programs
postgres = Postgres(folder=folder, port=1, password="secret", identity=Identity(), token="ours")
postgres.start(folder / "postgres.log", lock_folder(folder))
"""
SLOW_INITDB = """#!/bin/sh
echo $$ > {pids}
while :; do sleep 1; done
"""


def cluster(folder: Path, password: str = "secret") -> Postgres:
    program = str(binaries.postgres_programs() / "postgres")
    identity = privilege.unprivileged_identity(guarded([program, "--version"]))
    return Postgres(folder=folder, port=free_port(), password=password, identity=identity, token="ours")


def programs_with(folder: Path, initdb: str) -> Path:
    programs = folder / "programs"
    programs.mkdir()
    (programs / "initdb").write_text(initdb)
    (programs / "initdb").chmod(0o755)
    return programs


@pytest.mark.soak
def test_an_initdb_ends_with_its_killed_launcher_and_nobody_has_the_folder_before(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    programs = programs_with(tmp_path, SLOW_INITDB.format(pids=pids))
    launcher = subprocess.Popen([sys.executable, "-c", LAUNCHER, str(tmp_path), str(programs)])
    (initdb,) = eventually(lambda: pids_in(pids), within=30)
    launcher.kill()
    launcher.wait()
    os.close(lock_folder(tmp_path))
    assert is_alive(initdb) is False


def test_an_initdb_that_fails_is_reported_with_its_last_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = programs_with(tmp_path, "#!/bin/sh\necho the disk is full\nexit 1\n")
    monkeypatch.setattr(binaries, "postgres_programs", lambda: programs)
    postgres = Postgres(folder=tmp_path, port=1, password="secret", identity=privilege.Identity(), token="ours")
    with pytest.raises(ServerDidNotStart, match="initdb failed") as caught:
        postgres.start(tmp_path / "postgres.log")
    assert str(caught.value).splitlines()[-1].strip() == "the disk is full"


@pytest.mark.soak
def test_what_a_killed_initdb_left_is_no_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = programs_with(tmp_path, '#!/bin/sh\nmkdir "$2"\necho 17 > "$2/PG_VERSION"\nkill -9 $$\n')
    with monkeypatch.context() as patch:
        patch.setattr(binaries, "postgres_programs", lambda: programs)
        with pytest.raises(ServerDidNotStart, match="initdb failed"):
            Postgres(folder=tmp_path, port=1, password="secret", identity=privilege.Identity(), token="ours").start(
                tmp_path / "postgres.log"
            )
    postgres = cluster(tmp_path)
    server = postgres.start(tmp_path / "postgres.log")
    server.stop()
    assert sorted(path.name for path in (tmp_path / "postgres").iterdir()) == ["data"]


@pytest.mark.soak
def test_a_cluster_with_another_password_is_refused_at_once_with_its_cure(tmp_path: Path) -> None:
    cluster(tmp_path).start(tmp_path / "postgres.log").stop()
    with pytest.raises(PasswordDiffers) as caught:
        cluster(tmp_path, "another").start(tmp_path / "postgres.log")
    assert str(caught.value) == (
        f"PostgreSQL's data in {tmp_path / 'postgres' / 'data'} have another password than the settings in {tmp_path}. "
        "Start with --fresh, which deletes the data, or name another --folder."
    )


@pytest.mark.soak
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux gives the guard its orphans")
def test_a_busy_backend_does_not_outlive_a_killed_postmaster(tmp_path: Path) -> None:
    postgres = cluster(tmp_path)
    server = postgres.start(tmp_path / "postgres.log")
    with closing(psycopg.connect(postgres.url)) as connection:
        backend = psutil.Process(connection.info.backend_pid)
        postmaster = backend.parent()
        assert postmaster is not None
        connection.pgconn.send_query(b"SELECT count(*) FROM generate_series(1, 1000000000000)")
        eventually(lambda: backend.cpu_times().user > 0.1, within=10)
        postmaster.kill()
        eventually(lambda: not is_alive(backend.pid), within=10 * PROMISED)
    server.stop()
