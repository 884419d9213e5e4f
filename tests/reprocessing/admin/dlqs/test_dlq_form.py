from __future__ import annotations

import pytest
from django.test import Client

from reprocessing.domain.lifecycle import LetterState
from reprocessing.models import AuditEntry, DeadLetterQueue, Letter, Source, Target
from reprocessing.models.target import MAX_SECONDS
from reprocessing.pipeline.runs import feed_run
from tests.contract.queues import Queue, redrive_policy
from tests.reprocessing.admin.parking_lot.parked_messages import failure_group, person, post
from tests.reprocessing.admin.site.preview_steps import previewed, saved, sheet
from tests.reprocessing.commands.stock import add_lane, add_letter
from tests.reprocessing.gateways.aws_endpoint import MakeQueue, endpoint  # noqa: F401  a fixture of this module's own

pytestmark = pytest.mark.django_db
ADD = "/admin/reprocessing/deadletterqueue/add/?by=hand"
DAY = 86_400
CONFIGURES = ("view_deadletterqueue", "add_deadletterqueue", "change_deadletterqueue")


@pytest.fixture
def watched(make_queue: MakeQueue) -> Queue:
    """A dlq that one queue names in its redrive policy."""
    found = make_queue(MessageRetentionPeriod="1209600")
    make_queue(RedrivePolicy=redrive_policy(found, 3))
    return found


@pytest.fixture
def ann() -> Client:
    return person("ann", *CONFIGURES)


def _examine(row: DeadLetterQueue) -> str:
    return f"/admin/reprocessing/deadletterqueue/{row.pk}/examine"


@pytest.mark.soak
def test_preview_lists_passed_checks_and_problems_with_fixes(watched: Queue, ann: Client) -> None:
    given = sheet(ann, ADD) | {"name": "orders", "url": watched.url, "advance": "accepted", "do": "look"}
    page = post(ann, ADD, **given)
    assert "<b>ok</b>The URL is that of the expected queue, and no other DLQ has it." in page
    assert "<b>note</b>Capturing hides messages" in page
    assert '<h2 id="preview" tabindex="-1">Preview</h2>' in page
    assert not DeadLetterQueue.objects.exists()


@pytest.mark.soak
def test_preview_is_saved_with_user_and_reason(watched: Queue, ann: Client) -> None:
    given = previewed(ann, ADD, name="orders", url=watched.url, max_attempts=5, rate="off")
    page = post(ann, ADD, **given)
    assert "orders is added. Nothing is redriven yet" in page
    row, target = DeadLetterQueue.objects.get(), Target.objects.get()
    assert (row.name, row.url, row.mode, row.max_attempts, row.waves) == ("orders", watched.url, "manual", 5, True)
    assert (target.rate, target.proof) == (None, "absence")
    assert "Nothing would change" in post(ann, _examine(row), **sheet(ann, _examine(row)), do="look")
    assert list(AuditEntry.objects.values_list("act", "by", "reason", "dlq")) == [("added", "ann", "a test", row.pk)]


@pytest.mark.soak
def test_values_without_preview_are_not_saved(watched: Queue, ann: Client) -> None:
    given = previewed(ann, ADD, name="orders", url=watched.url)
    page = post(ann, ADD, **given | {"max_attempts": 9})
    assert "The effect is no longer what you saw" in page
    assert "Give a reason." in post(ann, ADD, **given | {"reason": ""})
    assert not DeadLetterQueue.objects.exists()


@pytest.mark.parametrize(
    ("field", "value", "why"),
    [
        ("ordering_key", "nonsense", "nonsense"),
        ("public_fields", "order.id\norder.[", "Line 2:"),
        ("search_fields", "order_id=body:id\norder", "Line 2:"),
        ("search_fields", "id2=body:id\nid2=body:x", "id2 is declared twice"),
        ("role_arn", "me", "Not the ARN of an IAM role"),
        ("crontab", "never", "Not a valid schedule"),
        ("rate", "fast", "Enter a number from 0.001 to 1,000,000"),
        ("tenant", "message-id", "it differs in every message"),
        ("max_attempts", "0", "greater than or equal to 1"),
        ("name", "no name", "Use only the letters a to z"),
        ("give_up_after", "0", "greater than or equal to 1"),
        ("give_up_after", f"{MAX_SECONDS + 1}", "less than or equal to 1209600"),
        ("give_up_after", "a day", "Enter a number"),
    ],
)
def test_invalid_values_are_marked_at_their_field(field: str, value: str, why: str, ann: Client) -> None:
    page = post(ann, ADD, **sheet(ann, ADD) | {"name": "orders", "url": "http://127.0.0.1:9/0/x", field: value})
    assert why in page
    assert "Correct the marked fields below" in page


@pytest.mark.soak
def test_unreachable_queue_is_explained(ann: Client) -> None:
    page = post(ann, ADD, **sheet(ann, ADD) | {"name": "orders", "url": "http://127.0.0.1:9/000000000000/nowhere"})
    assert "Nothing was saved." in page
    assert "nowhere" in page


@pytest.mark.soak
def test_all_settings_can_be_changed_also_to_mode_automatic(watched: Queue, ann: Client) -> None:
    saved(ann, ADD, name="orders", url=watched.url)
    row = DeadLetterQueue.objects.get()
    changed = {
        "mode": "automatic",
        "public_fields": "order.id\ncustomer",
        "search_fields": "order_id=body:order.id\n",
        "interval": 30,
        "waves": "no",
        "window": 7200,
    }
    page = saved(ann, _examine(row), **changed)
    assert "orders is changed. Beat and a worker redrive it automatically, from the next poll on" in page
    assert "No beat was seen in this database yet: nothing is polled." in page
    row.refresh_from_db()
    assert (row.mode, row.public_fields, row.waves) == ("automatic", ["order.id", "customer"], False)
    assert row.search_fields == ["order_id=body:order.id"]
    assert row.interval
    assert (row.interval.every, Target.objects.get().window) == (30, 7200)
    review = AuditEntry.objects.latest("pk")
    assert review.before == {
        "orders.mode": "manual", "orders.public_fields": [], "orders.interval": None, "orders.waves": True,
        "orders.search_fields": [],
        f"{Target.objects.get()}.window": 120.0,
    }  # fmt: skip


@pytest.mark.soak
def test_a_change_to_manual_links_to_the_run_that_still_sends(watched: Queue, ann: Client) -> None:
    saved(ann, ADD, name="orders", url=watched.url)
    DeadLetterQueue.objects.update(mode="automatic")
    row, source = DeadLetterQueue.objects.get(), Source.objects.get()
    run = feed_run.automatic_run(row)
    add_letter(source, LetterState.WAITING, run=run, lane=add_lane(source, run=run))
    page = saved(ann, _examine(row), mode="manual")
    link = f'<a href="/admin/reprocessing/run/{run.pk}/change/">pause the run</a>'
    assert (
        "orders is changed. New messages are no longer redriven automatically. "
        f"The run {run.name} still redrives the 1 message that it has. To stop this, {link}."
    ) in page
    Letter.objects.update(state="delivered", finished_at=run.started_at)
    DeadLetterQueue.objects.update(mode="automatic")
    assert "New messages are no longer redriven automatically: plan a run." in saved(ann, _examine(row), mode="manual")


def test_give_up_after_has_a_default_and_can_be_set_or_emptied(watched: Queue, ann: Client) -> None:
    assert sheet(ann, ADD)["give_up_after"] == DAY
    saved(ann, ADD, name="orders", url=watched.url, give_up_after="7200")
    row = DeadLetterQueue.objects.get()
    assert (row.give_up_after, sheet(ann, _examine(row))["give_up_after"]) == (7_200, 7_200)
    given = previewed(ann, _examine(row), give_up_after="")
    assert "orders is changed." in post(ann, _examine(row), **given)
    row.refresh_from_db()
    assert row.give_up_after is None
    assert AuditEntry.objects.latest("pk").before == {"orders.give_up_after": 7_200.0}


@pytest.mark.soak
def test_second_editor_is_told_who_was_first(watched: Queue) -> None:
    ann, ben = person("ann", *CONFIGURES), person("ben", *CONFIGURES)
    saved(ann, ADD, name="orders", url=watched.url)
    row = DeadLetterQueue.objects.get()
    mine = previewed(ben, _examine(row), max_attempts=4)
    saved(ann, _examine(row), max_attempts=7)
    for act, more in (
        ("exported", {}), ("stopped", {}), ("changed", {"before": {"rule": "one that is gone"}}),
        ("changed", {"group": failure_group(row.sources.get())}), ("changed", {"before": {"native_redrive": True}}),
    ):  # fmt: skip
        AuditEntry.objects.create(act=act, dlq=row, by="bob", reason="another thing", **more)
    page = post(ben, _examine(row), **mine)
    assert "Somebody else changed orders after you opened this page: ann (&quot;a test&quot;)" in page
    row.refresh_from_db()
    assert row.max_attempts == 7
