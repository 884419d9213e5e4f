#!/usr/bin/env python
"""The service's command line."""

from __future__ import annotations

import os
import sys

# PostgreSQL's codes
TABLE_IS_MISSING = "42P01"
IS_THERE = frozenset({"42P07", "42701", "42710", "42723", "23505"})  # a table, column, object, function, row


def open_what_is_closed() -> None:
    """Have the standard streams that this process was started without lead nowhere.

    Else Python has none of them, and what is opened next, a database's connection, takes their numbers.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_RDWR)
            if nowhere != number:
                os.dup2(nowhere, number)
                os.close(nowhere)
            os.set_inheritable(number, True)  # noqa: FBT003  its only form; children have no others
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8"))


def asks_for_help(words: list[str]) -> bool:
    """Whether nothing is to be done but to say what commands are for."""
    options = words[: words.index("--")] if "--" in words else words
    return words[:1] in ([], ["help"]) or not {"-h", "--help"}.isdisjoint(options)


def main() -> None:
    """Run one command. Only `sandbox` runs without the service's environment: it is what makes one; help does, too."""
    open_what_is_closed()
    if "sandbox" in (sys.argv[1:2] if sys.argv[1:2] != ["help"] else sys.argv[2:3]):
        os.environ["DJANGO_SETTINGS_MODULE"] = "redrive_service.sandbox.settings"
        from redrive_service.sandbox import stopping  # noqa: PLC0415  # for the sandbox alone, and before all else

        stopping.listen()  # Ctrl-C while Django is imported ends in a sentence, too
    elif asks_for_help(sys.argv[1:]):
        os.environ["DJANGO_SETTINGS_MODULE"] = "redrive_service.handbook"
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "redrive_service.settings")

    from django.core.exceptions import ImproperlyConfigured  # noqa: PLC0415  # after the choice of settings
    from django.core.management import execute_from_command_line  # noqa: PLC0415  # as above
    from django.db.utils import IntegrityError, OperationalError, ProgrammingError  # noqa: PLC0415  # as above

    from reprocessing.management.command_line import as_invoked  # noqa: PLC0415  # as above

    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:
        sys.exit(as_invoked(f"{error}"))
    except OperationalError as error:
        sys.exit(f"PostgreSQL cannot be used: {error}".strip())
    except (IntegrityError, ProgrammingError) as error:
        code = getattr(error.__cause__, "sqlstate", None)
        if code == TABLE_IS_MISSING:
            sys.exit(as_invoked("The database has not all of its tables yet. Run: manage.py migrate"))
        if code not in IS_THERE or sys.argv[1:2] != ["migrate"]:
            raise
        sys.exit(
            f"What a migration makes is there already: {str(error).strip().splitlines()[0]}. Where another migrate was "
            "under way, run this one again. A database that is new, holds nothing, and stays so: drop it, make it anew."
        )


if __name__ == "__main__":
    main()
