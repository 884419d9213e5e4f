"""Make a Docker Compose file for production on one machine, without PostgreSQL, Redis and SQS."""

from __future__ import annotations

from typing import Any, Final

from redrive_service.deployment.installation import Installation
from redrive_service.deployment.processes import (
    MIGRATE,
    PAGES,
    PROCESSES,
    TEMPORARY,
    TEMPORARY_MB,
    USER,
    Process,
)
from redrive_service.environment.secret_files import SUFFIX

_SECRETS: Final = "/run/secrets"  # folder in which compose mounts secrets


def compose_file(installation: Installation) -> dict[str, Any]:
    """Return the compose file. Each process gets one container; `docker compose up --scale NAME=2` starts two."""
    return {
        "name": "redrive",
        "services": {process.name: _service(process, installation) for process in PROCESSES},
        "secrets": {name: {"file": f"./secrets/{name}"} for name in installation.secrets},
    }


def _service(process: Process, installation: Installation) -> dict[str, Any]:
    of_files = {f"{name}{SUFFIX}": f"{_SECRETS}/{name}" for name in installation.secrets}
    service: dict[str, Any] = {
        "image": installation.image,
        "command": list(process.command),
        "environment": _literal({**installation.variables, **of_files, **process.environment}),
        "secrets": list(installation.secrets),
        "user": f"{USER}:{USER}",
        "read_only": True,
        "tmpfs": [f"{TEMPORARY}:size={TEMPORARY_MB}m,mode=1777"],
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges:true"],
        "deploy": {"resources": {"limits": {"cpus": f"{process.cpu / 1000:g}", "memory": f"{process.memory}M"}}},
        "stop_grace_period": f"{process.stop_within}s",
        "restart": "no" if process.runs_once else "unless-stopped",
    }
    if not process.runs_once:
        service["depends_on"] = {MIGRATE.name: {"condition": "service_completed_successfully"}}
    if process.ports:
        service["ports"] = [f"127.0.0.1:{PAGES}:{PAGES}"]
    if probe := process.ready or process.alive:
        service["healthcheck"] = {
            "test": ["CMD", *probe.command], "interval": "30s", "timeout": "10s", "retries": 3, "start_period": "60s",
        }  # fmt: skip
    return service


def _literal(variables: dict[str, str]) -> dict[str, str]:
    """Return the variables with each `$` in a value doubled, because compose would replace `$NAME` in a value."""
    return {name: value.replace("$", "$$") for name, value in variables.items()}
