"""A DLQ is added from its URL or ARN alone: the other values are proposed, each with its reason."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import pytest
import yaml
from django.contrib.auth.models import Group
from django.db import connection
from django.test import Client
from pytest_django import Settings

from reprocessing.admin.dlqs.dlq_form import _WITHOUT_DEFAULT, DlqForm
from reprocessing.domain.configuration.keys import Kind
from reprocessing.gateways import sqs
from reprocessing.models import AuditEntry, DeadLetterQueue, ManagedObject, Target
from reprocessing.models.discovery import DiscoveredQueue, DiscoveredSource, DiscoveryScope
from reprocessing.pipeline.configuration.export_text import export_part
from reprocessing.store.configuration import state
from tests.contract.queues import Queue, redrive_policy
from tests.reprocessing.admin.parking_lot.parked_messages import person, post
from tests.reprocessing.admin.site.preview_steps import saved
from tests.reprocessing.gateways.aws_endpoint import MakeQueue, endpoint  # noqa: F401  an autouse fixture

pytestmark = pytest.mark.django_db
ADD = "/admin/reprocessing/deadletterqueue/add/"
HAND = f"{ADD}?by=hand"
CONFIGURES = ("view_deadletterqueue", "add_deadletterqueue", "change_deadletterqueue")


@pytest.fixture
def ann() -> Client:
    return person("ann", *CONFIGURES)


@pytest.fixture
def watched(make_queue: MakeQueue) -> Queue:
    """A dlq that one queue names in its redrive policy, after three receives."""
    found = make_queue(MessageRetentionPeriod="1209600")
    make_queue(RedrivePolicy=redrive_policy(found, 3), VisibilityTimeout="20")
    return found


def proposed(client: Client, **typed: str) -> Any:  # noqa: ANN401  Django's answer
    """The page after the first step."""
    client.handler.enforce_csrf_checks = False
    return client.post(ADD, {"do": "propose", **typed})


def reasons(page: str) -> dict[str, tuple[str, str]]:
    """By the label of the field, the proposed value and why; of the first object that has the field."""
    found: dict[str, tuple[str, str]] = {}
    for row in re.findall(r'<tr><td>(.*?)</td><td>(.*?)</td><td class="why">(.*?)</td></tr>', page):
        field, value, why = (unescape(re.sub(r"<[^>]+>", "", cell)) for cell in row)
        found.setdefault(field, (value, why))
    return found


def confirmed(client: Client, answer: Any) -> str:  # noqa: ANN401  Django's answer
    """The page after the second click: the form as it was shown, with a reason."""
    form = answer.context["form"]
    given = {name: form[name].value() for name in form.fields if form[name].value() is not None}
    return post(client, ADD, **given | {"do": "write", "seen": answer.context["look"].seen, "reason": "a test"})


@pytest.mark.soak
@pytest.mark.parametrize("named", ["url", "arn"])
def test_two_clicks_add_a_dlq(named: str, watched: Queue, ann: Client) -> None:
    answer = proposed(ann, url=getattr(watched, named))
    assert not DeadLetterQueue.objects.exists()
    assert len(answer.content) < 120 * 1024
    assert f"{watched.name} is added." in confirmed(ann, answer)
    row, target = DeadLetterQueue.objects.get(), Target.objects.get()
    assert (row.name, row.url, row.mode, row.max_attempts) == (watched.name, watched.url, "manual", 3)
    assert (target.proof, target.window, target.rate) == ("absence", 80.0, 10.0)
    assert list(AuditEntry.objects.values_list("act", "by", "reason")) == [("added", "ann", "a test")]


def test_each_proposal_has_its_reason(watched: Queue, ann: Client) -> None:
    found = reasons(proposed(ann, url=watched.url).content.decode())
    assert found["Source queue"][1] == "Its redrive policy names this DLQ, after 3 receives (maxReceiveCount)."
    assert found["Ordering key"][0] == "none"
    assert found["Ordering key"][1].startswith("It is a standard queue, which keeps no order.")
    assert found["Return window (s)"] == (
        "80",
        "Its visibility timeout (20 s) times maxReceiveCount + 1 (4): a failed message may take so long to come back.",
    )
    assert found["Retention (s)"][1].startswith("SQS reports it: a message is deleted 14 days after its first send")
    assert found["Rate (messages/s)"] == (
        "10", "The default, because nothing is known about its consumer. Sending starts at a tenth of it.",
    )  # fmt: skip
    assert {why for _, why in found.values() if not why} == set()


def test_a_fifo_queue_gets_the_message_group_as_key_and_the_reason(make_queue: MakeQueue, ann: Client) -> None:
    dlq = make_queue(fifo=True)
    make_queue(fifo=True, RedrivePolicy=redrive_policy(dlq, 2))
    for number in range(20):
        dlq.send_group("a", f"m-{number}")
    found = reasons(proposed(ann, url=dlq.url).content.decode())
    assert found["Ordering key"] == (
        "system:MessageGroupId",
        "It is a FIFO queue: the messages of a group stay in order.",
    )
    assert found["Next message"][1] == "SQS keeps the order of a message group."
    assert found["Rate (messages/s)"][1].endswith(
        "Sending starts at a tenth of it. The DLQ's 20 messages take 2 s or longer."
    )
    assert dlq.counts().visible == 20  # nothing was received


@pytest.mark.soak
def test_sections_are_closed_except_those_that_a_problem_names(watched: Queue, ann: Client) -> None:
    parts = {part.heading: part.is_open for part in proposed(ann, url=watched.url).context["parts"]}
    assert {heading for heading, is_open in parts.items() if is_open} == set()
    ann.handler.enforce_csrf_checks = False
    again = {"name": "orders", "url": watched.url, "mode": "manual", "rate": "off", "max_attempts": "5", "do": "look"}
    answer = ann.post(HAND, {**_defaults(ann), **again})
    parts = {part.heading: part for part in answer.context["parts"]}
    assert [heading for heading, part in parts.items() if part.is_open] == [
        "Outcome and rate, for all targets of the DLQ"
    ]
    assert {heading: part.differing for heading, part in parts.items() if part.differing} == {
        "Attempts": ["Max attempts"], "Outcome and rate, for all targets of the DLQ": ["Rate (messages/s)"],
    }  # fmt: skip


def _defaults(client: Client) -> dict[str, Any]:
    form = client.get(HAND).context["form"]
    return {name: form[name].value() for name in form.fields if form[name].value() not in (None, [])}


def test_the_form_that_is_filled_in_by_hand_marks_nothing_and_opens_its_first_section(ann: Client) -> None:
    parts = ann.get(HAND).context["parts"]
    assert [part.heading for part in parts if part.is_open] == ["Queue"]
    assert [part.differing for part in parts if part.differing] == []
    assert all(part.folds for part in parts)


def test_every_field_says_its_default() -> None:
    silent = [
        name for name, field in DlqForm.base_fields.items()
        if name not in {*_WITHOUT_DEFAULT, "opened", "reason"} and "Default" not in str(field.help_text)
    ]  # fmt: skip
    assert silent == []


@pytest.mark.soak
def test_the_yaml_is_what_an_export_writes_after_saving(watched: Queue, ann: Client) -> None:
    answer = proposed(ann, url=watched.url)
    shown = answer.context["look"].yaml
    assert yaml.safe_load(shown)["dlqs"] == {
        watched.name: {"url": watched.url, "sources": {source_arn(watched): "itself"}}
    }
    confirmed(ann, answer)
    now = state.read_state()
    assert export_part({Kind.TARGET: now[Kind.TARGET], Kind.DLQ: now[Kind.DLQ]}) == shown
    assert shown in unescape(answer.content.decode())


def source_arn(dlq: Queue) -> str:
    (url,) = dlq.client.list_dead_letter_source_queues(QueueUrl=dlq.url)["queueUrls"]
    return Queue(dlq.client, url).arn


@pytest.mark.soak
def test_the_yaml_of_changed_settings_is_what_an_export_writes_after_saving(watched: Queue, ann: Client) -> None:
    given = {
        "name": "orders", "url": watched.url, "rate": "off", "max_attempts": 5, "interval": 30, "waves": "no",
        "masked_fields": "card\nemail", "breaker_threshold": 9, "ramp_from": "off", "give_up_after": "", "burst": 3,
        "kind": "celery", "strips_eta": "yes", "ordering_key": "attribute:customer",
    }  # fmt: skip
    ann.handler.enforce_csrf_checks = False
    shown = ann.post(HAND, {**_defaults(ann), **given, "do": "look"}).context["look"].yaml
    saved(ann, HAND, **given)
    now = state.read_state()
    assert export_part({Kind.TARGET: now[Kind.TARGET], Kind.DLQ: now[Kind.DLQ]}) == shown
    change = f"/admin/reprocessing/deadletterqueue/{DeadLetterQueue.objects.get().pk}/examine"
    form = ann.get(change).context["form"]
    same = {name: form[name].value() for name in form.fields if form[name].value() is not None}
    assert ann.post(change, {**same, "max_attempts": 6, "do": "look"}).context["look"].yaml == shown.replace(
        "max_attempts: 5", "max_attempts: 6"
    )


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("", "This field is required."), ("orders-dlq", "is not the URL of a queue"),
        ("ftp://sqs.eu-west-1.amazonaws.com/1/q", "is not the URL of a queue"),
        ("https://sqs.eu-west-1.amazonaws.com", "is not the URL of a queue"),
        ("https://me:secret@sqs.eu-west-1.amazonaws.com/1/q", "contains credentials"),
        ("https://[::1/1/q", "is not a URL"), ("javascript:alert(1)", "is not the URL of a queue"),
        ("arn:aws:sns:eu-west-1:111122223333:orders", "This is an SNS topic."),
        ("arn:aws:lambda:eu-west-1:111122223333:function:ship", "This is a Lambda function."),
        ("arn:aws:sqs:eu-west-1:111122223333", "is not the URL of a queue"), ("x" * 3_000, "at most 2048 characters"),
        ("<script>alert(1)</script>", "is not the URL of a queue"),
    ],
    ids=["empty", "name", "scheme", "no-queue", "credentials", "host", "script", "topic", "function", "no-name", "long",
         "markup"],
)  # fmt: skip
def test_what_is_no_queue_is_refused_at_its_field(url: str, why: str, ann: Client) -> None:
    page = proposed(ann, url=url).content.decode()
    assert why in unescape(page)
    assert 'name="url"' in page
    assert "<script>alert" not in page
    assert "me:secret@" not in page.replace('value="https://me:secret@', "")


def test_a_role_that_is_none_is_refused_at_its_field(watched: Queue, ann: Client) -> None:
    assert "Not the ARN of an IAM role" in proposed(ann, url=watched.url, role_arn="admin").content.decode()


@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.1:9/000000000000/orders-dlq", "arn:aws:sqs:us-east-1:999988887777:orders-dlq"],
    ids=["unreachable", "another-account"],
)
def test_a_queue_that_cannot_be_read_leaves_the_form_to_be_filled_in_by_hand(url: str, ann: Client) -> None:
    answer = proposed(ann, url=url)
    page = answer.content.decode()
    assert "Nothing was saved." in page
    assert re.search(r"(GetQueueAttributes|GetQueueUrl) failed", page)
    form, parts = answer.context["form"], answer.context["parts"]
    assert (form["url"].value(), form["name"].value(), form["max_attempts"].value()) == (url, "orders-dlq", "3")
    assert [part.heading for part in parts if part.is_open] == ["Queue"]
    assert not DeadLetterQueue.objects.exists()


@pytest.mark.soak
def test_after_aws_answers_again_the_form_that_was_filled_in_by_hand_is_saved(watched: Queue, ann: Client) -> None:
    page = saved(ann, HAND, name="orders", url=watched.arn, max_attempts=4)
    assert "orders is added." in page
    row = DeadLetterQueue.objects.get()
    assert (row.url, row.max_attempts) == (watched.url, 4)


def test_a_queue_that_is_nobody_s_dlq_asks_for_its_source(make_queue: MakeQueue, ann: Client) -> None:
    answer = proposed(ann, url=make_queue().url)
    page = unescape(answer.content.decode())
    assert "The values cannot be saved" in page
    assert "No queue's redrive policy names this DLQ. The DLQ needs a source: without a source," in page
    assert [part.heading for part in answer.context["parts"] if part.is_open] == ["Queue"]
    assert answer.context["look"].yaml == ""


@pytest.mark.soak
def test_a_queue_that_is_watched_already_is_not_added_twice(watched: Queue, ann: Client) -> None:
    confirmed(ann, proposed(ann, url=watched.url))
    page = unescape(proposed(ann, url=watched.url).content.decode())
    assert f"This queue is watched already, as {watched.name}." in page
    assert f'/examine">change {watched.name}</a>' in page


def test_the_name_is_free_and_sources_of_discovery_are_filled_in(watched: Queue, ann: Client) -> None:
    DeadLetterQueue.objects.create(name=watched.name, url="http://127.0.0.1:9/0/x", arn="arn:aws:sqs:eu-west-1:0:x")
    function = "arn:aws:lambda:us-east-1:000000000000:function:ship"
    scope = DiscoveryScope.objects.create(region="us-east-1")
    DiscoveredQueue.objects.create(
        arn=watched.arn, url=watched.url, scope=scope, retention=60, visible=0, in_flight=0, tags={}
    )
    DiscoveredSource.objects.create(dlq_arn=watched.arn, source_arn=function, kind="function", through="", scope=scope)
    form = proposed(ann, url=watched.url).context["form"]
    assert form["name"].value().startswith(f"{watched.name}-000000000000-")
    assert form["sources"].value() == function


@pytest.mark.soak
def test_the_proposal_asks_sqs_outside_of_transactions_and_receives_nothing(
    watched: Queue, ann: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    depths: list[int] = []
    savepoints = len(connection.savepoint_ids)

    def describe(address: Any) -> Any:  # noqa: ANN401  as the original
        depths.append(len(connection.savepoint_ids) - savepoints)
        return sqs.describe(address)

    monkeypatch.setattr("reprocessing.pipeline.dlqs.examine.queue_attributes.describe", describe)
    watched.send("m")
    confirmed(ann, proposed(ann, url=watched.url))
    assert (set(depths), watched.counts().visible) == ({0}, 1)


def test_the_first_step_takes_the_permission_to_add_and_to_see_all_dlqs(watched: Queue, settings: Settings) -> None:
    viewer = person("eve", "view_deadletterqueue")
    viewer.handler.enforce_csrf_checks = False
    assert (viewer.get(ADD).status_code, viewer.post(ADD, {"url": watched.url}).status_code) == (403, 403)
    assert person("ben", *CONFIGURES).delete(ADD).status_code in {403, 405}


@pytest.mark.soak
def test_a_dlq_that_a_file_manages_stays_read_only(watched: Queue, ann: Client) -> None:
    confirmed(ann, proposed(ann, url=watched.url))
    row = DeadLetterQueue.objects.get()
    ManagedObject.objects.create(kind="dlqs", name=row.name, written={}, applied_by="ci")
    change = f"/admin/reprocessing/deadletterqueue/{row.pk}/examine"
    page = post(ann, change, max_attempts=9, do="write", reason="x")
    assert "the configuration file manages this object" in page
    row.refresh_from_db()
    assert row.max_attempts == 3


def test_teams_can_be_chosen_after_the_first_step(watched: Queue, ann: Client) -> None:
    Group.objects.create(name="payments")
    Group.objects.get_or_create(name="Redrive viewer")
    page = proposed(ann, url=watched.url).content.decode()
    assert ("payments" in page, "Redrive viewer" in page) == (True, False)  # a role is not a team
