"""The search fields of a DLQ, from the command line and from a configuration file."""

from __future__ import annotations

import pytest

from reprocessing.models import AuditEntry, DeadLetterQueue
from tests.contract.queues import Queue, redrive_policy
from tests.reprocessing.commands.configuration.conftest import Apply, Shop, apply, shop, write
from tests.reprocessing.commands.conftest import Ask
from tests.reprocessing.commands.refusals import refusal
from tests.reprocessing.gateways.aws_endpoint import MakeQueue

__all__ = ["apply", "shop", "write"]

pytestmark = pytest.mark.django_db

ORDER, CUSTOMER = "order_id=body:order.id", "customer=attribute:customer"


@pytest.fixture
def queue(make_queue: MakeQueue) -> Queue:
    """A DLQ with a source queue."""
    found = make_queue(MessageRetentionPeriod="1209600")
    make_queue(RedrivePolicy=redrive_policy(found, 3))
    return found


def _declared() -> list[str]:
    return DeadLetterQueue.objects.get().search_fields


@pytest.mark.soak
def test_search_fields_are_set_replaced_and_taken(ask: Ask, queue: Queue) -> None:
    add = ("add_dlq", "orders", "--reason", "why", "--confirm")
    ask(*add, "--url", queue.url, "--search-field", ORDER, "--search-field", CUSTOMER)
    assert _declared() == [ORDER, CUSTOMER]
    ask(*add, "--search-field", CUSTOMER)
    assert (_declared(), AuditEntry.objects.latest("pk").before["orders.search_fields"]) == (
        [CUSTOMER],
        [ORDER, CUSTOMER],
    )
    ask(*add, "--rate", "5")
    assert _declared() == [CUSTOMER]
    ask(*add, "--search-field", "off")
    assert _declared() == []


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        (["order.id"], "Write NAME=WHERE"),
        ([ORDER, "order_id=body:id"], "order_id is declared twice"),
        ([f"f{n}=body:f{n}" for n in range(11)], "at most 10 search fields"),
        (["off", ORDER], '"off" is not a search field'),
    ],
    ids=["no name", "twice", "too many", "off with others"],
)
def test_search_fields_that_are_not_valid_are_refused(fields: list[str], why: str) -> None:
    options = [part for field in fields for part in ("--search-field", field)]
    assert why in refusal("add_dlq", "orders", "--url", "http://127.0.0.1:9/0/none", *options)


@pytest.mark.soak
def test_a_file_declares_search_fields_also_for_all_dlqs_of_a_policy(apply: Apply, shop: Shop, ask: Ask) -> None:
    of_policy = f"""\
    policies:
      careful:
        search_fields: [{ORDER}]
    dlqs:
      orders:
        url: {shop.dlq.url}
        policy: careful
    """
    apply(of_policy)
    assert _declared() == [ORDER]
    assert f"search_fields:\n    - {ORDER}" in ask("export_config")
    apply(of_policy + f"    search_fields: [{CUSTOMER}]\n")
    assert _declared() == [CUSTOMER]
    assert ask("export_config").count(CUSTOMER) == 1


def test_a_file_with_search_fields_that_are_not_valid_is_refused(apply: Apply, shop: Shop) -> None:
    text = f"""\
    dlqs:
      orders:
        url: {shop.dlq.url}
        search_fields: [{ORDER}, "order_id=body:id"]
    """
    with pytest.raises(AssertionError, match="order_id is declared twice"):
        _refused(apply, text)
    with pytest.raises(AssertionError, match="For no members, write search_fields"):
        _refused(apply, text.replace('"order_id=body:id"', "'off'"))


def _refused(apply: Apply, text: str) -> None:
    try:
        apply(text)
    except Exception as error:
        raise AssertionError(str(error)) from error
