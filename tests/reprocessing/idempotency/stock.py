"""What the tests of claims look at."""

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

#: A project of its own, which has nothing installed but this app: `python -c PROJECT DATABASE CODE`.
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
    """The lease of a claim is over."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE redrive_idempotency_claim SET lease_until = clock_timestamp() - interval '1 second' "
            "WHERE space = %s AND key = %s",
            [space, key],
        )


def database(name: str = "") -> str:
    """The tests' database, or another one of their server, as DATABASES has it."""
    known = connection.settings_dict
    names = ("ENGINE", "NAME", "USER", "PASSWORD", "HOST", "PORT")
    return json.dumps({key: known[key] for key in names} | ({"NAME": name} if name else {}))


def project(code: str, *, name: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run code to its end in a project of its own, whose folder has what docs/consumers.md says to copy."""
    shutil.copytree(SOURCES / "reprocessing/idempotency", folder / "reprocessing/idempotency")
    shutil.copy(SOURCES / "reprocessing/__init__.py", folder / "reprocessing")
    return subprocess.run(
        [sys.executable, "-c", PROJECT, database(name), code], cwd=folder, capture_output=True, text=True, check=False
    )


@contextmanager
def at_work(code: str) -> Iterator[subprocess.Popen[str]]:
    """Another process of a project of its own, once it has said a line; whatever becomes of it, it ends."""
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
