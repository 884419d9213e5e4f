"""The page Discover reads the database alone; ticked DLQs are added or ignored after a page that shows the effect."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from urllib.parse import urlencode

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from reprocessing import conf
from reprocessing.admin.dlqs.discover import MOST
from reprocessing.domain.dlqs.discovery import Scope
from reprocessing.models import (
    AuditEntry,
    DeadLetterQueue,
    DiscoveredQueue,
    DiscoveredSource,
    DiscoveryScope,
    Policy,
)
from reprocessing.pipeline.dlqs import discover
from reprocessing.store.dlqs import discovery_scopes
from tests.contract.endpoints import Endpoint
from tests.contract.queues import Queue, redrive_policy
from tests.reprocessing.gateways.aws_endpoint import MakeQueue, endpoint  # noqa: F401  a fixture

pytestmark = pytest.mark.django_db
LIST = "/admin/reprocessing/discoveredqueue/"


@pytest.fixture
def dlq(make_queue: MakeQueue, endpoint: Endpoint) -> Iterator[Queue]:  # noqa: F811  a fixture
    made = make_queue()
    source = make_queue(RedrivePolicy=redrive_policy(made))
    discover.scan_scope(
        discovery_scopes.add_scope(Scope("us-east-1", prefix=made.name)), conf.current(), dice=lambda: 0.0
    )
    yield made
    for queue in (made, source):
        endpoint.client.delete_queue(QueueUrl=queue.url)


def person(*permissions: str) -> Client:
    user = User.objects.create_user("ann", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=[*permissions, "view_all_dlqs"]))
    client = Client()
    client.force_login(user)
    return client


def ticked(name: str) -> str:
    return f"{reverse(f'admin:reprocessing_discoveredqueue_{name}')}?queue={DiscoveredQueue.objects.get().pk}"


def confirm(client: Client, address: str) -> str:
    """Submit the confirmation page as it was shown."""
    shown = client.get(address)
    form = shown.context["form"]
    return client.post(address, {"seen": form.initial["seen"], "reason": "because"}, follow=True).content.decode()


@pytest.fixture
def ann() -> Client:
    return person("view_discoveredqueue", "add_deadletterqueue", "view_deadletterqueue")


def test_the_page_lists_dlqs_and_when_they_were_scanned_without_asking_aws(
    dlq: Queue, ann: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_SQS", "http://127.0.0.1:9")
    page = ann.get(LIST).content.decode()
    assert dlq.name in page
    assert "no messages" in page
    assert "scanned 20" in page
    assert "No DLQ has this status." in ann.get(LIST, {"status": "ignored"}).content.decode()


def test_what_could_not_be_read_is_on_the_page_with_the_command_that_shows_the_rights(dlq: Queue, ann: Client) -> None:
    DiscoveryScope.objects.update(unread=[["function", "Lambda refused it. Allow lambda:ListFunctions."]])
    page = ann.get(LIST).content.decode()
    assert "Not read: Lambda refused it. Allow lambda:ListFunctions." in page
    assert "manage.py iam_policy --discover" in page


def test_adding_shows_the_effect_first_and_then_adds_in_mode_observe(dlq: Queue, ann: Client) -> None:
    shown = ann.get(ticked("adopt")).content.decode()
    assert f"is added as {dlq.name}. Nothing is received or sent." in shown
    assert DeadLetterQueue.objects.count() == 0
    assert f"Added in mode observe: {dlq.name}." in confirm(ann, ticked("adopt"))
    row = DeadLetterQueue.objects.get()
    assert (row.arn, row.mode) == (dlq.arn, "observe")
    entry = AuditEntry.objects.get()
    assert (entry.by, entry.reason, entry.dlq) == ("ann", "because", row)
    assert f"It is already registered as {dlq.name}." in ann.get(ticked("adopt")).content.decode()


def test_a_policy_is_chosen_for_all_that_are_added(dlq: Queue, ann: Client) -> None:
    Policy.objects.create(name="standard", settings={"max_attempts": 7})
    assert "<option>standard</option>" in ann.get(LIST).content.decode()
    address = f"{ticked('adopt')}&policy=standard"
    assert "in mode observe, with the policy standard" in ann.get(address).content.decode()
    confirm(ann, address)
    row = DeadLetterQueue.objects.get()
    assert (row.mode, row.max_attempts, row.policy and row.policy.name) == ("observe", 7, "standard")


def test_an_unknown_policy_adds_nothing_and_is_named(dlq: Queue, ann: Client) -> None:
    shown = unescape(ann.get(f"{ticked('adopt')}&policy=none-such").content.decode())
    assert f"{dlq.name} (000000000000, us-east-1) cannot be added." in shown
    assert "none-such" in shown


def test_nothing_is_added_if_the_effect_is_no_longer_what_was_shown(dlq: Queue, ann: Client) -> None:
    seen = ann.get(ticked("adopt")).context["form"].initial["seen"]
    dlq.set(MessageRetentionPeriod="600000")
    answer = ann.post(ticked("adopt"), {"seen": seen, "reason": "because"})
    assert "The effect is no longer what you saw." in answer.content.decode()
    assert DeadLetterQueue.objects.count() == 0


def test_a_ticked_dlq_is_ignored_and_reported_again_with_an_audit_entry_each(dlq: Queue, ann: Client) -> None:
    assert "Ignored: 1 DLQ." in confirm(ann, ticked("ignore"))
    assert DiscoveredQueue.objects.get().ignored_by == "ann"
    assert "ignored by ann: because" in " ".join(ann.get(LIST).content.decode().replace("<small>", "").split())
    assert "No longer ignored: 1 DLQ." in confirm(ann, ticked("unignore"))
    assert AuditEntry.objects.count() == 2


def test_before_the_first_scan_the_page_does_not_say_that_dlqs_were_looked_for(ann: Client) -> None:
    page = ann.get(LIST).content.decode()
    assert ("Nothing was scanned yet." in page, "No DLQs found." in page) == (True, False)
    assert (">Scan…</a>" in page, "Scan again" in page) == (True, False)
    scan = ann.get(reverse("admin:reprocessing_discoveredqueue_scan")).content.decode()
    assert ("<h1>Scan</h1>" in scan, "Scan again" in scan) == (True, False)
    discovery_scopes.add_scope(Scope("us-east-1", prefix="a"))
    page = ann.get(LIST).content.decode()
    assert ("No DLQs found." in page, ">Scan again…</a>" in page) == (True, True)


def test_scanning_again_makes_every_scope_due(dlq: Queue, ann: Client) -> None:
    assert discovery_scopes.due_scopes() == []
    assert "A worker scans the accounts and regions below." in confirm(
        ann, reverse("admin:reprocessing_discoveredqueue_scan")
    )
    assert len(discovery_scopes.due_scopes()) == 1


def test_scanning_again_names_the_setting_that_keeps_workers_from_scanning(
    dlq: Queue, ann: Client, settings: Settings
) -> None:
    settings.REDRIVE = {"DISCOVER_EVERY": 0}
    page = ann.get(reverse("admin:reprocessing_discoveredqueue_scan")).content.decode()
    assert "Workers do not scan, because REDRIVE_DISCOVER_EVERY is 0." in page


@pytest.mark.parametrize("name", ["adopt", "ignore", "unignore", "scan"])
def test_who_may_not_add_dlqs_sees_the_list_and_no_action(dlq: Queue, name: str) -> None:
    viewer = person("view_discoveredqueue")
    assert "You may not add DLQs" in viewer.get(LIST).content.decode()
    assert viewer.get(ticked(name)).status_code == 403
    assert viewer.post(ticked(name), {"seen": "x", "reason": "because"}).status_code == 403


def test_an_action_without_a_csrf_token_is_refused(dlq: Queue, ann: Client) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(User.objects.get(username="ann"))
    assert strict.post(ticked("ignore"), {"seen": "x", "reason": "because"}).status_code == 403
    assert DiscoveredQueue.objects.get().ignored_at is None


def test_an_id_that_no_row_can_have_is_not_found(ann: Client) -> None:
    assert ann.get(f"{reverse('admin:reprocessing_discoveredqueue_adopt')}?queue=x").status_code == 404


def many(count: int) -> None:
    """Store discovered DLQs that could not be read."""
    scope = DiscoveryScope.objects.create(region="us-east-1")
    arns = [f"arn:aws:sqs:us-east-1:123456789012:old-{number:03}" for number in range(count)]
    DiscoveredQueue.objects.bulk_create(DiscoveredQueue(arn=arn, scope=scope, last_error="No access.") for arn in arns)
    DiscoveredSource.objects.bulk_create(
        DiscoveredSource(dlq_arn=arn, source_arn=arn.replace("old", "new"), kind="queue", scope=scope) for arn in arns
    )


def all_ticked(name: str, page: str) -> str:
    """Return the address to which the form of this page leads if every row is ticked."""
    ids = re.findall(r'name="queue" value="(\d+)"', page)
    return f"{reverse(f'admin:reprocessing_discoveredqueue_{name}')}?{urlencode([('queue', pk) for pk in ids])}"


def test_every_row_of_a_full_page_can_be_ticked_at_once(ann: Client) -> None:
    many(MOST + 2)
    page = ann.get(LIST).content.decode()
    assert "Page 1 of 2" in page
    assert f"Ignored: {MOST} DLQs." in confirm(ann, all_ticked("ignore", page))
    assert "Page 2 of 2" in ann.get(LIST, {"page": "2"}).content.decode()
    assert ann.get(LIST, {"status": "new"}).content.decode().count('name="queue"') == 2


@pytest.mark.soak
def test_a_full_page_with_dlqs_that_cannot_be_added_adds_the_others(dlq: Queue, ann: Client) -> None:
    many(MOST - 1)
    address = all_ticked("adopt", ann.get(LIST).content.decode())
    page = ann.get(address).content.decode()
    assert page.count("cannot be added. No access.") == MOST - 1
    assert f"Added in mode observe: {dlq.name}." in confirm(ann, address)


@pytest.mark.parametrize("name", ["adopt", "ignore", "unignore"])
def test_more_dlqs_than_a_page_shows_are_refused_in_words(ann: Client, name: str) -> None:
    address = f"{reverse(f'admin:reprocessing_discoveredqueue_{name}')}?" + "&".join(
        f"queue={number}" for number in range(MOST + 1)
    )
    says = f"{MOST + 1} DLQs are selected, and one request takes at most {MOST}. Select fewer DLQs in the list."
    assert says in ann.get(address).content.decode()
    answer = ann.post(address, {"seen": "x", "reason": "because"})
    assert (answer.status_code, answer.context["refused"]) == (200, says)
