"""Make the contents of the deployment files for each platform."""

from __future__ import annotations

import json
from collections.abc import Iterable
from enum import StrEnum
from typing import Any, Final, assert_never

import yaml

from redrive_service.deployment.compose import compose_file
from redrive_service.deployment.ecs import task_definition
from redrive_service.deployment.installation import Installation
from redrive_service.deployment.kubernetes import manifests
from redrive_service.deployment.processes import PROCESSES

_HEAD: Final = "# Made by the command deployment_files. Do not edit: docs/deployment/README.md says how to change it.\n"


class Platform(StrEnum):
    """The platform that deployment files are made for."""

    COMPOSE = "compose"
    ECS = "ecs"
    KUBERNETES = "kubernetes"


def deployment_files(platform: Platform, installation: Installation) -> dict[str, str]:
    """Return the contents of the files, by path. Call `installation.check()` first: no value is checked here."""
    match platform:
        case Platform.COMPOSE:
            return {"compose.yaml": _yaml([compose_file(installation)])}
        case Platform.KUBERNETES:
            return {"kubernetes.yaml": _yaml(manifests(installation))}
        case Platform.ECS:
            made = {process.name: task_definition(process, installation) for process in PROCESSES}
            return {f"ecs/{name}.json": json.dumps(task, indent=2) + "\n" for name, task in made.items()}
        case _:
            assert_never(platform)


class _Dumper(yaml.SafeDumper):
    """Writes repeated parts in full, not as YAML anchors and aliases, because people read and edit the files."""

    def ignore_aliases(self, _data: object) -> bool:
        return True


def _yaml(documents: Iterable[dict[str, Any]]) -> str:
    return _HEAD + yaml.dump_all(documents, Dumper=_Dumper, sort_keys=False, width=110)
