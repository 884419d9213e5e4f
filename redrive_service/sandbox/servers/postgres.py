"""Run PostgreSQL for the sandbox. Its data is kept between starts."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import psycopg
from psycopg import sql

from redrive_service.sandbox.errors import PasswordDiffers
from redrive_service.sandbox.servers import binaries, privilege
from redrive_service.sandbox.servers.process import RunningServer, Server

OWNER = "postgres"
DATABASE = "redrive"
REFUSED = f'password authentication failed for user "{OWNER}"'  # libpq gives no error code, only this English text

# No fsync: the data must survive kill -9 of the servers, but not a power cut. Shared memory is in files of the data
# folder, so that a killed server leaves nothing outside of the folder.
SETTINGS = {
    "fsync": "off",
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "max_connections": "200",
    "dynamic_shared_memory_type": "mmap",
    "timezone": "UTC",
    "log_timezone": "UTC",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Postgres:
    """PostgreSQL's database cluster in a sandbox: its folder and its address.

    Attributes:
        folder: the folder of the data, if PostgreSQL runs as the current user.
        port: the port on the loopback address.
        password: the password of the user that owns the database.
        identity: the operating system's user that PostgreSQL runs as.
        token: part of the name of a temporary folder. It has the data if PostgreSQL runs as another user.
    """

    folder: Path
    port: int
    password: str = field(repr=False)
    identity: privilege.Identity
    token: str = field(repr=False)

    @property
    def url(self) -> str:
        """Return the `DATABASE_URL` of the sandbox's database."""
        return f"postgres://{OWNER}:{self.password}@127.0.0.1:{self.port}/{DATABASE}"

    @property
    def _home(self) -> Path:
        return self._parent / "postgres"

    @property
    def _parent(self) -> Path:
        return privilege.folder_within_reach(self.folder, self.identity, self.token)

    def forget(self) -> None:
        """Remove all data of PostgreSQL, including data outside of the sandbox's folder."""
        ours = self._home if self._parent == self.folder else self._parent
        shutil.rmtree(ours, ignore_errors=True)

    def start(self, log: Path, lock: int | None = None) -> RunningServer:
        """Create the cluster if it is missing, start PostgreSQL, and return when the database answers.

        Raises:
            PasswordDiffers: the cluster was created with another password.
            SandboxError: initdb failed, or the server did not start.
        """
        privilege.open_to_all(self._parent, self.identity)
        programs = self._programs()
        if not (self._home / "data").exists():
            self._make_cluster(programs, log, lock)
        self._remove_stale_pid_file()
        command = [str(programs / "postgres"), "-D", str(self._home / "data"), "-p", str(self.port)]
        for name, value in SETTINGS.items():
            command += ["-c", f"{name}={value}"]
        server = self._run("PostgreSQL", command, log, lock)
        server.await_ready(self._answers)
        self._make_database()
        return server

    def _run(self, name: str, command: list[str], log: Path, lock: int | None) -> RunningServer:
        server = Server(
            name=name,
            command=command,
            log=log,
            stop_signals=("INT", "QUIT"),  # INT and QUIT are PostgreSQL's fast and immediate shutdown
            prefix=self.identity.prefix,
            user=self.identity.user,
            lock=lock,
        )
        return RunningServer(server)

    def _remove_stale_pid_file(self) -> None:
        """Remove the pid file of a killed server.

        PostgreSQL does not start while a process has the process id in this file, even if this process is a zombie or,
        after a reboot, another program. The file is kept if a process works in the data folder, so is a real server.
        """
        data = self._home / "data"
        working = psutil.process_iter(["cwd", "status"])
        if not any(p.info["cwd"] == str(data) and p.info["status"] != psutil.STATUS_ZOMBIE for p in working):
            (data / "postmaster.pid").unlink(missing_ok=True)

    def _programs(self) -> Path:
        """Return the folder of PostgreSQL's programs. For another user, copy them: the original may be private."""
        programs = binaries.postgres_programs()
        if self.identity.user is None or programs.is_relative_to("/usr"):
            return programs
        package = programs.parent.parent
        copy = self._parent / "programs"
        for folder in (package / "pginstall", package.with_name(f"{package.name}.libs")):
            shutil.copytree(folder, copy / folder.relative_to(package.parent), dirs_exist_ok=True, symlinks=True)
        privilege.let_all_read(copy)
        return copy / programs.relative_to(package.parent)

    def _make_cluster(self, programs: Path, log: Path, lock: int | None) -> None:
        """Create the cluster under a temporary name, so that an incomplete cluster is never used.

        initdb runs under a guard process, which also holds the lock of the folder. So even if this process is killed,
        no second initdb runs at the same time.
        """
        privilege.give(self._home, self.identity)
        unfinished = self._home / "unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        secret = self._home / "password"
        secret.touch(mode=0o600)
        secret.write_text(self.password)
        if self.identity.user is not None:
            shutil.chown(secret, user=self.identity.user)
        command = [str(programs / "initdb"), "-D", str(unfinished), "-U", OWNER, f"--pwfile={secret}"]
        command += ["--auth=scram-sha-256", "--encoding=UTF8", "--locale=C", "--no-sync", "--no-instructions"]
        self._run("initdb", command, log, lock).await_end()
        secret.unlink()
        unfinished.rename(self._home / "data")

    def _connect(self, database: str) -> psycopg.Connection[tuple[object, ...]]:
        return psycopg.connect(
            host="127.0.0.1",
            port=self.port,
            user=OWNER,
            password=self.password,
            dbname=database,
            autocommit=True,
            connect_timeout=2,
        )

    def _answers(self) -> bool:
        try:
            self._connect(OWNER).close()
        except psycopg.OperationalError as error:
            if REFUSED not in str(error):
                return False
            raise PasswordDiffers(
                f"PostgreSQL's data in {self._home / 'data'} have another password than the settings in {self.folder}. "
                "Start with --fresh, which deletes the data, or name another --folder."
            ) from error
        return True

    def _make_database(self) -> None:
        with self._connect(OWNER) as connection:
            known = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE]).fetchone()
            if known is None:
                connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(DATABASE)))
