"""A variable that the service does not read is told, with the name that was probably meant."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.core.checks import run_checks

from redrive_service.environment import read
from redrive_service.environment.known_variables import NAMES, nearest_name, unknown_names
from redrive_service.environment.variables import Variables
from reprocessing.domain.configuration.setting_problems import ALERT_LIMITS
from tests.redrive_service.test_environment import COMPLETE

#: The module of the check is not imported here, so that only the application registers it.
UNKNOWN = "redrive_service.W004"
DOCS = Path(__file__).parents[2] / "docs"
OIDC = {
    "REDRIVE_OIDC_ISSUER": "https://login.example.com",
    "REDRIVE_OIDC_CLIENT_ID": "redrive",
    "REDRIVE_OIDC_CLIENT_SECRET": "s" * 32,
    "REDRIVE_OIDC_GROUPS": "ops=Redrive operator",
}
#: Named only to say its new name: REDRIVE_OUTBOUND_HOSTS.
RENAMED = "REDRIVE_HEALTH_HOSTS"


def test_the_known_names_are_those_that_the_service_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: set[str] = set()

    def value(self: Variables, name: str) -> str:
        asked.add(name)
        return self.all.get(name, "").strip()

    monkeypatch.setattr(Variables, "value", value)
    read(COMPLETE | OIDC)

    alerts = {f"REDRIVE_{name.upper()}" for name in ALERT_LIMITS}
    assert {name for name in asked if not name.endswith("_SECRET_FILE")} - {RENAMED} | alerts == NAMES


def test_the_known_names_are_documented() -> None:
    pages = "".join((DOCS / name).read_text() for name in ("production.md", "sign_in.md"))
    alerts = {name for name in NAMES if name.startswith("REDRIVE_ALERT_")}  # docs/notifications.md lists them

    assert {name for name in NAMES - alerts if f"`{name}`" not in pages} == {"REDRIVE_MODE"}


@pytest.mark.parametrize(
    ("misspelt", "meant"),
    [
        ("REDRIVE_PAYLOAD_KEY", "REDRIVE_PAYLOAD_KEYS"),
        ("REDRIVE_PAYLOAD_KEY_FILE", "REDRIVE_PAYLOAD_KEYS_FILE"),
        ("REDRIVE_MASKED_FEILDS", "REDRIVE_MASKED_FIELDS"),
        ("REDRIVE_NOTIFIY_OPS", "REDRIVE_NOTIFY_OPS"),
        ("PAYLOAD_KEYS", "REDRIVE_PAYLOAD_KEYS"),
        ("DATABASE_ULR", "DATABASE_URL"),
        ("REDRIVE_FOO", ""),
        ("REDRIVE_WEBHOOK_SIGNING_SECRET_PRODUCTION", ""),
    ],
)
def test_the_nearest_name_is_the_one_that_was_meant(misspelt: str, meant: str) -> None:
    assert nearest_name(misspelt) == meant


def test_variables_of_other_programs_are_left_out() -> None:
    of_kubernetes = (
        "REDRIVE_WEB_SERVICE_HOST", "REDRIVE_WEB_SERVICE_PORT", "REDRIVE_WEB_SERVICE_PORT_PAGES", "REDRIVE_WEB_PORT",
        "REDRIVE_WEB_PORT_80_TCP", "REDRIVE_WEB_PORT_80_TCP_ADDR",
    )  # fmt: skip
    known = ("REDRIVE_PLACE", "REDRIVE_NOTIFY_TEAM_A", "REDRIVE_NOTIFY_TEAM_A_FILE", "REDRIVE_OIDC_CLIENT_SECRET_FILE")

    assert unknown_names((*of_kubernetes, *known, "HOME", "REDRIVE_WEB_HOST")) == ["REDRIVE_WEB_HOST"]
    assert unknown_names(["REDRIVE_WEB_PORT", "REDRIVE_PLACE_FILE"]) == ["REDRIVE_PLACE_FILE", "REDRIVE_WEB_PORT"]


def test_check_deploy_warns_of_each_misspelt_variable_without_its_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDRIVE_PAYLOAD_KEY", "hunter2")
    monkeypatch.setenv("REDRIVE_FOO", "hunter2")

    found = [one for one in run_checks(include_deployment_checks=True) if one.id == UNKNOWN]

    assert [(one.msg, one.hint) for one in found] == [
        (
            "The environment variable REDRIVE_FOO has no effect: the service does not know it.",
            "Unset it; docs/production.md lists the variables.",
        ),
        (
            "The environment variable REDRIVE_PAYLOAD_KEY has no effect: the service does not know it.",
            "Did you mean REDRIVE_PAYLOAD_KEYS?",
        ),
    ]
    assert [one for one in run_checks() if one.id == UNKNOWN] == []
