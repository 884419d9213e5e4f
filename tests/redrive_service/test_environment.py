"""What is missing or wrong in the environment is told at once, by name, with its cure."""

from __future__ import annotations

import pytest

from redrive_service.environment import EnvironmentIsIncomplete, read

COMPLETE = {
    "SECRET_KEY": "k" * 50,
    "ALLOWED_HOSTS": "redrive.example.com, redrive.internal",
    "DATABASE_URL": "postgres://user:pass%2Fword@db:5433/redrive",
    "REDIS_URL": "rediss://:secret@cache:6379/1",
    "AWS_DEFAULT_REGION": "eu-west-1",
    "REDRIVE_CONTROL_QUEUE_URL": "https://sqs.eu-west-1.amazonaws.com/1/redrive-control",
    "REDRIVE_CAPTURE_QUEUE_URL": "https://sqs.eu-west-1.amazonaws.com/1/redrive-capture",
    "REDRIVE_REPLAY_QUEUE_URL": "https://sqs.eu-west-1.amazonaws.com/1/redrive-replay",
}


def problems(variables: dict[str, str]) -> list[str]:
    with pytest.raises(EnvironmentIsIncomplete) as caught:
        read(variables)
    return [line.removeprefix("  - ") for line in str(caught.value).splitlines() if line.startswith("  - ")]


def test_a_complete_environment_is_production() -> None:
    environment = read(COMPLETE)

    assert environment.mode == "production"
    assert environment.allowed_hosts == ("redrive.example.com", "redrive.internal")
    assert environment.database["HOST"] == "db"
    assert environment.database["PASSWORD"] == "pass/word"
    assert environment.queue_urls["redrive-replay"] == COMPLETE["REDRIVE_REPLAY_QUEUE_URL"]


@pytest.mark.parametrize("name", sorted(COMPLETE))
@pytest.mark.parametrize("value", [None, "", "  "])
def test_each_missing_variable_is_named_with_its_cure(name: str, value: str | None) -> None:
    variables = {key: kept for key, kept in COMPLETE.items() if key != name}

    (problem,) = problems(variables if value is None else {**variables, name: value})

    sentence, cure = problem.split(". ", 1)
    assert sentence == f"{name} is not set"
    assert cure.split()[0] in {"Set", "Make", "List"}


def test_everything_that_is_missing_is_told_at_once() -> None:
    assert [problem.split()[0] for problem in problems({})] == [
        "SECRET_KEY",
        "ALLOWED_HOSTS",
        "DATABASE_URL",
        "REDIS_URL",
        "REDRIVE_CONTROL_QUEUE_URL",
        "REDRIVE_CAPTURE_QUEUE_URL",
        "REDRIVE_REPLAY_QUEUE_URL",
        "AWS_DEFAULT_REGION",
    ]


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("DATABASE_URL", "sqlite:///db.sqlite3", "DATABASE_URL is not a URL that begins with postgres://"),
        ("DATABASE_URL", "mysql://user@db/redrive", "DATABASE_URL is not a URL that begins with postgres://"),
        ("DATABASE_URL", "postgres://user@db:port/redrive", "DATABASE_URL is not a URL that begins with postgres://"),
        ("DATABASE_URL", "postgres://user@db", "DATABASE_URL names no database"),
        ("DATABASE_URL", "nonsense", "DATABASE_URL is not a URL that begins with postgres://"),
        ("REDIS_URL", "http://cache", "REDIS_URL is not a URL that begins with redis://"),
        ("REDIS_URL", "cache:6379", "REDIS_URL is not a URL that begins with redis://"),
        ("REDRIVE_CONTROL_QUEUE_URL", "redrive", "REDRIVE_CONTROL_QUEUE_URL is not a URL that begins with https://"),
        ("SECRET_KEY", "short", "SECRET_KEY is shorter than 50 characters"),
        ("ALLOWED_HOSTS", "*", "ALLOWED_HOSTS admits every host (*)"),
        ("REDRIVE_MODE", "debug", "REDRIVE_MODE is neither production (the default) nor sandbox"),
        ("BEHIND_TLS_PROXY", "perhaps", "BEHIND_TLS_PROXY must be yes or no"),
    ],
)
def test_what_cannot_be_used_is_refused_in_a_sentence(name: str, value: str, sentence: str) -> None:
    (problem,) = problems({**COMPLETE, name: value})

    assert problem.split(". ")[0].rstrip(".") == sentence


@pytest.mark.parametrize("name", ["DATABASE_URL", "REDIS_URL", "SECRET_KEY"])
def test_a_refusal_does_not_repeat_the_secret(name: str) -> None:
    with pytest.raises(EnvironmentIsIncomplete) as caught:
        read({**COMPLETE, name: "hunter2://:hunter2@x"})

    assert "hunter2" not in str(caught.value)
