"""The cures of an examination are what to type: options with values that the commands accept."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.management import load_command_class
from django.core.management.base import CommandError

from reprocessing.pipeline.dlqs import examine

FOLDER = Path(examine.__path__[0])
#: What a person puts in the place of a word in capitals.
VALUES = {"SECONDS": "60", "R": "5", "NAME": "orders", "TARGET": "orders"}
COMMANDS = {"add_dlq": ["orders"], "add_target": ["arn:aws:sqs:us-east-1:000000000000:orders"]}


def texts() -> Iterator[str]:
    """Every text in the modules of the examination, except docstrings."""
    for file in FOLDER.glob("*.py"):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        docs = {ast.get_docstring(node, clean=False) for node in ast.walk(tree) if isinstance(node, ast.Module)}
        docs |= {
            ast.get_docstring(node, clean=False)
            for node in ast.walk(tree)
            if isinstance(node, ast.FunctionDef | ast.ClassDef)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value not in docs:
                yield node.value


def is_accepted(*words: str) -> bool:
    for name, arguments in COMMANDS.items():
        parser = load_command_class("reprocessing", name).create_parser("manage.py", name)
        try:
            parser.parse_args([*arguments, *words])
        except (CommandError, SystemExit):
            continue
        return True
    return False


def test_no_cure_asks_a_person_to_say_something() -> None:
    assert [text for text in texts() if re.search(r"\b[Ss]ay\b", text)] == []


def test_options_that_a_cure_sets_are_accepted_with_their_values() -> None:
    found = [pair for text in texts() for pair in re.findall(r"\b[Ss]et (--[a-z-]+) ([\w-]+)", text)]
    assert len(found) > 15
    refused = [(option, value) for option, value in found if not is_accepted(option, VALUES.get(value, value))]
    assert refused == []


@pytest.mark.parametrize("words", [("--outcome", "good"), ("--windows", "60")])
def test_what_no_command_accepts_is_noticed(words: tuple[str, str]) -> None:
    assert not is_accepted(*words)
