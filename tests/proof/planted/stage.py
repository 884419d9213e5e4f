"""A private copy of the project, in which bugs are planted one at a time and the tests that must notice are run."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from importlib.util import cache_from_source
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import Final, Self
from urllib.parse import urlsplit
from xml.etree import ElementTree as ET

import redis

from tests.proof.planted.bug import Bug

PROJECT: Final = Path(__file__).resolve().parents[3]
#: Seconds after which a test that hangs is ended; that is not how a bug is noticed.
PATIENCE: Final = 60
_DATABASE: Final = "planted"
_REDIS: Final = "9"
_MADE: Final = shutil.ignore_patterns(".*", "static")  # byte code may come along: it knows its source's time
_TESTS_FAILED: Final = 1
_TOLD: Final = 500


@dataclass(frozen=True, slots=True)
class Ran:
    """What a run of some tests came to.

    Attributes:
        passed: how many tests did.
        failed: why, in a line, by the name of each test that failed by itself.
        trouble: why the run says nothing about them: nothing was collected, a fixture failed, a test hung.
    """

    passed: int
    failed: dict[str, str]
    trouble: str
    seconds: float

    @property
    def noticed(self) -> bool:
        return bool(self.failed) and not self.trouble

    def __add__(self, other: Ran) -> Ran:
        trouble = "; ".join(filter(None, (self.trouble, other.trouble)))
        return Ran(self.passed + other.passed, self.failed | other.failed, trouble, self.seconds + other.seconds)


class Stage:
    """The copy, with a database and a Redis of its own on the servers that the environment names.

    To be used in a `with` block.
    """

    def __init__(self, folder: Path, environment: Mapping[str, str] = os.environ) -> None:
        self._project = folder / "project"
        self._report = folder / "report.xml"
        self._said = folder / "said.txt"
        self._environment = _of_its_own(environment)
        self._anew = True  # whose database of this name there may be, another left it
        shutil.copytree(PROJECT, self._project, ignore=_MADE)

    def __enter__(self) -> Self:
        with self._said.open("w") as said:
            self._understudy = subprocess.Popen(
                [sys.executable, "-m", "tests.proof.planted.understudy"],
                cwd=self._project, env=self._environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=said,
            )  # fmt: skip
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._understudy.communicate()

    def unbroken(self, bugs: Collection[Bug]) -> Ran:
        """The bugs' tests in the copy as it is: they have to pass, or their failure would show nothing.

        Those that want a database to themselves come last.
        """
        ran = Ran(0, {}, "", 0.0)
        for alone in (False, True):
            if nodes := sorted({bug.caught_by for bug in bugs if bug.alone == alone}):
                self._anew |= alone
                ran += self._run(nodes, keeps=True)
        return ran

    def broken(self, bug: Bug) -> Ran:
        """The bug's test in the copy with the bug in it, which is gone again afterwards.

        Raises:
            ValueError: its old text does not occur once.
        """
        file = self._project / bug.file
        whole = file.read_text()
        in_schema = "/migrations/" in bug.file
        self._anew |= in_schema or bug.alone
        # Byte code knows seconds: two bugs of one length have room in one. So none is kept of a broken file.
        Path(cache_from_source(str(file))).unlink(missing_ok=True)
        file.write_text(bug.planted(whole))
        try:
            return self._run([bug.caught_by], keeps=False)
        finally:
            file.write_text(whole)
            self._anew = in_schema

    def _run(self, nodes: Collection[str], *, keeps: bool) -> Ran:
        redis.Redis.from_url(self._environment["REDIS_URL"]).flushdb()
        self._report.unlink(missing_ok=True)
        began = monotonic()
        # Without the project's own options, which have every session start servers.
        arguments = [
            *nodes, "-q", *([] if keeps else ["-x"]), "--tb", "short", "--timeout", str(PATIENCE),
            "-p", "no:cacheprovider", "-o", "addopts=--strict-markers --strict-config", "-o", "timeout_func_only=true",
            "--junit-xml", str(self._report), "--reuse-db", *(["--create-db"] if self._anew else []),
        ]  # fmt: skip
        self._anew = False
        return self._read(self._ask(arguments, keeps=keeps), monotonic() - began)

    def _ask(self, arguments: list[str], *, keeps: bool) -> int:
        process = self._understudy
        if process.stdin is None or process.stdout is None:
            raise RuntimeError("the stage is used outside its with block")
        process.stdin.write(json.dumps([keeps, arguments]) + "\n")
        process.stdin.flush()
        return int(process.stdout.readline() or -1)

    def _read(self, status: int, seconds: float) -> Ran:
        if not self._report.exists():
            return Ran(0, {}, f"pytest ended with {status}: {self._last_words()}", seconds)
        cases = list(ET.parse(self._report).iter("testcase"))
        failed = _told(cases, "failure")
        errors = _told(cases, "error") | {name: why for name, why in failed.items() if "from pytest-timeout" in why}
        trouble = "; ".join(f"{name}: {why}" for name, why in errors.items())
        if not trouble and status != (_TESTS_FAILED if failed else 0):
            trouble = f"pytest ended with {status}: {self._last_words()}"
        return Ran(len(cases) - len(failed.keys() | errors.keys()), failed, trouble, seconds)

    def _last_words(self) -> str:
        return " ".join(self._said.read_text()[-_TOLD:].split())


def _told(cases: Collection[ET.Element], what: str) -> dict[str, str]:
    found = {case.get("name", ""): case.find(what) for case in cases}
    return {name: it.get("message", "").partition("\n")[0] for name, it in found.items() if it is not None}


def _of_its_own(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment, without what is another session's: its workers, its database, its Redis."""
    kept = {name: value for name, value in environment.items() if not name.startswith(("PYTEST_", "PROVE_", "COV_"))}
    for name, place in (("DATABASE_URL", _DATABASE), ("REDIS_URL", _REDIS)):
        kept[name] = urlsplit(environment[name])._replace(path=f"/{place}").geturl()
    return kept
