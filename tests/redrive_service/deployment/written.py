"""The files of docs/deployment, as they are committed, and one installation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import yaml

from redrive_service.deployment import Installation

FOLDER: Final = Path(__file__).parents[3] / "docs" / "deployment"


def installation(**other: Any) -> Installation:  # noqa: ANN401  # the values of its fields
    given = {
        "image": "r/x:1",
        "account": "111122223333",
        "region": "eu-west-1",
        "host": "redrive.example.com",
        "more": {},
    }
    return Installation(**given | other)


def composed() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((FOLDER / "compose.yaml").read_text())
    return found


def manifests() -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((FOLDER / "kubernetes.yaml").read_text()))


def task_definitions() -> dict[str, dict[str, Any]]:
    return {path.stem: json.loads(path.read_text()) for path in sorted((FOLDER / "ecs").iterdir())}
