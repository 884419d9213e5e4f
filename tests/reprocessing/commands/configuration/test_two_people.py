"""A file whose changes need a second person is requested whole, approved once, and applied exactly as it was shown."""

from __future__ import annotations

import pytest

from reprocessing.domain.lifecycle import LetterState
from reprocessing.models import (
    Approval,
    ApprovalDefault,
    AuditEntry,
    DeadLetterQueue,
    ManagedObject,
    RateClass,
    Rule,
    Source,
)
from reprocessing.pipeline.runs import feed_run
from tests.reprocessing.commands.configuration.conftest import Apply, Shop, Write
from tests.reprocessing.commands.configuration.test_apply_config import whole
from tests.reprocessing.commands.conftest import Ask, AskJson
from tests.reprocessing.commands.refusals import refusal
from tests.reprocessing.commands.stock import add_lane, add_letter

pytestmark = pytest.mark.django_db
BOB = ("--reason", "checked", "--by", "bob", "--confirm")


def guarded(shop: Shop) -> str:
    """A file that lifts a limit, enables two rules, and changes what needs nobody."""
    text = whole(shop).replace("position:", "enabled: true\n        position:").replace("rate: 5", "rate: 9")
    return text.replace("every: 120", "every: 120\n        ordering_key: body:id")


@pytest.fixture
def requested(apply: Apply, shop: Shop, write: Write) -> Approval:
    """The request that an apply of `guarded` made; the DLQ has the limit 0."""
    apply(whole(shop))
    DeadLetterQueue.objects.update(approval_above=0)
    said = refusal("apply_config", write(guarded(shop)), "--source", "4f1c2ab", "--by", "ann", "--confirm")
    row = Approval.objects.first()
    assert row, said
    assert f"Apply a configuration file needs a second person. Approval {row.pk} is requested by ann" in said
    return row


def stored() -> tuple[int | None, str, float | None, list[bool]]:
    dlq = DeadLetterQueue.objects.get()
    enabled = list(Rule.objects.order_by("name").values_list("enabled", flat=True))
    return dlq.approval_above, dlq.ordering_key, RateClass.objects.get().rate, enabled


@pytest.mark.soak
def test_the_request_has_every_change_of_the_plan_and_nothing_is_applied(requested: Approval) -> None:
    assert stored() == (0, "none", 5, [False, False])
    assert requested.preview == [
        ["Dead-letter queue", "all"],
        ["Source", "4f1c2ab"],
        ["Change rate class bulk", "rate: 5.0 → 9.0"],
        ["Change DLQ orders", "ordering_key: none → body:id; approval_above: 0 → not set"],
        ["Change rule refunds", "enabled: False → True"],
        ["Change rule hold-acme", "enabled: False → True"],
    ]


@pytest.mark.soak
def test_one_approval_applies_the_whole_file_with_both_names(
    requested: Approval, ask: Ask, apply: Apply, shop: Shop
) -> None:
    before = AuditEntry.objects.latest("pk").pk
    assert ask("approve", str(requested.pk), *BOB) == "The configuration is applied.\n"
    assert stored() == (None, "body:id", 9, [True, True])
    done = AuditEntry.objects.filter(pk__gt=before).exclude(act="approved")
    assert {(entry.by, entry.reason) for entry in done} == {("ann, approved by bob", "apply_config, source: 4f1c2ab")}
    assert set(ManagedObject.objects.values_list("applied_by", "applied_from")) == {("ann, approved by bob", "4f1c2ab")}
    assert apply(guarded(shop)) == "No changes.\n"
    assert Approval.objects.count() == 1
    assert "decided before" in refusal("approve", str(requested.pk), *BOB)


def test_an_approved_file_and_json_say_that_a_run_still_sends(
    ask: Ask, ask_json: AskJson, write: Write, shop: Shop
) -> None:
    """The DLQ goes from automatic to manual by an approval, and later by an apply that prints JSON."""
    file = "dlqs:\n  orders:\n    url: {}\n    mode: manual\n"
    manual = write(file.format(shop.dlq.url))
    ask("add_dlq", "orders", "--url", shop.dlq.url, "--mode", "automatic", "--confirm")
    source = Source.objects.get()
    run = feed_run.automatic_run(source.dlq)
    add_letter(source, LetterState.WAITING, run=run, lane=add_lane(source, run=run))
    DeadLetterQueue.objects.update(approval_above=0)
    refusal("apply_config", manual, "--by", "ann", "--confirm")
    pause = f"manage.py pause_run {run.name} --reason WHY --confirm"
    note = f"orders: The run {run.name} still redrives the 1 message that it has. To pause it: {pause}"
    row = Approval.objects.get()
    assert ask("approve", str(row.pk), *BOB) == f"The configuration is applied. {note}\n"
    DeadLetterQueue.objects.update(mode="automatic")
    assert ask_json("apply_config", manual)["notes"] == []
    assert ask_json("apply_config", manual, "--confirm")["notes"] == [note]
    assert ask_json("apply_config", manual, "--confirm")["notes"] == []
    automatic = write(f"dlqs:\n  orders:\n    url: {shop.dlq.url}\n    mode: automatic\n")
    assert ask_json("apply_config", automatic)["notes"] == []  # a dry run


@pytest.mark.soak
def test_the_same_file_is_requested_once(requested: Approval, write: Write, shop: Shop) -> None:
    refusal("apply_config", write(guarded(shop)), "--source", "4f1c2ab", "--by", "ann", "--confirm")
    assert Approval.objects.get() == requested


@pytest.mark.soak
def test_the_request_is_void_if_any_setting_has_changed_since(requested: Approval) -> None:
    RateClass.objects.update(rate=6)
    assert "the request is void. Somebody changed the settings" in refusal("approve", str(requested.pk), *BOB)
    assert stored() == (0, "none", 6, [False, False])


@pytest.mark.soak
def test_the_request_is_void_if_the_queues_have_changed_since(requested: Approval, shop: Shop) -> None:
    shop.source.set(RedrivePolicy="")
    said = refusal("approve", str(requested.pk), *BOB)
    assert "the request is void. The queues are not as they were when it was requested." in said
    assert stored() == (0, "none", 5, [False, False])


@pytest.mark.soak
def test_an_apply_without_a_second_person_is_as_before(requested: Approval, ask: Ask, shop: Shop) -> None:
    assert ask("break_glass", str(requested.pk), *BOB) == "The configuration is applied.\n"
    assert stored() == (None, "body:id", 9, [True, True])


def test_a_removed_rule_and_a_removed_limit_are_one_request(apply: Apply, write: Write, ask: Ask) -> None:
    rule = "rules:\n  hold-acme:\n    enabled: true\n    when: [tenant equals acme]\n    then: hold\n"
    apply(rule)
    apply("approvals:\n  all:\n    above: 100\n")
    refusal("apply_config", write("rules: {}\napprovals: {}\n"), "--prune", "--by", "ann", "--confirm")
    row = Approval.objects.get()
    assert [label for label, _ in row.preview[1:]] == ["Remove approval limit all", "Remove rule hold-acme"]
    ask("approve", str(row.pk), *BOB)
    assert not Rule.objects.exists()
    assert not ApprovalDefault.objects.exists()
