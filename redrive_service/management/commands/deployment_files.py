"""`manage.py deployment_files`: write deployment files for Docker Compose, Amazon ECS or Kubernetes."""

from __future__ import annotations

from argparse import ArgumentTypeError
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from redrive_service.deployment import Installation, Platform, deployment_files
from reprocessing.management.arguments import add_confirm, add_json, not_empty
from reprocessing.management.console import Console


class Command(Console):
    """Write the files of a production deployment.

    Makes a compose file, task definitions for ECS on Fargate, or manifests for Kubernetes, without secrets. The command
    needs no environment variables and connects to no server.

    Examples:
        deployment_files --for kubernetes --image registry.example.com/redrive-service:0.1.0 --host redrive.example.com --account 111122223333 --region eu-west-1
        deployment_files --for ecs --image registry.example.com/redrive-service:0.1.0 --host redrive.example.com --account 111122223333 --region eu-west-1 --set REDRIVE_PLACE=orders --secret REDRIVE_METRICS_TOKEN --folder deploy --confirm
    """  # noqa: E501  # each example is one line

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--for", dest="platform", required=True, choices=[platform.value for platform in Platform],
            help="platform that will run the processes: the files have its format",
        )  # fmt: skip
        required: dict[str, Any] = {"required": True, "type": not_empty}
        meanings = (
            ("--image", "IMAGE", "container image of the service, with its tag"),
            ("--host", "NAME", "host name at which people open the admin"),
            ("--account", "ID", "AWS account that has the service's own queues"),
            ("--region", "REGION", "AWS region that has the service's own queues"),
        )
        for option, metavar, meaning in meanings:
            parser.add_argument(option, **required, metavar=metavar, help=meaning)
        parser.add_argument(
            "--set", dest="more", action="append", default=[], type=assignment, metavar="NAME=VALUE",
            help="set this environment variable for the processes; repeatable",
        )  # fmt: skip
        parser.add_argument(
            "--secret", dest="secrets", action="append", default=[], type=not_empty, metavar="NAME",
            help="name of an environment variable that is a secret, in addition to SECRET_KEY, DATABASE_URL and "
            "REDIS_URL; repeatable",
        )  # fmt: skip
        parser.add_argument(
            "--folder", default="deploy", type=Path, help="folder to which the files are written (default: %(default)s)"
        )
        add_confirm(parser)
        add_json(parser)

    def answer(self, options: dict[str, Any]) -> None:
        installation = Installation(
            image=options["image"],
            account=options["account"],
            region=options["region"],
            host=options["host"],
            more=dict(options["more"]),
            more_secrets=tuple(dict.fromkeys(options["secrets"])),
        )
        installation.check()
        files = deployment_files(Platform(options["platform"]), installation)
        try:
            states = {path: _state(options["folder"] / path, text) for path, text in files.items()}
            if options["confirm"]:
                for path, text in files.items():
                    _write(options["folder"] / path, text)
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is no text"
            raise CommandError(
                f"A file in {options['folder']} cannot be used: {why}. Choose another --folder."
            ) from error
        self._show(states, options)

    def _show(self, states: dict[str, str], options: dict[str, Any]) -> None:
        if options["json"]:
            files = [{"path": path, "state": state} for path, state in states.items()]
            self.report({"dry_run": not options["confirm"], "folder": str(options["folder"]), "files": files})
            return
        for path, state in states.items():
            self.say(f"{options['folder'] / path}: {state}")
        if options["confirm"]:
            self.say("Done. docs/deployment/README.md says how to deploy them.")
        else:
            self.say("This was a dry run: nothing was written. Add --confirm to write the files.")


def assignment(text: str) -> tuple[str, str]:
    """Return name and value of the text NAME=VALUE. Raises ArgumentTypeError if the text has no =."""
    name, equals, value = text.partition("=")
    if not equals:
        raise ArgumentTypeError(f"{text!r} has no =. Type NAME=VALUE")
    return name.strip(), value.strip()


def _state(path: Path, text: str) -> str:
    if not path.exists():
        return "new"
    return "unchanged" if path.read_text(encoding="utf-8") == text else "changed"


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
