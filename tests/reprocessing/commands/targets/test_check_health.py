"""What a person asks of targets, and is told of them; nothing is changed by looking, and every change has a name."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pytest_django import Settings

from reprocessing.models import AuditEntry, DeadLetterQueue, HealthCheck, Target
from tests.contract.queues import Queue
from tests.reprocessing.commands.conftest import AddRow, Ask, AskJson
from tests.reprocessing.commands.refusals import refusal
from tests.reprocessing.commands.stock import add_source
from tests.reprocessing.gateways.aws_endpoint import MakeQueue
from tests.reprocessing.web_servers import Server, answering, serving, status

pytestmark = pytest.mark.django_db
DRY = "NOT CHANGED: this was a dry run. With --confirm and --reason"
WHY = ("--confirm", "--by", "ann", "--reason", "it broke")


@pytest.fixture
def queue(make_queue: MakeQueue) -> Queue:
    return make_queue()


@pytest.fixture
def dlq(add_row: AddRow, queue: Queue) -> DeadLetterQueue:
    """A dlq whose one target is a queue that can be asked."""
    row = add_row("orders")
    add_source(row, "shop", url=queue.url)
    return row


@pytest.fixture
def server(settings: Settings) -> Iterator[Server]:
    """A server that is well, and may be asked."""
    with serving(answering(status(200))) as running:
        settings.REDRIVE = {"OUTBOUND_HOSTS": [f"127.0.0.1:{running.port}"]}
        yield running


def kept() -> list[tuple[str, str, float | None, str]]:
    return list(HealthCheck.objects.order_by("id").values_list("kind", "subject", "ceiling", "verdict"))


def test_a_check_is_tried_without_confirm_and_added_with_it(ask: Ask, dlq: DeadLetterQueue, server: Server) -> None:
    url = f"http://127.0.0.1:{server.port}/health"
    assert ask("check_health", "orders", "--http", url).splitlines() == [
        f"{DRY} the check is added. Its result now: healthy; it answered 200",
        "shop: no health checks; messages are sent there whatever its health.",
    ]
    assert (kept(), AuditEntry.objects.count()) == ([], 0)
    said = ask("check_health", "orders", "--http", url, *WHY).splitlines()
    check = HealthCheck.objects.get()
    assert said[:2] == [f"Health check {check.pk} is added.", "shop: healthy, so messages are sent there:"]
    assert said[2].startswith(f"  {check.pk}  {url} answers 200 to 299: healthy, ")
    assert said[3:] == ["      it answered 200"]
    assert kept() == [("http", url, None, "healthy")]
    review = AuditEntry.objects.get()
    assert (review.act, review.by, review.reason, str(review.target)) == ("added", "ann", "it broke", "shop")


def test_depth_is_looked_at_and_says_that_nothing_is_sent(ask: Ask, dlq: DeadLetterQueue, queue: Queue) -> None:
    queue.send("x")
    queue.send("y")
    said = ask("check_health", "orders", "--max-depth", "1", *WHY).splitlines()
    assert said[1] == "shop: NOTHING IS SENT THERE until all checks are healthy:"
    assert said[2].partition("unhealthy,")[0].endswith("holds at most 1 messages: ")
    assert said[3] == "      its depth is 2 messages, above its ceiling of 1"
    ask("check_health", "orders", "--max-depth", "2", *WHY)
    assert kept() == [("depth", "", 2.0, "healthy")]
    assert [one.act for one in AuditEntry.objects.order_by("id")] == ["added", "changed"]


@pytest.mark.parametrize("option", ["--max-depth", "--max-age"])
def test_what_is_no_queue_holds_no_messages(add_row: AddRow, option: str) -> None:
    add_source(add_row("orders"), "https://shop.example.com/hook", kind="http", proof="accepted", watched_by=None)
    assert "is not a queue, so it has no messages" in refusal("check_health", "orders", option, "1", *WHY)
    assert kept() == []


def test_each_look_is_a_new_one(ask: Ask, dlq: DeadLetterQueue, queue: Queue) -> None:
    ask("check_health", "orders", "--max-depth", "0", *WHY)
    queue.send("x")
    assert "unhealthy" in ask("check_health", "orders")
    assert kept() == [("depth", "", 0.0, "unhealthy")]
    assert AuditEntry.objects.count() == 1


def test_a_check_is_removed_with_confirm_alone(ask: Ask, dlq: DeadLetterQueue) -> None:
    ask("check_health", "orders", "--max-depth", "0", *WHY)
    check = str(HealthCheck.objects.get().pk)
    said = ask("check_health", "orders", "--remove", check)
    assert said.startswith(f"{DRY} check {check} is removed.")
    assert len(kept()) == 1
    assert ask("check_health", "orders", "--remove", check, *WHY).splitlines() == [
        f"Health check {check} is removed.",
        "shop: no health checks; messages are sent there whatever its health.",
    ]
    assert (kept(), AuditEntry.objects.count()) == ([], 2)


def test_a_program_reads_the_same(ask_json: AskJson, dlq: DeadLetterQueue) -> None:
    target = Target.objects.get()
    tried = ask_json("check_health", "orders", "--max-depth", "0")
    finding = {"verdict": "healthy", "detail": "its depth is 0 messages"}
    assert tried == {
        "dlq": "orders", "dry_run": True, "added": None, "removed": None, "trial": finding,
        "targets": [{"target": target.arn, "lets_go": True, "checks": []}],
    }  # fmt: skip
    done = ask_json("check_health", "orders", "--max-depth", "0", *WHY)
    check = HealthCheck.objects.get()
    (told,) = done["targets"][0].pop("checks")
    assert done == {
        "dlq": "orders", "dry_run": False, "added": check.pk, "removed": None, "trial": None,
        "targets": [{"target": target.arn, "lets_go": True}],
    }  # fmt: skip
    assert told.pop("checked_at").endswith("Z")
    assert 0 <= told.pop("age") < 30
    assert told == {
        "check_id": check.pk, "target_id": target.pk, "kind": "depth", "subject": "", "ceiling": 0.0,
        "expected_status": None, "every": 10.0, "max_age": 30.0, "counts": True, **finding,
    }  # fmt: skip


def test_of_several_targets_one_is_named(ask: Ask, dlq: DeadLetterQueue, make_queue: MakeQueue) -> None:
    add_source(dlq, "mails", url=make_queue().url)
    said = refusal("check_health", "orders", "--max-depth", "1")
    assert said == "There are several targets. Add --target with one of: mails, shop."
    for named in ("mails", "arn:aws:sqs:us-east-1:000000000000:shop"):
        ask("check_health", "orders", "--max-depth", "1", "--target", named, *WHY)
    assert [str(one.target) for one in HealthCheck.objects.order_by("id")] == ["mails", "shop"]
    assert ask("check_health", "orders").count("healthy, so messages are sent there") == 2
    assert ask("check_health", "orders", "--target", "shop").count("healthy, so messages are sent there") == 1


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (("--http", "http://169.254.169.254/"), "169.254.169.254 is not listed in REDRIVE_OUTBOUND_HOSTS"),
        (("--http", "http://a@b/"), "it carries credentials"),
        (("--http", "http://127.0.0.1/", "--alarm", "x"), "not allowed with argument"),
        (("--http", "http://10.1.2.3/", "--status", "302"), "302 is a redirect, and redirects are not followed"),
        (("--max-depth", "-1"), "not a whole number"),
        (("--max-age", "x"), "not a number"),
        (("--max-age", "1209601"), "not a number"),
        (("--alarm", " "), "it is empty"),
        (("--alarm", "arn:aws:cloudwatch:eu-west-1:111122223333:alarm:a"), "takes the name of the alarm, not its ARN"),
        (("--status", "204"), "--status needs --http URL"),
        (("--remove", "999999"), "no check has the id 999999"),
        (("--target", "nobody"), 'orders has no target named "nobody". It has: shop.'),
        (("--max-depth", "1", "--confirm"), "a change needs a reason"),
        (("--max-depth", "1", "--confirm", "--reason", " "), "it is empty"),
    ],
)
def test_what_cannot_be_done_is_refused_in_a_sentence(
    dlq: DeadLetterQueue, settings: Settings, asked: tuple[str, ...], said: str
) -> None:
    settings.REDRIVE = {"OUTBOUND_HOSTS": ["10.1.2.3"]}
    assert said in refusal("check_health", "orders", *asked)
    assert (kept(), AuditEntry.objects.count()) == ([], 0)


def test_a_check_of_another_dlqs_target_is_not_removed(ask: Ask, dlq: DeadLetterQueue, add_row: AddRow) -> None:
    add_source(add_row("others"), "elsewhere")
    ask("check_health", "orders", "--max-depth", "0", *WHY)
    check = str(HealthCheck.objects.get().pk)
    assert "no check has the id" in refusal("check_health", "others", "--remove", check, *WHY)
    assert len(kept()) == 1


def test_a_dlq_without_targets_says_what_to_do(add_row: AddRow) -> None:
    add_row("orders")
    cure = "Add its source queue: manage.py add_dlq orders --source URL --confirm"
    assert refusal("check_health", "orders") == f"orders has no target yet. {cure}"
