"""Make task definitions for Amazon ECS on Fargate, for `aws ecs register-task-definition --cli-input-json`."""

from __future__ import annotations

from typing import Any, Final

from redrive_service.deployment.installation import Installation
from redrive_service.deployment.processes import TEMPORARY, TEMPORARY_MB, USER, WAIT_FOR_MIGRATION, Process

#: Max seconds between SIGTERM and SIGKILL on Fargate. Source: AWS, ContainerDefinition, stopTimeout.
_LONGEST_STOP: Final = 120
_WAITING: Final = "wait-for-migration"


def task_definition(process: Process, installation: Installation) -> dict[str, Any]:
    """Return the ECS task definition of one process of the service."""
    role = f"arn:aws:iam::{installation.account}:role/redrive"
    main = _container(process, installation)
    containers = [main]
    if not process.runs_once:
        main["dependsOn"] = [{"containerName": _WAITING, "condition": "SUCCESS"}]
        containers.insert(0, _waiting(main))
    return {
        "family": f"redrive-{process.name}",
        "requiresCompatibilities": ["FARGATE"],
        "networkMode": "awsvpc",
        "runtimePlatform": {"cpuArchitecture": "X86_64", "operatingSystemFamily": "LINUX"},
        "cpu": str(process.cpu * 1024 // 1000),
        "memory": str(process.memory),
        "executionRoleArn": f"{role}-execution",
        "taskRoleArn": f"{role}-task",
        "containerDefinitions": containers,
    }


def _container(process: Process, installation: Installation) -> dict[str, Any]:
    container: dict[str, Any] = {
        "name": process.name,
        "image": installation.image,
        "command": list(process.command),
        "essential": True,
        "user": f"{USER}:{USER}",
        "readonlyRootFilesystem": True,
        "linuxParameters": {
            "capabilities": {"drop": ["ALL"]},
            "tmpfs": [{"containerPath": TEMPORARY, "size": TEMPORARY_MB, "mountOptions": ["mode=1777"]}],
        },
        "environment": _named({**installation.variables, **process.environment}, "value"),
        "secrets": _named({name: f"/redrive/{name}" for name in installation.secrets}, "valueFrom"),
        "stopTimeout": min(process.stop_within, _LONGEST_STOP),
        "logConfiguration": {
            "logDriver": "awslogs",
            "options": {
                "awslogs-group": "/redrive",
                "awslogs-region": installation.region,
                "awslogs-stream-prefix": process.name,
            },
        },
    }
    if process.ports:
        container["portMappings"] = [
            {"name": name, "containerPort": port, "protocol": "tcp"} for name, port in process.ports
        ]
    if process.alive:
        container["healthCheck"] = {
            "command": ["CMD", *process.alive.command], "interval": 30, "timeout": 10, "retries": 3, "startPeriod": 60,
        }  # fmt: skip
    return container


def _waiting(main: dict[str, Any]) -> dict[str, Any]:
    """Return a container that fails, and so restarts the task, until the migrations of this version are applied."""
    left_out = {"portMappings", "healthCheck", "dependsOn"}
    kept = {name: value for name, value in main.items() if name not in left_out}
    return {**kept, "name": _WAITING, "command": list(WAIT_FOR_MIGRATION), "essential": False}


def _named(values: dict[str, str], what: str) -> list[dict[str, str]]:
    return [{"name": name, what: value} for name, value in values.items()]
