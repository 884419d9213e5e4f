"""What is missing or wrong in the environment is told at once, by name, with its cure."""

from __future__ import annotations

import fcntl
import os
import shlex
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest

from redrive_service.environment import EnvironmentIsIncomplete, SignIn, observability, read
from redrive_service.environment.first_look import with_first_look

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
    assert [read(COMPLETE | more).behind_pooler for more in ({}, {"DATABASE_BEHIND_POOLER": "yes"})] == [False, True]
    assert environment.queue_urls["redrive-replay"] == COMPLETE["REDRIVE_REPLAY_QUEUE_URL"]


def test_the_first_look_is_the_demo_unless_a_sandbox_runs(tmp_path: Path) -> None:
    (tmp_path / "environment").touch()
    first = "problems\nFor a first look without any of this: make demo"
    assert with_first_look("problems", tmp_path) == first  # no lock
    with (tmp_path / "lock").open("w") as lock:
        assert with_first_look("problems", tmp_path) == first  # a sandbox that has ended leaves its lock's file
        fcntl.flock(lock, fcntl.LOCK_EX)
        told = with_first_look("problems", tmp_path)
    file = shlex.quote(os.path.relpath(tmp_path / "environment"))
    assert told == f"A sandbox runs in this folder. Run first:  . {file}\nproblems"


def test_a_place_that_nobody_named_is_a_red_production_or_a_green_sandbox() -> None:
    found = [read(COMPLETE | more) for more in ({}, {"REDRIVE_MODE": "sandbox"})]
    assert [(one.place, one.colour) for one in found] == [("production", "red"), ("sandbox", "green")]
    named = read(COMPLETE | {"REDRIVE_PLACE": " orders, eu-west-1 ", "REDRIVE_COLOUR": "violet"})
    assert (named.place, named.colour) == ("orders, eu-west-1", "violet")


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


INVISIBLE = "a space, a line break or another character that nobody sees"
CONTROL, REPLAY = "REDRIVE_CONTROL_QUEUE_URL", "REDRIVE_REPLAY_QUEUE_URL"
QUEUE_URLS = (CONTROL, "REDRIVE_CAPTURE_QUEUE_URL", REPLAY)
SQS = "https://sqs.eu-west-1.amazonaws.com"
LIBPQ = "postgres://user@db/redrive?"
NO_HOSTS = (
    ";", "=x", "h:443:1", "h:443", "a..b", ".", "-a", "a_b", "h.", "*.example.com", "::1", "[x]", "[::1]:1", "x" * 64,
    "\u212a.example",
)  # fmt: skip
TOO_LARGE = [
    f"{place}{number}"
    for place in ("redis://cache/", "redis://cache?db=", "unix:///run/valkey.sock?db=")
    for number in (2**31 - 1, "9" * 20)
]
#: Variable, what is said of it, and the values of which it is said.
UNUSABLE: list[tuple[str, str, Sequence[str]]] = [
    ("DATABASE_URL", "is not a URL that begins with postgres://",
     ("sqlite:///db.sqlite3", "mysql://user@db/redrive", "postgres:redrive", "nonsense")),
    ("DATABASE_URL", "cannot be read",
     ("postgres://user@db:port/redrive", "postgres://user:pa#ss@db/redrive", "postgres://user@db:0/redrive",
      "postgres://user@db:65536/redrive")),
    ("DATABASE_URL", "names no database", ("postgres://user@db",)),
    ("DATABASE_URL", "has an option that libpq does not know",
     [LIBPQ + option for option in
      ("engine=sqlite3", "conn_max_age=0", "SSLMODE=require", "sslmode=require&pool=true", "pool=")]),
    *(("DATABASE_URL", f"has a {name} that is no whole number",
       [f"{LIBPQ}{name}={value}" for value in ("abc", "", "1.5", "9" * 10)])
      for name in ("connect_timeout", "keepalives", "keepalives_idle", "tcp_user_timeout")),
    *((name, f"holds {INVISIBLE}",
       [COMPLETE[name].replace("e", hidden + "e") for hidden in ("\n", "\t", "\x1b", "\u2028", "\udcff")])
      for name in ("DATABASE_URL", "REDIS_URL", REPLAY, "ALLOWED_HOSTS")),
    ("DATABASE_URL", f"holds {INVISIBLE}", ("postgres://user:p%00@db/redrive", "postgres://user:pass word@db/redrive")),
    ("REDIS_URL", "is not a URL that begins with redis://", ("http://cache", "cache:6379", "redis:cache")),
    ("REDIS_URL", "cannot be read", ("redis://", "redis://cache:0/1", "redis://cache:65536/1")),
    ("REDIS_URL", "has an option, or a value of an option, that redis-py does not accept",
     ("redis://cache/1?engine=any", "redis://cache/1?socket_timeout=soon", "rediss://cache/1?ssl_cert_reqs=any",
      "redis://cache/1?encoding=klingon")),
    ("REDIS_URL", "does not end with the number of a database", ("redis://cache/one", "redis://cache/" + "9" * 100)),
    ("REDIS_URL", "has the number of a database that no Redis has: 0 is the first, 2,147,483,646 the last",
     [*TOO_LARGE, "redis://cache?db=-1"]),
    *(("REDIS_URL", f"has a {name} that is no number of seconds above 0 and at most 86,400",
       [f"redis://cache/1?{name}={value}" for value in ("nan", "inf", "0", "-1", "86401")])
      for name in ("socket_timeout", "socket_connect_timeout")),
    ("AWS_DEFAULT_REGION", "is not the name of a region", ("Europe",)),
    (CONTROL, "is not a URL that begins with https://", ("redrive",)),
    (CONTROL, "does not end with an account and a queue's name", (SQS,)),
    (CONTROL, "is a FIFO queue", (f"{SQS}/123456789012/redrive.fifo",)),
    (CONTROL, "is in eu-west-2, but AWS_DEFAULT_REGION is eu-west-1",
     ("https://sqs.eu-west-2.amazonaws.com/123456789012/redrive-control",)),
    *((name, "has a user or a password: SQS takes neither, and logs would show them",
       [f"http://{who}@sqs:9324/000000000000/redrive" for who in ("user:pass", "user", ":pass", "")])
      for name in QUEUE_URLS),
    ("SECRET_KEY", "is shorter than 50 characters", ("short",)),
    ("ALLOWED_HOSTS", "admits every host (*)", ("*",)),
    ("ALLOWED_HOSTS", "holds a URL, not a host name", ("https://redrive.example.com",)),
    ("ALLOWED_HOSTS", "holds an entry that is neither the name nor the address of a host, nor a .domain",
     [f"redrive.example.com,{host}" for host in NO_HOSTS]),
    ("CSRF_TRUSTED_ORIGINS", "holds an entry that is not https://HOST",
     ("redrive.example.com", "https://", "https:///redrive", "https://redrive.example.com:0")),
    ("CSRF_TRUSTED_ORIGINS", f"holds {INVISIBLE}", ("https://redrive\n.example.com",)),
    ("REDRIVE_MODE", "is neither production (the default) nor sandbox", ("debug",)),
    ("REDRIVE_COLOUR", "must be one of red, amber, green, blue, violet, grey", ("pink",)),
    ("REDRIVE_PLACE", "cannot be shown: it must have at most 40 characters that can be seen", ("x" * 41, "a\u202eb")),
    ("BEHIND_TLS_PROXY", "must be yes or no", ("perhaps",)),
    ("REDRIVE_PROXY_COUNT", "must be a whole number from 0 to 10", ("-1", "11", "x")),
    ("REDRIVE_LOGIN_ATTEMPTS", "must be a whole number from 1 to 100", ("0",)),
    ("REDRIVE_LOGIN_LOCK_MINUTES", "must be a whole number from 1 to 1,440", ("1441",)),
    ("REDRIVE_SESSION_HOURS", "must be a whole number from 1 to 336", ("337", "1.5")),
    ("REDRIVE_SESSION_ENDS_WITH_BROWSER", "must be yes or no", ("1",)),
    ("REDRIVE_TOKEN_RECHECK_DAYS", "must be a whole number from 0 to 365", ("366", "1.5")),
    ("REDRIVE_OUTBOUND_HOSTS",
     "cannot be used: entry 1: it is not a network; write one such as 10.1.0.0/16, with zeros after the prefix",
     ("https://status.example.com",)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        *((name, value, f"{name} {said}") for name, said, values in UNUSABLE for value in values),
        (CONTROL, COMPLETE[REPLAY], "Two of the service's own queues have the same URL"),
        ("BEHIND_TLS_PROXY", "yes", "REDRIVE_PROXY_COUNT is not set, but BEHIND_TLS_PROXY is yes"),
    ],
)
def test_what_cannot_be_used_is_refused_in_a_sentence(name: str, value: str, sentence: str) -> None:
    (problem,) = problems({**COMPLETE, name: value})

    said, cure = problem.split(". ", 1) if ". " in problem else (problem, "")
    assert said.rstrip(".") == sentence
    assert cure or name in {"REDRIVE_MODE", "REDRIVE_COLOUR", "BEHIND_TLS_PROXY", "REDRIVE_SESSION_ENDS_WITH_BROWSER"}


def test_the_limits_of_signing_in_are_what_was_set() -> None:
    assert read(COMPLETE).sign_in == SignIn(
        attempts=5, lock=timedelta(minutes=15), session=timedelta(hours=12), ends_with_browser=False
    )
    told = {
        "REDRIVE_LOGIN_ATTEMPTS": "3", "REDRIVE_LOGIN_LOCK_MINUTES": "60", "REDRIVE_SESSION_HOURS": "1",
        "REDRIVE_SESSION_ENDS_WITH_BROWSER": "yes",
    }  # fmt: skip
    assert read(COMPLETE | told).sign_in == SignIn(
        attempts=3, lock=timedelta(hours=1), session=timedelta(hours=1), ends_with_browser=True
    )


def test_an_owner_of_api_tokens_is_to_be_confirmed_within_the_days_that_were_set() -> None:
    assert read(COMPLETE).token_recheck == timedelta(days=30)
    assert read(COMPLETE | {"REDRIVE_TOKEN_RECHECK_DAYS": "0"}).token_recheck == timedelta(0)


def test_behind_a_proxy_it_is_said_how_many_there_are() -> None:
    assert read(COMPLETE).proxy_count == 0
    assert read(COMPLETE | {"BEHIND_TLS_PROXY": "yes", "REDRIVE_PROXY_COUNT": "0"}).proxy_count == 0
    assert read(COMPLETE | {"BEHIND_TLS_PROXY": "yes", "REDRIVE_PROXY_COUNT": "2"}).proxy_count == 2


@pytest.mark.parametrize(
    ("hosts", "line"),
    [
        ("status.example.com, 10.1.2.3:8080", "REDRIVE_OUTBOUND_HOSTS=status.example.com,10.1.2.3:8080"),
        ("postgres://hunter2:hunter2@db/redrive", "REDRIVE_OUTBOUND_HOSTS=HOST,HOST:PORT"),
    ],
)
def test_the_old_name_of_the_outbound_hosts_is_refused_with_the_line_to_set(hosts: str, line: str) -> None:
    assert problems({**COMPLETE, "REDRIVE_HEALTH_HOSTS": hosts}) == [
        f"REDRIVE_HEALTH_HOSTS is now called REDRIVE_OUTBOUND_HOSTS, because targets use it too. Set instead: {line}"
    ]


@pytest.mark.parametrize("name", ["REDRIVE_MODE", "BEHIND_TLS_PROXY", "CSRF_TRUSTED_ORIGINS", "REDRIVE_OUTBOUND_HOSTS"])
def test_what_is_optional_may_be_empty(name: str) -> None:
    assert read({**COMPLETE, name: ""}) == read(COMPLETE)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DATABASE_URL", "postgresql:///redrive"),
        ("DATABASE_URL", "postgres://user@db:65535/redrive?sslmode=require&connect_timeout=3"),
        ("DATABASE_URL", "postgres://user:pass%20w%C3%B6rd%0A@db/redrive"),
        ("REDIS_URL", "redis://cache"),
        ("REDIS_URL", "rediss://cache:1/0?ssl_cert_reqs=none&socket_timeout=3"),
        ("REDIS_URL", "unix:///run/valkey.sock"),
        ("REDIS_URL", "redis://cache/2147483646?socket_timeout=86400&socket_connect_timeout=0.1"),
        ("ALLOWED_HOSTS", "localhost, 127.0.0.1, [::1], .example.com, Redrive-1.example.com"),
        ("AWS_DEFAULT_REGION", "eu-west-1"),
        ("REDRIVE_CONTROL_QUEUE_URL", "http://sqs:9324/000000000000/redrive-control"),
        ("CSRF_TRUSTED_ORIGINS", "https://redrive.example.com, https://*.example.com"),
        ("REDRIVE_OUTBOUND_HOSTS", "status.example.com, 10.1.0.0/16, [fd00::1]:8080"),
    ],
)
def test_what_can_be_used_is_not_refused(name: str, value: str) -> None:
    read({**COMPLETE, name: value})


MESSAGES = "REDRIVE_TRACE_MESSAGES"


def test_logs_are_text_and_nothing_is_traced_unless_it_is_asked_for() -> None:
    found = [read(COMPLETE | more) for more in ({}, {"LOG_FORMAT": "JSON", "REDRIVE_TRACES": "yes"})]
    assert [(one.log_format, one.traces, one.trace_messages) for one in found] == [
        ("text", False, False), ("json", True, False),
    ]  # fmt: skip
    assert read(COMPLETE | {"REDRIVE_TRACES": "yes", MESSAGES: "yes"}).trace_messages


def test_an_unknown_log_format_and_messages_without_traces_are_refused() -> None:
    assert problems(COMPLETE | {"LOG_FORMAT": "xml", MESSAGES: "yes"}) == [
        "LOG_FORMAT must be text (the default) or json.",
        f"{MESSAGES} is yes, but REDRIVE_TRACES is not. Set REDRIVE_TRACES=yes, or unset {MESSAGES}.",
    ]


@pytest.mark.parametrize("missing", ["opentelemetry", "opentelemetry.sdk", "opentelemetry.exporter"])
def test_traces_without_opentelemetry_are_refused_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    def find(name: str) -> object:
        if name == missing:
            return None
        if name.startswith(f"{missing}."):
            raise ModuleNotFoundError(f"No module named {missing!r}")
        return object()

    monkeypatch.setattr(observability, "find_spec", find)
    (problem,) = problems(COMPLETE | {"REDRIVE_TRACES": "yes"})
    assert problem == (
        "REDRIVE_TRACES is yes, but OpenTelemetry is not installed completely. "
        f"Install it: {observability.INSTALL} (or unset REDRIVE_TRACES)."
    )
    assert not read(COMPLETE).traces
