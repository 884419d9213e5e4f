"""`deployment_files` writes nothing that could not start, and no secret."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from redrive_service.deployment import Installation
from redrive_service.deployment.installation import InstallationIsUnusable
from tests.redrive_service.deployment.written import installation

GIVEN = ("--image", "r/x:1", "--host", "redrive.example.com", "--account", "111122223333", "--region", "eu-west-1")


def ask(folder: Path, *words: str) -> str:
    out = io.StringIO()
    call_command("deployment_files", *GIVEN, "--folder", str(folder), *words, stdout=out)
    return out.getvalue()


def states(folder: Path, *words: str) -> dict[str, str]:
    answer = json.loads(ask(folder, "--for", "ecs", "--json", *words))
    return {file["path"]: file["state"] for file in answer["files"]}


def test_a_dry_run_writes_nothing_and_says_how_to_write(tmp_path: Path) -> None:
    told = ask(tmp_path / "deploy", "--for", "kubernetes")
    assert told.splitlines() == [
        f"{tmp_path}/deploy/kubernetes.yaml: new",
        "This was a dry run: nothing was written. Add --confirm to write the files.",
    ]
    assert list(tmp_path.iterdir()) == []


def test_files_are_written_again_only_where_they_differ(tmp_path: Path) -> None:
    assert set(states(tmp_path, "--confirm").values()) == {"new"}
    assert set(states(tmp_path).values()) == {"unchanged"}
    (tmp_path / "ecs/web.json").write_text("{}")
    assert [path for path, state in states(tmp_path, "--confirm").items() if state == "changed"] == ["ecs/web.json"]
    assert set(states(tmp_path).values()) == {"unchanged"}


def test_a_further_secret_is_named_and_a_further_variable_written(tmp_path: Path) -> None:
    ask(tmp_path, "--for", "ecs", "--set", "REDRIVE_PLACE=orders = eu", "--secret", "REDRIVE_NOTIFY_OPS", "--confirm")
    (_, web) = json.loads((tmp_path / "ecs/web.json").read_text())["containerDefinitions"]
    assert {"name": "REDRIVE_PLACE", "value": "orders = eu"} in web["environment"]
    assert web["secrets"][-1] == {"name": "REDRIVE_NOTIFY_OPS", "valueFrom": "/redrive/REDRIVE_NOTIFY_OPS"}


@pytest.mark.parametrize(
    ("other", "why"),
    [
        ({"image": "no image"}, "'no image' is no image. Type --image REGISTRY/NAME:TAG"),
        ({"account": "12"}, "'12' is no AWS account. Type --account with its 12 digits."),
        ({"more": {"a": "b"}}, "'a' is no variable's name. Type --set NAME=VALUE"),
        (
            {"more": {"REDIS_URL": "hunter2"}},
            "REDIS_URL is a secret, and files show its value. Type --secret REDIS_URL",
        ),
        (
            {"more": {"REDRIVE_SECRETS_FILE": "/x"}},
            "REDRIVE_SECRETS_FILE is a secret, and files show its value. Type --secret REDRIVE_SECRETS",
        ),
        (
            {"more": {"REDRIVE_OIDC_CLIENT_SECRET": "hunter2"}},
            (
                "REDRIVE_OIDC_CLIENT_SECRET is a secret, and files show its value. "
                "Type --secret REDRIVE_OIDC_CLIENT_SECRET"
            ),
        ),
        (
            {"more_secrets": ("REDRIVE_PLACE",)},
            "REDRIVE_PLACE is not a secret of this service. Type --set REDRIVE_PLACE=VALUE",
        ),
        (
            {"region": "nowhere"},
            (
                "The service could not start with these variables:\n"
                "  - AWS_DEFAULT_REGION is not the name of a region. Set it to the region of your queues, "
                "such as eu-west-1.\nCorrect --host, --region or --set NAME=VALUE."
            ),
        ),
    ],
    ids=["image", "account", "name", "secret", "secret file", "secret of OIDC", "no secret", "region"],
)
def test_what_could_not_start_is_refused_with_what_to_type(other: dict[str, Any], why: str) -> None:
    with pytest.raises(InstallationIsUnusable) as caught:
        installation(**other).check()
    assert str(caught.value) == why


@pytest.mark.parametrize(
    ("image", "tag"),
    [
        ("registry.example.com:5000/redrive", "latest"),
        ("r/redrive:v1.2.3_RC", "v1.2.3-rc"),
        ("r/redrive@sha256:0123456789abcdef", "0123456789ab"),
    ],
)
def test_the_name_of_a_job_shows_the_version(image: str, tag: str) -> None:
    made: Installation = installation(image=image)
    assert made.tag == tag


def test_a_folder_that_cannot_be_used_is_told(tmp_path: Path) -> None:
    (tmp_path / "deploy").write_text("")
    with pytest.raises(CommandError) as caught:
        ask(tmp_path / "deploy", "--for", "compose", "--confirm")
    assert str(caught.value) == f"A file in {tmp_path}/deploy cannot be used: File exists. Choose another --folder."


def test_an_assignment_without_a_value_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"'REDRIVE_PLACE' has no =\. Type NAME=VALUE"):
        ask(tmp_path, "--for", "compose", "--set", "REDRIVE_PLACE")
