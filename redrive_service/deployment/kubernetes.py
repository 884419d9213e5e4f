"""Make the manifests for Kubernetes. They need version 1.30 or newer, because `preStop` uses `sleep`."""

from __future__ import annotations

import hashlib
import json
from typing import Any, Final, assert_never

from redrive_service.deployment.installation import Installation
from redrive_service.deployment.processes import (
    MIGRATE,
    PROCESSES,
    TEMPORARY,
    TEMPORARY_MB,
    USER,
    WAIT_FOR_MIGRATION,
    WEB,
    FileProbe,
    HttpProbe,
    Probe,
    Process,
)
from redrive_service.environment.secret_files import SUFFIX

_SECRETS: Final = "/run/secrets/redrive"  # folder in which the Secret is mounted
_NAME: Final = "redrive"
_DAY: Final = 86_400  # seconds
#: Seconds that a pod waits before SIGTERM, until load balancers have stopped sending pages to the pod.
_BEFORE_STOP: Final = 5


def manifests(installation: Installation) -> list[dict[str, Any]]:
    """Return the manifests, in the order in which they are applied, without the Secret, which people create."""
    variables = _config_map(installation)
    named = variables["metadata"]["name"]
    workloads = [_workload(process, installation, named) for process in PROCESSES]
    return [_service_account(installation), variables, *workloads, _service(), *_disruption_budgets()]


def _metadata(name: str, component: str | None = None) -> dict[str, Any]:
    return {"name": name, "labels": _labels(component)}


def _labels(component: str | None) -> dict[str, str]:
    own = {"app.kubernetes.io/component": component} if component else {}
    return {"app.kubernetes.io/name": _NAME, **own}


def _service_account(installation: Installation) -> dict[str, Any]:
    role = f"arn:aws:iam::{installation.account}:role/redrive-task"
    metadata = {**_metadata(_NAME), "annotations": {"eks.amazonaws.com/role-arn": role}}
    return {
        "apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata, "automountServiceAccountToken": False,
    }  # fmt: skip


def _config_map(installation: Installation) -> dict[str, Any]:
    """Return the ConfigMap with the variables. Its name has their digest, so a change replaces all pods."""
    data = installation.variables
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": _metadata(f"{_NAME}-{_digest(data)}"), "data": data}


def _digest(values: object) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:8]


def _workload(process: Process, installation: Installation, variables: str) -> dict[str, Any]:
    pod = _pod(process, installation, variables)
    if process.runs_once:
        return {
            "apiVersion": "batch/v1",
            "kind": "Job",
            # A Job cannot be changed, so each version, and each change of the pod, gets a new Job with another name.
            "metadata": _metadata(f"{_NAME}-{process.name}-{installation.tag}-{_digest(pod)}", process.name),
            "spec": {"backoffLimit": 3, "ttlSecondsAfterFinished": _DAY, "template": pod},
        }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _metadata(f"{_NAME}-{process.name}", process.name),
        "spec": {
            "replicas": process.replicas,
            "selector": {"matchLabels": _labels(process.name)},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            "template": pod,
        },
    }


def _pod(process: Process, installation: Installation, variables: str) -> dict[str, Any]:
    container = _container(process, installation, variables)
    spec: dict[str, Any] = {
        "serviceAccountName": _NAME,
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": process.stop_within,
        "securityContext": {
            "runAsNonRoot": True, "runAsUser": USER, "runAsGroup": USER, "fsGroup": USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container],
        "volumes": [
            {"name": "tmp", "emptyDir": {"medium": "Memory", "sizeLimit": f"{TEMPORARY_MB}Mi"}},
            {"name": "secrets", "secret": {"secretName": _NAME, "defaultMode": 0o440}},
        ],
    }  # fmt: skip
    if process.runs_once:
        spec["restartPolicy"] = "Never"
    else:
        spec["initContainers"] = [_waiting(container)]
    return {"metadata": {"labels": _labels(process.name)}, "spec": spec}


def _container(process: Process, installation: Installation, variables: str) -> dict[str, Any]:
    of_files = {f"{name}{SUFFIX}": f"{_SECRETS}/{name}" for name in installation.secrets}
    amount = {"cpu": f"{process.cpu}m", "memory": f"{process.memory}Mi"}
    container: dict[str, Any] = {
        "name": process.name,
        "image": installation.image,
        "args": list(process.command),
        "envFrom": [{"configMapRef": {"name": variables}}],
        "env": [{"name": name, "value": value} for name, value in {**of_files, **process.environment}.items()],
        "resources": {"requests": amount, "limits": amount},
        "securityContext": {
            "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [
            {"name": "tmp", "mountPath": TEMPORARY},
            {"name": "secrets", "mountPath": _SECRETS, "readOnly": True},
        ],
    }  # fmt: skip
    if process.ports:
        container["ports"] = [{"name": name, "containerPort": port} for name, port in process.ports]
        container["lifecycle"] = {"preStop": {"sleep": {"seconds": _BEFORE_STOP}}}
    if process.ready:
        container["readinessProbe"] = {**_probe(process.ready), "periodSeconds": 10, "timeoutSeconds": 6}
    if process.alive:
        container["livenessProbe"] = {
            **_probe(process.alive), "initialDelaySeconds": 60, "periodSeconds": 30, "timeoutSeconds": 10,
        }  # fmt: skip
    return container


def _probe(probe: Probe) -> dict[str, Any]:
    match probe:
        case HttpProbe():
            return {"httpGet": {"path": probe.path, "port": probe.port}}
        case FileProbe():
            return {"exec": {"command": list(probe.command)}}
        case _:
            assert_never(probe)


def _waiting(container: dict[str, Any]) -> dict[str, Any]:
    """Return an init container that fails, and is restarted, until the migrations of this version are applied."""
    kept = ("image", "envFrom", "env", "resources", "securityContext", "volumeMounts")
    return {
        "name": "wait-for-migration",
        "args": list(WAIT_FOR_MIGRATION),
        **{name: container[name] for name in kept},
    }


def _service() -> dict[str, Any]:
    """Return the Service for the port of the pages. Port 8001 has no Service: probes and Prometheus address the pod."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _metadata(f"{_NAME}-{WEB.name}", WEB.name),
        "spec": {
            "selector": _labels(WEB.name),
            "ports": [{"name": "pages", "port": 80, "targetPort": "pages"}],
        },
    }


def _disruption_budgets() -> list[dict[str, Any]]:
    """Return a disruption budget for each process with several replicas. Drained nodes then evict one pod at a time."""
    return [
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": _metadata(f"{_NAME}-{process.name}", process.name),
            "spec": {"maxUnavailable": 1, "selector": {"matchLabels": _labels(process.name)}},
        }
        for process in PROCESSES
        if process is not MIGRATE and process.replicas > 1
    ]
