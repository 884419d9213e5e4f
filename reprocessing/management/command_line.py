"""Command lines in texts. The code writes `manage.py COMMAND …`; users see `manage.py` as they typed it."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

DOCUMENTED: Final = "manage.py"  #: the program name that docs, logs, the admin and --json show
_PROGRAMS: Final = frozenset({("manage.py",), ("django-admin",), ("django", "__main__.py")})  #: ends of program paths
_SHOWN: Final = re.compile(r"(?<![\w./-])(?:python )?manage\.py(?= [a-z])")


def command(*words: object) -> str:
    """Return a command line of manage.py, quoted for a shell."""
    return shlex.join([DOCUMENTED, *map(str, words)])


def as_invoked(text: str) -> str:
    """Return the text with `manage.py` replaced by the way this process was invoked, so that commands can be pasted."""
    return _SHOWN.sub(lambda _: invocation(sys.orig_argv, sys.argv), text)


def invocation(typed: Sequence[str], arguments: Sequence[str]) -> str:
    """Return the command that started manage.py, such as `.venv/bin/python manage.py` or `python -m django`.

    Args:
        typed: sys.orig_argv, which begins with the interpreter and its options.
        arguments: sys.argv, which begins with the program. For a program other than manage.py, such as a worker,
            `DOCUMENTED` is returned.
    """
    parts = Path(arguments[0]).parts if arguments else ()
    if not {parts[-1:], parts[-2:]} & _PROGRAMS:
        return DOCUMENTED
    return shlex.join(typed[: len(typed) - len(arguments[1:])])
