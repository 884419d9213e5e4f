"""Every service of the compose file starts, works and stops, with its own command, variables, secrets and user."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import pytest
from django.db import connection

from redrive_service.sandbox.servers.local_sqs import LocalQueues
from redrive_service.sandbox.stack import variables_of_queues
from tests.conditions import eventually
from tests.redrive_service.deployment.containers import Container, run_in, why_not
from tests.redrive_service.deployment.written import composed

pytestmark = [pytest.mark.soak, pytest.mark.django_db(transaction=True), pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[3]
#: Credentials and the endpoint come from AWS in production.
OF_AWS = ("AWS_ENDPOINT_URL_SQS", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")


@pytest.fixture
def database() -> Iterator[str]:
    """The URL of a new database without tables."""
    name = f"composed_{uuid4().hex[:8]}"
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {name} TEMPLATE template0")
    yield urlsplit(os.environ["DATABASE_URL"])._replace(path=f"/{name}").geturl()
    with connection.cursor() as cursor:
        cursor.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="redrive-composed-") as made:
        yield Path(made)


@pytest.fixture
def project(folder: Path) -> Path:
    """What the image contains, with its static files."""
    project = folder / "project"
    project.mkdir()
    shutil.copy(ROOT / "manage.py", project)
    for name in ("redrive_service", "reprocessing"):
        shutil.copytree(ROOT / name, project / name, ignore=shutil.ignore_patterns("__pycache__"))
    if why := why_not(project):
        pytest.skip(why)
    words = [sys.executable, "manage.py", "collectstatic", "--noinput"]
    production = {**os.environ, "REDRIVE_MODE": "production"}
    subprocess.run(words, cwd=project, env=production, check=True, capture_output=True)
    return project


@pytest.fixture
def secrets(folder: Path, database: str) -> Path:
    secrets = folder / "secrets"
    secrets.mkdir()
    for name in composed()["secrets"]:
        (secrets / name).write_text(f"{database if name == 'DATABASE_URL' else os.environ[name]}\n")
    return secrets


@pytest.fixture
def more() -> dict[str, str]:
    """The variables that are the tests' own: queues, and the way to them."""
    sqs = LocalQueues(folder=Path(), port=urlsplit(os.environ["AWS_ENDPOINT_URL_SQS"]).port or 0)
    urls = variables_of_queues(sqs.make_own_queues(f"-composed-{uuid4().hex[:8]}"))
    return {**urls, **{name: os.environ[name] for name in OF_AWS}}


def services(ports: dict[str, str]) -> dict[str, Any]:
    """The services of the file, at other ports: this machine has one network."""
    text = json.dumps(composed()["services"])
    for port, other in ports.items():
        text = text.replace(f":{port}", f":{other}")
    found: dict[str, Any] = json.loads(text)
    return found


def free_ports() -> dict[str, str]:
    with ExitStack() as held:
        made = [held.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(2)]
        return dict(zip(("8000", "8001"), [str(one.getsockname()[1]) for one in made], strict=True))


@pytest.mark.long
def test_the_composed_service_migrates_works_and_stops(
    project: Path, secrets: Path, folder: Path, more: dict[str, str]
) -> None:
    ports = free_ports()
    wanted = services(ports)
    migrate = wanted.pop("migrate")
    with ExitStack() as closing:

        def start(name: str, service: dict[str, Any]) -> Container:
            container = Container(service, project, secrets, folder / f"{name}.log", more)
            closing.callback(container.close)
            return container

        waiting = {**migrate, "command": ["python", "manage.py", "migrate", "--check"]}
        assert start("wait", waiting).ends(within=120) == 1
        assert start("migrate", migrate).ends(within=120) == 0
        assert start("wait", waiting).ends(within=120) == 0

        running = {name: start(name, service) for name, service in wanted.items()}
        for name, container in running.items():
            eventually(container.is_healthy, within=120, every=0.5)
            assert container.process.poll() is None, name
        work = f"http://127.0.0.1:{ports['8001']}/health/work"
        eventually(lambda: answers(work), within=120, every=0.5)  # beat → SQS → a worker → PostgreSQL
        assert headers(f"http://127.0.0.1:{ports['8000']}/static/reprocessing/admin.css", "redrive.example.com") == 200

        for container in running.values():
            container.ask_to_stop()
        seconds = {name: float(service["stop_grace_period"].removesuffix("s")) for name, service in wanted.items()}
        ended = {name: container.ends(within=seconds[name]) for name, container in running.items()}
    logs = "\n".join(path.read_text() for path in folder.glob("*.log"))
    assert ended == dict.fromkeys(running, 0), logs
    assert "Read-only file system" not in logs


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def headers(url: str, host: str) -> int:
    asked = urllib.request.Request(
        url, headers={"Host": host, "X-Forwarded-Proto": "https", "X-Forwarded-For": "1.1.1.1"}
    )
    with urllib.request.urlopen(asked, timeout=10) as answer:
        status: int = answer.status
        return status


def test_the_root_of_a_container_cannot_be_written_and_its_user_is_not_root(project: Path, secrets: Path) -> None:
    script = "id -u; touch /tmp/x; for file in x /x /run/secrets/x; do touch $file || echo no; done"
    told = run_in(project, secrets, ["sh", "-c", script], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert told.communicate(timeout=30)[0].split() == ["10001", "no", "no", "no"]
