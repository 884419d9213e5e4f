"""Secrets in the environment are read, and shown nowhere."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from redrive_service.environment import EnvironmentIsIncomplete, read
from redrive_service.sandbox.folder import Ports, SavedSettings, Secrets
from redrive_service.sandbox.servers import privilege
from redrive_service.sandbox.servers.postgres import Postgres
from redrive_service.sandbox.servers.process import Server
from redrive_service.sandbox.servers.valkey import Valkey
from reprocessing.conf import Conf
from reprocessing.reasons.endpoint import Endpoint
from reprocessing.store.outcomes.reporters import SavedReporter
from tests.redrive_service.test_environment import COMPLETE, problems


def test_no_secret_is_shown_with_what_holds_it() -> None:
    hidden = "hunter2-" + "x" * 50
    key = base64.b64encode(hidden.encode()).decode()
    environment = read(
        COMPLETE
        | {
            "SECRET_KEY": hidden,
            "DATABASE_URL": f"postgres://user:{hidden}@db/redrive",
            "REDIS_URL": f"rediss://:{hidden}@cache:6379/1",
            "REDRIVE_METRICS_TOKEN": hidden,
            "REDRIVE_SECRETS": f"shop=whsec_{key}",
        }
    )
    ports = Ports()
    holders = [
        environment,
        Conf(secrets=environment.secrets),
        Endpoint(secure=True, host="h", port=None, path="/", token=hidden, timeout=1),
        SavedReporter(new=True, token=hidden),
        Secrets(data=hidden, django=hidden, admin=hidden, token=hidden),
        SavedSettings(ports=ports, secrets=Secrets(data=hidden, django=hidden, admin=hidden)),
        Valkey(folder=Path(), port=1, password=hidden),
        Postgres(folder=Path(), port=1, password=hidden, identity=privilege.Identity(), token=hidden),
        Server(name="web", command=["x"], log=Path(), environment={"SECRET_KEY": hidden}),
    ]
    shown = [type(one).__name__ for one in holders if "hunter2" in f"{one!r} {one}" or key in f"{one!r} {one}"]
    assert shown == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((name, "hunter2://:hunter2@x") for name in ("DATABASE_URL", "REDIS_URL", "SECRET_KEY")),
        ("REDRIVE_OUTBOUND_HOSTS", "status.example.com, postgres://hunter2:hunter2@db/redrive"),
        ("REDRIVE_OUTBOUND_HOSTS", "whsec_hunter2="),
        ("ALLOWED_HOSTS", "whsec_hunter2="),
        ("REDRIVE_REPLAY_QUEUE_URL", "https://hunter2:hunter2@sqs.eu-west-1.amazonaws.com/123456789012/redrive-replay"),
        ("REDIS_URL", "redis://:hunter2@cache/0?socket_timeout=nan"),
        ("REDIS_URL", "redis://:hunter2@cache/99999999999999999999"),
    ],
)
def test_a_secret_is_not_repeated_wherever_it_is_in_the_wrong_place(name: str, value: str) -> None:
    with pytest.raises(EnvironmentIsIncomplete) as caught:
        read({**COMPLETE, name: value})
    assert "hunter2" not in str(caught.value)


def test_secrets_are_read_with_commas_or_line_breaks_between_them_and_shown_to_nobody() -> None:
    mails = "whsec_" + base64.b64encode(b"m" * 25).decode()
    found = read({**COMPLETE, "REDRIVE_SECRETS": f"orders={'o' * 24},\n mails = {mails}\n"})

    assert found.secrets == {"orders": "o" * 24, "mails": mails}
    assert "ooo" not in repr(found)


@pytest.mark.parametrize(
    ("secrets", "problem"),
    [
        ("s" * 40, "the name of a secret takes"),
        ("whsec_" + "s" * 39 + "=", "the name of a secret takes"),
        ("orders=" + "s" * 23, "orders is shorter than 24 bytes"),
        (f"orders={'s' * 24},orders={'s' * 25}", "orders is there twice"),
        ("orders=whsec_" + "s" * 33, "orders begins with whsec_, but the rest is not base64"),
    ],
)
def test_a_secret_that_cannot_sign_is_named_and_not_shown(secrets: str, problem: str) -> None:
    (said,) = problems({**COMPLETE, "REDRIVE_SECRETS": secrets})

    assert said.startswith(f"REDRIVE_SECRETS cannot be used: {problem}")
    assert "sss" not in said
