"""Write docs/reference.md (every command, every name of settings.REDRIVE), two JSON documents, and deployment/.

redrive.schema.json is the schema of configuration files, openapi.json describes the HTTP API.

python -m tests.house.reference         writes them
python -m tests.house.reference --check  says whether they are what the code says; 1 where they are not
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import MISSING, Field, fields
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import django
from django.core.management import BaseCommand, get_commands, load_command_class

from redrive_service.deployment import Installation, Platform, deployment_files
from reprocessing.domain.notifications.thresholds import Thresholds

ROOT: Final = Path(__file__).resolve().parents[2]
DOCS: Final = ROOT / "docs"
PAGE: Final = DOCS / "reference.md"
APPS: Final = ("reprocessing", "reprocessing.idempotency", "redrive_service")
_HEAD: Final = """# Reference

Every command with its options, and every name of `settings.REDRIVE`. This page is made from the code: change the code
and run `make reference`. Environment variables: [production](production.md). Metrics: [metrics](metrics.md).
"""
_WITHOUT_PARAGRAPHS: Final = re.compile(r"\s+")


def example() -> Installation:
    """The installation of docs/deployment."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    image = f"registry.example.com/redrive-service:{version}"
    return Installation(image=image, account="111122223333", region="eu-west-1", host="redrive.example.com", more={})


def deployment() -> dict[str, str]:
    made = (deployment_files(platform, example()) for platform in Platform)
    return {f"deployment/{path}": text for files in made for path, text in files.items()}


def page() -> str:
    return "\n".join([_HEAD, "## Commands\n", *_commands(), "## Settings\n", *_settings()])


def _commands() -> Iterator[str]:
    found = sorted(name for name, app in get_commands().items() if app in APPS)
    yield " · ".join(f"[{name}](#{name})" for name in found) + "\n"
    for name in found:
        made = load_command_class(get_commands()[name], name)
        parser = made.create_parser("manage.py", name)
        yield f"### {name}\n\n{_line(made.help)}\n"
        for action in parser._actions:
            if action.dest == "by":
                action.default = "your login name"
        own = [action for action in parser._actions if not _is_djangos(action)]
        if own:
            yield "| option | default | meaning |\n|---|---|---|"
            yield from (f"| {_option(action)} | {_default(action)} | {_help(action)} |" for action in own)
            yield ""


def _is_djangos(action: argparse.Action) -> bool:
    return action.dest in {*_DJANGOS, "help"}


_DJANGOS: Final = {action.dest for action in BaseCommand().create_parser("manage.py", "any")._actions}


def _option(action: argparse.Action) -> str:
    names = ", ".join(f"`{name}`" for name in action.option_strings)
    if action.nargs == 0:
        return names
    choices = "{" + ",".join(map(str, action.choices)) + "}" if action.choices else ""
    value = action.metavar or choices or action.dest.upper()
    value = " ".join(value) if isinstance(value, tuple) else value
    return f"{names} {_cell(value)}" if names else _cell(value)


def _default(action: argparse.Action) -> str:
    if action.nargs == 0 or action.default in (None, argparse.SUPPRESS, [], ()):
        return "required" if action.required else ""
    return _cell(str(action.default))


def _help(action: argparse.Action) -> str:
    return _line(argparse.HelpFormatter("")._expand_help(action)) if action.help else ""


def _settings() -> Iterator[str]:
    from reprocessing.conf import Conf  # noqa: PLC0415  it asks for Django's settings

    alerts = {f"alert_{name}": meaning for name, meaning in _attributes(Thresholds.__doc__ or "").items()}
    told = _attributes(Conf.__doc__ or "") | alerts
    yield "Names of `settings.REDRIVE`. Durations are seconds.\n"
    yield "| name | default | meaning |\n|---|---|---|"
    for made in fields(Conf):
        yield f"| `{made.name.upper()}` | {_value(made)} | {_line(told[made.name])} |"


def _attributes(doc: str) -> dict[str, str]:
    """Return what the docstring's `Attributes:` say of each name."""
    section = doc.partition("Attributes:\n")[2]
    return dict(re.findall(r"^ {8}(\w+): (.*(?:\n {12}.*)*)", section, re.MULTILINE))


def _value(made: Field[Any]) -> str:
    if made.default is MISSING:
        return ""
    value = made.default
    return _cell(f"{value.total_seconds():.10g}" if isinstance(value, timedelta) else str(value) if value != () else "")


def _line(text: str) -> str:
    return _WITHOUT_PARAGRAPHS.sub(" ", text).strip().replace("|", "\\|").replace("%%", "%")


def _cell(text: str) -> str:
    return f"`{text}`".replace("|", "\\|") if text else ""


def main() -> int:
    os.environ["DJANGO_SETTINGS_MODULE"] = "redrive_service.help_settings"
    django.setup()
    from reprocessing.api.urls import api  # noqa: PLC0415  it asks for Django's settings
    from reprocessing.management.configuration.schema import schema_text  # noqa: PLC0415  as above

    wrong = 0
    described = json.dumps(api.get_openapi_schema(path_prefix="/api/v1/"), indent=1, default=str) + "\n"
    made = {"reference.md": page(), "redrive.schema.json": schema_text(), "openapi.json": described, **deployment()}
    for name, wanted in made.items():
        path = DOCS / name
        if "--check" not in sys.argv[1:]:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(wanted, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != wanted:
            print(f"docs/{name} is not what the code says. Run: make reference", file=sys.stderr)  # noqa: T201
            wrong = 1
    return wrong


if __name__ == "__main__":
    sys.exit(main())
