"""Find the command-line option that reads each key of a configuration file.

A key of the file and the command-line option that sets the same value have the same checks, default and help.
"""

from __future__ import annotations

from argparse import Action, ArgumentError, ArgumentTypeError, BooleanOptionalAction, HelpFormatter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from django.core.management import load_command_class
from django.core.management.base import CommandParser

from reprocessing.domain.configuration.keys import CHECK_KEYS, KEYS, Kind
from reprocessing.domain.targets.target_kind import TargetKind
from reprocessing.management.arguments import OFF, Number, OrOff, WholeNumber
from reprocessing.management.options.target_policy_options import OFF_VALUES

_BOOLEANS: Final = {"true": True, "false": False}
#: The commands whose options read the keys of each kind of object. The first command that has an option reads the key.
_COMMANDS: Final[Mapping[Kind, tuple[str, ...]]] = {
    Kind.POLICY: ("add_dlq",),
    Kind.RATE_CLASS: ("add_rate_class",),
    Kind.TARGET: ("add_target", "add_dlq"),
    Kind.DLQ: ("add_dlq",),
    Kind.RULE: ("add_rule",),
    Kind.NOTIFICATION: ("set_notification",),
    Kind.APPROVAL: ("require_approvals",),
}
#: For each key whose option has another name: the name of the option.
_OPTIONS: Final = {
    "public_fields": "--public-field", "masked_fields": "--masked-field", "search_fields": "--search-field",
    "enabled": "--enable",
}  # fmt: skip
#: Keys whose values have a structure of their own; `file_reader` reads them.
STRUCTURED: Final = frozenset({"sources", "health_checks", "events", "dlqs", "default_source"})


@dataclass(frozen=True, slots=True)
class FileKey:
    """A key of the configuration file, the command-line option that reads its value, and the field that it sets."""

    key: str
    field: str
    parser: CommandParser
    option: Action

    @property
    def is_list(self) -> bool:
        """Return whether the value is a list of texts."""
        return type(self.option).__name__ == "_AppendAction"

    @property
    def is_boolean(self) -> bool:
        """Return whether the value is a boolean (the text `true` or `false`)."""
        return isinstance(self.option, BooleanOptionalAction) or self.option.nargs == 0

    @property
    def help(self) -> str:
        """Return the help of the option as one line, with its default filled in."""
        text = HelpFormatter("")._expand_help(self.option)  # noqa: SLF001  # argparse has no other way
        return " ".join(text.split())

    def read(self, text: str) -> Any:  # noqa: ANN401  of the field's own type
        """Read the text of a value in the file as the command-line option would read it, and return the value.

        Raises:
            ArgumentTypeError: the option refuses the text; the error says why.
        """
        if self.is_boolean:
            if text not in _BOOLEANS:
                raise ArgumentTypeError(f"{text!r} is not true or false")
            value = _BOOLEANS[text]
            return (TargetKind.CELERY if value else TargetKind.SQS).value if self.key == "celery" else value
        try:
            value = self.parser._get_value(self.option, text)  # noqa: SLF001  # the parser's own reading of one value
            self.parser._check_value(self.option, value)  # noqa: SLF001
        except ArgumentError as error:
            raise ArgumentTypeError(error.message) from error
        if self.is_list and value == OFF:
            raise ArgumentTypeError(f"{OFF} is no member of this list. For no members, write {self.key}: []")
        return OFF_VALUES.get(self.field) if isinstance(value, str) and value == OFF else value

    def schema(self) -> dict[str, Any]:
        """Return the JSON Schema of the key's value, with the option's help as description."""
        if self.is_boolean:
            found: dict[str, Any] = {"type": "boolean"}
        elif self.option.choices:
            found = {"enum": [str(choice) for choice in self.option.choices]}
        else:
            found = _schema_of(self.option.type)
        found = {"type": "array", "items": found} if self.is_list else found
        return {**found, "description": self.help}


def _schema_of(read: object) -> dict[str, Any]:
    match read:
        case OrOff():
            inner = _schema_of(read.read)
            return inner if inner == {"type": "string"} else {"anyOf": [inner, {"const": OFF}]}
        case Number():
            least = "exclusiveMinimum" if read.above else "minimum"
            return {"type": "number", least: read.least, "maximum": read.most}
        case WholeNumber():
            return {"type": "integer", "minimum": read.least, "maximum": read.most}
        case _:
            return {"type": "string"}


@cache
def _options(command: str) -> tuple[CommandParser, dict[str, Action]]:
    parser = load_command_class("reprocessing", command).create_parser("manage.py", command)
    return parser, {name: action for action in parser._actions for name in action.option_strings}  # noqa: SLF001


@cache
def keys_of(kind: Kind) -> dict[str, FileKey]:
    """Return, by name, the keys of this kind of object whose values options read, in the order of export_config."""
    found = {}
    for key, field in KEYS[kind].items():
        name = _OPTIONS.get(key, f"--{key.replace('_', '-')}")
        for parser, options in map(_options, _COMMANDS[kind]):
            if key not in STRUCTURED and key not in found and name in options:
                found[key] = FileKey(key, field, parser, options[name])
    return found


@cache
def check_keys() -> dict[str, FileKey]:
    """Return, by name, the keys of a health check in the file. The options of check_health read their values."""
    parser, options = _options("check_health")
    return {key: FileKey(key, key, parser, options[f"--{key.replace('_', '-')}"]) for key in (*CHECK_KEYS, "status")}
