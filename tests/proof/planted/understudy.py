"""Runs pytest in forked children: what is nobody's bug, the libraries, is imported once and not for every run.

Run as a program in the copy of the project: for each line it reads, which has in JSON whether byte code may be kept,
and pytest's arguments, a forked child does what `python -m pytest` would. The answer is the child's exit status.
"""

from __future__ import annotations

import gc
import json
import os
import sys
from importlib import import_module

import pytest

#: Of the project nothing, and nothing that rewrites assertions or wants settings.
LIBRARIES = (
    "boto3", "botocore.httpsession", "celery", "kombu", "psycopg", "redis", "django.core.management",
    "django.db.backends.postgresql.base", "django.test", "django.forms", "django.template",
)  # fmt: skip


def perform(*, keeps: bool, arguments: list[str]) -> int:
    sys.dont_write_bytecode = not keeps
    os.dup2(2, 1)
    return int(pytest.main(arguments))


def main() -> None:
    for library in LIBRARIES:
        import_module(library)
    gc.freeze()  # children need not look through it
    for line in sys.stdin:
        child = os.fork()
        if not child:
            keeps, arguments = json.loads(line)
            os._exit(perform(keeps=keeps, arguments=arguments))
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)  # noqa: T201  it is asked


if __name__ == "__main__":
    main()
