"""What a person meets at `manage.py sandbox`: sentences, never a traceback."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from redrive_service.sandbox.management.commands.sandbox import Command, after_the_end
from redrive_service.sandbox.servers.process import free_port
from tests.contract.endpoints import sqs_client
from tests.sandbox.launching import MANAGE, processes_of, refusal, refused_here, sandbox
from tests.sandbox.test_stack import read_everywhere, write_everywhere

pytestmark = pytest.mark.soak

SECRETS = {"data": "a" * 48, "django": "b" * 64, "admin": "c" * 16}
PORTS = {"postgres": 0, "redis": 0, "sqs": 0, "web": 0}


def test_commands_are_shown_as_the_sandbox_was_invoked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "orig_argv", [".venv/bin/python", "manage.py", "sandbox", "--demo"])
    monkeypatch.setattr(sys, "argv", ["manage.py", "sandbox", "--demo"])
    told = StringIO()
    Command(stderr=told).say("manage.py add_dlq shop --confirm")
    assert told.getvalue() == ".venv/bin/python manage.py add_dlq shop --confirm\n"


def test_only_errors_are_red() -> None:
    told = Terminal()
    Command(stderr=told, force_color=True).say("PostgreSQL, Valkey and the local SQS are ready.")
    assert told.getvalue() == "PostgreSQL, Valkey and the local SQS are ready.\n"


@pytest.mark.parametrize(
    ("options", "lines"),
    [
        (
            {"demo": True, "only": None},
            ["To run the demo again:     make demo", "To start the servers:      manage.py sandbox"],
        ),
        ({"demo": False, "only": "sqs"}, ["To start the servers:      manage.py sandbox --only sqs"]),
    ],
)
def test_the_end_says_how_to_start_again_and_how_to_delete_everything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], lines: list[str]
) -> None:
    monkeypatch.setattr("redrive_service.sandbox.management.commands.sandbox.FOLDER", tmp_path)
    (tmp_path / "settings.json").touch()
    told = list(after_the_end({"folder": tmp_path, **options}))
    assert told == [f"The data are in {tmp_path}", *lines, "To delete everything:      make clean"]


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("server", ["postgres", "redis", "sqs", "web"])
def test_a_port_that_is_taken_is_refused_before_a_stranger_is_asked_anything(tmp_path: Path, server: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        taken = str(stranger.getsockname()[1])
        assert refused_here("--demo", "--folder", str(tmp_path), f"--{server}-port", taken) == (
            1,
            f"CommandError: Something listens on port {taken} already. Choose another --{server}-port.",
        )


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--only", "sqs", "--demo"), "--demo needs the whole stack. Leave out --only."),
        (("--host", "0.0.0.0"), "--host is for --only sqs: the whole stack listens on the loopback address alone."),
        (("--web-port", "8000"), "--web-port is for --demo: without it there is no web server."),
    ],
)
def test_an_option_that_would_be_ignored_is_refused(options: tuple[str, ...], sentence: str) -> None:
    assert refused_here(*options) == (1, f"CommandError: {sentence}")


@pytest.mark.parametrize("text", ["70000", "-1", "http"])
def test_what_is_no_port_is_refused_with_what_is_one(text: str) -> None:
    status, told = refused_here(f"--sqs-port={text}")
    why = f"--port/--sqs-port: '{text}' is no port: it takes a whole number up to 65535, 0 for any free port"
    assert (status, told.rpartition("argument ")[2]) == (2, f"{why}\nOptions: manage.py sandbox --help")


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"ports": {**PORTS, "sqs": "9324"}, "secrets": SECRETS}),
        json.dumps({"ports": {**PORTS, "sqs": 70_000}, "secrets": SECRETS}),
        json.dumps({"ports": {**PORTS, "sqs": True}, "secrets": SECRETS}),
        json.dumps({"ports": {**PORTS, "ftp": 0}, "secrets": SECRETS}),
        json.dumps({"ports": PORTS, "secrets": {**SECRETS, "data": None}}),
        json.dumps({"ports": PORTS, "secrets": {**SECRETS, "data": 'with "quotes" and\nlines'}}),
        json.dumps({"ports": PORTS, "secrets": "none"}),
        json.dumps(["ports"]),
        "[" * 100_000,
        "",
    ],
    ids=["text", "range", "bool", "unknown", "null", "quotes", "no pairs", "list", "deep", "empty"],
)
def test_settings_that_are_not_the_sandboxs_are_refused_in_a_sentence(tmp_path: Path, text: str) -> None:
    (tmp_path / "settings.json").write_text(text)
    assert refused_here("--only", "sqs", "--exit", "--folder", str(tmp_path)) == (
        1,
        f"CommandError: {tmp_path / 'settings.json'} cannot be read. Remove the folder, or name another --folder.",
    )


@pytest.mark.parametrize("name", ["settings.json", "sqs.log"])
def test_a_file_that_is_a_folder_is_refused_in_a_sentence(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    assert refused_here("--only", "sqs", "--folder", str(tmp_path)) == (
        1,
        f"CommandError: {tmp_path / name} cannot be used (Is a directory). Put it right, or name another --folder.",
    )


def test_an_environment_that_cannot_be_written_is_told_in_a_sentence_and_all_is_stopped(tmp_path: Path) -> None:
    (tmp_path / "environment").mkdir()
    status, told = refusal("--only", "sqs", "--folder", str(tmp_path))
    sentence = f"CommandError: {tmp_path / 'environment'} cannot be written (Is a directory). Remove it."
    assert (status, told.splitlines()[1:]) == (1, [sentence])
    assert processes_of(tmp_path) == []


def test_a_folder_that_is_a_link_to_itself_is_refused_in_a_sentence(tmp_path: Path) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    status, told = refused_here("--only", "sqs", "--folder", str(loop))
    assert (status, told) == (
        1,
        f"CommandError: The folder {loop} cannot be used (File exists). Name another --folder.",
    )


def through_a_shell(redirections: str, folder: Path) -> tuple[int, list[str]]:
    """The exit status and the last words of a sandbox whose streams a shell redirected."""
    script = f'"$@" {redirections}'
    command = [sys.executable, str(MANAGE), "sandbox", "--only", "sqs", "--exit", "--folder", str(folder)]
    outside = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    shell = ["bash", "-o", "pipefail", "-c", script, "bash", *command]
    done = subprocess.run(shell, capture_output=True, text=True, check=False, env=outside)
    return done.returncode, done.stderr.splitlines()[1:]


@pytest.mark.parametrize(("target", "why"), [("| true", "Broken pipe"), ("> /dev/full", "No space left on device")])
def test_standard_output_that_cannot_be_written_to_is_told_in_a_sentence(tmp_path: Path, target: str, why: str) -> None:
    if target.startswith(">") and not Path("/dev/full").exists():
        pytest.skip("only Linux has a full device")
    sentence = (
        f"CommandError: Standard output cannot be written to ({why}). Redirect it to /dev/null: the environment is "
        f"also in {tmp_path / 'environment'}."
    )
    assert through_a_shell(target, tmp_path) == (1, [sentence])
    assert processes_of(tmp_path) == []


def test_a_closed_standard_output_is_none(tmp_path: Path) -> None:
    status, told = through_a_shell(">&-", tmp_path)
    assert (status, "Everything is stopped." in told) == (0, True)


@pytest.mark.parametrize("target", ["2> /dev/full", ">&- 2>&- <&-", "2>&-"])
def test_nobody_who_listens_to_its_words_is_no_reason_to_fail(tmp_path: Path, target: str) -> None:
    assert through_a_shell(target, tmp_path) == (0, [])


@pytest.mark.long
@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("127.0.0.2", "127.0.0.2"),
        ("::", "[::1]"),
        ("127.0.0.1", "127.0.0.1"),
        ("::1", "[::1]"),
    ],
)
def test_the_endpoint_is_the_host_that_was_asked_for(tmp_path: Path, host: str, address: str) -> None:
    try:
        socket.create_server((host, 0), family=socket.AF_INET6 if ":" in host else socket.AF_INET).close()
    except OSError:
        pytest.skip(f"this machine has no {host}")
    port = free_port()
    with sandbox(tmp_path / "sandbox", "--only", "sqs", "--host", host, "--port", str(port)) as (_, environment):
        assert environment["AWS_ENDPOINT_URL_SQS"] == f"http://{address}:{port}"
        with sqs_client(environment["AWS_ENDPOINT_URL_SQS"]) as queues:
            assert len(queues.list_queues()["QueueUrls"]) == 6


def test_modules_of_the_folder_it_is_called_from_are_not_the_sandboxs(tmp_path: Path) -> None:
    stranger = tmp_path / "redrive_service"
    stranger.mkdir()
    (stranger / "__init__.py").write_text("raise SystemExit('a stranger')")
    with sandbox(tmp_path / "sandbox", "--only", "sqs") as (_, environment):
        assert "AWS_ENDPOINT_URL_SQS" in environment


@pytest.mark.long
def test_any_folder_can_be_named(tmp_path: Path) -> None:
    folder = tmp_path / 'we"ird \\ \n $HOME ü'
    with sandbox(folder) as (_, first):
        write_everywhere(first)
    with sandbox(folder) as (_, second):
        assert read_everywhere(second) == (("kept",), b"kept", ["kept"])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_asked_to_stop_while_it_is_imported_it_starts_nothing(tmp_path: Path, number: signal.Signals) -> None:
    interrupted = f"""
import os, sys
from redrive_service.sandbox import settings
os.kill(os.getpid(), {number:d})
from django.core.management import execute_from_command_line

execute_from_command_line(["manage.py", "sandbox", "--folder", sys.argv[1]])
"""
    environment: dict[str, Any] = {**os.environ, "DJANGO_SETTINGS_MODULE": "redrive_service.sandbox.settings"}
    command = [sys.executable, "-c", interrupted, str(tmp_path / "sandbox")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, cwd=MANAGE.parent)
    assert (done.returncode, done.stderr) == (0, "Everything is stopped.\n")
    assert not (tmp_path / "sandbox").exists()
