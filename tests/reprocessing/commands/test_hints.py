"""Each command line that the code shows is taken by the real parser of its command, and begins as it was invoked."""

from __future__ import annotations

import ast
import re
import shlex
import sys
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from django.core.management import get_commands, load_command_class
from django.core.management.base import BaseCommand, CommandError

from reprocessing.management.command_line import invocation
from tests.reprocessing.commands.conftest import Ask, AskJson

PROJECT = Path(__file__).parents[3]
COMMANDS = get_commands()
OURS = [name for name, app in COMMANDS.items() if app.startswith(("reprocessing", "redrive_service"))]
#: What a reader puts a number, or a selector, for.
NUMBERS = {
    "SECONDS": "60", "N": "1", "R": "1", "SELECTOR": "system:SentTimestamp", "SCOPE": "dlqs:read",
    "REGION": "eu-west-1", "ARN": "arn:aws:iam::111122223333:role/redrive",
}  # fmt: skip
#: A command that searches, and shows a plan when it is asked to add something.
SEARCHES = "discover_dlqs"
#: After, or before, a command that shows what it would do, and is meant to.
SHOWS = re.compile(r"[ ,;]*(shows?|tells?|looks|names|says|a dry run|without --confirm)\b")
MEANT = re.compile(r"(options of|Watch|say so with|; or|Look at) $")
#: A command's words, as far as a mark, a bracket, or what is said of the command.
WORDS = re.compile(
    r"(?:[^\s.,;:()<|]|[.,;:|](?=\S))+(?: +(?!shows|tells|looks|names|says)(?:[^\s.,;:()<]|[.,;:](?=\S))+)*"
)
LINE = re.compile(r"manage\.py (?=[a-z])")
BARE = re.compile(rf"\b(?:[Ss]ee|[Ss]ay|[Rr]un|[Aa]sk|[Ww]ith|[Uu]se|[Dd]o) (?:{'|'.join(OURS)})\b")


@dataclass(frozen=True)
class Text:
    where: str
    text: str


def texts() -> Iterator[Text]:
    """Every text of the code that is no docstring and no help, with a word for each value in it."""
    for package in ("reprocessing", "redrive_service"):
        for path in sorted(one for one in (PROJECT / package).rglob("*.py") if "sandbox" not in one.parts):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            silent = set(apart(tree))
            for node in ast.walk(tree):
                if id(node) not in silent and (text := said(node)):
                    yield Text(f"{path.relative_to(PROJECT)}:{node.lineno}", text)  # type: ignore[attr-defined]
        for path in sorted((PROJECT / package).rglob("*.html")):
            yield Text(str(path.relative_to(PROJECT)), re.sub(r"<[^>]*>", "", path.read_text(encoding="utf-8")))


def apart(tree: ast.Module) -> Iterator[int]:
    """Docstrings, helps, and the pieces of what is said as a whole."""
    for node in ast.walk(tree):
        match node:
            case ast.Expr(value=ast.Constant()) | ast.keyword(arg="help") | ast.JoinedStr():
                yield from (id(one) for one in ast.walk(node) if one is not node)
            case ast.Assign(targets=[ast.Name(id="help")]):
                yield from (id(one) for one in ast.walk(node))


def said(node: ast.AST) -> str:
    match node:
        case ast.Constant(value=str(text)):
            return of_sql(text).replace("%s", "x")  # in a log
        case ast.JoinedStr(values=values):
            return of_sql("".join(str(one.value) if isinstance(one, ast.Constant) else word(one) for one in values))
        case ast.Call(func=ast.Name(id="command"), args=[ast.Constant(), *_] as words):
            some = [one.value if isinstance(one, ast.Constant) else "x" for one in words if not starred(one)]
            shows = any(starred(one) for one in words)  # with what else it was asked for
            return f"manage.py {shlex.join(map(str, some))}" + (
                " --confirm" if shows and "--confirm" not in some else ""
            )
        case _:
            return ""


def of_sql(text: str) -> str:
    """The text that SQL joins from its parts."""
    return re.sub(r"(?<=confirm)'", "", re.sub(r"'\s*\|\| [a-z.]+\s*\|\| '", "x", text))


def word(node: ast.expr) -> str:
    """What stands for a value: a word, or, of a value that is called so, an option."""
    return "--sequence" if isinstance(node, ast.FormattedValue) and ast.unparse(node.value) == "option" else "x"


def starred(node: ast.AST) -> bool:
    return isinstance(node, ast.Starred)


@cache
def loaded(name: str) -> BaseCommand:
    return load_command_class(COMMANDS[name], name)


def parsed(words: list[str]) -> Namespace | None:
    try:
        return (
            loaded(words[0])
            .create_parser("manage.py", words[0])
            .parse_args([NUMBERS.get(one, one) for one in words[1:]])
        )
    except CommandError:
        return None


def hints() -> Iterator[tuple[str, str, str, str]]:
    """Where each hint is, what is before it, its sentence, and what follows that."""
    for one in texts():
        for found in LINE.finditer(one.text):
            sentence = WORDS.match(one.text, found.end())
            assert sentence is not None, one
            rest = one.text[sentence.end() :]
            yield one.where, one.text[: found.start()], sentence[0], rest


@pytest.mark.soak
def test_each_hint_is_taken_by_the_parser_of_its_command(subtests: pytest.Subtests) -> None:
    found = [one for one in hints() if one[2].split()[0] != "sandbox"]
    assert len(found) > 50
    for where, before, sentence, rest in found:
        with subtests.test(f"{where}: {sentence}"):
            is_taken(where, before, sentence, rest)


def is_taken(where: str, before: str, sentence: str, rest: str) -> None:
    words = shlex.split(sentence)
    assert words[0] in COMMANDS
    taken = next((n for n in range(len(words), 0, -1) if parsed(words[:n])), 0)
    left = words[taken:]
    assert taken, f"{where}: manage.py {sentence}"
    assert [one for one in left if one.startswith("--")] == []
    after = " ".join(["", *left]) + rest
    options = vars(parsed(words[:taken]) or Namespace())
    if words[0] != SEARCHES and options.get("confirm") is False and not SHOWS.match(after) and not MEANT.search(before):
        pytest.fail(f"{where}: manage.py {sentence} would only show what it does: add --confirm")


@pytest.mark.soak
def test_no_command_is_told_to_be_run_by_its_bare_name() -> None:
    assert [one for one in texts() if BARE.search(one.text)] == []


@pytest.mark.parametrize(
    ("typed", "arguments", "said"),
    [
        ([".venv/bin/python", "manage.py", "rerun", "x"], ["manage.py", "rerun", "x"], ".venv/bin/python manage.py"),
        (["python", "-X", "dev", "manage.py"], ["manage.py"], "python -X dev manage.py"),
        (["python", "-m", "django", "rerun"], ["/lib/django/__main__.py", "rerun"], "python -m django"),
        (["/a b/python", "/a b/manage.py", "x"], ["/a b/manage.py", "x"], "'/a b/python' '/a b/manage.py'"),
        (["python", "/bin/celery", "worker"], ["/bin/celery", "worker"], "manage.py"),
        (["python", "-m", "celery", "worker"], ["/lib/celery/__main__.py", "worker"], "manage.py"),
        (["python", "-c", "pass"], ["-c"], "manage.py"),
        (["python"], [""], "manage.py"),
    ],
)
def test_a_command_line_begins_as_this_process_was_invoked(typed: list[str], arguments: list[str], said: str) -> None:
    assert invocation(typed, arguments) == said


@pytest.mark.django_db
def test_what_is_said_and_what_is_refused_show_commands_as_they_are_invoked(
    ask: Ask, ask_json: AskJson, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["manage.py", "peek_dlq"])
    monkeypatch.setattr(sys, "orig_argv", [".venv/bin/python", "manage.py", "peek_dlq"])
    line = "Add one: .venv/bin/python manage.py add_dlq NAME --url URL --confirm"

    with pytest.raises(CommandError, match=re.escape(line)):
        ask("peek_dlq", "nothing")

    assert line in ask("redrive_status")
    assert ask_json("show_runs") == {"runs": []}
