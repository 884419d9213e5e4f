"""`make check` notices what it is there for: each fault is planted into a copy of the project, and must be found."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.soak

PROJECT = Path(__file__).parents[2]
PROGRAMS = Path(sys.executable).parent


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    project = tmp_path / "project"
    shutil.copytree(PROJECT, project, ignore=made_by_make)
    return project


def made_by_make(_folder: str, names: list[str]) -> set[str]:
    return {name for name in names if (name.startswith(".") and name != ".ci") or name in {"__pycache__", "static"}}


def check(copy: Path, name: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", ".ci/check", str(PROGRAMS), name],
        cwd=copy,
        capture_output=True,
        text=True,
        check=False,
        env={name: value for name, value in os.environ.items() if name in {"PATH", "HOME"}},
    )


def plant(copy: Path, file: str, text: str) -> None:
    path = copy / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text((path.read_text() if path.exists() else "") + text)


@pytest.mark.long
@pytest.mark.parametrize("name", ["import-linter", "lintmigrations", "makemigrations"])
def test_the_project_as_it_is_passes(copy: Path, name: str) -> None:
    assert check(copy, name).returncode == 0


@pytest.mark.long
@pytest.mark.parametrize(
    ("file", "text", "contract"),
    [
        ("reprocessing/models/system.py", "\nfrom reprocessing import tasks\n", "Floors"),
        ("reprocessing/domain/__init__.py", "from django.db import models\n", "The domain is plain Python"),
        ("reprocessing/models/system.py", "\nimport celery\n", "Only tasks speak Celery"),
        ("reprocessing/models/system.py", "\nimport boto3\n", "Only the gateways speak AWS"),
        ("reprocessing/tasks.py", "\nfrom redrive_service import settings\n", "The app knows nothing of the project"),
        ("redrive_service/urls.py", "\nfrom redrive_service.sandbox import stack\n", "Only the sandbox starts"),
    ],
)
def test_an_import_that_goes_up_fails_the_check(copy: Path, file: str, text: str, contract: str) -> None:
    plant(copy, file, text)

    done = check(copy, "import-linter")

    assert done.returncode == 1
    broken = [line for line in done.stdout.splitlines() if line.endswith("BROKEN")]
    assert [line for line in broken if line.startswith(contract)] != []


@pytest.mark.long
@pytest.mark.parametrize(
    "file", ["reprocessing/utils.py", "redrive_service/helpers.py", "redrive_service/sandbox/misc.py"]
)
def test_a_module_without_a_floor_fails_the_check(copy: Path, file: str) -> None:
    plant(copy, file, '"""Homeless."""\n')

    done = check(copy, "import-linter")

    assert done.returncode == 1
    assert file.removesuffix(".py").replace("/", ".").rpartition(".")[2] in done.stdout


@pytest.mark.long
def test_a_missing_migration_fails_the_check(copy: Path) -> None:
    model = copy / "reprocessing/models/system.py"
    model.write_text(model.read_text().replace("    class Meta:", "    extra = models.TextField()\n\n    class Meta:"))

    done = check(copy, "makemigrations")

    assert done.returncode == 1
    assert "Add field extra to heartbeat" in done.stdout


#: The operations of a migration → what of them the previous version does not survive.
PLANTED = {
    "0003_drops": ('migrations.RemoveField("attempt", "spared")', "DROPPING columns (table: redrive_attempt"),
    "0004_renames": ('migrations.RenameField("lane", "owner", "holder")', "RENAMING columns (table: redrive_lane"),
    "0005_requires": (
        'migrations.AddField("lane", "extra", models.IntegerField(default=1))',
        "NOT NULL constraint on columns",
    ),
    "0006_indexes": (
        'migrations.AddIndex("lane", models.Index(fields=["phase"], name="planted_index"))',
        "CREATE INDEX locks table",
    ),
    "0007_checks": (
        'migrations.AddConstraint("lane", models.CheckConstraint(condition=models.Q(fence__gt=-1), name="planted"))',
        "ADDING check constraint",
    ),
    "0008_is_safe": ('migrations.AddField("lane", "note", models.TextField(db_default="", blank=True))', ""),
}


@pytest.mark.long
def test_a_migration_that_the_previous_version_does_not_survive_fails_the_check(copy: Path) -> None:
    before = max(path.stem for path in (copy / "reprocessing/migrations").glob("0*.py"))
    for name, (operation, _) in PLANTED.items():
        plant(
            copy,
            f"reprocessing/migrations/{name}.py",
            "from django.db import migrations, models\n\n\nclass Migration(migrations.Migration):\n"
            f'    dependencies = [("reprocessing", "{before}")]\n    operations = [{operation}]\n',
        )
        before = name

    done = check(copy, "lintmigrations")

    assert done.returncode == 1
    found = dict(re.findall(r"\(reprocessing, (\w+)\)\.\.\. ERR\n\t(.*)", done.stdout))
    assert {name: found.get(name, "").startswith(why) for name, (_, why) in PLANTED.items()} == dict.fromkeys(
        PLANTED, True
    )
    assert sorted(found) == [name for name, (_, why) in PLANTED.items() if why]
