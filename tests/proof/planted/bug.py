"""A bug as it is planted: which guard is taken out, what stands there instead, and which test has to notice."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_HEAD: Final = re.compile(r"([\w-]+)( \(alone\))?:(?: (\w.*))?")


@dataclass(frozen=True, slots=True)
class Bug:
    """One breakage of the product, of a line or a few.

    Attributes:
        name: words with dashes.
        file: from the project's folder.
        caught_by: the node id of the test that fails then; of several cases of it, one is enough.
        changes: pairs of a text that occurs once in the file, and what stands there instead.
        alone: its test measures, and wants a database in which no other test has been.
    """

    name: str
    file: str
    caught_by: str
    changes: tuple[tuple[str, str], ...]
    alone: bool

    def planted(self, text: str) -> str:
        """The file's text with the bug in it.

        Raises:
            ValueError: the old text is not there, or not once: the product has changed, and the bug with it.
        """
        for old, new in self.changes:
            if (found := text.count(old)) != 1:
                raise ValueError(f"{self.name}: its old text occurs {found} times in {self.file}; write it anew")
            text = text.replace(old, new)
        return text


def quoted(text: str) -> tuple[Bug, ...]:
    """Read bugs: `@` and a file of the product or of its tests, for all that follow; `name: test`, then a diff.

    The lines behind `-` are the old text, a part of a line or several lines; those behind `+` the new one.
    A second diff of a bug is another change to the same file. `name (alone): test` wants a database to itself; a long
    test's name is on a line of its own. A line behind `#` is a comment.
    """
    bugs: list[Bug] = []
    file = tests = ""
    for part in re.split(r"\n(?=[@\w])", text.strip("\n")):
        head, *lines = part.rstrip("\n").split("\n")
        if head.startswith("@tests/"):
            tests = head[1:]
        elif head.startswith("@"):
            file = head[1:]
        elif found := _HEAD.fullmatch(head):
            name, alone, test = found.groups()
            node = f"{tests}::{test or lines.pop(0).strip()}"
            bugs.append(Bug(name, file, node, _changes("\n".join(lines)), bool(alone)))
        else:
            raise ValueError(f"neither a file nor a bug: {head}")
    return tuple(bugs)


def _changes(diff: str) -> tuple[tuple[str, str], ...]:
    pairs = re.findall(r"((?:^-.*\n)+)((?:^\+.*\n)+)", f"{diff}\n", re.MULTILINE)
    return tuple((_without_marks(old), _without_marks(new)) for old, new in pairs)


def _without_marks(lines: str) -> str:
    return "\n".join(line[1:] for line in lines.rstrip("\n").split("\n"))
