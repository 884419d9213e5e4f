#!/usr/bin/env python
"""The service's command line."""

from __future__ import annotations

import os
import sys

TABLE_IS_MISSING = "42P01"  # PostgreSQL's code


def main() -> None:
    """Run one command. Only `sandbox` runs without the service's environment: it is what makes one."""
    if sys.argv[1:2] == ["sandbox"]:
        os.environ["DJANGO_SETTINGS_MODULE"] = "redrive_service.sandbox.settings"
        from redrive_service.sandbox import stopping  # noqa: PLC0415  # for the sandbox alone, and before all else

        stopping.listen()  # Ctrl-C while Django is imported ends in a sentence, too
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "redrive_service.settings")

    from django.core.exceptions import ImproperlyConfigured  # noqa: PLC0415  # after the choice of settings
    from django.core.management import execute_from_command_line  # noqa: PLC0415  # as above
    from django.db.utils import OperationalError, ProgrammingError  # noqa: PLC0415  # as above

    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:
        sys.exit(f"{error}")
    except OperationalError as error:
        sys.exit(f"PostgreSQL cannot be used: {error}".strip())
    except ProgrammingError as error:
        if getattr(error.__cause__, "sqlstate", None) != TABLE_IS_MISSING:
            raise
        sys.exit("The database has not all of its tables yet. Run: python manage.py migrate")


if __name__ == "__main__":
    main()
