"""What members of a team do on their own DLQs, where other teams have DLQs, too."""

from __future__ import annotations

from uuid import uuid4

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from reprocessing.domain.errors import QueueUnreachable
from reprocessing.models import BulkAction, Letter, Source, Target
from reprocessing.pipeline.dlqs import examine
from reprocessing.pipeline.dlqs.examine import Examination, Wanted
from reprocessing.pipeline.parking_lot import run_bulk_actions
from reprocessing.store.ordering.lanes import database_now
from reprocessing.store.routing import rules
from tests.reprocessing.admin.parking_lot.parked_messages import dlq, parked, post
from tests.reprocessing.admin.site.preview_steps import sheet

pytestmark = pytest.mark.django_db
HERE = "/admin/reprocessing"


@pytest.fixture
def ours() -> Source:
    return dlq("ours")


@pytest.fixture
def theirs() -> Source:
    return dlq("theirs-secret")


@pytest.fixture
def client(ours: Source) -> Client:
    """A member of the team of our DLQ, who may do everything there."""
    team = Group.objects.create(name="payments")
    ours.dlq.teams.add(team)
    user = User.objects.create_user("ann", is_staff=True)
    user.groups.add(team)
    user.user_permissions.set(
        Permission.objects.filter(content_type__app_label="reprocessing").exclude(codename="view_all_dlqs")
    )
    client = Client()
    client.force_login(user)
    return client


def said(client: Client, address: str) -> str:
    answer = client.get(address)
    assert answer.status_code == 200
    return answer.content.decode()


def test_a_bulk_action_on_everything_changes_the_messages_of_the_own_dlqs(
    client: Client, ours: Source, theirs: Source
) -> None:
    mine, other = parked(ours), parked(theirs)
    asked = {
        "reason": "why",
        "query": "",
        "token": str(uuid4()),
        "opened": database_now().isoformat(),
        "previewed": "1",
    }
    answer = client.post(f"{HERE}/parkedletter/discard", asked)
    began = BulkAction.objects.get()
    assert answer.headers["Location"] == f"{HERE}/bulkaction/{began.pk}/change/"
    assert (began.filter["dlqs"], began.asked) == ([ours.dlq_id], 1)
    run_bulk_actions.run_bulk_action(began.pk, seconds=9)
    assert [Letter.objects.get(pk=one.pk).state for one in (mine, other)] == ["discarded", "parked"]
    assert "1" in said(client, f"{HERE}/bulkaction/{began.pk}/change/")


def test_a_target_of_several_teams_is_shown_and_cannot_be_changed(client: Client, ours: Source, theirs: Source) -> None:
    shared = Target.objects.create(
        arn="arn:aws:sqs:eu-west-1:0:shared", url="x", region="eu-west-1", watched_by=theirs.dlq
    )
    for one in (ours, theirs):
        Source.objects.create(dlq=one.dlq, arn=shared.arn, target=shared)
    page = said(client, f"{HERE}/target/{shared.pk}/change/")
    assert "DLQs of other teams also use this" in page
    assert "theirs-secret" not in page + said(client, f"{HERE}/target/")
    breaker = shared.breakers.get().pk
    assert client.get(f"{HERE}/target/{shared.pk}/edit").status_code == 403
    assert client.post(f"{HERE}/breaker/{breaker}/open/now", {"reason": "why"}).status_code == 403
    assert client.get(f"{HERE}/target/{ours.target_id}/edit").status_code == 200


def test_a_rule_needs_an_own_dlq_and_names_no_target_of_another_team(
    client: Client, ours: Source, theirs: Source
) -> None:
    asked = {
        "name": "a-rule", "conditions": "[]", "position": 1, "action": "divert", "do": "look",
        "opened": str(rules.version()), "dlq": ours.dlq_id,
    }  # fmt: skip
    for target in ("theirs-secret-source", "nothing-of-this-name"):
        page = client.post(f"{HERE}/rule/add/", {**asked, "target": target}).content.decode()
        assert "No target is named" in page
        assert "theirs-secret" not in page.replace(target, "")
    page = client.post(f"{HERE}/rule/add/", {**asked, "dlq": "", "action": "hold"}).content.decode()
    assert "This field is required." in page


@pytest.mark.soak
def test_a_member_changes_no_teams_and_a_person_who_sees_all_dlqs_does(
    client: Client, ours: Source, admin_client: Client
) -> None:
    form = f"{HERE}/deadletterqueue/{ours.dlq_id}/examine"
    assert "id_teams" not in said(client, form)
    assert '<option value="payments" selected>' in said(admin_client, form)


ROLE = "arn:aws:iam::111122223333:role/of-another-team"
REFUSAL = "only people who see the DLQs of all teams may change it. Ask one of them."


@pytest.mark.soak
def test_a_person_of_a_team_cannot_change_the_role_of_a_dlq(
    client: Client, ours: Source, admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even the preview does not assume the role."""
    asked: list[object] = []

    def no_queue(wanted: Wanted, _: object) -> Examination:
        asked.append(wanted.dlq.get("role_arn"))
        raise QueueUnreachable("SQS was asked.")

    monkeypatch.setattr(examine, "dlq", no_queue)
    form = f"{HERE}/deadletterqueue/{ours.dlq_id}/examine"
    for do in ("look", "write"):
        assert REFUSAL in post(client, form, **sheet(client, form) | {"role_arn": ROLE, "do": do, "reason": "why"})
    assert asked == []
    assert "SQS was asked." in post(client, form, **sheet(client, form) | {"max_attempts": 7, "do": "look"})
    assert "SQS was asked." in post(admin_client, form, **sheet(admin_client, form) | {"role_arn": ROLE, "do": "look"})
    assert asked == [None, ROLE]


@pytest.mark.soak
def test_a_person_of_a_team_cannot_change_the_role_of_a_target(client: Client, ours: Source) -> None:
    Target.objects.filter(pk=ours.target_id).update(role_arn=ROLE.replace("another", "our"))
    form = f"{HERE}/target/{ours.target_id}/edit"
    for role in (ROLE, ""):
        assert REFUSAL in post(client, form, **sheet(client, form) | {"role_arn": role, "do": "look"})
    assert REFUSAL not in post(client, form, **sheet(client, form) | {"rate": "7", "do": "look"})


@pytest.mark.soak
def test_the_page_of_a_team_lists_its_dlqs(client: Client, ours: Source, theirs: Source, admin_client: Client) -> None:
    page = said(admin_client, f"/admin/auth/group/{Group.objects.get().pk}/change/")
    assert f'<a href="{HERE}/deadletterqueue/{ours.dlq_id}/change/">ours</a>' in page
    assert "theirs-secret" not in page
    assert "You see the DLQs of your groups: ours." in said(client, "/admin/rights")


@pytest.mark.soak
def test_counts_are_of_the_own_dlqs_and_cost_the_same_for_one_dlq_and_for_many(
    client: Client, ours: Source, theirs: Source
) -> None:
    parked(ours)
    parked(theirs)
    said(client, "/admin/board")  # warm
    with CaptureQueriesContext(connection) as few:
        answer = client.get("/admin/board")
    assert [row["name"] for row in answer.context["rows"]] == ["ours"]
    assert answer.context["figures"][0].value == "1"
    for number in range(20):
        source = dlq(f"more-{number}")
        source.dlq.teams.add(Group.objects.get())
        parked(source)
    with CaptureQueriesContext(connection) as many:
        answer = client.get("/admin/board")
    assert len(answer.context["rows"]) == 21
    assert len(many) == len(few)


def test_a_person_of_no_team_sees_nothing_and_is_told_why(ours: Source) -> None:
    user = User.objects.create_user("ben", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__startswith="view_").exclude(codename="view_all_dlqs"))
    nobody = Client()
    nobody.force_login(user)
    page = said(nobody, "/admin/")
    assert "None of your teams has a DLQ." in page
    assert ">ours<" not in page
    assert nobody.get(f"{HERE}/deadletterqueue/{ours.dlq_id}/change/").status_code == 404
