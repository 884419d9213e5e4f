"""`manage.py sandbox`: run PostgreSQL, Valkey and a local SQS, and with --demo the service, in the foreground."""

from __future__ import annotations

import json
import os
import shlex
import sys
import time
from argparse import ArgumentTypeError
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from django.core.management.base import CommandError, CommandParser

from redrive_service.sandbox import stopping
from redrive_service.sandbox.demo import Demo
from redrive_service.sandbox.errors import SandboxError
from redrive_service.sandbox.folder import LAST_PORT, Ports, in_shell
from redrive_service.sandbox.stack import LOOPBACK, Stack
from reprocessing.management.command_line import as_invoked
from reprocessing.management.command_parser import StrictCommand

INCIDENT = 2_000
MOST_LETTERS = 20_000  # as many as the service captures at once
STANDARD_OUTPUT, STANDARD_ERROR = 1, 2
FOLDER = Path(__file__).parents[4] / ".sandbox"


class Command(StrictCommand):
    """Runs PostgreSQL, Valkey and a local SQS until it is stopped."""

    help = (
        "Run PostgreSQL, Valkey and a local SQS in the foreground, and print the environment to export. "
        "Their data stay in the folder. All servers end with this process."
    )
    requires_system_checks: list[str] = []

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        open_what_is_closed()
        super().__init__(*args, **kwargs)

    def add_arguments(self, parser: CommandParser) -> None:
        used = "(default: as at the last start, else a free port)"
        parser.add_argument("--only", choices=["sqs"], help="start only this server: sqs, the local SQS")
        parser.add_argument(
            "--folder", type=folder, default=FOLDER,
            help="folder in which the servers keep their data (default: %(default)s)",
        )  # fmt: skip
        parser.add_argument(
            "--fresh", action="store_true", help="delete the data of earlier starts before the servers start"
        )
        ports = {
            "sqs": f"port of the local SQS {used}", "postgres": f"port of PostgreSQL {used}",
            "redis": f"port of Valkey {used}", "web": f"with --demo: port of the web server {used}",
        }  # fmt: skip
        for name, meaning in ports.items():
            names = ["--port", "--sqs-port"] if name == "sqs" else [f"--{name}-port"]
            parser.add_argument(*names, dest=f"{name}_port", type=port, default=0, metavar="N", help=meaning)
        parser.add_argument(
            "--host", default=LOOPBACK,
            help="with --only sqs: address on which the local SQS listens (default: %(default)s)",
        )  # fmt: skip
        parser.add_argument(
            "--demo", action="store_true",
            help="also start the service (web server, workers and beat), and show an incident that the service handles",
        )  # fmt: skip
        parser.add_argument(
            "--exit", action="store_true", help="stop when all servers are ready and the incident of --demo has ended"
        )
        parser.add_argument(
            "--messages", type=letters, metavar="N",
            help=f"with --demo: number of messages that fail (default: {INCIDENT:,})",
        )  # fmt: skip
        parser.add_argument(
            "--json",
            action="store_true",
            help="with --demo: print the figures of the incident as JSON, and nothing else",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        refuse_what_does_not_fit(options)
        try:
            stopping.raise_if_stopped()
            if options["only"]:
                self.run_queues_only(options)
            else:
                self.run_stack(options)
        except SandboxError as error:
            raise CommandError(str(error)) from error
        except stopping.Stopped:
            pass
        self.say("Everything is stopped.")
        for line in after_the_end(options):
            self.say(line)

    def run_queues_only(self, options: dict[str, Any]) -> None:
        """Start only the local SQS, with the service's own queues."""
        ports = Ports(sqs=options["sqs_port"])
        folder, host = options["folder"], options["host"]
        with Stack(folder, ports=ports, fresh=options["fresh"], queues_only=True, sqs_host=host) as stack:
            self.say(f"The local SQS listens on {stack.queues.endpoint}")
            self.print_environment(stack)
            self.stay(stack, options)

    def run_stack(self, options: dict[str, Any]) -> None:
        """Start all servers, print how to use them, and run until a signal stops them or a server ends."""
        began = time.monotonic()
        ports = Ports(**{name: options[f"{name}_port"] for name in ("postgres", "redis", "sqs", "web")})
        with Stack(options["folder"], ports=ports, fresh=options["fresh"]) as stack:
            self.say(f"PostgreSQL, Valkey and the local SQS are ready after {time.monotonic() - began:.1f} s.")
            if not options["json"]:
                self.print_environment(stack, only_file=options["demo"])
            if options["demo"]:
                with Demo(stack, say=self.say) as demo:
                    self.tell(demo, options)
                    if not options["exit"]:
                        self.say(
                            f"The shop's consumer still runs: it receives the messages that you release. {demo.admin()}"
                        )
                    self.stay(stack, options)
            else:
                self.stay(stack, options)

    def tell(self, demo: Demo, options: dict[str, Any]) -> None:
        """Run the incident of --demo, and print its result. Raises CommandError if the redrive had an error."""
        summary = demo.tell_incident(options["messages"] or INCIDENT)
        for sentence in summary.sentences():
            self.say(sentence)
        if options["json"]:
            self.stdout.write(json.dumps(summary.figures()))
            self.stdout.flush()
        if not summary.kept:
            raise CommandError("A promise was broken, or a message is not accounted for: see the judge's lines.")

    def stay(self, stack: Stack, options: dict[str, Any]) -> None:
        """With --exit, return at once. Else wait for ever.

        Raises:
            CommandError: a server has ended.
            Stopped: Ctrl-C or SIGTERM stopped the sandbox.
        """
        if options["exit"]:
            self.say("Stopping …")
            return
        self.say("Ctrl-C stops everything; the data stay.")
        try:
            while (ended := stack.ended()) is None:
                stopping.raise_if_stopped()
                time.sleep(0.1)
        except stopping.Stopped:
            self.say("Stopping …")
            raise
        raise CommandError(f"{ended.server.name} has ended by itself; its log is {ended.server.log}")

    def print_environment(self, stack: Stack, *, only_file: bool = False) -> None:
        """Write the environment variables to a file for a shell and, unless `only_file`, to standard output."""
        lines = [f"export {name}={shlex.quote(value)}" for name, value in stack.environment().items()]
        file = stack.folder / "environment"
        try:
            file.touch(mode=0o600)
            file.write_text("\n".join(lines) + "\n")
        except OSError as error:
            raise CommandError(f"{file} cannot be written ({error.strerror}). Remove it.") from error
        if only_file:
            self.say(f"For manage.py in another terminal:  . {file}")
            return
        try:
            self.stdout.write("\n".join(lines))
            self.stdout.flush()  # a program that reads the output through a pipe waits for this
        except OSError as error:
            silence(sys.stdout)
            raise CommandError(
                f"Standard output cannot be written to ({error.strerror}). "
                f"Redirect it to /dev/null: the environment is also in {file}."
            ) from error
        self.say(f"The same lines are in a file:  . {file}")

    def say(self, message: str) -> None:
        """Write a line to standard error, if it is open. Standard output is for the environment variables."""
        try:
            self.stderr.write(as_invoked(message), style_func=str)  # unchanged: Django would print it red, as an error
            self.stderr.flush()
        except OSError:
            silence(sys.stderr)


def refuse_what_does_not_fit(options: dict[str, Any]) -> None:
    """Raise CommandError if an option would have no effect with the other options."""
    if options["only"] and options["demo"]:
        raise CommandError("--demo needs the whole stack. Leave out --only.")
    if options["host"] != LOOPBACK and not options["only"]:
        raise CommandError("--host is for --only sqs: the whole stack listens on the loopback address alone.")
    if options["web_port"] and not options["demo"]:
        raise CommandError("--web-port is for --demo: without it there is no web server.")
    if options["messages"] and not options["demo"]:
        raise CommandError("--messages is for --demo: without it there is no incident.")
    if options["json"] and not options["demo"]:
        raise CommandError("--json prints the figures of --demo's incident. Add --demo.")


def after_the_end(options: dict[str, Any]) -> Iterator[str]:
    """Yield lines that say, after the sandbox has ended, where its data are, and how to start it again or delete it."""
    data: Path = options["folder"]
    if not (data / "settings.json").exists():
        return  # the sandbox was stopped before it started
    yield f"The data are in {in_shell(data)}"
    is_own = data == FOLDER
    words = [f"--only {options['only']}"] if options["only"] else []
    words += [] if is_own else [f"--folder {in_shell(data)}"]
    if options["demo"]:
        yield f"To run the demo again:     {'make demo' if is_own else ' '.join(['manage.py sandbox --demo', *words])}"
    yield f"To start the servers:      {' '.join(['manage.py sandbox', *words])}"
    if is_own:
        yield "To delete everything:      make clean"


def port(text: str) -> int:
    """Return the port number in the text. 0 stands for any free port. Raises ArgumentTypeError for other texts."""
    if not text.isdecimal() or int(text) > LAST_PORT:
        raise ArgumentTypeError(f"{text!r} is no port: it takes a whole number up to {LAST_PORT}, 0 for any free port")
    return int(text)


def letters(text: str) -> int:
    """Return the number of messages in the text. Raises ArgumentTypeError if it is not from 1 to 20,000."""
    if not text.isdecimal() or not 0 < int(text) <= MOST_LETTERS:
        raise ArgumentTypeError(f"{text!r} is no number of messages: it takes a whole number from 1 to {MOST_LETTERS}")
    return int(text)


def folder(text: str) -> Path:
    """Return the absolute path of the folder in the text."""
    return Path(os.path.realpath(text))  # Path.resolve fails on a link to itself


def open_what_is_closed() -> None:
    """Open closed standard streams on /dev/null. Otherwise, the next opened file would become a standard stream."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= STANDARD_ERROR:
        pass
    os.close(descriptor)
    sys.stdout = sys.stdout or os.fdopen(STANDARD_OUTPUT, "w")
    sys.stderr = sys.stderr or os.fdopen(STANDARD_ERROR, "w")


def silence(stream: TextIO) -> None:
    """Connect a broken output stream with /dev/null. Otherwise, Python would fail to flush the stream at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
