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
    "REDRIVE_CONTROL_QUEUE_URL": "https://sqs.eu-west-1.amazonaws.com/123456789012/redrive-control",
    "REDRIVE_CAPTURE_QUEUE_URL": "https://sqs.eu-west-1.amazonaws.com/123456789012/redrive-capture",
    "REDRIVE_REPLAY_QUEUE_URL": "https://sqs.eu-west-1.amazonaws.com/123456789012/redrive-replay",
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
        "AWS_DEFAULT_REGION",
        "REDRIVE_CONTROL_QUEUE_URL",
        "REDRIVE_CAPTURE_QUEUE_URL",
        "REDRIVE_REPLAY_QUEUE_URL",
    ]


POSTGRES = "DATABASE_URL is not a URL that begins with postgres://"
REDIS = "REDIS_URL is not a URL that begins with redis://"
UNUSABLE = [
    ("DATABASE_URL", "sqlite:///db.sqlite3", POSTGRES),
    ("DATABASE_URL", "mysql://user@db/redrive", POSTGRES),
    ("DATABASE_URL", "postgres:redrive", POSTGRES),
    ("DATABASE_URL", "nonsense", POSTGRES),
    ("DATABASE_URL", "postgres://user@db:port/redrive", "DATABASE_URL cannot be read"),
    ("DATABASE_URL", "postgres://user:pa#ss@db/redrive", "DATABASE_URL cannot be read"),
    ("DATABASE_URL", "postgres://user@db", "DATABASE_URL names no database"),
    ("REDIS_URL", "http://cache", REDIS),
    ("REDIS_URL", "cache:6379", REDIS),
    ("REDIS_URL", "redis:cache", REDIS),
    ("REDIS_URL", "redis://", "REDIS_URL cannot be read"),
    ("REDIS_URL", "redis://cache/one", "REDIS_URL does not end with the number of a database"),
    ("AWS_DEFAULT_REGION", "Europe", "AWS_DEFAULT_REGION is not the name of a region"),
    (
        "REDRIVE_CONTROL_QUEUE_URL",
        "redrive",
        "REDRIVE_CONTROL_QUEUE_URL is not a URL that begins with https://",
    ),
    (
        "REDRIVE_CONTROL_QUEUE_URL",
        "https://sqs.eu-west-1.amazonaws.com",
        "REDRIVE_CONTROL_QUEUE_URL does not end with an account and a queue's name",
    ),
    (
        "REDRIVE_CONTROL_QUEUE_URL",
        "https://sqs.eu-west-1.amazonaws.com/123456789012/redrive.fifo",
        "REDRIVE_CONTROL_QUEUE_URL is a FIFO queue",
    ),
    (
        "REDRIVE_CONTROL_QUEUE_URL",
        "https://sqs.eu-west-2.amazonaws.com/123456789012/redrive-control",
        "REDRIVE_CONTROL_QUEUE_URL is in eu-west-2, but AWS_DEFAULT_REGION is eu-west-1",
    ),
    (
        "REDRIVE_CONTROL_QUEUE_URL",
        COMPLETE["REDRIVE_REPLAY_QUEUE_URL"],
        "Two of the service's own queues have the same URL",
    ),
    ("SECRET_KEY", "short", "SECRET_KEY is shorter than 50 characters"),
    ("ALLOWED_HOSTS", "*", "ALLOWED_HOSTS admits every host (*)"),
    ("ALLOWED_HOSTS", "https://redrive.example.com", "ALLOWED_HOSTS holds a URL, not a host name"),
    ("CSRF_TRUSTED_ORIGINS", "redrive.example.com", "CSRF_TRUSTED_ORIGINS holds something else than https://HOST"),
    ("REDRIVE_MODE", "debug", "REDRIVE_MODE is neither production (the default) nor sandbox"),
    ("BEHIND_TLS_PROXY", "perhaps", "BEHIND_TLS_PROXY must be yes or no"),
]


@pytest.mark.parametrize(("name", "value", "sentence"), UNUSABLE)
def test_what_cannot_be_used_is_refused_in_a_sentence(name: str, value: str, sentence: str) -> None:
    (problem,) = problems({**COMPLETE, name: value})

    assert problem.split(". ")[0].rstrip(".") == sentence


@pytest.mark.parametrize("name", ["DATABASE_URL", "REDIS_URL", "SECRET_KEY"])
def test_a_refusal_does_not_repeat_the_secret(name: str) -> None:
    with pytest.raises(EnvironmentIsIncomplete) as caught:
        read({**COMPLETE, name: "hunter2://:hunter2@x"})

    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("name", ["REDRIVE_MODE", "BEHIND_TLS_PROXY", "CSRF_TRUSTED_ORIGINS"])
def test_what_is_optional_may_be_empty(name: str) -> None:
    assert read({**COMPLETE, name: ""}) == read(COMPLETE)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DATABASE_URL", "postgresql:///redrive"),
        ("REDIS_URL", "redis://cache"),
        ("REDIS_URL", "unix:///run/valkey.sock"),
        ("AWS_DEFAULT_REGION", "eu-west-1"),
        ("REDRIVE_CONTROL_QUEUE_URL", "http://sqs:9324/000000000000/redrive-control"),
        ("CSRF_TRUSTED_ORIGINS", "https://redrive.example.com, https://*.example.com"),
    ],
)
def test_what_can_be_used_is_not_refused(name: str, value: str) -> None:
    read({**COMPLETE, name: value})
