"""Teams are not in a configuration file: an apply leaves them as they are, and warns of a new DLQ without a team."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Group

from reprocessing.models import DeadLetterQueue
from tests.reprocessing.commands.configuration.conftest import Apply, Shop, Write
from tests.reprocessing.commands.configuration.test_apply_config import whole
from tests.reprocessing.commands.conftest import Ask
from tests.reprocessing.gateways.aws_endpoint import MakeQueue

pytestmark = pytest.mark.django_db
WARNING = (
    "    WARN {0} has no team: only people with the permission view_all_dlqs see it. Give it one: "
    "manage.py add_dlq {0} --team TEAM --confirm"
)


@pytest.fixture
def orders(apply: Apply, shop: Shop) -> DeadLetterQueue:
    """A DLQ of a file, which has a team."""
    apply(whole(shop))
    found = DeadLetterQueue.objects.get(name="orders")
    found.teams.set([Group.objects.create(name="payments")])
    return found


@pytest.mark.soak
def test_an_apply_leaves_the_teams_of_a_dlq_and_the_export_as_they_are(
    orders: DeadLetterQueue, apply: Apply, ask: Ask, shop: Shop
) -> None:
    exported = ask("export_config")
    assert "payments" not in exported
    assert apply(exported) == "No changes.\n"
    apply(whole(shop).replace("max_attempts: 7", "max_attempts: 8\n        ordering_key: body:id"))
    assert list(orders.teams.values_list("name", flat=True)) == ["payments"]
    apply(exported)
    assert ask("export_config") == exported


@pytest.mark.soak
def test_the_plan_warns_of_a_new_dlq_that_no_team_sees(
    orders: DeadLetterQueue, ask: Ask, write: Write, make_queue: MakeQueue
) -> None:
    other = Shop(make_queue)
    text = f"dlqs:\n  returns:\n    url: {other.dlq.url}\n"
    said = ask("apply_config", write(text))
    assert f"{WARNING.format('returns')}\n" in said
    ask("apply_config", write(text), "--confirm")
    assert not DeadLetterQueue.objects.get(name="returns").teams.exists()
    assert "has no team" not in ask("apply_config", write(f"{text}    max_attempts: 4\n    ordering_key: body:id\n"))


def test_without_teams_there_is_nothing_to_warn_of(ask: Ask, write: Write, shop: Shop) -> None:
    assert "has no team" not in ask("apply_config", write(whole(shop)))
