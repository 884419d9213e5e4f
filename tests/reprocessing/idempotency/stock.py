"""Helpers of the tests of claims."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.db import connection

from reprocessing.idempotency.models import Claim

SOURCES = Path(__file__).resolve().parents[3]
SPACE = "orders"

#: A project that has only this app installed: `python -c PROJECT DATABASE CODE`.
PROJECT = """
import json, sys
import django
from django.conf import settings
settings.configure(
    DATABASES={"default": json.loads(sys.argv[1])}, INSTALLED_APPS=["reprocessing.idempotency"], USE_TZ=True,
    SECRET_KEY="a test's", DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
)
django.setup()
exec(sys.argv[2])
"""


def row(key: str = "key", space: str = SPACE) -> Claim:
    return Claim.objects.get(space=space, key=key)


def lapse(key: str = "key", space: str = SPACE) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE redrive_idempotency_claim SET lease_until = clock_timestamp() - interval '1 second' "
            "WHERE space = %s AND key = %s",
            [space, key],
        )


def database(name: str = "") -> str:
    """Return the tests' database, or another one of its server, as in DATABASES."""
    known = connection.settings_dict
    names = ("ENGINE", "NAME", "USER", "PASSWORD", "HOST", "PORT")
    return json.dumps({key: known[key] for key in names} | ({"NAME": name} if name else {}))


def project(code: str, *, name: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run code in a project of its own, with the files that docs/consumers.md says to copy."""
    shutil.copytree(SOURCES / "reprocessing/idempotency", folder / "reprocessing/idempotency")
    shutil.copy(SOURCES / "reprocessing/__init__.py", folder / "reprocessing")
    return subprocess.run(
        [sys.executable, "-c", PROJECT, database(name), code], cwd=folder, capture_output=True, text=True, check=False
    )


@contextmanager
def at_work(code: str) -> Iterator[subprocess.Popen[str]]:
    """Run code in another process from its first line of output until the end of the block."""
    with subprocess.Popen(
        [sys.executable, "-c", PROJECT, database(), code],
        cwd=SOURCES, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "begun\n"
            yield process
        finally:
            process.kill()
