"""Each address of the admin by each role. An address that is not listed here fails."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.contrib import admin
from django.contrib.auth.models import Group, Permission, User
from django.db import transaction
from django.http import HttpResponseBase
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse

from reprocessing.admin.site import permissions
from reprocessing.models import ApiToken, Approval, Breaker, BulkAction, FailureGroup, ManagedObject, Rule, Run
from reprocessing.models.letter import ParkedLetter
from reprocessing.models.notification import NotificationRoute
from reprocessing.store.rights import roles
from reprocessing.store.routing import rule_changes
from tests.reprocessing.admin.parking_lot.parked_messages import dlq, failure_group, parked
from tests.reprocessing.admin.site.sample_rows import (
    api_token,
    operated,
    requested,
    rows_of_everything,
    schedules,
)

pytestmark = [pytest.mark.django_db, pytest.mark.soak]

NOBODY, STAFF = "not logged in", "of no role"
VIEWER, OPERATOR, EDITOR, ADMINISTRATOR = ROLES = [one.group for one in roles.ROLES]
EVERYBODY = {NOBODY, STAFF, *ROLES}
INSIDE = {STAFF, *ROLES}
LOOKING, OPERATING, READING, CONFIGURING = (set(ROLES[least:]) for least in range(4))

_SHOWING = ("reveal", "body", "compare", "s3")  # actions, since they are recorded

_DECIDING = ("release", "discard", "restore", "assign", "note", "export")

#: Pages that stand alone, by the name of their address: who may open them.
PAGES = {
    "index": INSIDE, "board": LOOKING, "board_dlq": LOOKING, "hours": LOOKING, "rights": INSIDE, "search": LOOKING,
    "stop": OPERATING, "resume": OPERATING,
    "login": EVERYBODY, "logout": set(), "password_change": INSIDE, "password_change_done": INSIDE,
    "autocomplete": set(), "jsi18n": INSIDE, "view_on_site": set(), "app_list": LOOKING,
    **{f"reprocessing_{desk}_{action}": set() for desk in ("letter", "parkedletter") for action in _SHOWING},
    "reprocessing_auditentry_export": OPERATING,
    **{f"reprocessing_{one}_add": CONFIGURING for one in ("deadletterqueue", "notificationroute", "rule", "target")},
    **{f"reprocessing_notificationroute_{action}": CONFIGURING for action in ("edit", "remove")},
    **{f"reprocessing_discoveredqueue_{act}": CONFIGURING for act in ("adopt", "ignore", "unignore", "scan")},
    **{f"reprocessing_failuregroup_{action}": OPERATING for action in ("merge", "split", "rename")},
    "reprocessing_apitoken_add": CONFIGURING, "reprocessing_apitoken_revoke": CONFIGURING,
    "reprocessing_deadletterqueue_examine": CONFIGURING, "reprocessing_rule_edit": CONFIGURING,
    **{f"reprocessing_rule_{action}": CONFIGURING for action in ("remove", "enable", "disable")},
    "reprocessing_target_edit": CONFIGURING, "reprocessing_managedobject_unlock": CONFIGURING,
    **{f"reprocessing_{one}_{act}": OPERATING for one in ("deadletterqueue", "lane") for act in ("stop", "resume")},
    "reprocessing_breaker_action": OPERATING, "reprocessing_run_add": OPERATING,
    "reprocessing_run_progress": LOOKING, "reprocessing_run_action": OPERATING, "reprocessing_run_choose": set(),
    **{f"reprocessing_approval_{action}": OPERATING for action in ("approve", "decline")},
    "reprocessing_approval_alone": CONFIGURING, "reprocessing_approval_difference": set(),
    "parkedletter_edit": set(), "parkedletter_edit_all": set(), "parkedletter_group_by": set(),
    **{f"parkedletter_{action}": set() for action in _DECIDING}, "operation_abort": set(),  # see ACTIONS
    "parkedletter_save": set(), "parkedletter_unsave": set(),
    "operation_progress": LOOKING,
    "auth_user_password_change": set(), "reports": set(),
    **{f"reprocessing_report_{page}": READING for page in ("changelist", "change", "history")},  # they quote payloads
}  # fmt: skip
#: Pages that each list of ours has; those of others, of users and schedules, are for superusers alone.
OURS = {"changelist": LOOKING, "change": LOOKING, "history": LOOKING, "add": set(), "delete": set()}
#: What is done by sending a form: who may.
ACTIONS = {
    "/admin/stop": OPERATING, "/admin/resume": OPERATING,
    **{f"/admin/reprocessing/parkedletter/{action}": OPERATING for action in _DECIDING},
    "/admin/reprocessing/parkedletter/save": LOOKING, "/admin/reprocessing/parkedletter/unsave": set(),
    "/admin/reprocessing/bulkaction/{operation}/abort": OPERATING,
    "/admin/reprocessing/parkedletter/{letter}/edit": READING,
    **{f"/admin/reprocessing/parkedletter/{page}": READING for page in ("edit-all", "group-by")},
    **{f"/admin/reprocessing/{desk}/{{letter}}/{action}": READING
       for desk in ("letter", "parkedletter") for action in _SHOWING},
    "/admin/reprocessing/failuregroup/{group}/change/": OPERATING,
    "/admin/reprocessing/failuregroup/merge": OPERATING,
    **{f"/admin/reprocessing/failuregroup/{{group}}/{action}": OPERATING for action in ("split", "rename")},
    "/admin/reprocessing/run/add/": OPERATING,
    **{
        f"/admin/reprocessing/{one}/add/": CONFIGURING
        for one in ("deadletterqueue", "notificationroute", "rule", "target")
    },
    **{f"/admin/reprocessing/notificationroute/{{route}}/{action}": CONFIGURING for action in ("edit", "remove")},
    **{
        f"/admin/reprocessing/rule/{{rule}}/{action}": CONFIGURING
        for action in ("edit", "remove", "enable", "disable")
    },
    "/admin/reprocessing/target/{target}/edit": CONFIGURING,
    "/admin/reprocessing/apitoken/add/": CONFIGURING, "/admin/reprocessing/apitoken/{api_token}/revoke": CONFIGURING,
    "/admin/reprocessing/managedobject/{mark}/unlock": CONFIGURING,
    "/admin/reprocessing/deadletterqueue/{dlq}/examine": CONFIGURING,
    **{
        f"/admin/reprocessing/{one}/{act}": OPERATING
        for one in ("deadletterqueue/{dlq}", "lane/{lane}") for act in ("stop", "resume")
    },
    **{f"/admin/reprocessing/breaker/{{breaker}}/{action}/now": OPERATING for action in ("close", "open", "half-open")},
    "/admin/reprocessing/run/{run}/choose": OPERATING,
    **{f"/admin/reprocessing/run/{{run}}/{action}/now": OPERATING for action in ("start", "pause", "resume", "abort")},
    **{f"/admin/reprocessing/approval/{{approval}}/{action}": OPERATING for action in ("approve", "decline")},
    "/admin/reprocessing/approval/{approval}/alone": CONFIGURING,
    "/admin/reprocessing/approval/{approval}/difference": READING,
    "/admin/auth/user/add/": set(), "/admin/django_celery_beat/periodictask/add/": set(),
}  # fmt: skip


@pytest.fixture
def people() -> dict[str, Client]:
    roles.update_groups()
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
    examples = {"letter": letter.pk, "id": User.objects.earliest("pk").pk, "content_type_id": 1, "action": "start"}
    examples |= {"run": Run.objects.earliest("pk").pk, "operation": BulkAction.objects.earliest("pk").pk}
    examples |= {"approval": Approval.objects.earliest("pk").pk}
    examples |= {"dlq": letter.dlq_id, "lane": letter.lane_id, "target": letter.target_id}
    examples |= {"rule": Rule.objects.earliest("pk").pk, "api_token": ApiToken.objects.earliest("pk").pk}
    examples |= {"group": FailureGroup.objects.earliest("pk").pk}
    examples |= {"breaker": Breaker.objects.earliest("pk").pk, "move": "open"}
    examples |= {"route": NotificationRoute.objects.earliest("pk").pk, "mark": ManagedObject.objects.earliest("pk").pk}
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
        elif one.namespace != "api":  # the API has a matrix of its own
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
    schedules()
    opened: dict[str, set[str]] = {}
    expected: dict[str, set[str] | None] = {}
    for name, address in _addresses():
        expected[name] = _expected(name)
        opened[name] = {who for who, client in people.items() if name != "logout" and _may(client.get(address))}
    assert len(opened) > 100
    assert opened == expected


def test_every_action_is_done_by_those_it_is_for_and_by_no_other(people: dict[str, Client]) -> None:
    letter = parked(dlq("shop"))
    rule_changes.save_rule("a-rule", {"action": "hold", "conditions": []}, by="ann", reason="a test")
    run = Run.objects.create(name="run", dlq=letter.dlq)
    assert letter.source
    examples = {
        "letter": letter.pk, "group": failure_group(letter.source).pk,
        "dlq": letter.dlq_id, "rule": Rule.objects.get().pk, "run": run.pk,
        "approval": requested(letter).pk,
        "operation": operated().pk, "lane": letter.lane_id, "target": letter.target_id,
        "breaker": Breaker.objects.earliest("pk").pk, "route": NotificationRoute.objects.create(destination="ops").pk,
        "api_token": api_token().pk,
        "mark": ManagedObject.objects.create(kind="rules", name="r", written={}, applied_by="ann").pk,
    }  # fmt: skip
    done = {}
    for address in ACTIONS:
        with transaction.atomic():  # none finds what another did
            done[address] = {who for who, client in people.items() if _may(client.post(address.format(**examples), {}))}
            transaction.set_rollback(True)
    assert done == ACTIONS


def test_no_form_of_djangos_own_writes_a_row_of_ours(client: Client) -> None:
    """Whoever changes something says why: on a page that asks. What of ours is sent to this way is such a page."""
    rows_of_everything()
    schedules()
    roles.update_groups()
    client.force_login(User.objects.create_superuser("root"))
    ours = {
        "apitoken_add",
        "deadletterqueue_add",
        "notificationroute_add",
        "rule_add",
        "target_add",
        "run_add",
        "failuregroup_change",
    }
    sent = {
        name.removeprefix("reprocessing_") for name, address in _addresses()
        if name.startswith("reprocessing_") and name.rpartition("_")[2] in {"add", "change", "delete"}
        and client.post(address, {"_save": "Save"}).status_code not in {403, 405}
    }  # fmt: skip
    assert sent == ours
    assert b"_addanother" not in client.get(f"/admin/reprocessing/rule/{Rule.objects.get().pk}/change/").content


def test_each_role_may_do_what_the_one_before_may() -> None:
    roles.update_groups()
    may = [set(Group.objects.get(name=one).permissions.values_list("codename", flat=True)) for one in ROLES]
    assert may[0] < may[1] < may[2] < may[3]
    assert all(one.startswith("view_") for one in may[0])
    assert "view_payload" not in may[1]


def test_every_action_takes_a_permission_that_there_is() -> None:
    there = {f"reprocessing.{one}" for one in Permission.objects.values_list("codename", flat=True)}
    given = {f"reprocessing.{one}" for role in roles.ROLES for one in role.may}
    assert given | set(permissions.PERMISSIONS.values()) <= there
    assert set(permissions.PERMISSIONS.values()) >= given


def test_a_person_sees_what_they_may_and_what_the_rest_takes(people: dict[str, Client]) -> None:
    page = people[OPERATOR].get("/admin/rights").content.decode()
    assert f"Your groups: {OPERATOR}." in page
    assert page.count('<span class="may-not">no</span>') == 18
    assert "You are in no group." in people[STAFF].get("/admin/rights").content.decode()
