"""The settings of a provider: what is missing, wrong or contradictory is told at the start, and no secret with it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from redrive_service.environment import EnvironmentIsIncomplete, Oidc, read
from tests.redrive_service.test_environment import COMPLETE, problems

PROVIDER = {
    "REDRIVE_OIDC_ISSUER": "https://login.example.com/realms/main",
    "REDRIVE_OIDC_CLIENT_ID": "redrive",
    "REDRIVE_OIDC_CLIENT_SECRET": "hunter2-of-the-client",
    "REDRIVE_OIDC_GROUPS": "redrive-ops=Redrive operator, /pay/ops = payments",
}
FOUND = Oidc(
    issuer="https://login.example.com/realms/main", client_id="redrive", client_secret="hunter2-of-the-client",
    name="single sign-on", scopes="openid profile email", groups_claim="groups", staff_claim="",
    groups=(("redrive-ops", "Redrive operator"), ("/pay/ops", "payments")), recheck=timedelta(hours=1),
)  # fmt: skip
MAP = "Map the provider's groups to groups of this service: REDRIVE_OIDC_GROUPS=redrive-ops=Redrive operator"
ISSUER = "Set it to the issuer of your provider: https://login.example.com/realms/main"
SECRET = "Set REDRIVE_OIDC_CLIENT_SECRET, or REDRIVE_OIDC_CLIENT_SECRET_FILE to a file that holds the secret."
RECHECK, LOGIN = "REDRIVE_OIDC_RECHECK_MINUTES", "REDRIVE_PASSWORD_LOGIN"
CURE = "Set REDRIVE_OIDC_ISSUER, or unset REDRIVE_PASSWORD_LOGIN"
NO_URL = f"REDRIVE_OIDC_ISSUER is not a URL that begins with https://, without user and query. {ISSUER}"


def found(**variables: str) -> Oidc | None:
    return read(COMPLETE | PROVIDER | variables).oidc


def test_without_a_provider_people_sign_in_by_password() -> None:
    environment = read(COMPLETE)
    assert (environment.oidc, environment.password_login) == (None, True)


def test_four_variables_are_enough() -> None:
    assert found() == FOUND


def test_each_other_variable_counts() -> None:
    told = {
        "REDRIVE_OIDC_NAME": "Example Login", "REDRIVE_OIDC_SCOPES": "openid, groups",
        "REDRIVE_OIDC_GROUPS_CLAIM": "roles", "REDRIVE_OIDC_STAFF_CLAIM": "redrive_staff",
        "REDRIVE_OIDC_RECHECK_MINUTES": "0",
    }  # fmt: skip
    assert found(**told) == replace(
        FOUND, name="Example Login", scopes="openid groups", groups_claim="roles", staff_claim="redrive_staff",
        recheck=timedelta(0),
    )  # fmt: skip
    assert read(COMPLETE | PROVIDER | {"REDRIVE_PASSWORD_LOGIN": "no"}).password_login is False


@pytest.mark.parametrize("issuer", ["https://login.example.com/realms/main", "https://login.example.com/realms/main/"])
def test_an_issuer_is_taken_from_the_address_of_its_metadata_too(issuer: str) -> None:
    address = issuer.rstrip("/") + "/.well-known/openid-configuration"
    oidc, other = found(REDRIVE_OIDC_ISSUER=issuer), found(REDRIVE_OIDC_ISSUER=address)
    assert oidc
    assert other
    assert (oidc.discovery_url, other.discovery_url) == (address, address)


def test_a_group_whose_name_has_commas_and_equals_signs_has_a_line_of_its_own() -> None:
    oidc = found(REDRIVE_OIDC_GROUPS="CN=ops,OU=it=Redrive operator\n  CN=pay,OU=it = payments\n")
    assert oidc is not None
    assert oidc.groups == (("CN=ops,OU=it", "Redrive operator"), ("CN=pay,OU=it", "payments"))


def test_a_secret_may_be_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("hunter2-of-the-client\n")
    assert found(REDRIVE_OIDC_CLIENT_SECRET="", REDRIVE_OIDC_CLIENT_SECRET_FILE=str(file)) == FOUND


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"ISSUER": ""}, f"REDRIVE_OIDC_ISSUER is not set, but REDRIVE_OIDC_CLIENT_ID is. {ISSUER}"),
        ({"ISSUER": "http://login.example.com"}, NO_URL),
        ({"ISSUER": "login.example.com"}, NO_URL),
        ({"ISSUER": "https://ann:hunter2@login.example.com"}, NO_URL),
        ({"ISSUER": "https://login.example.com?realm=main"}, NO_URL),
        ({"ISSUER": "https://login.example.com/a\u2028b"},
         f"REDRIVE_OIDC_ISSUER holds a space, a line break or another character that nobody sees. {ISSUER}"),
        ({"CLIENT_ID": ""}, "REDRIVE_OIDC_CLIENT_ID is not set. Set it to the client id that the provider shows."),
        ({"CLIENT_SECRET": ""}, f"REDRIVE_OIDC_CLIENT_SECRET is not set. {SECRET}"),
        ({"CLIENT_SECRET_FILE": "/nowhere"},
         "REDRIVE_OIDC_CLIENT_SECRET and REDRIVE_OIDC_CLIENT_SECRET_FILE are both set. Unset one of them."),
        ({"CLIENT_SECRET": "", "CLIENT_SECRET_FILE": "/nowhere"},
         f"REDRIVE_OIDC_CLIENT_SECRET_FILE cannot be read: No such file or directory. {SECRET}"),
        ({"CLIENT_SECRET": "", "CLIENT_SECRET_FILE": "/dev/null"},
         f"REDRIVE_OIDC_CLIENT_SECRET_FILE is empty. {SECRET}"),
        ({"CLIENT_SECRET": "hunter2 hunter2"},
         "REDRIVE_OIDC_CLIENT_SECRET holds a space, a line break or another character that nobody sees. " + SECRET),
        ({"GROUPS": ""}, f"REDRIVE_OIDC_GROUPS is not set, so nobody could sign in. {MAP}"),
        ({"GROUPS": "redrive-ops"}, f"REDRIVE_OIDC_GROUPS holds an entry that is not VALUE=GROUP. {MAP}"),
        ({"GROUPS": "a=b,=c"}, f"REDRIVE_OIDC_GROUPS holds an entry that is not VALUE=GROUP. {MAP}"),
        ({"GROUPS": "a=b,c="}, f"REDRIVE_OIDC_GROUPS holds an entry that is not VALUE=GROUP. {MAP}"),
        ({"GROUPS": ","}, f"REDRIVE_OIDC_GROUPS is not set, so nobody could sign in. {MAP}"),
        ({"SCOPES": "profile email"}, "REDRIVE_OIDC_SCOPES lacks openid. Set it to: openid profile email"),
        ({"NAME": "x" * 41},
         "REDRIVE_OIDC_NAME cannot be shown: it must have at most 40 characters that can be seen. Correct it."),
        ({"RECHECK_MINUTES": "-1"},
         "REDRIVE_OIDC_RECHECK_MINUTES must be a whole number from 0 to 1,440. Unset, it is 60."),
        ({"RECHECK_MINUTES": "721"},
         f"{RECHECK} is longer than a session (REDRIVE_SESSION_HOURS). Set {RECHECK} to less, or to 0 for never."),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_told_in_a_sentence(changed: dict[str, str], problem: str) -> None:
    variables = {f"REDRIVE_OIDC_{name}": value for name, value in changed.items()}
    assert problems(COMPLETE | PROVIDER | variables) == [problem]


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("no", f"{LOGIN} is no, but no OpenID provider is set: nobody could sign in. {CURE}."),
        ("off", f"{LOGIN} must be yes (the default) or no."),
    ],
)  # fmt: skip
def test_passwords_are_not_switched_off_without_another_way_in(value: str, problem: str) -> None:
    assert problems(COMPLETE | {"REDRIVE_PASSWORD_LOGIN": value}) == [problem]


def test_a_provider_without_tls_is_for_the_sandbox() -> None:
    oidc = found(REDRIVE_MODE="sandbox", REDRIVE_OIDC_ISSUER="http://localhost:9400")
    assert oidc is not None


def test_the_secret_is_shown_neither_with_what_holds_it_nor_in_an_error() -> None:
    environment = read(COMPLETE | PROVIDER)
    with pytest.raises(EnvironmentIsIncomplete) as caught:
        read(COMPLETE | PROVIDER | {"REDRIVE_OIDC_CLIENT_SECRET": "hunter2 hunter2", "REDRIVE_OIDC_SCOPES": "x"})
    assert [text for text in (f"{environment!r}", f"{environment.oidc}", f"{caught.value}") if "hunter2" in text] == []
