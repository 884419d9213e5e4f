"""The stack ends with its launcher, keeps its data, and touches nothing but its folder."""

from __future__ import annotations

import os
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
import redis

from redrive_service.sandbox.servers.local_sqs import OWN_QUEUES
from redrive_service.sandbox.servers.process import free_port
from reprocessing.domain.aws.queue_spec import service_queues
from reprocessing.gateways import aws
from reprocessing.gateways.sqs.provisioning import QueueLocation
from reprocessing.pipeline.aws.provision import compare_queues
from tests.conditions import eventually
from tests.contract.endpoints import sqs_client
from tests.sandbox.launching import MANAGE, Environment, processes_of, refusal, sandbox
from tests.sandbox.test_guard import PROMISED

pytestmark = pytest.mark.soak


def write_everywhere(environment: Environment) -> None:
    with psycopg.connect(environment["DATABASE_URL"], autocommit=True) as connection:
        connection.execute("CREATE TABLE kept (word text)")
        connection.execute("INSERT INTO kept VALUES ('kept')")
    with redis.Redis.from_url(environment["REDIS_URL"]) as client:
        client.set("word", "kept")
    with sqs_client(environment["AWS_ENDPOINT_URL_SQS"]) as queues:
        queues.send_message(QueueUrl=environment["REDRIVE_REPLAY_QUEUE_URL"], MessageBody="kept")


def read_everywhere(environment: Environment) -> tuple[object, object, object]:
    with psycopg.connect(environment["DATABASE_URL"]) as connection:
        row = connection.execute("SELECT word FROM kept").fetchone()
    with redis.Redis.from_url(environment["REDIS_URL"]) as client:
        word = client.get("word")
    with sqs_client(environment["AWS_ENDPOINT_URL_SQS"]) as queues:
        received = queues.receive_message(QueueUrl=environment["REDRIVE_REPLAY_QUEUE_URL"])
    return row, word, [message["Body"] for message in received.get("Messages", [])]


def nobody_listens(environment: Environment) -> bool:
    servers = {"DATABASE_URL", "REDIS_URL", "AWS_ENDPOINT_URL_SQS"} & set(environment)
    return not any(listens(environment[name]) for name in servers)


def listens(url: str) -> bool:
    port = int(url.rpartition(":")[2].split("/", maxsplit=1)[0])
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_a_killed_launcher_leaves_no_server(tmp_path: Path) -> None:
    folder = tmp_path / "sandbox"
    with sandbox(folder) as (launcher, first):
        launcher.send_signal(signal.SIGKILL)
        launcher.wait()
        eventually(lambda: nobody_listens(first) and not processes_of(folder), within=10 * PROMISED)


@pytest.mark.long
def test_a_second_start_right_after_a_kill_waits_for_the_folder_and_finds_the_data(tmp_path: Path) -> None:
    folder = tmp_path / "sandbox"
    with sandbox(folder) as (launcher, first):
        write_everywhere(first)
        launcher.send_signal(signal.SIGKILL)
        launcher.wait()
        with sandbox(folder) as (_, second):
            assert read_everywhere(second) == (("kept",), b"kept", ["kept"])
            assert second == first


@pytest.mark.long
def test_a_fresh_start_forgets_the_data(tmp_path: Path) -> None:
    folder = tmp_path / "sandbox"
    with sandbox(folder) as (_, first):
        write_everywhere(first)
    with sandbox(folder, "--fresh") as (_, second), psycopg.connect(second["DATABASE_URL"]) as connection:
        row = connection.execute("SELECT count(*) FROM pg_tables WHERE tablename = 'kept'").fetchone()
        assert row == (0,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    folder: Path
    launcher: int
    environment: Environment
    ports: tuple[int, int, int]


@pytest.fixture(scope="module")
def standing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standing]:
    folder = tmp_path_factory.mktemp("standing") / "sandbox"
    postgres, valkey, sqs = ports = free_port(), free_port(), free_port()
    options = ("--postgres-port", str(postgres), "--redis-port", str(valkey), "--sqs-port", str(sqs))
    with sandbox(folder, *options) as (launcher, environment):
        yield Standing(folder=folder, launcher=launcher.pid, environment=environment, ports=ports)


def test_a_second_sandbox_in_the_same_folder_is_refused_in_a_sentence(standing: Standing) -> None:
    status, told = refusal("--folder", str(standing.folder))
    assert status == 1
    assert told.splitlines() == [
        f"CommandError: A sandbox runs in {standing.folder} already (process {standing.launcher}).",
        f"To use this sandbox, run:  . {standing.folder / 'environment'}",
        f"To stop this sandbox, press Ctrl-C in its terminal, or run: kill -INT {standing.launcher}",
        "To start another sandbox, name another --folder.",
    ]


def test_ports_are_free_to_choose(standing: Standing) -> None:
    postgres, valkey, sqs = standing.ports
    assert standing.environment["AWS_ENDPOINT_URL_SQS"] == f"http://127.0.0.1:{sqs}"
    assert f":{postgres}/" in standing.environment["DATABASE_URL"]
    assert f":{valkey}/" in standing.environment["REDIS_URL"]


def test_what_the_sandbox_keeps_is_for_its_owner_only(standing: Standing) -> None:
    folder = standing.folder
    secret = [folder / "settings.json", folder / "environment", folder / "valkey" / "valkey.conf"]
    assert [oct(file.stat().st_mode & 0o777) for file in [folder, *secret]] == ["0o700", "0o600", "0o600", "0o600"]


def test_only_sqs_starts_nothing_else(tmp_path: Path) -> None:
    folder = tmp_path / "sandbox"
    with sandbox(folder, "--only", "sqs") as (_, environment):
        assert sorted(path.name for path in folder.iterdir()) == [
            "environment", "lock", "settings.json", "sqs", "sqs.log",
        ]  # fmt: skip
        assert "DATABASE_URL" not in environment


@pytest.mark.parametrize(
    ("number", "options"),
    [
        (signal.SIGTERM, ()),
        (signal.SIGINT, ("--only", "sqs")),
        (signal.SIGHUP, ("--only", "sqs")),
    ],
)
def test_it_stops_in_order_when_asked_also_twice(
    tmp_path: Path, number: signal.Signals, options: tuple[str, ...]
) -> None:
    with sandbox(tmp_path / "sandbox", *options) as (launcher, environment):
        launcher.send_signal(number)
        launcher.send_signal(number)
        _, told = launcher.communicate(timeout=30)
    again = " ".join([*options, "--folder", "sandbox"])  # the command was started in its folder's parent
    start = shlex.join([sys.executable, str(MANAGE)])
    assert told.splitlines()[-4:] == [
        "Stopping …", "Everything is stopped.", "The data are in sandbox",
        f"To start the servers:      {start} sandbox {again}",
    ]  # fmt: skip
    assert launcher.returncode == 0
    assert nobody_listens(environment)


def test_asked_to_stop_while_it_starts_it_leaves_nothing_running(tmp_path: Path) -> None:
    folder = tmp_path / "sandbox"
    command = [sys.executable, str(MANAGE), "sandbox", "--folder", str(folder)]
    launcher = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    eventually((folder / "postgres").exists, within=20)
    launcher.send_signal(signal.SIGINT)
    _, told = launcher.communicate(timeout=30)
    assert (launcher.returncode, "Everything is stopped." in told.splitlines()) == (0, True)
    assert processes_of(folder) == []


@pytest.mark.long
def test_a_dead_servers_word_that_it_is_running_is_not_believed(tmp_path: Path) -> None:
    folder = tmp_path / "sandbox"
    with sandbox(folder) as (_, first):
        write_everywhere(first)
        word = (folder / "postgres" / "data" / "postmaster.pid").read_text()
    mine = "\n".join([str(os.getpid()), *word.splitlines()[1:]])  # as after a reboot: another process has its number
    (folder / "postgres" / "data" / "postmaster.pid").write_text(mine)
    with sandbox(folder) as (_, second):
        assert read_everywhere(second) == (("kept",), b"kept", ["kept"])


def test_the_own_queues_of_a_sandbox_lack_nothing_that_provisioning_wants(tmp_path: Path) -> None:
    with sandbox(tmp_path / "sandbox", "--only", "sqs") as (_, found), pytest.MonkeyPatch.context() as patch:
        for name in ("AWS_ENDPOINT_URL_SQS", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_DEFAULT_REGION"):
            patch.setenv(name, found[name])
        aws.forget_clients()
        place = QueueLocation(found["AWS_DEFAULT_REGION"])
        lacks = {
            one.wanted.name: one.differences
            for name in OWN_QUEUES
            for one in compare_queues((place, wanted) for wanted in service_queues(name))
        }
    aws.forget_clients()
    assert lacks == {f"{name}{of}": () for name in OWN_QUEUES for of in ("", "-dlq")}


@pytest.mark.long
def test_an_own_queue_that_somebody_changed_is_taken_as_it_is(tmp_path: Path) -> None:
    folder = tmp_path / "sandbox"
    with sandbox(folder, "--only", "sqs") as (_, first), sqs_client(first["AWS_ENDPOINT_URL_SQS"]) as queues:
        url = first["REDRIVE_CONTROL_QUEUE_URL"]
        queues.set_queue_attributes(QueueUrl=url, Attributes={"VisibilityTimeout": "30"})
    with sandbox(folder, "--only", "sqs") as (_, second), sqs_client(second["AWS_ENDPOINT_URL_SQS"]) as queues:
        read = queues.get_queue_attributes(QueueUrl=url, AttributeNames=["VisibilityTimeout"])
        assert read["Attributes"] == {"VisibilityTimeout": "30"}


def test_an_own_queue_deleted_a_moment_ago_is_told_in_a_sentence(tmp_path: Path) -> None:
    folder = tmp_path / "sandbox"
    with sandbox(folder, "--only", "sqs") as (_, first), sqs_client(first["AWS_ENDPOINT_URL_SQS"]) as queues:
        queues.delete_queue(QueueUrl=first["REDRIVE_CONTROL_QUEUE_URL"])
    status, told = refusal("--only", "sqs", "--folder", str(folder))
    assert status == 1
    assert told.startswith("CommandError: The service's own queues could not be made: ")
    assert "QueueDeletedRecently" in told
