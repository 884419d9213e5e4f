"""Write command lines in texts so that users can paste them.

The code writes `manage.py COMMAND …`. For output, `manage.py` is replaced by what the user typed to start it.
"""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from django.conf import settings

DOCUMENTED: Final = "manage.py"  #: the program name that docs, logs, the admin and --json show
_PROGRAMS: Final = frozenset({("manage.py",), ("django-admin",), ("django", "__main__.py")})  #: path ends
#: Finds `celery` before its options, and `manage.py` before the name of a command.
_CELERY: Final = re.compile(r"(?<![\w./-])celery(?= -A redrive_service )")
_SHOWN: Final = re.compile(r"(?<![\w./-])(?:python )?manage\.py(?= [a-z])")


def command(*words: object) -> str:
    """Return the command line `manage.py WORDS`, with the words quoted for a shell."""
    return shlex.join([DOCUMENTED, *map(str, words)])


def as_invoked(text: str) -> str:
    """Return the text with `manage.py` replaced by what the user typed to start it, so that commands can be pasted.

    Likewise `celery` gets the folder of the Python that the user typed, such as `.venv/bin/celery`.
    """
    typed = invocation(sys.orig_argv, sys.argv)
    shown, folder = _SHOWN.sub(lambda _: typed, text), str(Path(sys.orig_argv[0]).parent)
    if typed == DOCUMENTED or folder == ".":
        return shown
    return _CELERY.sub(lambda _: shlex.quote(f"{folder}/celery"), shown)


def database_cure() -> str:
    """Return what to do if PostgreSQL does not answer: check DATABASE_URL; not in production, start the sandbox."""
    if getattr(settings, "IN_PRODUCTION", True):
        return "Check DATABASE_URL."
    return (
        "If the sandbox is stopped, start it in another terminal: make demo, or: manage.py sandbox. If it runs, load "
        "its variables: . .sandbox/environment"
    )


def invocation(typed: Sequence[str], arguments: Sequence[str]) -> str:
    """Return the command that started manage.py, such as `.venv/bin/python manage.py` or `python -m django`.

    Args:
        typed: sys.orig_argv, which begins with the interpreter and its options.
        arguments: sys.argv, which begins with the program.

    Returns:
        The command, quoted for a shell. If the program is not manage.py, for example a worker: `manage.py`.
    """
    parts = Path(arguments[0]).parts if arguments else ()
    if not {parts[-1:], parts[-2:]} & _PROGRAMS:
        return DOCUMENTED
    return shlex.join(typed[: len(typed) - len(arguments[1:])])
