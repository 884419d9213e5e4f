"""`manage.py purge_idempotency`: delete expired claims."""

from __future__ import annotations

from argparse import ArgumentTypeError
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import Error, connections

from reprocessing.idempotency.errors import IdempotencyError
from reprocessing.idempotency.purging import BATCH, purge, purgeable

_MOST = 100_000


class Command(BaseCommand):
    """Delete expired claims in batches; without --confirm, only count the claims."""

    help = (
        "Delete expired idempotency claims. A claim expires after REDRIVE_IDEMPOTENCY['KEEP'] (default: 30 days), or "
        "after the keep of the decorator or of once(). Without --confirm, the claims are only counted. Run this "
        "command once a day."
    )

    def create_parser(self, prog_name: str, subcommand: str, **options: Any) -> CommandParser:
        """Return a parser that accepts no abbreviated options, such as `--conf`, and whose errors are two lines."""
        how = {"allow_abbrev": False, "usage": "%(prog)s [--confirm] [--batch N] [--database ALIAS]"}
        return super().create_parser(prog_name, subcommand, **how | options)

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--confirm", action="store_true", help="delete the claims (default: dry run)")
        parser.add_argument(
            "--batch", type=_rows, default=BATCH, metavar="N", help="claims to delete per commit (default: %(default)s)"
        )
        parser.add_argument(
            "--database", metavar="ALIAS", help="the claims' database (default: REDRIVE_IDEMPOTENCY['DATABASE'])"
        )

    def handle(self, *_: Any, **options: Any) -> None:
        alias = options["database"]
        if alias is not None and alias not in connections:
            raise CommandError(f'DATABASES has no "{alias}". It has: {", ".join(sorted(connections))}.')
        try:
            if options["confirm"]:
                self.stdout.write(f"Purged: {purge(using=alias, batch=options['batch']):,}.")
            else:
                found = purgeable(using=alias)
                self.stdout.write(f"NOT CHANGED: this was a dry run. With --confirm, {found:,} claims are purged.")
        except IdempotencyError as error:
            raise CommandError(str(error)) from error
        except Error as error:
            first = (str(error).strip().splitlines() or [type(error).__name__])[0]
            cure = "If its tables are missing, run manage.py migrate for this database."
            raise CommandError(f"The database failed: {first}. {cure}") from error


def _rows(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= len(str(_MOST)) and 1 <= int(text) <= _MOST):
        raise ArgumentTypeError(f"{text!r} is not a whole number of at least 1 and at most {_MOST:,}")
    return int(text)
