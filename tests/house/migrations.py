"""Check that workers of the previous release survive every new migration: `python -m tests.house.migrations`.

Runs django-migration-linter on a PostgreSQL of its own. Its warnings are errors here: an index that is built while its
table is locked stops all workers. A migration that is safe all the same is accepted in `ACCEPTED`, with the reason.
"""

from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

import django
from django_migration_linter import MigrationLinter
from django_migration_linter.sql_analyser.base import Check, CheckMode, CheckType
from django_migration_linter.sql_analyser.postgresql import PostgresqlAnalyser

from redrive_service.sandbox.servers import binaries, privilege
from redrive_service.sandbox.servers.postgres import Postgres
from redrive_service.sandbox.servers.process import free_port, guarded

ROOT: Final = Path(__file__).resolve().parents[2]
FOLDERS: Final = ("reprocessing/migrations", "reprocessing/idempotency/migrations")
#: The migrations from before the first release.
BASELINE: Final = frozenset({
    ("reprocessing", "0001_tables"),
    ("reprocessing", "0002_functions_and_triggers"),
    ("redrive_idempotency", "0001_what_was_done_under_a_key"),
})  # fmt: skip
#: App and name of a migration that is safe although the linter does not know why → the reason.
ACCEPTED: Final[dict[tuple[str, str], str]] = {}


def adds_check(statements: list[str], **_: Any) -> bool:  # noqa: ANN401  # the linter's own arguments
    """Return whether a table that was there before gets a check constraint, which old code may not obey."""
    added = [re.match(r"ALTER TABLE (\S+) ADD CONSTRAINT .* CHECK ", text) for text in statements]
    return any(made and not any(text.startswith(f"CREATE TABLE {made[1]} ") for text in statements) for made in added)


class Analyser(PostgresqlAnalyser):
    """The linter's checks for PostgreSQL, and one more."""

    migration_checks = [  # noqa: RUF012  # the linter's own shape
        *PostgresqlAnalyser.migration_checks,
        Check("ADD_CHECK", adds_check, "ADDING check constraint", CheckMode.TRANSACTION, CheckType.ERROR),
    ]


class Linter(MigrationLinter):
    """Leaves out the migrations that are known."""

    def should_ignore_migration(self, app_label: str, migration_name: str, *operations: Any, **kw: Any) -> bool:  # noqa: ANN401
        known = (app_label, migration_name) in BASELINE | ACCEPTED.keys()
        return known or super().should_ignore_migration(app_label, migration_name, *operations, **kw)


def lint() -> bool:
    """Print the findings; return whether there are any."""
    logging.getLogger("django_migration_linter").setLevel(logging.WARNING)
    linter = Linter(
        include_apps=("reprocessing", "redrive_idempotency"), all_warnings_as_errors=True, quiet=("ok", "ignore")
    )
    linter.sql_analyser_class = Analyser
    linter.lint_all_migrations()
    return linter.has_errors


def changed_since_release() -> list[str]:
    """Return the migrations of the newest tag that were changed or deleted since."""
    listed = subprocess.run(
        ["git", "tag", "--list", "v*", "--sort=-version:refname"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if not (tags := listed.stdout.split()):
        return []
    words = ["git", "diff", "--name-only", "--no-renames", "--diff-filter=a", tags[0], "--", *FOLDERS]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    return [
        f"{name} was released in {tags[0]} and has changed. Restore it, and add a migration."
        for name in done.stdout.split()
    ]


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="redrive-migrations-") as made:
        folder = Path(made)
        program = str(binaries.postgres_programs() / "postgres")
        identity = privilege.unprivileged_identity(guarded([program, "--version"]), ("test", "-w", made))
        postgres = Postgres(
            folder=folder, port=free_port(), password="of-no-use", identity=identity, token="migrations"
        )
        server = postgres.start(folder / "postgres.log")
        try:
            os.environ.update(DJANGO_SETTINGS_MODULE="redrive_service.settings", DATABASE_URL=postgres.url)
            django.setup()
            found = lint()
        finally:
            server.stop()
            postgres.forget()
    changed = changed_since_release()
    print("\n".join(changed))  # noqa: T201
    if found:
        print("Workers of the previous release would fail. docs/development.md#migrations says what to do.")  # noqa: T201
    return int(found or bool(changed))


if __name__ == "__main__":
    sys.exit(main())
