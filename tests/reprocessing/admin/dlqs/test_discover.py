"""The page Discover reads the database alone; ticked DLQs are added or ignored after a page that shows the effect."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from reprocessing import conf
from reprocessing.domain.dlqs.discovery import Scope
from reprocessing.models import AuditEntry, DeadLetterQueue, DiscoveredQueue, DiscoveryScope
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
def test_who_may_not_add_dlqs_sees_the_list_and_no_deed(dlq: Queue, name: str) -> None:
    viewer = person("view_discoveredqueue")
    assert "You may not add DLQs" in viewer.get(LIST).content.decode()
    assert viewer.get(ticked(name)).status_code == 403
    assert viewer.post(ticked(name), {"seen": "x", "reason": "because"}).status_code == 403


def test_a_deed_without_a_csrf_token_is_refused(dlq: Queue, ann: Client) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(User.objects.get(username="ann"))
    assert strict.post(ticked("ignore"), {"seen": "x", "reason": "because"}).status_code == 403
    assert DiscoveredQueue.objects.get().ignored_at is None


@pytest.mark.parametrize("query", ["queue=x", "&".join(f"queue={n}" for n in range(26))])
def test_ids_that_no_row_has_and_too_many_ids_are_not_found(ann: Client, query: str) -> None:
    assert ann.get(f"{reverse('admin:reprocessing_discoveredqueue_adopt')}?{query}").status_code == 404
