"""A configuration file is applied as a whole, with a plan, or not at all."""

from __future__ import annotations

from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection

from reprocessing.domain.configuration.keys import Kind
from reprocessing.domain.lifecycle import LetterState
from reprocessing.models import (
    AuditEntry,
    DeadLetterQueue,
    HealthCheck,
    Letter,
    ManagedObject,
    NotificationRoute,
    Policy,
    RateClass,
    Rule,
    Source,
    Target,
)
from reprocessing.pipeline.runs import feed_run
from reprocessing.store.configuration import apply_lock
from tests.reprocessing.commands.configuration.conftest import Apply, Shop, Write
from tests.reprocessing.commands.conftest import Ask
from tests.reprocessing.commands.refusals import refusal
from tests.reprocessing.commands.stock import add_lane, add_letter, ago
from tests.reprocessing.gateways.aws_endpoint import MakeQueue

pytestmark = pytest.mark.django_db


def whole(shop: Shop) -> str:
    return f"""\
    policies:
      careful:
        max_attempts: 5
        backoff_base: 30
        backoff_cap: 600
    rate_classes:
      bulk:
        rate: 5
        backoff_base: 120
    targets:
      {shop.source.arn}:
        outcome: accepted
        rate: 20
        health_checks:
        - max_depth: 500
      https://shop.example.com/orders:
        rate: off
        answers: 409=success
    dlqs:
      orders:
        url: {shop.dlq.url}
        policy: careful
        max_attempts: 7
        every: 120
    rules:
      hold-acme:
        position: 20
        when: [tenant equals acme]
        then: hold
      refunds:
        position: 10
        dlq: orders
        when: [type in order.refund]
        then: divert
        to: https://shop.example.com/orders
    notifications:
      ops:
        events: [run_finished]
        dlqs: [orders]
    """


def test_a_file_is_applied_and_applied_again_changes_nothing(apply: Apply, shop: Shop, ask: Ask, write: Write) -> None:
    said = apply(whole(shop), "--source", "4f1c2ab", "--by", "mia")
    assert said.splitlines()[-1] == "Applied: 8 objects added."
    dlq = DeadLetterQueue.objects.get(name="orders")
    assert (dlq.max_attempts, dlq.backoff_base, dlq.own_settings) == (7, 30, ["interval", "max_attempts"])
    assert Target.objects.get(arn=shop.source.arn).rate == 20
    assert HealthCheck.objects.get().ceiling == 500
    assert (RateClass.objects.get().backoff_cap, Rule.objects.count()) == (21_600, 2)
    assert NotificationRoute.objects.get().kinds == ["run_finished"]
    assert {(one.by, one.reason) for one in AuditEntry.objects.all()} == {("mia", "apply_config, source: 4f1c2ab")}
    entries = AuditEntry.objects.count()
    assert apply(whole(shop)) == "No changes.\n"
    assert AuditEntry.objects.count() == entries


@pytest.mark.soak
def test_an_export_applied_to_an_empty_database_is_exported_as_the_same_bytes(
    apply: Apply, shop: Shop, ask: Ask, write: Write
) -> None:
    apply(whole(shop))
    exported = ask("export_config")
    assert apply(exported) == "No changes.\n"
    forget_everything()
    apply(exported)
    assert ask("export_config") == exported


def forget_everything() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute(
            "TRUNCATE redrive_dlq, redrive_target, redrive_rule, redrive_rate_class, redrive_policy, "
            "redrive_notification_route, redrive_managed_object, redrive_audit_entry CASCADE"
        )


def test_a_dry_run_shows_the_plan_and_writes_nothing(ask: Ask, write: Write, shop: Shop) -> None:
    said = ask("apply_config", write(whole(shop)))
    assert "+ policy careful\n    max_attempts: 5\n    backoff_base: 30\n    backoff_cap: 600\n" in said
    assert said.endswith("This was a dry run. Add --confirm to apply it: 8 objects added.\n")
    assert not DeadLetterQueue.objects.exists()
    assert not ManagedObject.objects.exists()


@pytest.mark.soak
def test_a_changed_policy_changes_all_that_inherit_it_also_outside_the_file(apply: Apply, shop: Shop) -> None:
    apply(whole(shop))
    said = apply("policies:\n  careful:\n    max_attempts: 4\n    backoff_base: 45\n")
    assert said.splitlines() == [
        "~ policy careful",
        "    max_attempts: 5 → 4",
        "    backoff_base: 30 → 45",
        "    backoff_cap: 600 → -",
        "~ DLQ orders",
        "    backoff_base: 30 → 45 (from the policy)",
        "    backoff_cap: 600 → 21600 (from the policy)",
        "Applied: 2 objects changed.",
    ]
    dlq = DeadLetterQueue.objects.get()
    assert (dlq.max_attempts, dlq.backoff_base, dlq.backoff_cap) == (7, 45, 21_600)


@pytest.mark.soak
def test_a_setting_that_is_left_out_has_its_default_again(apply: Apply, shop: Shop) -> None:
    file = f"dlqs:\n  orders:\n    url: {shop.dlq.url}\n    ordering_key: attribute:customer\n    mode: observe\n"
    apply(f"{file}targets:\n  {shop.source.arn}:\n    rate: 3\n    outcome: accepted\n")
    apply(f"dlqs:\n  orders:\n    url: {shop.dlq.url}\ntargets:\n  {shop.source.arn}:\n")
    dlq, target = DeadLetterQueue.objects.get(), Target.objects.get()
    assert (dlq.mode, dlq.ordering_key, target.rate, target.proof) == ("manual", "none", 10, "accepted")


def test_every_problem_is_told_at_once_with_its_line_and_path_and_nothing_is_written(write: Write, shop: Shop) -> None:
    path = write(
        f"""\
        policies:
          careful:
            max_attemps: 5
        dlqs:
          orders:
            url: {shop.dlq.url}
            max_attempts: 0
            policy: bold
            mode: quick
          two words:
            url: x
        rules:
          broken:
            when: [tenant like acme]
            then: hold
          lost:
            when: []
            then: divert
            to: nowhere
        notifications:
          ops:
            events: [run_finisht]
            dlqs: [payments]
        """
    )
    said = refusal("apply_config", path, "--confirm").splitlines()
    assert [line.removeprefix(path) for line in said] == [
        ":3: policies.careful.max_attemps: There is no key 'max_attemps' here. Did you mean max_attempts?",
        ":7: dlqs.orders.max_attempts: '0' is not a whole number of at least 1 and at most 2,147,483,647",
        ':8: dlqs.orders.policy: No policy is named "bold". There are: careful.',
        ":9: dlqs.orders.mode: invalid choice: 'quick' (choose from 'observe', 'manual', 'automatic')",
        ":10: dlqs.\"two words\": 'two words' is not valid: use letters, digits, hyphens and underscores",
        f":13: rules.broken: {told_by_add_rule('tenant like acme')}",
        f":19: rules.lost.to: {told_by_add_rule('every', to='nowhere')}",
        ":22: notifications.ops.events.0: There is no event 'run_finisht' here. Did you mean run_finished?",
        ':23: notifications.ops.dlqs: No DLQ is named "payments". There are: orders.',
        f"Nothing was changed: 9 problems in {path}.",
    ]
    assert not AuditEntry.objects.exists()


def told_by_add_rule(condition: str, to: str = "") -> str:
    options = ["--then", "divert", "--to", to, "--every-message"] if to else ["--then", "hold", "--when", condition]
    return refusal("add_rule", "broken", *options, "--reason", "x")


@pytest.mark.parametrize(
    ("given", "options"),
    [
        ("crontab: 0 0 31 2 *", ["--crontab", "0 0 31 2 *"]),
        ("message_type: content-hash", ["--message-type", "content-hash"]),
        ("backoff_base: 99\n    backoff_cap: 9", ["--backoff-base", "99", "--backoff-cap", "9"]),
        ("idempotency_key: none", ["--idempotency-key", "none"]),
        ("mode: observe\n    parking_url: http://127.0.0.1:9/0/x", ["--parking-url", "http://127.0.0.1:9/0/x"]),
    ],
)
def test_what_add_dlq_refuses_is_refused_with_the_same_words(
    given: str, options: list[str], write: Write, shop: Shop
) -> None:
    said = refusal("apply_config", write(f"dlqs:\n  orders:\n    url: {shop.dlq.url}\n    {given}\n"))
    out = StringIO()
    with pytest.raises(CommandError) as refused:
        call_command("add_dlq", "orders", "--url", shop.dlq.url, *options, stdout=out)
    own = str(refused.value).rpartition("argument ")[2].partition(": ")[2]
    words = [line.removeprefix("  REFUSE  ") for line in out.getvalue().splitlines() if "REFUSE" in line] or [own]
    assert words[0] in said or str(refused.value) in said


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (str, "is a directory. Name a file."),
        (lambda folder: str(folder / "none.yaml"), "cannot be read: No such file or directory."),
    ],
)
def test_a_file_that_cannot_be_read_is_told(tmp_path: Path, make: Callable[[Path], str], what: str) -> None:
    assert what in refusal("apply_config", make(tmp_path))


def test_a_file_with_a_section_without_objects_has_no_changes(apply: Apply) -> None:
    assert apply("rules:\n") == "No changes.\n"


@pytest.mark.soak
def test_a_renamed_dlq_is_refused_because_its_queue_has_a_name(apply: Apply, write: Write, shop: Shop) -> None:
    apply(f"dlqs:\n  orders:\n    url: {shop.dlq.url}\n")
    path = write(f"dlqs:\n  shop:\n    url: {shop.dlq.url}\n")
    assert ":2: dlqs.shop: This queue is watched already, as orders." in refusal("apply_config", path)
    assert "This queue is watched already, as orders." in refusal("apply_config", path, "--prune")


@pytest.mark.soak
def test_what_is_missing_stays_until_prune_and_its_audit_entries_stay_for_ever(apply: Apply, shop: Shop) -> None:
    apply(whole(shop))
    added = AuditEntry.objects.count()
    nothing = "".join(f"{kind.value}: {{}}\n" for kind in Kind)
    assert (
        apply(nothing).splitlines()[0].startswith("Not in the file, kept (--prune removes them): policy careful, rate")
    )
    assert DeadLetterQueue.objects.exists()
    apply(nothing, "--prune", "--by", "mia")
    models = (DeadLetterQueue, Target, Rule, RateClass, Policy, NotificationRoute, ManagedObject)
    assert [model.objects.count() for model in models] == [0] * len(models)
    assert AuditEntry.objects.filter(act="added").count() == 8  # seven with a health check; the queue came with its DLQ
    assert AuditEntry.objects.filter(by="mia").count() == AuditEntry.objects.count() - added


@pytest.mark.soak
def test_a_policy_in_use_and_a_dlq_with_unfinished_messages_are_not_pruned(
    apply: Apply, write: Write, shop: Shop
) -> None:
    apply(f"policies:\n  careful:\ndlqs:\n  orders:\n    url: {shop.dlq.url}\n    policy: careful\n")
    said = refusal("apply_config", write("policies: {}\n"), "--prune", "--confirm")
    assert "dlqs.orders.policy: --prune would remove the policy careful, which DLQ orders uses." in said
    dlq = DeadLetterQueue.objects.get()
    letter = add_letter(dlq.sources.get(), LetterState.CAPTURED)
    said = refusal("apply_config", write("dlqs: {}\n"), "--prune", "--confirm")
    assert "dlqs.orders: The DLQ has unfinished messages: 1 captured. Finish its runs" in said
    Letter.objects.filter(pk=letter.pk).update(state="discarded", finished_at=ago(hours=1))
    said = refusal("apply_config", write("dlqs: {}\n"), "--prune", "--confirm")
    assert "The DLQ has a history of messages or runs, which is kept." in said
    assert DeadLetterQueue.objects.exists()


@pytest.mark.soak
def test_an_apply_that_waited_for_another_plans_anew(apply: Apply, shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    apply(f"dlqs:\n  orders:\n    url: {shop.dlq.url}\n")

    def let_another_go_first() -> None:
        monkeypatch.undo()
        DeadLetterQueue.objects.update(max_attempts=9)

    monkeypatch.setattr(apply_lock, "lock_applies", let_another_go_first)
    said = apply(f"dlqs:\n  orders:\n    url: {shop.dlq.url}\n    max_attempts: 5\n")
    assert said.splitlines() == ["~ DLQ orders", "    max_attempts: 9 → 5", "Applied: 1 object changed."]


@pytest.mark.soak
def test_sources_are_a_complete_list_and_lead_to_targets(apply: Apply, write: Write, make_queue: MakeQueue) -> None:
    shop, other = Shop(make_queue), make_queue()
    file = f"dlqs:\n  orders:\n    url: {shop.dlq.url}\n    sources:\n      "
    apply(f"{file}{shop.source.arn}: {other.arn}\n")
    assert DeadLetterQueue.objects.get().sources.get().target.arn == other.arn
    assert apply(f"{file}{shop.source.arn}: {other.arn}\n") == "No changes.\n"
    apply(f"{file}{shop.source.arn}: itself\n")
    assert DeadLetterQueue.objects.get().sources.get().target.arn == shop.source.arn
    said = refusal("apply_config", write(f"dlqs:\n  fresh:\n    url: {Shop(make_queue).dlq.url}\n    sources: {{}}\n"))
    assert "fail into this DLQ, too. Add it to sources, or leave out sources." in said


def test_values_of_the_wrong_shape_are_refused_where_they_are(write: Write) -> None:
    path = write(
        """\
        dlqs:
          orders:
            url: [a]
            sources: all
          empty:
        rules: none
        targets:
          https://shop.example.com/orders:
            health_checks: [{http: https://shop.example.com/up, max_depth: 3}]
            celery: maybe
        notifications:
          slack://token: {}
        policies:
          careful:
            every: 60
            crontab: 0 0 * * *
            waves:
        """
    )
    target = 'targets."https://shop.example.com/orders"'
    assert [line.removeprefix(path) for line in refusal("apply_config", path).splitlines()] == [
        ":3: dlqs.orders.url: It must be one value, not a list or mapping.",
        (
            ":4: dlqs.orders.sources: It must be a mapping from the ARN of each source to its target, or to the word "
            "itself."
        ),
        ":5: dlqs.empty: It needs the key url.",
        ":6: rules: It must be a mapping from the name of each rule to its settings.",
        f":9: {target}.health_checks.0: It must be a mapping with one of the keys http, alarm, max_depth, max_age.",
        f":10: {target}.celery: 'maybe' is not true or false",
        ':12: notifications."…": This is a URL. Name the destination; its URL is the value of REDRIVE_NOTIFY_<NAME>.',
        ":16: policies.careful.crontab: every is set, too. Leave out every or crontab.",
        ":17: policies.careful.waves: It has no value. Give it a value, or leave out the key.",
        f"Nothing was changed: 9 problems in {path}.",
    ]


@pytest.mark.soak
def test_messages_of_a_new_dlq_go_to_a_new_endpoint_and_checks_that_are_not_listed_any_more_are_removed(
    apply: Apply, shop: Shop
) -> None:
    url = "https://shop.example.com/orders"
    dlqs = f"dlqs:\n  orders:\n    url: {shop.dlq.url}\n    sources:\n      {shop.source.arn}: {url}\n"
    checks = f"targets:\n  {url}:\n    timeout: 5\n    health_checks: [{{alarm: a}}, {{http: {url}, status: 204}}]\n"
    apply(dlqs + checks)
    target = DeadLetterQueue.objects.get().sources.get().target
    assert (target.arn, target.kind, target.timeout) == (url, "http", 5)
    assert sorted(target.checks.values_list("kind", "expected_status")) == [("alarm", None), ("http", 204)]
    assert apply(dlqs + checks) == "No changes.\n"
    apply(f"targets:\n  {url}:\n    health_checks: [{{http: {url}}}]\n")
    assert list(target.checks.values_list("kind", "expected_status")) == [("http", None)]


def test_a_change_to_manual_names_the_run_that_still_sends(apply: Apply, shop: Shop) -> None:
    text = """\
    dlqs:
      orders:
        url: {}
        mode: {}
    """
    apply(text.format(shop.dlq.url, "automatic"))
    run = feed_run.automatic_run(DeadLetterQueue.objects.get(name="orders"))
    source = Source.objects.get()
    add_letter(source, LetterState.WAITING, run=run, lane=add_lane(source, run=run))
    said = apply(text.format(shop.dlq.url, "manual"))
    assert said.endswith(
        "Applied: 1 object changed.\n"
        f"orders: The run {run.name} still redrives the 1 message that it has. "
        f"To pause it: manage.py pause_run {run.name} --reason WHY --confirm\n"
    )


@pytest.mark.parametrize("kind", [kind for kind in Kind if kind is not Kind.APPROVAL], ids=lambda kind: kind.value)
@pytest.mark.parametrize("value", ["5", "[1]", "word"], ids=["number", "list", "word"])
def test_settings_that_are_no_mapping_are_one_problem(write: Write, kind: Kind, value: str) -> None:
    path = write(f"{kind.value}: {{orders: {value}}}")
    assert refusal("apply_config", path) == (
        f"{path}:1: {kind.value}.orders: It must be a mapping of settings.\nNothing was changed: 1 problem in {path}."
    )


def test_settings_of_a_known_dlq_that_are_no_mapping_are_one_problem(write: Write, shop: Shop, apply: Apply) -> None:
    apply(whole(shop))
    path = write("dlqs: {orders: 5}")
    assert refusal("apply_config", path) == (
        f"{path}:1: dlqs.orders: It must be a mapping of settings.\nNothing was changed: 1 problem in {path}."
    )


def test_an_empty_file_name_is_refused() -> None:
    assert refusal("apply_config", "") == "Error: argument FILE: it is empty. Is the shell variable set?"
