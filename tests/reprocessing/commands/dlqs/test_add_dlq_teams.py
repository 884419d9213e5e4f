"""The teams of a DLQ: groups whose members see it."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Group

from reprocessing.models import AuditEntry, DeadLetterQueue
from tests.contract.queues import Queue, redrive_policy
from tests.reprocessing.commands.conftest import Ask
from tests.reprocessing.commands.refusals import refusal, refused
from tests.reprocessing.gateways.aws_endpoint import MakeQueue

pytestmark = pytest.mark.django_db


@pytest.fixture
def queue(make_queue: MakeQueue) -> Queue:
    """A DLQ with a source queue."""
    found = make_queue(MessageRetentionPeriod="1209600")
    make_queue(RedrivePolicy=redrive_policy(found, 3))
    return found


def teams() -> list[str]:
    return list(DeadLetterQueue.objects.get().teams.order_by("name").values_list("name", flat=True))


@pytest.mark.soak
def test_teams_are_set_replaced_and_taken_and_the_first_takes_all_dlqs_from_the_roles(ask: Ask, queue: Queue) -> None:
    ask("make_roles", "--confirm")
    for name in ("payments", "shipping"):
        Group.objects.create(name=name)
    viewer = Group.objects.get(name="Redrive viewer")
    add = ("add_dlq", "orders", "--reason", "why", "--confirm")
    said = ask(*add, "--url", queue.url, "--team", "shipping", "--team", "payments")
    assert "orders is the first DLQ with a team: from now on, the roles of make_roles no longer show all DLQs." in said
    assert teams() == ["payments", "shipping"]
    assert not viewer.permissions.filter(codename="view_all_dlqs").exists()
    assert AuditEntry.objects.latest("pk").after["orders.teams"] == ["payments", "shipping"]
    assert "first DLQ" not in ask(*add, "--team", "payments")
    assert teams() == ["payments"]
    ask(*add, "--rate", "5")
    assert teams() == ["payments"]
    ask(*add, "--team", "off")
    assert teams() == []


def test_a_team_must_be_a_group_and_off_stands_alone(ask: Ask, queue: Queue) -> None:
    Group.objects.create(name="payments")
    told = "\n".join(refused("add_dlq", "orders", "--url", queue.url, "--team", "paiments"))
    assert "No group is named paiments. The groups are: payments." in told
    ask("make_roles", "--confirm")
    role = ("add_dlq", "orders", "--url", queue.url, "--team", "Redrive viewer")
    (told,) = refused(*role)
    assert '"Redrive viewer" is a role, and roles are not teams' in told
    assert "The teams are: payments." in told
    assert refused(*role, part="cure") == ["Name the group of a team: --team TEAM"]
    assert "--team off means no team, so other teams cannot be given with it." in refusal(
        "add_dlq", "orders", "--url", queue.url, "--team", "off", "--team", "payments"
    )
    assert not DeadLetterQueue.objects.exists()
