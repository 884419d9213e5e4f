"""The admin in a browser, served as in production; no error in a page goes unnoticed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client
from pytest_django.live_server_helper import LiveServer

from reprocessing.store.rights import roles
from tests.browser.chromium import LAPTOP, Chromium, Window, program

VIEWER, OPERATOR, EDITOR, ADMINISTRATOR = (one.group for one in roles.ROLES)


class Opening(Protocol):
    """Opens a window of somebody of a role; of a name without a role, of nobody who is logged in."""

    def __call__(
        self, name: str, role: str = "", *, size: tuple[int, int] = LAPTOP, javascript: bool = True
    ) -> Window: ...


@pytest.fixture(scope="session")
def chromium() -> Iterator[Chromium]:
    """The browser of the machine; where there is none, these tests say so and are skipped."""
    found = program()
    if found is None:
        pytest.skip("There is no Chromium here: install one, or name it in REDRIVE_CHROMIUM.")
    with Chromium(found) as browser:
        yield browser


@pytest.fixture
def window(chromium: Chromium, live_server: LiveServer) -> Iterator[Opening]:
    """Windows on the desk. At the end none of them may have had a trouble that the test did not ask for."""
    opened: list[Window] = []

    def opening(name: str, role: str = "", *, size: tuple[int, int] = LAPTOP, javascript: bool = True) -> Window:
        session = _session(name, role) if role else ""
        opened.append(chromium.window(live_server.url, session=session, size=size, javascript=javascript))
        return opened[-1]

    yield opening
    troubles = [trouble for one in opened for trouble in one.troubles()]
    for one in opened:
        one.close()
    assert troubles == []


def _session(name: str, role: str) -> str:
    if not Group.objects.filter(name=role).exists():
        roles.update_groups()
    user = User.objects.create_user(name, is_staff=True)
    user.groups.set([Group.objects.get(name=role)])
    client = Client()
    client.force_login(user)
    return client.cookies["sessionid"].value
