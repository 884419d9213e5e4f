"""add_dlq gives a DLQ a policy and overrides it; what differs from the last apply is told as drift."""

from __future__ import annotations

import pytest

from reprocessing.domain.configuration.keys import KEYS, Kind
from reprocessing.models import DeadLetterQueue, HealthCheck, ManagedObject, Policy, Rule, Target
from reprocessing.pipeline.maintenance.doctor import managed_objects
from reprocessing.store.configuration import managed, state
from reprocessing.store.targets import targets
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


def _changed(settings: str) -> str:
    return f"It was changed after its file was applied: {settings}."


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
        ("warn", "DLQ orders", _changed("max_attempts is 9, in the file 3; jitter is none, in the file full")),
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
    changed = _changed("max_attempts is 9, in the file 3")
    assert findings() == [("warn", "DLQ orders", f"{changed} ann unlocked it: INC-7.")]
    DeadLetterQueue.objects.update(max_attempts=3)
    assert apply(file) == MARKED
    assert findings() == []


def test_a_change_of_a_policy_is_no_drift_of_dlqs_that_the_file_did_not_name(apply: Apply, shop: Shop) -> None:
    policy = "policies:\n  careful:\n    max_attempts: {}\n"
    apply(f"{policy.format(5)}dlqs:\n  orders:\n    url: {shop.dlq.url}\n    policy: careful\n")
    apply(policy.format(6))
    assert dlq().max_attempts == 6
    assert findings() == []


def _mark(name: str, **written: object) -> None:
    """Add a target, and the record that a configuration file manages it with the values `written`, which it has not."""
    arn = f"arn:aws:sqs:eu-west-1:111122223333:{name}"
    targets.save_target(arn, {"kind": "sqs"}, by="ann", reason="a test")
    found = {**state.stored_targets([arn])[arn], **written}
    ManagedObject.objects.create(kind="targets", name=arn, written=found, applied_by="ann")


@pytest.mark.parametrize(
    ("url", "told"),
    [("https://ann:hunter2@shop.example.com/up?token=sesame", "https://shop.example.com/…"),
     ("https://shop.example.com/up?a=b,token=sesame", "https://shop.example.com/…"),
     ("https://ann:p@sesame@shop.example.com:8080", "https://shop.example.com/…"),
     ("https://ann:p/sesame@shop.example.com", "https://…"), ("https://sesame/2@shop.example.com", "https://…"),
     ("https://[sesame", "https://…"), ("https://hooks.example.com/T0/sesame", "https://hooks.example.com/…"),
     ("HTTPS://shop.example.com/a b,'sesame'}", "HTTPS://shop.example.com/…"),
     ("https://shop.example.com", "https://shop.example.com")],
)  # fmt: skip
def test_a_secret_and_its_name_are_not_told_and_of_urls_only_scheme_and_host(url: str, told: str) -> None:
    _mark("mails", secret="PAYMENTS_SECRET", health_checks=[{"http": url}])
    (finding,) = findings()
    covered = f"[{{http: '{told}'}}]"
    assert finding[2] == _changed(f"secret (values are not shown); health_checks is [], in the file {covered}")


def test_urls_that_differ_only_in_a_covered_part_are_told_as_such() -> None:
    _mark("mails", health_checks=[{"http": "https://shop.example.com/1"}])
    HealthCheck.objects.create(target=Target.objects.get(), kind="http", subject="https://shop.example.com/2")
    (finding,) = findings()
    assert finding[2] == _changed("health_checks differs in a part of a URL that is not shown")


def test_a_long_value_is_cut_around_its_first_difference(shop: Shop, apply: Apply) -> None:
    apply(f"dlqs:\n  orders:\n    url: {shop.dlq.url}\n    public_fields: [{', '.join(f'a{n}' for n in range(99))}]\n")
    row = dlq()
    row.public_fields[70] = "other"
    row.save()
    (finding,) = findings()
    now, in_file = finding[2].removesuffix(".").partition(": ")[2].split(", in the file ")
    assert (len(now.removeprefix("public_fields is ")), len(in_file)) == (62, 62)
    assert ("a69, other, a71" in now, "a69, a70, a71" in in_file) == (True, True)


def test_an_object_with_many_changes_and_many_objects_are_told_in_a_few_lines() -> None:
    written = dict.fromkeys(KEYS[Kind.TARGET].values(), "x")
    for n in range(23):
        _mark(f"q{n}", **written)
    found = findings()
    assert len(found) == 21
    assert found[-1] == ("warn", "configuration file", "And 3 more objects were changed, removed or unlocked by hand.")
    assert found[0][2].endswith(f"; and {len(written) - 8} more settings.")
    assert found[0][2].count(", in the file ") == 8


def test_a_dlq_whose_own_settings_alone_changed_tells_them(shop: Shop, apply: Apply) -> None:
    policy = "policies:\n  careful:\n    max_attempts: 5\n"
    apply(f"{policy}dlqs:\n  orders:\n    url: {shop.dlq.url}\n    policy: careful\n")
    DeadLetterQueue.objects.update(own_settings=["max_attempts"])
    assert findings() == [("warn", "DLQ orders", _changed("own settings is [max_attempts], in the file []"))]
