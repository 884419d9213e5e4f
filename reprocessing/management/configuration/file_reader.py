"""Read a configuration file: return its settings by field name, and every problem with its line."""

from __future__ import annotations

import difflib
from argparse import ArgumentTypeError
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from pathlib import Path as FilePath
from typing import Any, Final

from django.core.management.base import CommandError

from reprocessing.conf import Conf
from reprocessing.domain.configuration import document
from reprocessing.domain.configuration.document import MAX_BYTES, Document, Path, Problem
from reprocessing.domain.configuration.keys import CHECK_KEYS, KEYS, Kind, Settings, State
from reprocessing.domain.errors import RedriveError
from reprocessing.domain.notifications.event import EventKind
from reprocessing.management.arguments import slug
from reprocessing.management.configuration.file_keys import STRUCTURED, check_keys, keys_of
from reprocessing.management.shared.health_question import read_question
from reprocessing.management.shared.rule_command import backoff_fields
from reprocessing.models.audit import ALL_DLQS
from reprocessing.store.configuration.state import check_order
from reprocessing.store.notifications import routes

#: For a kind of object: the keys that each object in the file must have.
REQUIRED: Final = {Kind.DLQ: ("url",), Kind.RULE: ("when", "then"), Kind.APPROVAL: ("above",)}
_SLUGS: Final = (Kind.POLICY, Kind.RATE_CLASS, Kind.DLQ, Kind.RULE)
_BACKOFF: Final = ("backoff_base", "backoff_cap", "backoff_jitter")


def read_bytes(name: str) -> bytes:
    """Return the content of a file. Of a file larger than 2 MiB (`MAX_BYTES`), return only the first 2 MiB + 1 byte.

    The caller refuses a content of more than 2 MiB.

    Raises:
        CommandError: the file cannot be read.
    """
    try:
        with FilePath(name).open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except IsADirectoryError:
        raise CommandError(f"{name} is a directory. Name a file.") from None
    except OSError as error:
        raise CommandError(
            f"{name} cannot be read: {error.strerror}. To write one, run: manage.py export_config > redrive.yaml"
        ) from None


def read_file(data: bytes, conf: Conf) -> tuple[Document, State, list[Problem]]:
    """Read the bytes of a file. Return the parsed document, its settings by field name, and its problems with lines.

    If the file is not valid YAML, the document and the settings are empty.
    """
    found = document.read(data)
    if not isinstance(found, Document):
        return Document(), {}, found
    reader = _Reader(conf)
    state = reader.sections(found.root)
    return found, state, [found.located(problem) for problem in reader.problems]


class _Reader:
    """Reads the sections of a file. Continues after a problem, so that `problems` has all problems of the file."""

    def __init__(self, conf: Conf) -> None:
        self.conf = conf
        self.problems: list[Problem] = []

    def refuse(self, path: Path, text: str) -> None:
        self.problems.append(Problem(path, text))

    def sections(self, root: dict[str, Any]) -> State:
        """Return the settings of all objects in the file, by kind and name."""
        known = [kind.value for kind in Kind]
        for name in root:
            if name not in known:
                self.refuse((name,), _unknown(name, known))
        return {kind: self._objects(kind, root[kind.value]) for kind in Kind if kind.value in root}

    def _objects(self, kind: Kind, found: object) -> dict[str, Settings]:
        if found is None:
            return {}
        if not isinstance(found, dict):
            self.refuse((kind.value,), f"It must be a mapping from the name of each {kind.singular} to its settings.")
            return {}
        return {name: self._object(kind, name, values) for name, values in found.items() if self._is_named(kind, name)}

    def _is_named(self, kind: Kind, name: str) -> bool:
        problem = ""
        if kind in _SLUGS:
            problem = _refusal(slug, name)
        elif kind is Kind.NOTIFICATION and "://" in name:
            problem = "This is a URL. Name the destination; its URL is the value of REDRIVE_NOTIFY_<NAME>."
        elif kind is Kind.APPROVAL and name != ALL_DLQS:
            problem = f"The only name here is {ALL_DLQS}. For one DLQ, give the DLQ the key approval_above."
        if problem:
            self.refuse((kind.value, name), problem)
        return not problem

    def _object(self, kind: Kind, name: str, values: object) -> Settings:
        path = (kind.value, name)
        is_mapping = values is None or isinstance(values, dict)
        if not is_mapping:
            self.refuse(path, "It must be a mapping of settings.")
        given = values if isinstance(values, dict) else {}
        found: Settings = {}
        for key, value in given.items():
            if key not in KEYS[kind]:
                self.refuse((*path, key), _unknown(key, KEYS[kind]))
            elif value is None:
                self.refuse((*path, key), "It has no value. Give it a value, or leave out the key.")
            else:
                found |= self._setting(kind, (*path, key), key, value)
        for key in REQUIRED.get(kind, ()):
            if is_mapping and key not in given:
                self.refuse(path, f"It needs the key {key}.")
            found.setdefault(KEYS[kind][key], [] if key == "when" else "")
        if kind in {Kind.RULE, Kind.RATE_CLASS}:
            found |= self._backoff(path, found)
        return found

    def _setting(self, kind: Kind, path: Path, key: str, value: object) -> Settings:
        if key in STRUCTURED:
            return self._structured(kind, path, key, value)
        option = keys_of(kind)[key]
        before = len(self.problems)
        read = (
            [self._value(option.read, place, text) for place, text in self._texts(path, value)]
            if option.is_list
            else self._value(option.read, path, value)
        )
        if len(self.problems) > before:
            return {}
        return {option.field: _time(read) if option.field in {"valid_from", "valid_until"} else read}

    def _value(self, read: Callable[[str], Any], path: Path, value: object) -> Any:  # noqa: ANN401  what `read` returns
        if not isinstance(value, str):
            self.refuse(path, "It must be one value, not a list or mapping.")
            return None
        if problem := _refusal(read, value):
            self.refuse(path, problem)
            return None
        return read(value)

    def _texts(self, path: Path, value: object) -> Iterator[tuple[Path, object]]:
        if not isinstance(value, list):
            self.refuse(path, "It must be a list.")
            return
        for index, item in enumerate(value):
            yield (*path, str(index)), item

    def _structured(self, kind: Kind, path: Path, key: str, value: object) -> Settings:
        match key:
            case "sources":
                return {key: self._sources(path, value)}
            case "health_checks":
                checks = [self._check(place, item) for place, item in self._texts(path, value)]
                return {key: sorted(filter(None, checks), key=check_order)}
            case "events":
                names = [self._value(str, place, item) for place, item in self._texts(path, value)]
                return {"kinds": self._kinds(path, names)}
            case "dlqs":
                names = [self._value(str, place, item) for place, item in self._texts(path, value)]
                return {key: sorted({name for name in names if name})}
            case _:
                return {KEYS[kind][key]: self._value(str, path, value)}

    def _sources(self, path: Path, value: object) -> Settings:
        if not isinstance(value, dict):
            self.refuse(path, "It must be a mapping from the ARN of each source to its target, or to the word itself.")
            return {}
        return {arn: self._value(str, (*path, arn), to) or "" for arn, to in value.items()}

    def _kinds(self, path: Path, names: list[str]) -> list[str]:
        for index, name in enumerate(names):
            if name and name not in set(EventKind):
                self.refuse((*path, str(index)), _unknown(name, [kind.value for kind in EventKind], what="event"))
        known = [name for name in names if name in set(EventKind)]
        return sorted(kind.value for kind in routes.read_kinds(known)) if known else []

    def _check(self, path: Path, value: object) -> Settings | None:
        if not isinstance(value, dict) or len(CHECK_KEYS.keys() & value.keys()) != 1:
            self.refuse(path, f"It must be a mapping with one of the keys {', '.join(CHECK_KEYS)}.")
            return None
        before = len(self.problems)
        options: dict[str, Any] = dict.fromkeys(check_keys())
        for key, text in value.items():
            if key not in options:
                self.refuse((*path, key), _unknown(key, options))
            else:
                options[key] = self._value(check_keys()[key].read, (*path, key), text)
        if len(self.problems) > before:
            return None
        try:
            read_question(options, self.conf)
        except CommandError as error:
            self.refuse(path, str(error))
            return None
        return {key: float(one) if key.startswith("max") else one for key, one in options.items() if one is not None}

    def _backoff(self, path: Path, found: Settings) -> Settings:
        """Return the backoff settings. Settings that are missing in the file get the defaults of the commands."""
        try:
            return backoff_fields({key: found.get(key) for key in _BACKOFF})
        except CommandError as error:
            self.refuse(path, str(error))
            return {}


def _refusal(read: Callable[[str], object], text: str) -> str:
    """Return why the function `read` refuses the text, or an empty text if it accepts the text."""
    try:
        read(text)
    except (ArgumentTypeError, RedriveError) as error:
        return str(error)
    return ""


def _unknown(name: str, known: Iterable[str], what: str = "key") -> str:
    names = list(known)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f"Did you mean {near[0]}?" if near else f"There are: {', '.join(names)}."
    return f"There is no {what} {name[:50]!r} here. {hint}"


def _time(value: Any) -> str | None:  # noqa: ANN401  a time or None
    moment: datetime | None = value
    return None if moment is None else moment.isoformat().replace("+00:00", "Z")
