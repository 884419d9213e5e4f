"""The command `manage.py export_config`, which prints the configuration as a YAML file."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from reprocessing.management.configuration.schema import schema_text
from reprocessing.management.console import Console
from reprocessing.pipeline.configuration.export_text import export_text
from reprocessing.store.configuration import state


class Command(Console):
    """Print the configuration as a YAML file for apply_config.

    The file has policies, rate classes, targets, DLQs, rules and notification routes. It has no secrets and no
    messages. The same configuration gives the same text. With --schema, prints the JSON Schema of configuration files,
    with which editors complete and check a file.

    Examples:
        export_config
        export_config --schema
    """

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--schema", action="store_true", help="print the JSON Schema of configuration files")

    def answer(self, options: dict[str, Any]) -> None:
        text = schema_text() if options["schema"] else export_text(state.read_state())
        self.write(text, ending="")
