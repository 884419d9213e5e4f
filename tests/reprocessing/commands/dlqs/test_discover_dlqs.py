"""Discovery lists what is somebody's DLQ, goes on where it was killed, and adds only what a person names."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import replace
from io import StringIO
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.contrib.auth.models import Group
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection
from pytest_django.fixtures import Settings

from reprocessing import conf, tasks
from reprocessing.domain.dlqs.discovery import Scope
from reprocessing.domain.message.arn import resource_name
from reprocessing.gateways.sqs import Depth, QueueAddress, QueueFacts, RedrivePolicy
from reprocessing.gateways.sqs.queue_attributes import describe_with_depth
from reprocessing.models import AuditEntry, DeadLetterQueue, DiscoveredQueue, DiscoveryScope, Incident, Policy
from reprocessing.models.discovery import DiscoveryStage
from reprocessing.pipeline.dlqs import discover, read_scope
from reprocessing.pipeline.dlqs.discover import ScanResult
from reprocessing.store import rows
from reprocessing.store.dlqs import discovered_queues, discovery_scopes
from tests.contract.endpoints import Endpoint, Sandbox
from tests.contract.queues import Queue, redrive_policy
from tests.reprocessing.commands.conftest import Ask, AskJson
from tests.reprocessing.commands.refusals import refusal
from tests.reprocessing.gateways.aws_endpoint import MakeQueue

pytestmark = pytest.mark.django_db(transaction=True)
HERE = Scope("us-east-1")


@pytest.fixture(autouse=True)
def _empty_account(endpoint: Endpoint) -> None:
    for url in endpoint.client.list_queues().get("QueueUrls", []):
        endpoint.client.delete_queue(QueueUrl=url)


class Shop:
    """A DLQ with a message, and two queues whose messages fail into it."""

    def __init__(self, make_queue: MakeQueue, *, fifo: bool = False, sources: int = 2) -> None:
        self.dlq = make_queue(fifo=fifo, MessageRetentionPeriod="1209600")
        self.sources = [make_queue(fifo=fifo, RedrivePolicy=redrive_policy(self.dlq)) for _ in range(sources)]


@pytest.fixture
def shop(make_queue: MakeQueue) -> Shop:
    made = Shop(make_queue)
    made.dlq.send()
    return made


def found(ask_json: AskJson, *arguments: str) -> dict[str, Any]:
    return {dlq["arn"]: dlq for dlq in ask_json("discover_dlqs", *arguments)["dlqs"]}


def scan(stop: bool = False) -> ScanResult:  # noqa: FBT002
    key = discovery_scopes.add_scope(HERE)
    return discover.scan_scope(key, conf.current(), dice=lambda: 0.0, stop=lambda: stop)


def test_a_dlq_of_two_sources_is_one_row_with_its_depth_retention_and_risk(ask_json: AskJson, shop: Shop) -> None:
    listed = found(ask_json)
    assert list(listed) == [shop.dlq.arn]
    dlq = listed[shop.dlq.arn]
    assert (dlq["visible"], dlq["in_flight"], dlq["retention"]) == (1, 0, 1_209_600)
    assert [source["arn"] for source in dlq["sources"]] == sorted(source.arn for source in shop.sources)
    assert dlq["risk"] == "drops a message 14 days after it was sent; age not known"
    assert dlq["status"] == "new"


def test_the_table_says_what_was_found_and_when(ask: Ask, shop: Shop) -> None:
    told = ask("discover_dlqs")
    assert "1 DLQ, 1 new." in told
    assert "the service's own account, us-east-1: scanned 20" in told
    assert ask("discover_dlqs", "--stored").splitlines()[:2] == told.splitlines()[:2]


def test_a_fifo_dlq_and_a_dlq_of_itself_are_listed_with_their_sources(ask_json: AskJson, make_queue: MakeQueue) -> None:
    fifo, alone = Shop(make_queue, fifo=True, sources=1), make_queue()
    alone.set(RedrivePolicy=redrive_policy(alone))
    other = make_queue(RedrivePolicy=redrive_policy(alone))
    listed = found(ask_json)
    assert {arn: sorted(source["arn"] for source in dlq["sources"]) for arn, dlq in listed.items()} == {
        fifo.dlq.arn: [fifo.sources[0].arn], alone.arn: sorted([alone.arn, other.arn]),
    }  # fmt: skip


def test_dlqs_of_each_other_are_both_listed(ask_json: AskJson, make_queue: MakeQueue) -> None:
    first = make_queue()
    second = make_queue(RedrivePolicy=redrive_policy(first))
    first.set(RedrivePolicy=redrive_policy(second))
    assert sorted(found(ask_json)) == sorted([first.arn, second.arn])


def test_a_dlq_that_was_deleted_stays_listed_with_the_reason_while_a_policy_names_it(
    ask_json: AskJson, shop: Shop
) -> None:
    arn = shop.dlq.arn
    shop.dlq.client.delete_queue(QueueUrl=shop.dlq.url)
    dlq = found(ask_json)[arn]
    assert dlq["visible"] is None
    assert "If it was deleted, correct the settings of its sources" in dlq["last_error"]
    for source in shop.sources:
        source.set(RedrivePolicy="")
    assert found(ask_json) == {}


def test_a_queue_that_is_deleted_while_it_is_read_is_left_out(ask_json: AskJson, shop: Shop, sandbox: Sandbox) -> None:
    gone = {"status": 400, "code": "AWS.SimpleQueueService.NonExistentQueue", "message": "It is gone."}
    sandbox.plan({"kind": "error", "action": "GetQueueAttributes", "queue": shop.sources[0].name, **gone})
    assert [source["arn"] for source in found(ask_json)[shop.dlq.arn]["sources"]] == [shop.sources[1].arn]


def test_a_queue_that_may_not_be_read_has_the_cure_and_sqs_is_asked_for_the_sources_of_the_others(
    ask_json: AskJson, shop: Shop, sandbox: Sandbox
) -> None:
    denied = {"status": 403, "code": "AccessDenied", "message": "No."}
    denied_source = shop.sources[0].arn
    sandbox.plan({"kind": "error", "action": "GetQueueAttributes", "queue": shop.sources[0].name, **denied})
    assert len(found(ask_json)[shop.dlq.arn]["sources"]) == 2
    assert "Allow sqs:GetQueueAttributes on it" in DiscoveredQueue.objects.get(arn=denied_source).last_error


def test_an_account_that_cannot_be_listed_is_said_with_the_cure_and_keeps_what_was_found(
    ask_json: AskJson, shop: Shop, sandbox: Sandbox
) -> None:
    found(ask_json)
    sandbox.plan({"kind": "error", "action": "ListQueues", "status": 403, "code": "AccessDenied", "message": "No."})
    assert "could not be listed" in refusal("discover_dlqs")
    assert "Allow sqs:ListQueues on it" in DiscoveryScope.objects.get().unread[0][1]
    assert [dlq.arn for dlq in discovered_queues.list_dlqs()] == [shop.dlq.arn]


@pytest.mark.soak
def test_throttled_requests_are_repeated_until_every_queue_is_read(
    ask_json: AskJson, shop: Shop, sandbox: Sandbox
) -> None:
    throttled = {"status": 400, "code": "RequestThrottled", "message": "Slow down.", "times": 4}
    sandbox.plan({"kind": "error", "action": "GetQueueAttributes", **throttled})
    assert len(found(ask_json)[shop.dlq.arn]["sources"]) == 2
    assert DiscoveryScope.objects.get().unread == []


def test_a_prefix_lists_only_dlqs_with_this_name_but_all_of_their_sources(
    ask_json: AskJson, shop: Shop, make_queue: MakeQueue
) -> None:
    Shop(make_queue)
    listed = found(ask_json, "--prefix", shop.dlq.name)
    assert list(listed) == [shop.dlq.arn]
    assert len(listed[shop.dlq.arn]["sources"]) == 2


def test_a_dlq_whose_sources_may_not_be_listed_stays_with_its_sources(
    ask_json: AskJson, shop: Shop, sandbox: Sandbox
) -> None:
    first = found(ask_json, "--prefix", shop.dlq.name)
    denied = {"status": 403, "code": "AccessDenied", "message": "No."}
    sandbox.plan({"kind": "error", "action": "ListDeadLetterSourceQueues", "queue": shop.dlq.name, **denied})
    again = found(ask_json, "--prefix", shop.dlq.name)
    assert again[shop.dlq.arn]["sources"] == first[shop.dlq.arn]["sources"]


def test_a_scope_that_was_never_scanned_cannot_be_forgotten(shop: Shop) -> None:
    told = refusal("discover_dlqs", "--prefix", f"{shop.dlq.name}-other", "--forget", "--confirm")
    assert "Never scanned: " in told


def test_a_tag_lists_only_dlqs_that_have_it(ask_json: AskJson, shop: Shop, make_queue: MakeQueue) -> None:
    Shop(make_queue)
    shop.dlq.client.tag_queue(QueueUrl=shop.dlq.url, Tags={"team": "orders", "stage": "prod"})
    assert list(found(ask_json, "--tag", "team=orders")) == [shop.dlq.arn]
    assert found(ask_json, "--tag", "team=orders", "--tag", "stage=test") == {}


def test_a_discovery_that_was_stopped_goes_on_and_reads_no_queue_twice(
    shop: Shop, make_queue: MakeQueue, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_queue()
    monkeypatch.setattr(discover, "PAGE", 2)
    before = len(sandbox.calls(action="GetQueueAttributes"))
    assert scan(stop=True) == ScanResult.STOPPED
    assert DiscoveredQueue.objects.count() == 2
    assert DiscoveryScope.objects.get().stage == DiscoveryStage.QUEUES
    assert scan() == ScanResult.COMPLETE
    read = [call["queue"] for call in sandbox.calls(action="GetQueueAttributes")[before:]]
    assert len(read) == len(set(read)) == 4
    assert DiscoveryScope.objects.get().stage == ""


def test_only_one_process_scans_a_scope_and_a_killed_one_loses_it_after_its_lease(shop: Shop) -> None:
    begun = discovery_scopes.begin_scan(discovery_scopes.add_scope(HERE))
    assert begun is not None
    assert scan() == ScanResult.BUSY
    DiscoveryScope.objects.update(leased_until=rows.value(type(begun.began_at), "SELECT redrive_now() AS now", {}))
    assert scan() == ScanResult.COMPLETE
    assert discovery_scopes.keep_lease(begun) is False
    assert discovery_scopes.advance(begun, DiscoveryStage.RULES) is False
    assert discovery_scopes.end_scan(begun, every=1) is False


def test_the_first_scan_notifies_nobody_and_later_ones_announce_each_new_dlq_once(
    shop: Shop, make_queue: MakeQueue
) -> None:
    scan()
    assert Incident.objects.count() == 0
    later = Shop(make_queue)
    scan()
    scan()
    (incident,) = Incident.objects.all()
    assert (incident.kind, incident.subject) == ("dlq_discovered", f"queue:{later.dlq.arn}")
    assert incident.facts == {
        "queue": later.dlq.name, "account": "000000000000", "region": "us-east-1", "sources": 2, "messages": 0,
    }  # fmt: skip


def test_an_ignored_dlq_is_not_reported_again_even_if_it_was_gone_meanwhile(
    ask: Ask, ask_json: AskJson, shop: Shop
) -> None:
    found(ask_json)
    assert "This was a dry run" in ask("discover_dlqs", "--ignore", shop.dlq.name)
    assert found(ask_json)[shop.dlq.arn]["status"] == "new"
    ask("discover_dlqs", "--ignore", shop.dlq.name, "--reason", "a test queue", "--confirm")
    policy = redrive_policy(shop.dlq)
    for source in shop.sources:
        source.set(RedrivePolicy="")
    assert found(ask_json) == {}
    shop.sources[0].set(RedrivePolicy=policy)
    assert found(ask_json)[shop.dlq.arn]["status"] == "ignored"
    assert Incident.objects.count() == 0
    (entry,) = AuditEntry.objects.all()
    assert (entry.reason, entry.after) == ("a test queue", {"discovered_queues": [shop.dlq.arn], "ignored": True})
    ask("discover_dlqs", "--unignore", shop.dlq.arn, "--confirm")
    assert found(ask_json)[shop.dlq.arn]["status"] == "new"


def test_adopting_is_a_dry_run_then_adds_the_dlq_in_mode_observe_with_its_sources(
    ask: Ask, ask_json: AskJson, shop: Shop
) -> None:
    found(ask_json)
    assert "to be added as" in ask("discover_dlqs", "--adopt", shop.dlq.name)
    assert DeadLetterQueue.objects.count() == 0
    ask("discover_dlqs", "--adopt", shop.dlq.name, "--reason", "found", "--confirm")
    row = DeadLetterQueue.objects.get()
    assert (row.name, row.mode, row.arn, row.depth_visible) == (shop.dlq.name, "observe", shop.dlq.arn, 1)
    assert sorted(row.sources.values_list("arn", flat=True)) == sorted(source.arn for source in shop.sources)
    assert AuditEntry.objects.get().reason == "found"
    assert found(ask_json)[shop.dlq.arn]["watched_as"] == row.name
    assert "It is already registered as" in refused_adoption(shop.dlq)


def test_all_new_dlqs_are_adopted_at_once_with_their_policy_and_team(
    ask: Ask, ask_json: AskJson, shop: Shop, make_queue: MakeQueue
) -> None:
    found(ask_json)
    other = Shop(make_queue)
    ignored = Shop(make_queue)
    found(ask_json)
    ask("discover_dlqs", "--ignore", ignored.dlq.name, "--confirm")
    Policy.objects.create(name="standard", settings={"mode": "manual", "max_attempts": 7})
    payments = Group.objects.create(name="payments")
    ask("discover_dlqs", "--adopt-new", "--policy", "standard", "--team", "payments", "--confirm")
    rows = DeadLetterQueue.objects.order_by("name")
    assert {row.name for row in rows} == {shop.dlq.name, other.dlq.name}
    assert {(row.mode, row.max_attempts, row.policy.name) for row in rows if row.policy} == {("observe", 7, "standard")}
    assert {row.pk for row in payments.dlqs.all()} == {row.pk for row in rows}
    assert "No new DLQ was found." in refusal("discover_dlqs", "--adopt-new")


def test_settings_of_added_dlqs_are_refused_where_nothing_is_added() -> None:
    assert "Add: --adopt NAME, or --adopt-new" in refusal("discover_dlqs", "--stored", "--policy", "standard")


def refused_adoption(queue: Queue) -> str:
    out = StringIO()
    with pytest.raises(CommandError, match="1 of 1 DLQs cannot be added"):
        call_command("discover_dlqs", "--adopt", queue.name, "--confirm", stdout=out)
    return out.getvalue()


def test_an_unknown_name_and_a_bad_tag_are_refused_with_what_to_type() -> None:
    assert "No DLQ named orders was found. To search AWS, run: manage.py discover_dlqs" in refusal(
        "discover_dlqs", "--adopt", "orders"
    )
    assert "is not a tag. Example: team=orders" in refusal("discover_dlqs", "--tag", "orders")


def test_a_daily_discovery_is_due_at_once_then_a_day_later_until_it_ends(ask: Ask, shop: Shop) -> None:
    ask("discover_dlqs", "--daily")
    assert discovery_scopes.all_scopes() == []
    ask("discover_dlqs", "--daily", "--confirm")
    (due,) = discovery_scopes.due_scopes()
    scan()
    assert discovery_scopes.due_scopes() == []
    row = DiscoveryScope.objects.get(pk=due)
    assert row.next_at is not None
    assert row.scanned_at is not None
    assert round((row.next_at - row.scanned_at).total_seconds()) == 86_400
    ask("discover_dlqs", "--no-daily", "--confirm")
    assert DiscoveryScope.objects.get(pk=due).next_at is None


def test_forgetting_a_scope_deletes_what_was_found_but_leaves_it_to_another_discovery_of_the_account(
    ask: Ask, ask_json: AskJson, shop: Shop
) -> None:
    found(ask_json, "--prefix", shop.dlq.name)
    ask("discover_dlqs", "--ignore", shop.dlq.name, "--confirm")
    discovery_scopes.add_scope(HERE)
    ask("discover_dlqs", "--prefix", shop.dlq.name, "--forget", "--confirm")
    assert [queue.ignored_at is None for queue in DiscoveredQueue.objects.all()] == [False]
    ask("discover_dlqs", "--region", "us-east-1", "--forget", "--confirm")
    assert DiscoveredQueue.objects.count() == 0


def test_the_printed_policy_has_exactly_the_calls_of_discovery_in_its_regions(ask_json: AskJson) -> None:
    role = "arn:aws:iam::111122223333:role/redrive"
    discovery_scopes.add_scope(Scope("eu-west-1", role))
    discovery_scopes.add_scope(Scope("us-east-1", role, tags={"team": "orders"}))
    printed = ask_json("iam_policy", "--discover")
    assert [one["Action"] for one in printed["policy"]["Statement"]] == [["sts:AssumeRole"]]
    actions: dict[str, list[str]] = {}
    for statement in printed["roles"][role]["Statement"]:
        region = statement["Condition"]["StringEquals"]["aws:RequestedRegion"]
        actions.setdefault(region, []).extend(statement["Action"])
    everywhere = [
        "cloudwatch:GetMetricData", "events:ListEventBuses", "events:ListRules", "events:ListTargetsByRule",
        "lambda:ListFunctionEventInvokeConfigs", "lambda:ListFunctions", "sns:GetSubscriptionAttributes",
        "sns:ListSubscriptions", "sqs:GetQueueAttributes", "sqs:GetQueueUrl", "sqs:ListDeadLetterSourceQueues",
        "sqs:ListQueues",
    ]  # fmt: skip
    assert {region: sorted(some) for region, some in actions.items()} == {
        "eu-west-1": everywhere, "us-east-1": sorted([*everywhere, "sqs:ListQueueTags"]),
    }  # fmt: skip


def test_beat_s_task_scans_due_scopes_alone(ask: Ask, shop: Shop) -> None:
    idle = discovery_scopes.add_scope(Scope("us-east-1", prefix="none"))
    ask("discover_dlqs", "--region", "us-east-1", "--daily", "--confirm")
    tasks.discover_dlqs()
    scanned = dict(DiscoveryScope.objects.values_list("pk", "scanned_at"))
    assert scanned.pop(idle) is None
    assert None not in scanned.values()
    assert DiscoveredQueue.objects.filter(reported_at__isnull=False).count() == 1


def test_the_service_s_own_queues_are_no_sources(ask_json: AskJson, shop: Shop, settings: Settings) -> None:
    settings.REDRIVE = {"OWN_QUEUES": tuple(source.url for source in shop.sources)}
    assert found(ask_json) == {}


def test_a_dlq_in_another_account_is_listed_with_the_way_to_read_it(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = "arn:aws:sqs:us-east-1:999988887777:orders-dlq"

    def described(address: QueueAddress) -> tuple[QueueFacts, Depth]:
        facts, depth = describe_with_depth(address)
        return (replace(facts, redrive=RedrivePolicy(elsewhere, 3)) if facts.redrive else facts), depth

    monkeypatch.setattr(read_scope, "describe_with_depth", described)
    scan()
    dlq = DiscoveredQueue.objects.get(arn=elsewhere)
    assert "If it is in another account, run: manage.py discover_dlqs" in dlq.last_error
    assert dlq.visible is None


@pytest.mark.long
@pytest.mark.soak
def test_a_discovery_killed_in_the_middle_is_completed_by_the_next_command(
    ask_json: AskJson, shop: Shop, make_queue: MakeQueue, sandbox: Sandbox
) -> None:
    for _ in range(250):
        make_queue()
    sandbox.plan({"kind": "delay", "action": "GetQueueAttributes", "milliseconds": 40})
    code = (
        "import django; django.setup(); from reprocessing import conf; from reprocessing.pipeline.dlqs import discover;"
        "from reprocessing.store.dlqs import discovery_scopes as s;"
        "from reprocessing.domain.dlqs.discovery import Scope;"
        "discover.PAGE = 20; discover.scan_scope(s.add_scope(Scope('us-east-1')), conf.current(), dice=lambda: 0.5)"
    )
    name = connection.settings_dict["NAME"]
    url = urlsplit(os.environ["DATABASE_URL"])._replace(path=f"/{name}").geturl()
    child = subprocess.Popen([sys.executable, "-c", code], env={**os.environ, "DATABASE_URL": url})
    while DiscoveredQueue.objects.count() == 0 and child.poll() is None:
        time.sleep(0.02)
    child.kill()
    child.wait()
    stored = {resource_name(arn) for arn in DiscoveredQueue.objects.values_list("arn", flat=True)}
    assert 0 < len(stored) < 253
    assert DiscoveryScope.objects.get().stage == DiscoveryStage.QUEUES
    arn, asked = shop.dlq.arn, len(sandbox.calls(action="GetQueueAttributes"))
    assert len(found(ask_json)[arn]["sources"]) == 2
    assert DiscoveredQueue.objects.count() == 253
    assert stored & {call["queue"] for call in sandbox.calls(action="GetQueueAttributes")[asked:]} == set()
