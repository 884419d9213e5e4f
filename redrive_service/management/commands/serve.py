"""`manage.py serve`: run the web server for production."""

from __future__ import annotations

from argparse import ArgumentTypeError
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser
from django.core.wsgi import get_wsgi_application

from redrive_service.server import Address, HealthApplication, Server, prepare_pages, serve
from reprocessing.management.arguments import whole_number
from reprocessing.management.command_parser import StrictCommand

_HIGHEST_PORT = 65_535
_MOST_THREADS = 128


class Command(StrictCommand):
    """Serves the admin and `/reports` on one address, and health checks on a second address."""

    help = "Serve the admin and /reports, and health checks on a second address, until SIGTERM or Ctrl-C."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--bind", type=address, default="127.0.0.1:8000", metavar="HOST:PORT",
            help="address of the admin and /reports (default: %(default)s; 0.0.0.0:8000 for all interfaces)",
        )  # fmt: skip
        parser.add_argument(
            "--health", type=address, default="127.0.0.1:8001", metavar="HOST:PORT",
            help="address of /healthz, /readyz, /health/work and /metrics, which separate threads answer "
            "(default: %(default)s)",
        )  # fmt: skip
        parser.add_argument(
            "--threads", type=whole_number(1, _MOST_THREADS), default=8, metavar="N",
            help="number of threads that answer page requests; each uses a connection to PostgreSQL "
            "(default: %(default)s)",
        )  # fmt: skip

    def handle(self, *args: Any, **options: Any) -> None:
        behind_proxy = settings.ENVIRONMENT.behind_proxy or settings.ENVIRONMENT.proxy_count > 0
        pages = _listen(
            options["bind"], application=get_wsgi_application(), option="--bind",
            threads=options["threads"], keeps_proxy_headers=behind_proxy,
        )  # fmt: skip
        health = _listen(options["health"], application=HealthApplication(), option="--health", threads=4)
        prepare_pages()
        serve(pages, health)


def _listen(at: Address, *, option: str, **how: Any) -> Server:
    try:
        return Server(address=at, **how)
    except OSError as error:
        raise CommandError(
            f"Nothing can listen at {at}: {error.strerror or error}. "
            f"Stop the process that listens there, or choose another address: {option} HOST:PORT."
        ) from error


def address(text: str) -> Address:
    """Return the address in the text HOST:PORT. Raises ArgumentTypeError if the text is not an address."""
    host, _, port = text.rpartition(":")
    if not host or not port.isascii() or not port.isdecimal() or int(port) > _HIGHEST_PORT:
        raise ArgumentTypeError(f"{text} is not an address. Type HOST:PORT, such as 0.0.0.0:8000 or [::]:8000.")
    return Address(host.removeprefix("[").removesuffix("]"), int(port))
