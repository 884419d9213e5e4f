"""Two versions of the service on one database and the same queues: each from a folder of its own, each marked."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import psycopg
import redis

from redrive_service.sandbox.servers.local_sqs import LocalQueues
from redrive_service.sandbox.stack import variables_of_queues
from tests.faults.fleet import ROOT, Worker

#: A version without its tests and texts.
_CODE: Final = ("manage.py", "redrive_service", "reprocessing")
#: Sessions of PostgreSQL bear the name of the code that opened them, so that each attempt tells whose it is.
_MARK: Final = '\nDATABASES["default"]["OPTIONS"]["application_name"] = "{name}"\n'
_WITNESS: Final = """
    CREATE TABLE attempts_of_versions (version text, at timestamptz DEFAULT clock_timestamp());
    CREATE FUNCTION witness_attempt() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN INSERT INTO attempts_of_versions VALUES (current_setting(''application_name'')); RETURN NULL; END';
    CREATE TRIGGER witness_attempt AFTER INSERT ON redrive_attempt FOR EACH ROW EXECUTE FUNCTION witness_attempt();
"""
#: A migration that changes what the sends of the other version read and write.
_PLANTED: Final = """
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("reprocessing", "{after}")]
    operations = [
        migrations.AddField("letter", "planted", models.TextField(db_default="", blank=True)),
        migrations.AddField("lane", "planted", models.TextField(db_default="", blank=True)),
        migrations.AddField("attempt", "planted", models.IntegerField(null=True)),
    ]
"""


def newest_tag() -> str:
    """The newest tag of a release; empty if there is none."""
    words = ["git", "tag", "--list", "v*", "--sort=-version:refname"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    return next(iter(done.stdout.split()), "")


@dataclass(frozen=True, slots=True)
class Version:
    """The code in one folder, with the environment of its processes."""

    name: str
    folder: Path
    environment: Mapping[str, str]

    @classmethod
    def of_git(cls, name: str, commit: str, folder: Path, environment: Mapping[str, str]) -> Version:
        packed = subprocess.run(["git", "archive", commit, *_CODE], cwd=ROOT, capture_output=True, check=True)
        (folder / name).mkdir()
        subprocess.run(["tar", "-x", "-C", folder / name], input=packed.stdout, check=True)
        return cls(name, folder / name, environment)._marked()

    @classmethod
    def of_this_tree(cls, name: str, folder: Path, environment: Mapping[str, str]) -> Version:
        for part in _CODE[1:]:
            shutil.copytree(ROOT / part, folder / name / part, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / _CODE[0], folder / name)
        return cls(name, folder / name, environment)._marked()

    def _marked(self) -> Version:
        with (self.folder / "redrive_service/settings.py").open("a") as settings:
            settings.write(_MARK.format(name=self.name))
        return self

    def plant_migration(self) -> None:
        """Give it a migration that the other version does not know."""
        migrations = self.folder / "reprocessing/migrations"
        newest = max(path.stem for path in migrations.glob("0*.py"))
        (migrations / "9999_planted.py").write_text(_PLANTED.format(after=newest))

    def manage(self, *words: str) -> str:
        done = subprocess.run(
            [sys.executable, "manage.py", *words], cwd=self.folder, env=self.environment,
            capture_output=True, text=True, check=False, timeout=120,
        )  # fmt: skip
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout

    def worker(self, log: str) -> Worker:
        return _WorkerOfAVersion(self, log)

    @contextmanager
    def beat(self) -> Iterator[None]:
        words = [sys.executable, "-m", "celery", "-A", "redrive_service", "beat", "--loglevel", "INFO"]
        with (self.folder / "beat.log").open("ab") as log:
            beat = subprocess.Popen(words, cwd=self.folder, env=self.environment, stdout=log, stderr=log)
        try:
            yield
        finally:
            beat.terminate()
            beat.wait(30)


class _WorkerOfAVersion(Worker):
    def __init__(self, version: Version, name: str) -> None:
        self.root = version.folder
        super().__init__(version.folder, name, concurrency=2, **version.environment)


@contextmanager
def shared_servers(name: str, redis_database: int) -> Iterator[dict[str, str]]:
    """The environment of both versions: a database, a Redis database and queues that no other test uses."""
    address = os.environ["DATABASE_URL"]
    database = urlsplit(address)._replace(path=f"/{name}").geturl()
    cache = urlsplit(os.environ["REDIS_URL"])._replace(path=f"/{redis_database}").geturl()
    sqs = LocalQueues(folder=Path(), port=urlsplit(os.environ["AWS_ENDPOINT_URL_SQS"]).port or 0)
    urls = variables_of_queues(sqs.make_own_queues(f"-{name}"))
    own = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "DJANGO_SETTINGS_MODULE"}}
    with psycopg.connect(address, autocommit=True) as connection, redis.Redis.from_url(cache) as keys:
        keys.flushdb()
        connection.execute(f"CREATE DATABASE {name} TEMPLATE template0")
        try:
            yield {**own, **urls, "DATABASE_URL": database, "REDIS_URL": cache}
        finally:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


class Witness:
    """What both versions did, as the database tells."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._connection = psycopg.connect(environment["DATABASE_URL"], autocommit=True)
        self._connection.execute(_WITNESS)

    def ask(self, question: str) -> list[Any]:
        return [row[0] for row in self._connection.execute(question).fetchall()]

    def delivered(self) -> int:
        return int(self.ask("SELECT count(*) FROM redrive_letter WHERE state = 'delivered'")[0])

    def begin(self) -> None:
        """Forget whose attempts there were."""
        self._connection.execute("DELETE FROM attempts_of_versions")

    def versions(self) -> set[str]:
        """Whose attempts there were since then."""
        return set(self.ask("SELECT DISTINCT version FROM attempts_of_versions"))

    def close(self) -> None:
        self._connection.close()
