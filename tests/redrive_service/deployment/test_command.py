"""`deployment_files` writes nothing that could not start, and no secret."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core.management import CommandError, call_command

from redrive_service.deployment import Installation, Platform, deployment_files
from redrive_service.deployment.installation import InstallationIsUnusable
from redrive_service.deployment.processes import PROCESSES
from redrive_service.environment.secret_files import READ_FROM_FILES
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


_KEYS = "REDRIVE_PAYLOAD_KEYS is a secret, and files show its value. Type --secret REDRIVE_PAYLOAD_KEYS, or --set it "
_OTHERS = (
    "is not a variable of this service. docs/production.md lists the variables. To add another one, patch the files."
)
_KMS = "prod=arn:aws:kms:eu-west-1:111122223333:key/1f2e"
_LOCAL = "2026-11=" + "QUJD" * 10 + "QUI="
_REFUSED_NAMES: list[tuple[dict[str, Any], str]] = [
    *(
        ({"more": {"REDRIVE_PAYLOAD_KEYS": value}}, f"{_KEYS}if every key is NAME=ARN of a KMS key")
        for value in (_LOCAL, f"{_KMS},{_LOCAL}", "")
    ),
    *(
        (
            {"more_secrets": (f"{name}_FILE",)},
            f"{name}_FILE is not a secret, but the path of a secret's file. Type --secret {name}",
        )
        for name in ("REDRIVE_PAYLOAD_KEYS", "REDRIVE_OIDC_CLIENT_SECRET", "REDRIVE_NOTIFY_OPS")
    ),
    (
        {"more": {"REDRIVE_NOTIFY_OPS_FILE": "/x"}},
        "REDRIVE_NOTIFY_OPS_FILE is a secret, and files show its value. Type --secret REDRIVE_NOTIFY_OPS",
    ),
    (
        {"more": {"REDRIVE_PAYLOAD_KEYS": _KMS}, "more_secrets": ("REDRIVE_PAYLOAD_KEYS",)},
        "REDRIVE_PAYLOAD_KEYS is given by --set and by --secret. Leave out one.",
    ),
    *(({"more": {name: "hunter2"}}, f"{name} {_OTHERS}") for name in ("FOO", "REDRIVE_FOO", "PGPASSWORD")),
    ({"more_secrets": ("FOO",)}, f"FOO {_OTHERS}"),
    (
        {"more": {"REDRIVE_MASKED_FEILDS": "x"}},
        "REDRIVE_MASKED_FEILDS is not a variable of this service. Did you mean REDRIVE_MASKED_FIELDS?",
    ),
    (
        {"more_secrets": ("REDRIVE_PAYLOAD_KEY",)},
        "REDRIVE_PAYLOAD_KEY is not a variable of this service. Did you mean REDRIVE_PAYLOAD_KEYS?",
    ),
    (
        {"more": {"REDRIVE_MODE": "sandbox"}},
        "The files are for production, so REDRIVE_MODE cannot be set. For a sandbox, run: manage.py sandbox",
    ),
    (
        {"more": {"REDRIVE_ALIVE_FILE": "/run/alive"}},
        "The files set REDRIVE_ALIVE_FILE themselves, because their liveness probes read this file. Leave it out.",
    ),
    (
        {"more": {"AWS_SECRET_ACCESS_KEY": "hunter2"}},
        "AWS_SECRET_ACCESS_KEY is a secret, and files show its value. Give the processes an IAM role instead.",
    ),
    (
        {"more": {"OTEL_EXPORTER_OTLP_HEADERS": "api-key=hunter2"}},
        (
            "OTEL_EXPORTER_OTLP_HEADERS can contain a secret, and files show its value. Patch the files so that the "
            "variable comes from your store of secrets."
        ),
    ),
    *(
        (
            {"more": {name: value}},
            f"{name} has a user or a password, which the files would show. Remove it from the URL.",
        )
        for name, value in (
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://u:hunter2@otel"),
            ("HTTPS_PROXY", "u:hunter2@proxy"),
        )
    ),
]


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
        *_REFUSED_NAMES,
        (
            {"region": "nowhere"},
            (
                "The service could not start with these variables:\n"
                "  - AWS_DEFAULT_REGION is not the name of a region. Set it to the region of your queues, "
                "such as eu-west-1.\nCorrect --host, --region or --set NAME=VALUE."
            ),
        ),
    ],
)
def test_what_could_not_start_is_refused_with_what_to_type(other: dict[str, Any], why: str) -> None:
    with pytest.raises(InstallationIsUnusable) as caught:
        installation(**other).check()
    assert str(caught.value) == why


@pytest.mark.parametrize(
    "more",
    [
        {"REDRIVE_PAYLOAD_KEYS": f"{_KMS}, old={_KMS.partition('=')[2]}"}, {"REDRIVE_MODE": "production"},
        {"AWS_ENDPOINT_URL_SQS": "https://sqs.eu-west-1.amazonaws.com", "REQUESTS_CA_BUNDLE": "/etc/ca.pem"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318", "HTTPS_PROXY": "http://proxy:3128"},
        {"REDRIVE_ALERT_PARKED_COUNT": "5", "REDRIVE_DOCTOR_EVERY": "0", "DATABASE_BEHIND_POOLER": "yes"},
    ],
)  # fmt: skip
def test_what_is_no_secret_is_written(more: dict[str, str]) -> None:
    made = installation(more=more)
    made.check()
    assert made.variables.items() >= more.items()


def test_a_file_that_a_variable_names_is_not_opened_on_the_operator_s_machine(tmp_path: Path) -> None:
    (tmp_path / "fifo").write_text("hunter2")
    for secret in (*READ_FROM_FILES, "REDRIVE_NOTIFY_OPS"):
        with pytest.raises(InstallationIsUnusable) as caught:
            installation(more={f"{secret}_FILE": str(tmp_path / "fifo")}).check()
        assert str(caught.value).startswith(
            f"{secret}_FILE is a secret, and files show its value. Type --secret {secret}"
        )


def test_every_secret_is_mounted_as_the_required_ones_are() -> None:
    """In ECS by the name of a parameter, in Kubernetes and compose by a file; nowhere by its value."""
    made = installation(more_secrets=("REDRIVE_PAYLOAD_KEYS", "SECRET_KEY"))
    made.check()
    files = {platform: deployment_files(platform, made) for platform in Platform}
    for text in files[Platform.ECS].values():
        for container in json.loads(text)["containerDefinitions"]:
            assert [secret["name"] for secret in container["secrets"]] == [
                "SECRET_KEY", "DATABASE_URL", "REDIS_URL", "REDRIVE_PAYLOAD_KEYS",
            ]  # fmt: skip
            assert container["secrets"][-1]["valueFrom"] == "/redrive/REDRIVE_PAYLOAD_KEYS"
    compose = yaml.safe_load(files[Platform.COMPOSE]["compose.yaml"])
    assert compose["secrets"]["REDRIVE_PAYLOAD_KEYS"] == {"file": "./secrets/REDRIVE_PAYLOAD_KEYS"}
    for service in compose["services"].values():
        assert service["environment"]["REDRIVE_PAYLOAD_KEYS_FILE"] == "/run/secrets/REDRIVE_PAYLOAD_KEYS"
        assert service["secrets"].count("REDRIVE_PAYLOAD_KEYS") == 1
    pods = [
        one["spec"]["template"]["spec"]
        for one in yaml.safe_load_all(files[Platform.KUBERNETES]["kubernetes.yaml"])
        if "template" in one.get("spec", {})
    ]
    path = {"name": "REDRIVE_PAYLOAD_KEYS_FILE", "value": "/run/secrets/redrive/REDRIVE_PAYLOAD_KEYS"}
    assert [path in container["env"] for pod in pods for container in pod["containers"]] == [True] * len(PROCESSES)


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
