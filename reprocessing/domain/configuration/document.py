"""Read a configuration file: YAML of mappings, lists and texts, with the line of each value.

Values stay texts. Later they are parsed like the values of command-line options. PyYAML's safe loader only splits the
file into events, so no YAML tag creates an object.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import yaml

Path: TypeAlias = tuple[str, ...]
MAX_BYTES: Final = 2 * 1024 * 1024
_MAX_DEPTH: Final = 8
_MOST_PROBLEMS: Final = 100
_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # without libyaml: the loader in Python
_NULL: Final = frozenset({"", "~", "null", "Null", "NULL"})
_PLAIN: Final = re.compile(r"[A-Za-z0-9_-]+")
_SECRET: Final = re.compile(r"://[^/?#\s]*@|whsec_|\b(?:AKIA|ASIA)[0-9A-Z]{16}\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Problem:
    """An error in a configuration file.

    `path`: the keys that lead to the wrong value, such as ("dlqs", "orders", "mode"). `line` 0: not known.
    """

    path: Path
    text: str
    line: int = 0

    @property
    def place(self) -> str:
        """Return the path for people: `dlqs.orders.max_attempts`. "…" replaces a URL, which may have a secret."""
        parts = ["…" if self.path[0] == "notifications" and "://" in part else part for part in self.path]
        return ".".join(part if _PLAIN.fullmatch(part) else f'"{part}"' for part in parts)


@dataclass(frozen=True, slots=True)
class Document:
    """The content of a configuration file: mappings, lists, texts, and None for empty values.

    `lines`: the line number of each value, by the keys that lead to the value.
    """

    root: dict[str, Any] = field(default_factory=dict)
    lines: Mapping[Path, int] = field(default_factory=dict)

    def located(self, problem: Problem) -> Problem:
        """Return the problem with its line number. If the file lacks its path, that is the line of a parent key."""
        path = problem.path
        while path and path not in self.lines:
            path = path[:-1]
        return Problem(problem.path, problem.text, self.lines.get(path, 0))


def read(data: bytes) -> Document | list[Problem]:
    """Return the content of a configuration file, or a list of the errors in its YAML."""
    if len(data) > MAX_BYTES:
        return [Problem((), f"The file has {len(data):,} bytes, and at most {MAX_BYTES:,} are read. Split it.")]
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return [Problem((), f"Byte {error.start:,} is not UTF-8. Save the file as UTF-8.", line)]
    builder = _Builder()
    try:
        builder.read(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        builder.problems.append(Problem((), _syntax(error, text), 0 if mark is None else mark.line + 1))
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        builder.problems.append(Problem((), "The file has a character that YAML does not allow. Remove it.", line))
    if builder.problems:
        return builder.problems[:_MOST_PROBLEMS]
    if not isinstance(builder.root, dict) or not builder.root:
        what = "The file is empty, or not a mapping of sections."
        return [Problem((), f"{what} To write one, run: manage.py export_config > redrive.yaml", 1)]
    return Document(builder.root, builder.lines)


def _syntax(error: yaml.MarkedYAMLError, text: str) -> str:
    mark = error.problem_mark
    if mark is not None and "\t" in "".join(text.splitlines()[mark.line : mark.line + 1])[: mark.column + 1]:
        return "YAML allows only spaces before a key. Replace the tab with spaces."
    problem = " ".join(filter(None, (error.context, error.problem)))
    return f"This is not YAML: {problem or 'it cannot be read'}."


@dataclass(slots=True)
class _Open:
    """A mapping or list that is being read. `key`: the key whose value comes next."""

    value: Any
    path: Path
    key: str | None = None

    def next_path(self) -> Path:
        if isinstance(self.value, list):
            return (*self.path, str(len(self.value)))
        return self.path if self.key is None else (*self.path, self.key)


class _Builder:
    """Build a file's content from the events of the YAML parser, without recursion."""

    def __init__(self) -> None:
        self.root: Any = None
        self.lines: dict[Path, int] = {}
        self.problems: list[Problem] = []
        self._stack: list[_Open] = []
        self._documents = 0

    def read(self, text: str) -> None:
        """Read all YAML events of a text. Stop at the first event that is refused, such as an alias."""
        for event in yaml.parse(text, Loader=_LOADER):
            line = 0 if event.start_mark is None else event.start_mark.line + 1
            if refused := next(self._refused(event), ""):
                self.problems.append(Problem(self._stack[-1].next_path() if self._stack else (), refused, line))
                return
            match event:
                case yaml.ScalarEvent():
                    self._scalar(event, line)
                case yaml.MappingStartEvent():
                    self._begin({}, line)
                case yaml.SequenceStartEvent():
                    self._begin([], line)
                case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                    self._stack.pop()
                case _:
                    pass

    def _refused(self, event: yaml.Event) -> Iterator[str]:
        if isinstance(event, yaml.DocumentStartEvent):
            self._documents += 1
            if self._documents > 1:
                yield "A second YAML document begins here. Write all sections in one document."
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            yield "YAML anchors and aliases are refused. To share settings of DLQs, use a policy."
        if getattr(event, "tag", None) is not None:
            yield "YAML tags (!…) are refused. Write a plain value."
        if isinstance(event, yaml.CollectionStartEvent):
            if self._expects_key():
                yield "A key must be one value, not a list or mapping."
            if len(self._stack) >= _MAX_DEPTH:
                yield f"Values are nested deeper than {_MAX_DEPTH} levels."

    def _expects_key(self) -> bool:
        return bool(self._stack) and isinstance(self._stack[-1].value, dict) and self._stack[-1].key is None

    def _scalar(self, event: yaml.ScalarEvent, line: int) -> None:
        text: str = event.value
        if _SECRET.search(text):
            what = "This looks like a secret, such as a password in a URL. Set secrets in the environment: "
            path = self._stack[-1].path if self._stack else ()
            self.problems.append(Problem(path, what + "REDRIVE_SECRETS, REDRIVE_NOTIFY_… (docs/production.md).", line))
        if self._expects_key():
            self._key(text, line)
            return
        self._put(None if not event.style and text in _NULL else text, line)

    def _key(self, text: str, line: int) -> None:
        here = self._stack[-1]
        here.key = text
        if text in here.value:
            first = self.lines[(*here.path, text)]
            self.problems.append(Problem((*here.path, text), f"This key was already used in line {first}.", line))
        self.lines.setdefault((*here.path, text), line)

    def _begin(self, value: Any, line: int) -> None:  # noqa: ANN401  a dict or a list
        path = self._stack[-1].next_path() if self._stack else ()
        self._put(value, line)
        self._stack.append(_Open(value, path))

    def _put(self, value: Any, line: int) -> None:  # noqa: ANN401  a part of the document
        if not self._stack:
            self.root = value
            return
        here = self._stack[-1]
        self.lines.setdefault(here.next_path(), line)
        if isinstance(here.value, list):
            here.value.append(value)
        else:
            here.value.setdefault(here.key, value)
            here.key = None
