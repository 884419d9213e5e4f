"""The container files cannot be run here; what can be read of them is held against the code."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from redrive_service.environment import Environment, read

PROJECT = Path(__file__).parents[2]


def compose() -> dict[str, Any]:
    services: dict[str, Any] = yaml.safe_load((PROJECT / "docker-compose.yml").read_text())["services"]
    return services


def test_compose_has_the_whole_service() -> None:
    assert sorted(compose()) == ["beat", "migrate", "postgres", "redis", "sqs", "web", "worker"]


@pytest.mark.parametrize("name", ["beat", "migrate", "web", "worker"])
def test_every_process_is_given_an_environment_it_can_start_with(name: str) -> None:
    given = compose()[name]["environment"]
    variables = {key: re.sub(r"^\$\{\w+:-(.*)\}$", r"\1", value) for key, value in given.items()}

    assert read(variables).mode == "sandbox"


@pytest.mark.parametrize("name", ["beat", "web", "worker"])
def test_nothing_starts_before_the_tables_are_there(name: str) -> None:
    assert compose()[name]["depends_on"] == {"migrate": {"condition": "service_completed_successfully"}}


def test_the_image_collects_static_files_with_production_settings() -> None:
    (line,) = re.findall(r"^RUN (.*collectstatic.*)$", _dockerfile(), re.MULTILINE)
    words = shlex.split(line.split("python")[0])

    environment: Environment = read(dict(word.split("=", 1) for word in words))

    assert environment.mode == "production"


def test_the_image_takes_only_what_exists() -> None:
    sources = [word for line in re.findall(r"^COPY (.*)$", _dockerfile(), re.MULTILINE) for word in line.split()[:-1]]

    assert [source for source in sources if not (PROJECT / source).exists()] == []


def _dockerfile() -> str:
    return (PROJECT / "Dockerfile").read_text().replace("\\\n", " ")
