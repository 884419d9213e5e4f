#!/usr/bin/env python
"""The service's command line."""

from __future__ import annotations

import os
import shlex
import sys
from importlib.util import find_spec

# Error codes of PostgreSQL
TABLE_IS_MISSING = "42P01"
IS_THERE = frozenset({"42P07", "42701", "42710", "42723", "23505"})  # a table, column, object, function, row


def open_what_is_closed() -> None:
    """Open /dev/null for standard streams that are closed, else a database connection would get their numbers."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_RDWR)
            if nowhere != number:
                os.dup2(nowhere, number)
                os.close(nowhere)
            os.set_inheritable(number, True)  # noqa: FBT003  its only form; children have no others
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8"))


def asks_for_help(words: list[str]) -> bool:
    """Return whether only help is requested."""
    options = words[: words.index("--")] if "--" in words else words
    return words[:1] in ([], ["help"]) or not {"-h", "--help"}.isdisjoint(options)


def refuse_python_without_django() -> None:
    """Exit with a sentence if this Python has no Django, as the system's Python."""
    if find_spec("django") is None:
        typed = shlex.join([".venv/bin/python", "manage.py", *sys.argv[1:]])
        sys.exit(
            f"This Python, {sys.executable}, has no Django, which the service needs. Type: {typed}\n"
            "If the folder .venv does not exist, or its setup did not finish, type first: make setup"
        )


def main() -> None:
    """Run one command. Only `sandbox`, `deployment_files` and help run without the service's environment."""
    open_what_is_closed()
    refuse_python_without_django()
    if "sandbox" in (sys.argv[1:2] if sys.argv[1:2] != ["help"] else sys.argv[2:3]):
        os.environ["DJANGO_SETTINGS_MODULE"] = "redrive_service.sandbox.settings"
        from redrive_service.sandbox import stopping  # noqa: PLC0415  # for the sandbox only, and first

        stopping.remember_signals()  # also while Django is imported
    elif asks_for_help(sys.argv[1:]) or sys.argv[1] == "deployment_files":
        os.environ["DJANGO_SETTINGS_MODULE"] = "redrive_service.help_settings"
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "redrive_service.settings")

    from django.core.exceptions import ImproperlyConfigured  # noqa: PLC0415  # after the choice of settings
    from django.db.utils import IntegrityError, OperationalError, ProgrammingError  # noqa: PLC0415  # as above

    from reprocessing.management.command_help import Utility  # noqa: PLC0415  # as above
    from reprocessing.management.command_line import as_invoked, database_cure  # noqa: PLC0415  # as above

    try:
        Utility(sys.argv).execute()
    except ImproperlyConfigured as error:
        sys.exit(as_invoked(f"{error}"))
    except OperationalError as error:
        sys.exit(as_invoked(f"PostgreSQL cannot be used: {str(error).strip()}\n{database_cure()}"))
    except (IntegrityError, ProgrammingError) as error:
        code = getattr(error.__cause__, "sqlstate", None)
        if code == TABLE_IS_MISSING:
            sys.exit(as_invoked("The database lacks tables of this version. Run: manage.py migrate"))
        if code not in IS_THERE or sys.argv[1:2] != ["migrate"]:
            raise
        sys.exit(
            f"The migration creates something that exists already: {str(error).strip().splitlines()[0]}. If another "
            "migrate was running, run this again. If the database is new and empty, drop it and create it again."
        )


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.stderr.write("Interrupted.\n")
        sys.exit(130)  # as a shell shows a process that Ctrl-C ended
