"""Wrong passwords lock a user name for the address that they come from, for a while, and nobody else."""

from __future__ import annotations

import shlex
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from axes.models import AccessAttempt
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db.models import F
from django.test import Client, RequestFactory
from django.utils.html import escape
from pytest_django.fixtures import Settings

from redrive_service.sign_in import client_address
from redrive_service.tasks import forget_sign_ins

if TYPE_CHECKING:
    from django.test.client import _MonkeyPatchedWSGIResponse

pytestmark = pytest.mark.django_db

RIGHT, WRONG = "a pass phrase of ann", "another one"
HERE, ELSEWHERE = "203.0.113.9", "198.51.100.7"


@pytest.fixture(autouse=True)
def ann(settings: Settings) -> User:
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]  # a slow one takes most of the time
    return User.objects.create_superuser("ann", password=RIGHT)


def sign_in(
    password: str, *, at: str = HERE, name: str = "ann", headers: dict[str, str] | None = None
) -> _MonkeyPatchedWSGIResponse:
    told = {"username": name, "password": password}
    return Client().post("/admin/login/", told, headers=headers, REMOTE_ADDR=at)


def fail(times: int, *, at: str = HERE, name: str = "ann") -> list[int]:
    return [sign_in(WRONG, at=at, name=name).status_code for _ in range(times)]


def pass_time(duration: timedelta) -> None:
    AccessAttempt.objects.update(attempt_time=F("attempt_time") - duration)


@pytest.mark.parametrize("name", ["ann", "nobody"])
def test_the_fifth_wrong_password_locks_the_user_name_for_that_address(name: str) -> None:
    assert fail(5, name=name) == [200, 200, 200, 200, 429]
    assert sign_in(RIGHT, name=name).status_code == 429


@pytest.mark.soak
def test_the_same_user_elsewhere_and_another_user_here_sign_in_meanwhile() -> None:
    User.objects.create_superuser("ben", password=RIGHT)
    fail(25)
    assert [sign_in(RIGHT, at=ELSEWHERE).status_code, sign_in(RIGHT, name="ben").status_code] == [302, 302]


def test_another_browser_is_not_another_address() -> None:
    assert [sign_in(WRONG, headers={"user-agent": f"browser {n}"}).status_code for n in range(5)][-1] == 429
    assert sign_in(RIGHT, headers={"user-agent": "browser of ann"}).status_code == 429


def test_a_lock_ends_by_itself_and_further_wrong_passwords_do_not_prolong_it() -> None:
    fail(5)
    pass_time(timedelta(minutes=14))
    fail(5)
    assert sign_in(RIGHT).status_code == 429

    pass_time(timedelta(minutes=1, seconds=1))
    assert sign_in(RIGHT).status_code == 302


def test_a_right_password_forgets_the_wrong_ones_before_it() -> None:
    fail(4)
    sign_in(RIGHT)
    assert fail(4) == [200] * 4


def test_the_page_says_what_why_until_when_and_how_to_unlock_it() -> None:
    name = "o'ann & co"
    fail(4, name=name)
    page = sign_in(WRONG, name=name).content.decode()

    (attempt,) = AccessAttempt.objects.all()
    until = (attempt.attempt_time + timedelta(minutes=15)).strftime("%Y-%m-%d %H:%M:%S")
    command = f"axes_reset_ip_username {HERE} {shlex.quote(name)}"
    told = (
        f"This user name is locked for your address ({HERE}) until {until} UTC: 5 wrong passwords within 15 minutes. "
        f"Wait until then, or have an administrator run: .venv/bin/python manage.py {command}"
    )
    assert escape(told) in page
    assert 'name="password"' in page


def test_the_command_of_the_page_unlocks() -> None:
    fail(5)
    call_command("axes_reset_ip_username", HERE, "ann", verbosity=0)
    assert sign_in(RIGHT).status_code == 302


def test_no_password_and_no_user_name_is_logged_or_kept_in_what_was_sent(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("DEBUG"):
        fail(6, name="my pass phrase, in the wrong field")
    kept = [(one.get_data, one.post_data) for one in AccessAttempt.objects.all()]
    assert [text for text in (caplog.text, str(kept)) if WRONG in text or "wrong field" in text] == []
    assert f'ip_address: "{HERE}"' in caplog.text


@pytest.mark.parametrize(
    ("count", "peer", "told", "address"),
    [
        (0, HERE, "192.0.2.1", HERE),  # nobody is trusted to tell
        (1, "10.0.0.1", HERE, HERE),
        (1, "10.0.0.1", f"192.0.2.1, {HERE}", HERE),  # the first one, the client wrote
        (2, "10.0.0.1", f"192.0.2.1, {HERE}, 10.0.0.2", HERE),
        (2, "10.0.0.1", HERE, "10.0.0.1"),  # it came past one of the proxies
        (1, "10.0.0.1", "", "10.0.0.1"),
        (1, "10.0.0.1", "unknown", "10.0.0.1"),
        (1, "10.0.0.1", f"{HERE}:4711", HERE),
        (1, "10.0.0.1", "[2001:db8:1:2:3:4:5:6]:4711", "2001:db8:1:2::"),
        (0, "2001:db8:1:2:aaaa::1", "", "2001:db8:1:2::"),  # of 2^64 addresses, one client has all
        (0, "::ffff:203.0.113.9", "", HERE),
        (0, "::1", "", "::"),
        (0, "", "", None),
    ],
)
def test_whose_address_counts(settings: Settings, count: int, peer: str, told: str, address: str | None) -> None:
    settings.PROXY_COUNT = count
    request = RequestFactory(REMOTE_ADDR=peer, HTTP_X_FORWARDED_FOR=told).get("/admin/login/")
    assert client_address(request) == address


def test_a_client_that_writes_x_forwarded_for_itself_is_counted_all_the_same(settings: Settings) -> None:
    settings.PROXY_COUNT = 1
    written = [f"192.0.2.{n}, {HERE}" for n in range(5)]  # the proxy adds HERE
    assert [sign_in(WRONG, at="10.0.0.1", headers={"x-forwarded-for": one}).status_code for one in written][-1] == 429


@pytest.mark.parametrize(("with_browser", "age"), [(False, 12 * 60 * 60), (True, "")])
def test_a_session_lasts_twelve_hours_or_ends_with_the_browser_where_that_is_set(
    client: Client, settings: Settings, with_browser: bool, age: object
) -> None:
    settings.SESSION_EXPIRE_AT_BROWSER_CLOSE = with_browser
    client.post("/admin/login/", {"username": "ann", "password": RIGHT})
    assert client.cookies[settings.SESSION_COOKIE_NAME]["max-age"] == age


def test_ended_locks_and_sessions_are_forgotten_and_others_kept(client: Client) -> None:
    client.post("/admin/login/", {"username": "ann", "password": RIGHT})
    fail(5)
    pass_time(timedelta(minutes=16))
    fail(1, at=ELSEWHERE)
    ended = Client()
    ended.force_login(User.objects.get())
    store = ended.session
    store.set_expiry(-1)
    store.save()

    forget_sign_ins()

    assert [one.ip_address for one in AccessAttempt.objects.all()] == [ELSEWHERE]
    assert (client.get("/admin/").status_code, ended.session.exists(str(store.session_key))) == (200, False)
