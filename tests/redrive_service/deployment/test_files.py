"""The deployment files are what compose, ECS and Kubernetes accept, and what the processes need."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib import resources
from typing import Any

import botocore.session
import jsonschema
import kubernetes_validate
import pytest
from botocore.model import ListShape, Shape, StringShape, StructureShape
from botocore.validate import ParamValidator

from redrive_service.deployment import Platform, deployment_files
from redrive_service.deployment.processes import MIGRATE, PROCESSES, USER, WEB, WORKERS
from redrive_service.environment import read
from redrive_service.server import _TO_FINISH
from reprocessing.tasks import BULK_ACTION_SLICE, CAPTURE_SLICE, RECOVER_EVERY
from reprocessing.worker_signals import SHUTDOWN_WAIT, SPANS_WAIT
from tests.house.reference import deployment
from tests.redrive_service.deployment.written import FOLDER, composed, installation, manifests, task_definitions

NAMES = sorted(process.name for process in PROCESSES)
REGISTER = botocore.session.get_session().get_service_model("ecs").operation_model("RegisterTaskDefinition")
#: vCPU units and the memory that Fargate takes with them. Source: AWS, RegisterTaskDefinition, memory.
FARGATE = {"256": range(512, 2049), "512": range(1024, 4097, 1024), "1024": range(2048, 8193, 1024)}


@pytest.mark.soak
def test_the_files_in_docs_are_those_that_the_code_makes() -> None:
    assert {f"deployment/{path.relative_to(FOLDER)}" for path in FOLDER.rglob("*.*")} == {
        *deployment(),
        "deployment/README.md",
    }
    assert {name: (FOLDER.parent / name).read_text() for name in deployment()} == deployment()


@pytest.mark.soak
def test_the_compose_file_fits_the_compose_specification() -> None:
    schema = resources.files("check_jsonschema") / "builtin_schemas/vendor/compose-spec.json"
    jsonschema.validate(composed(), json.loads(schema.read_text()))


@pytest.mark.soak
@pytest.mark.parametrize("version", ["1.30.0", "1.37.0"])
def test_every_manifest_fits_the_strict_schema_of_kubernetes(version: str) -> None:
    for manifest in manifests():
        kubernetes_validate.validate(manifest, version, strict=True)


def _other_values(value: Any, shape: Shape) -> Iterator[str]:  # noqa: ANN401  # JSON
    """The values that are none of those that AWS lists, which botocore does not compare."""
    if isinstance(shape, StructureShape):
        for name, member in shape.members.items():
            yield from _other_values(value[name], member) if name in value else ()
    elif isinstance(shape, ListShape):
        for one in value:
            yield from _other_values(one, shape.member)
    elif isinstance(shape, StringShape) and shape.enum and value not in shape.enum:
        yield f"{shape.name}: {value}"


@pytest.mark.parametrize("name", NAMES)
def test_every_task_definition_fits_the_request_of_ecs(name: str) -> None:
    task, shape = task_definitions()[name], REGISTER.input_shape
    assert shape is not None
    assert ParamValidator().validate(task, shape).generate_report() == ""
    assert list(_other_values(task, shape)) == []
    assert int(task["memory"]) in FARGATE[task["cpu"]]
    assert {one["stopTimeout"] <= 120 for one in task["containerDefinitions"]} == {True}


@pytest.mark.soak
def test_a_schema_notices_what_is_not_its_own() -> None:
    compose, (account, *_), task = composed(), manifests(), task_definitions()["web"]
    compose["services"]["web"]["read_olny"] = True
    account["metadata"]["lables"] = {}
    task["containerDefinitions"][0]["dependOn"], task["networkMode"] = [], "vpc"
    schema = resources.files("check_jsonschema") / "builtin_schemas/vendor/compose-spec.json"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(compose, json.loads(schema.read_text()))
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(account, "1.37.0", strict=True)
    assert REGISTER.input_shape is not None
    assert "dependOn" in ParamValidator().validate(task, REGISTER.input_shape).generate_report()
    assert list(_other_values(task, REGISTER.input_shape)) == ["NetworkMode: vpc"]


def test_every_platform_runs_the_same_processes_with_the_same_commands() -> None:
    wanted = {process.name: list(process.command) for process in PROCESSES}
    tasks = [task["containerDefinitions"][-1] for task in task_definitions().values()]
    pods = [
        one["spec"]["template"]["spec"]["containers"][0] for one in manifests() if "template" in one.get("spec", {})
    ]
    assert {name: one["command"] for name, one in composed()["services"].items()} == wanted
    assert {one["name"]: one["command"] for one in tasks} == wanted
    assert {one["name"]: one["args"] for one in pods} == wanted


def test_nothing_starts_before_the_migration() -> None:
    later = {process.name for process in PROCESSES if process is not MIGRATE}
    check = ["python", "manage.py", "migrate", "--check"]
    services = composed()["services"]
    tasks = {name: task["containerDefinitions"] for name, task in task_definitions().items()}
    pods = {
        one["spec"]["template"]["spec"]["containers"][0]["name"]: one["spec"]["template"]["spec"]
        for one in manifests() if "template" in one.get("spec", {})
    }  # fmt: skip
    waits = {"migrate": {"condition": "service_completed_successfully"}}
    assert {name for name, one in services.items() if one.get("depends_on") == waits} == later
    assert {
        name for name, pod in pods.items() if [c["args"] for c in pod.get("initContainers", [])] == [check]
    } == later
    assert {
        name for name, (first, *rest) in tasks.items()
        if rest and first["command"] == check and not first["essential"]
        and rest[0]["dependsOn"] == [{"containerName": first["name"], "condition": "SUCCESS"}]
    } == later  # fmt: skip


def test_no_process_is_root_or_can_write_outside_of_tmp() -> None:
    mine = f"{USER}:{USER}"
    services = list(composed()["services"].values())
    containers = [one for task in task_definitions().values() for one in task["containerDefinitions"]]
    pods = [one["spec"]["template"]["spec"] for one in manifests() if "template" in one.get("spec", {})]
    of_pods = [one["securityContext"] for pod in pods for one in (*pod["containers"], *pod.get("initContainers", ()))]
    assert {(one["user"], one["read_only"], *one["cap_drop"]) for one in services} == {(mine, True, "ALL")}
    assert {(one["user"], one["readonlyRootFilesystem"]) for one in containers} == {(mine, True)}
    assert {pod["securityContext"]["runAsNonRoot"] for pod in pods} == {True}
    assert {(one["readOnlyRootFilesystem"], one["allowPrivilegeEscalation"]) for one in of_pods} == {(True, False)}
    dockerfile = (FOLDER.parents[1] / "Dockerfile").read_text()
    assert {line for line in dockerfile.splitlines() if line.startswith("USER")} == {f"USER {mine}", "USER root"}
    assert f"--uid {USER} --gid {USER}" in dockerfile


def test_every_process_has_time_to_finish_what_it_has_begun() -> None:
    stop = {process.name: process.stop_within for process in PROCESSES}
    ends = SHUTDOWN_WAIT * 2 + SPANS_WAIT  # late answers, notifications, spans
    assert stop["worker-capture"] >= CAPTURE_SLICE + ends
    assert stop["worker-control"] >= max(RECOVER_EVERY, BULK_ACTION_SLICE) + ends
    assert stop["web"] >= _TO_FINISH + 5 + 5  # Kubernetes: of these, 5 pass before SIGTERM
    services = composed()["services"]
    assert {name: one["stop_grace_period"] for name, one in services.items()} == {
        name: f"{seconds}s" for name, seconds in stop.items()
    }


def test_the_workers_take_every_queue_once() -> None:
    taken = [worker.command[worker.command.index("--queues") + 1] for worker in WORKERS]
    assert sorted(taken) == ["redrive-capture", "redrive-control", "redrive-replay"]


def test_a_service_starts_with_the_variables_of_its_file_and_its_secrets(tmp_path: Any) -> None:  # noqa: ANN401
    values = {"SECRET_KEY": "k" * 50, "DATABASE_URL": "postgres://u:p@db/redrive", "REDIS_URL": "rediss://redis"}
    for name, value in values.items():
        (tmp_path / name).write_text(value)
    variables = composed()["services"]["web"]["environment"]
    local = {name: value.replace("/run/secrets", str(tmp_path)) for name, value in variables.items()}
    environment = read(local)
    assert (environment.mode, environment.secret_key) == ("production", "k" * 50)
    tasks = task_definitions()["web"]["containerDefinitions"][-1]
    of_ecs = {one["name"]: one["value"] for one in tasks["environment"]} | {
        one["name"]: values[one["name"]] for one in tasks["secrets"]
    }
    assert read(of_ecs) == environment


def test_a_changed_variable_rolls_every_pod_and_a_dollar_stays_one() -> None:
    before, after = (
        deployment_files(Platform.KUBERNETES, installation(more=more))["kubernetes.yaml"]
        for more in ({}, {"REDRIVE_PLACE": "a$b"})
    )
    named = [{line for line in text.splitlines() if "name: redrive-" in line} for text in (before, after)]
    assert len(named[0] - named[1]) == 3  # the ConfigMap with both indentations, and the Job
    assert (
        "REDRIVE_PLACE: a$$b"
        in deployment_files(Platform.COMPOSE, installation(more={"REDRIVE_PLACE": "a$b"}))["compose.yaml"]
    )


def test_pages_are_balanced_and_health_stays_inside() -> None:
    (service,) = [one for one in manifests() if one["kind"] == "Service"]
    assert [one["targetPort"] for one in service["spec"]["ports"]] == ["pages"]
    assert composed()["services"]["web"]["ports"] == [f"127.0.0.1:{WEB.ports[0][1]}:8000"]
