"""add_dlq gives a DLQ a policy and overrides it; what differs from the last apply is told as drift."""

from __future__ import annotations

import pytest

from reprocessing.models import DeadLetterQueue, ManagedObject, Policy, Rule
from reprocessing.pipeline.maintenance.doctor import managed_objects
from reprocessing.store.configuration import managed
from tests.reprocessing.commands.configuration.conftest import MARKED, Apply, Shop
from tests.reprocessing.commands.conftest import Ask
from tests.reprocessing.commands.refusals import refusal

pytestmark = pytest.mark.django_db


def dlq() -> DeadLetterQueue:
    return DeadLetterQueue.objects.select_related("policy").get()


@pytest.mark.soak
def test_add_dlq_takes_the_values_of_a_policy_except_those_that_are_given(ask: Ask, shop: Shop) -> None:
    Policy.objects.create(name="careful", settings={"max_attempts": 5, "backoff_base": 30.0, "interval": 300})
    ask("add_dlq", "orders", "--url", shop.dlq.url, "--policy", "careful", "--max-attempts", "9", "--confirm")
    row = dlq()
    assert (row.max_attempts, row.backoff_base, row.own_settings) == (9, 30, ["max_attempts"])
    assert row.interval is not None
    ask("add_dlq", "orders", "--crontab", "*/5 * * * *", "--confirm")
    assert (dlq().interval, dlq().own_settings) == (None, ["crontab", "max_attempts"])
    ask("add_dlq", "orders", "--policy", "careful", "--confirm")
    assert (dlq().max_attempts, dlq().crontab, dlq().own_settings) == (5, None, [])
    ask("add_dlq", "orders", "--policy", "off", "--confirm")
    assert (dlq().policy, dlq().max_attempts, dlq().own_settings) == (None, 5, [])


@pytest.mark.soak
def test_a_value_that_no_policy_decides_stays_and_is_exported_as_the_dlq_s_own(
    ask: Ask, apply: Apply, shop: Shop
) -> None:
    Policy.objects.create(name="careful", settings={"max_attempts": 5})
    ask("add_dlq", "orders", "--url", shop.dlq.url, "--wave-success", "0.5", "--confirm")
    ask("add_dlq", "orders", "--policy", "careful", "--confirm")
    assert (dlq().wave_success, dlq().own_settings) == (0.5, ["wave_success"])
    assert apply(ask("export_config")) == MARKED


def test_an_unknown_policy_is_refused_with_the_names_that_there_are(shop: Shop) -> None:
    Policy.objects.create(name="careful")
    said = refusal("add_dlq", "orders", "--url", shop.dlq.url, "--policy", "bold", "--confirm")
    assert said == 'No policy is named "bold". There are: careful.'


def findings() -> list[tuple[str, str, str]]:
    return [(one.severity.value, one.where, one.what) for one in managed_objects.findings()]


@pytest.mark.soak
def test_what_is_as_it_was_applied_is_no_drift_and_what_was_changed_or_removed_by_hand_is(
    ask: Ask, apply: Apply, shop: Shop
) -> None:
    file = f"dlqs:\n  orders:\n    url: {shop.dlq.url}\nrules:\n  hold:\n    when: []\n    then: hold\n"
    apply(file)
    assert findings() == []
    ask("add_dlq", "orders", "--max-attempts", "9", "--jitter", "none", "--confirm")
    ask("remove_rule", "hold", "--reason", "x", "--confirm")
    assert findings() == [
        ("warn", "DLQ orders", "It was changed after its file was applied: max_attempts, jitter."),
        ("warn", "rule hold", "It was removed by hand."),
    ]
    apply(file)
    assert findings() == []
    assert (dlq().max_attempts, Rule.objects.count()) == (3, 1)


def test_an_object_that_was_unlocked_is_told_until_the_next_apply_locks_it(apply: Apply, shop: Shop) -> None:
    file = f"dlqs:\n  orders:\n    url: {shop.dlq.url}\n"
    apply(file)
    managed.unlock(ManagedObject.objects.get().pk, by="ann", reason="INC-7")
    assert findings() == [("note", "DLQ orders", "ann unlocked it: INC-7.")]
    DeadLetterQueue.objects.update(max_attempts=9)
    changed = "It was changed after its file was applied: max_attempts. ann unlocked it: INC-7."
    assert findings() == [("warn", "DLQ orders", changed)]
    DeadLetterQueue.objects.update(max_attempts=3)
    assert apply(file) == MARKED
    assert findings() == []


def test_a_change_of_a_policy_is_no_drift_of_dlqs_that_the_file_did_not_name(apply: Apply, shop: Shop) -> None:
    policy = "policies:\n  careful:\n    max_attempts: {}\n"
    apply(f"{policy.format(5)}dlqs:\n  orders:\n    url: {shop.dlq.url}\n    policy: careful\n")
    apply(policy.format(6))
    assert dlq().max_attempts == 6
    assert findings() == []
