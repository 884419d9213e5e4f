"""Who may open what: every address of the desk by every role. An address that is not listed here fails."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.contrib import admin
from django.contrib.auth.models import Group, User
from django.http import HttpResponseBase
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse
from django_celery_beat.models import ClockedSchedule, CrontabSchedule, IntervalSchedule, PeriodicTask, SolarSchedule

from reprocessing.models import Rule, amendments, roles
from reprocessing.models.lanes import clock
from reprocessing.models.letter import ParkedLetter
from tests.reprocessing.admin.lot import dlq, parked
from tests.reprocessing.admin.stock import rows_of_everything

pytestmark = pytest.mark.django_db

NOBODY, STAFF = "not logged in", "of no role"
VIEWER, OPERATOR, EDITOR, ADMINISTRATOR = ROLES = [one.group for one in roles.ROLES]
EVERYBODY = {NOBODY, STAFF, *ROLES}
INSIDE = {STAFF, *ROLES}
LOOKING, OPERATING, READING, CONFIGURING = (set(ROLES[least:]) for least in range(4))

#: Pages that stand alone, by the name of their address: who may open them.
PAGES = {
    "index": INSIDE, "board": LOOKING, "rights": INSIDE, "stop": OPERATING, "resume": OPERATING,
    "login": EVERYBODY, "logout": set(), "password_change": INSIDE, "password_change_done": INSIDE,
    "autocomplete": set(), "jsi18n": INSIDE, "view_on_site": set(), "app_list": LOOKING,
    "reprocessing_deadletter_body": READING, "reprocessing_parkedletter_body": READING,
    "parkedletter_release": set(), "parkedletter_discard": set(),  # sent, never opened: see DEEDS
    "auth_user_password_change": set(), "reports": set(),
    **{f"reprocessing_report_{page}": READING for page in ("changelist", "change", "history")},  # they quote payloads
}  # fmt: skip
#: Pages that each list of ours has; those of others, of users and schedules, are for superusers alone.
OURS = {"changelist": LOOKING, "change": LOOKING, "history": LOOKING, "add": set(), "delete": set()}
#: What is done by sending a form: who may.
DEEDS = {
    "/admin/stop": OPERATING, "/admin/resume": OPERATING, "/admin/reprocessing/parkedletter/release": OPERATING,
    "/admin/reprocessing/parkedletter/discard": OPERATING,
    "/admin/reprocessing/deadletterqueue/{dlq}/change/": CONFIGURING,
    "/admin/reprocessing/rule/{rule}/change/": CONFIGURING, "/admin/reprocessing/run/add/": set(),
    "/admin/auth/user/add/": set(), "/admin/django_celery_beat/periodictask/add/": set(),
}  # fmt: skip


@pytest.fixture
def people() -> dict[str, Client]:
    """One of each role, one of none, and one who is not logged in."""
    roles.make()
    clients = {NOBODY: Client(), STAFF: Client()} | {group: Client() for group in ROLES}
    for name, client in clients.items():
        if name != NOBODY:
            user = User.objects.create_user(name, is_staff=True)
            user.groups.set(Group.objects.filter(name=name))
            client.force_login(user)
    return clients


def _addresses() -> Iterator[tuple[str, str]]:
    """Every address of the project that has a name: the name, and an example."""
    letter = ParkedLetter.objects.earliest("pk")
    examples = {"letter": letter.pk, "id": User.objects.earliest("pk").pk, "content_type_id": 1}
    for pattern, space in _patterns(get_resolver().url_patterns, ""):
        if pattern.name:
            its = examples | {"object_id": _row(pattern.name)}
            taken = {name: its[name] for name in pattern.pattern.converters}
            taken |= {"app_label": "reprocessing"} if pattern.name == "app_list" else {}
            yield pattern.name, reverse(f"{space}{pattern.name}", kwargs=taken)


def _row(name: str) -> object:
    """What there is of the model whose pages have names like this one."""
    its = [model for model in admin.site._registry if name.startswith(f"{model._meta.label_lower.replace('.', '_')}_")]
    return its[0]._default_manager.order_by("pk").values_list("pk", flat=True)[0] if its else "1"


def _patterns(found: list[URLPattern | URLResolver], space: str) -> Iterator[tuple[URLPattern, str]]:
    for one in found:
        if isinstance(one, URLPattern):
            yield one, space
        else:
            yield from _patterns(one.url_patterns, f"{one.namespace}:" if one.namespace else space)


def _expected(name: str) -> set[str] | None:
    """Who may open the page of this name; None: nobody has said."""
    if name in PAGES:
        return PAGES[name]
    kind = name.rpartition("_")[2]
    if name.startswith("reprocessing_"):
        return OURS.get(kind)
    return set() if name.startswith(("auth_", "django_celery_beat_")) and kind in OURS else None


def _may(answer: HttpResponseBase) -> bool:
    refused = answer.status_code in {401, 403, 404, 405} or answer.headers.get("Location", "").startswith(
        "/admin/login/"
    )
    return answer.status_code < 500 and not refused


def test_every_address_is_open_to_those_it_is_for_and_to_no_other(people: dict[str, Client]) -> None:
    rows_of_everything()
    for schedule in (
        IntervalSchedule(every=1, period="days"), CrontabSchedule(), ClockedSchedule(clocked_time=clock()),
        SolarSchedule(event="sunset", latitude=1, longitude=1),
    ):  # fmt: skip
        schedule.save()
    PeriodicTask.objects.create(name="a task", task="reprocessing.tick", interval=IntervalSchedule.objects.get())
    opened: dict[str, set[str]] = {}
    expected: dict[str, set[str] | None] = {}
    for name, address in _addresses():
        expected[name] = _expected(name)
        opened[name] = {who for who, client in people.items() if name != "logout" and _may(client.get(address))}
    assert len(opened) > 100
    assert opened == expected


@pytest.mark.parametrize("address", DEEDS)
def test_every_deed_is_done_by_those_it_is_for_and_by_no_other(address: str, people: dict[str, Client]) -> None:
    letter = parked(dlq("shop"))
    amendments.put("a-rule", {"action": "hold", "conditions": []}, by="ann", reason="a test")
    there = address.format(dlq=letter.dlq_id, rule=Rule.objects.get().pk)
    assert {who for who, client in people.items() if _may(client.post(there, {}))} == DEEDS[address]


def test_each_role_may_do_what_the_one_before_may() -> None:
    roles.make()
    may = [set(Group.objects.get(name=one).permissions.values_list("codename", flat=True)) for one in ROLES]
    assert may[0] < may[1] < may[2] < may[3]
    assert all(one.startswith("view_") for one in may[0])
    assert "view_payload" not in may[1]


def test_a_person_sees_what_they_may_and_what_the_rest_takes(people: dict[str, Client]) -> None:
    page = people[OPERATOR].get("/admin/rights").content.decode()
    assert f"You are in: {OPERATOR}." in page
    assert page.count('<span class="may-not">may not</span>') == 3
    assert "You are in no group." in people[STAFF].get("/admin/rights").content.decode()
