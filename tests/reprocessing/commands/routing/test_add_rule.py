"""Rules are made, changed, enabled, disabled and removed by a named person, and nobody is surprised by one."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from reprocessing.domain.lifecycle import LetterState
from reprocessing.models import AuditEntry, Letter, RateClass, Rule, Rulebook, Target
from tests.reprocessing.commands.conftest import AddRow, Ask, AskJson
from tests.reprocessing.commands.refusals import refusal
from tests.reprocessing.commands.stock import add_lane, add_letter, add_source
from tests.reprocessing.gateways.aws_endpoint import MakeQueue

pytestmark = pytest.mark.django_db
WHY = ("--reason", "bad tenant", "--by", "ann")
BAD = ("add_rule", "bad", "--when", "body:kind equals bad", "--then", "quarantine", *WHY)


def test_a_dry_run_tells_what_it_would_do_and_makes_nothing(add_row: AddRow, ask: Ask) -> None:
    source = add_source(add_row("orders"))
    waiting = add_letter(source, LetterState.WAITING, body=b'{"kind": "bad", "secret": 7}')
    add_letter(source, LetterState.DELIVERED, body=b'{"kind": "bad"}')
    add_letter(source, LetterState.WAITING, body=b'{"kind": "good"}')
    said = ask(*BAD)
    assert "Of 3 messages captured in the last 7 days:" in said
    assert "  bad (quarantine) would act on 1 message (1 queued)" in said
    assert "    matching, but already finished: 1 message (1 delivered)" in said
    assert f"    such as {waiting.message_id}" in said
    assert said.endswith("This was a dry run: bad, for messages of every DLQ, is added with --confirm.\n")
    assert not Rule.objects.exists()
    assert not Rulebook.objects.exists()


def test_confirmed_it_is_made_and_decides_nothing_before_it_is_enabled(ask: Ask) -> None:
    said = ask(*BAD, "--confirm")
    rule = Rule.objects.get()
    assert (rule.enabled, rule.conditions, rule.action, rule.position, rule.created_by) == (
        False, ["body:kind equals bad"], "quarantine", 100, "ann",
    )  # fmt: skip
    assert said.endswith(
        "bad is added. It is disabled. To enable it: manage.py enable_rule bad --reason WHY --confirm\n"
    )
    review = AuditEntry.objects.get()
    assert (review.act, review.rule, review.by, review.reason) == ("added", rule, "ann", "bad tenant")
    assert review.after["conditions"] == ["body:kind equals bad"]


def test_the_same_name_again_changes_what_is_said_and_nothing_else(ask: Ask) -> None:
    ask(*BAD, "--confirm")
    ask("add_rule", "bad", "--then", "delay", "--delay", "60", "--position", "5", "--enable", *WHY, "--confirm")
    rule = Rule.objects.get()
    assert (rule.action, rule.delay, rule.position, rule.enabled, rule.conditions) == (
        "delay", 60, 5, True, ["body:kind equals bad"],
    )  # fmt: skip
    review = AuditEntry.objects.order_by("id")[1]
    assert (review.before["action"], review.after["action"]) == ("quarantine", "delay")
    ask("add_rule", "bad", "--then", "hold", *WHY, "--confirm")
    rule.refresh_from_db()
    assert (rule.action, rule.delay) == ("hold", None)
    said = ask("add_rule", "bad", "--then", "hold", *WHY, "--confirm")
    assert said.endswith("bad: nothing to change.\n")
    assert AuditEntry.objects.count() == 3


def test_a_queue_that_is_not_known_becomes_a_target_with_the_rule(ask: Ask, make_queue: MakeQueue) -> None:
    queue = make_queue()
    ask("add_rule", "out", "--every-message", "--then", "divert", "--to", queue.url, *WHY)
    assert not Target.objects.exists()
    ask("add_rule", "out", "--every-message", "--then", "divert", "--to", queue.url, *WHY, "--confirm")
    target = Target.objects.get()
    assert (target.url, target.proof, target.fifo) == (queue.url, "accepted", False)
    assert Rule.objects.get().target == target
    ask("add_rule", "too", "--every-message", "--then", "replay", "--to", str(target), *WHY, "--confirm")
    assert Rule.objects.get(name="too").target == target


def test_rate_classes_and_backoffs(ask: Ask) -> None:
    ask("add_rate_class", "slow", "--rate", "2", "--backoff-base", "30", *WHY, "--confirm")
    made = RateClass.objects.get()
    assert (made.rate, made.backoff_base, made.backoff_cap, made.backoff_jitter) == (2, 30, 21_600, "full")
    ask(
        "add_rule", "slowly", "--every-message", "--then", "replay", "--rate-class", "slow", "--backoff-base", "1",
        "--backoff-cap", "9", "--jitter", "none", "--until", "2030-01-01", *WHY, "--confirm",
    )  # fmt: skip
    rule = Rule.objects.get()
    assert (rule.rate_class, rule.backoff_cap, rule.valid_until) == (made, 9, datetime(2030, 1, 1, tzinfo=UTC))
    ask("add_rule", "slowly", "--then", "hold", "--until", "off", *WHY, "--confirm")
    rule.refresh_from_db()
    assert (rule.rate_class, rule.backoff_cap, rule.valid_until) == (None, None, None)
    assert ask("add_rate_class", "slow", "--rate", "off", *WHY).endswith("slow is changed with --confirm.\n")
    said = [one.before.get("rate class") for one in AuditEntry.objects.filter(rule=None)]
    assert said == ["slow"]


NEW = ("add_rule", "new", *WHY)
ALL = (*NEW, "--every-message")
HOLD, REPLAY = (*ALL, "--then", "hold"), (*ALL, "--then", "replay")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((*NEW, "--when", "body:x exists"), "The rule new is new, so it needs an action. Add: --then ACTION"),
        ((*NEW, "--then", "hold"), "The rule new is new, so it needs conditions. Add --when CONDITION, or"),
        ((*ALL, "--then", "delay"), "Set or remove it (--delay SECONDS)."),
        ((*ALL, "--then", "divert"), "needs the target that messages go to"),
        ((*HOLD, "--delay", "5"), "needs a delay above 0"),
        ((*NEW, "--when", "colour equals red", "--then", "hold"), '"colour equals red" is not a condition'),
        ((*NEW, "--when", "body:x regex (", "--then", "hold"), "RE2 refuses the regex"),
        ((*REPLAY, "--to", "nowhere"), 'No target is named "nowhere".'),
        ((*REPLAY, "--to", "ftp://x"), "is not the URL of a queue"),
        ((*REPLAY, "--to", "orders"), "is watched, as orders"),
        ((*HOLD, "--dlq", "none"), 'No DLQ is named "none".'),
        ((*REPLAY, "--rate-class", "x"), 'No rate class is named "x".'),
        ((*REPLAY, "--backoff-cap", "5"), "Add: --backoff-base SECONDS"),
        ((*REPLAY, "--backoff-base", "9", "--backoff-cap", "5"), "Raise"),
        ((*REPLAY, "--backoff-base", "off", "--jitter", "full"), "off removes the backoff"),
        ((*HOLD, "--from", "2030-01-02", "--until", "2030-01-01"), "before it begins"),
        ((*HOLD, "--from", "soon"), "'soon' is not a time"),
        ((*HOLD, "--from", "0001-01-01T00:00+14:00"), "is not a time"),
        ((*HOLD, "--until", "9999-12-31T23:59-14:00"), "is not a time"),
        ((*HOLD, "--when", "body:x exists"), "Leave out one of them."),
        # What a shell makes of a variable that is not set.
        ((*HOLD, "--dlq", ""), 'No DLQ is named "".'),
        ((*REPLAY, "--rate-class", ""), 'No rate class is named "".'),
        ((*REPLAY, "--to", ""), 'No target is named "".'),
        (("test_rules", "--rule", ""), 'No rule is named "".'),
        (("test_rules", "--dlq", ""), 'No DLQ is named "".'),
        (("enable_rule", "none", *WHY), 'No rule is named "none". None has been added yet. Add one: '),
        (("test_rules", "--rule", "none"), 'No rule is named "none".'),
    ],
)
def test_what_cannot_be_meant_is_refused_in_a_sentence(arguments: tuple[str, ...], said: str, add_row: AddRow) -> None:
    row = add_row("orders")
    Target.objects.create(arn=row.arn, url=row.url, region="us-east-1")
    assert said in refusal(*arguments)
    assert not Rule.objects.exists()


def test_a_rule_is_enabled_and_disabled_with_a_reason(ask: Ask, add_row: AddRow) -> None:
    source = add_source(add_row("orders"))
    add_letter(source, LetterState.CAPTURED, body=b'{"kind": "bad"}')
    ask(*BAD, "--confirm")
    said = ask("enable_rule", "bad", *WHY)
    assert "bad (quarantine) would act on 1 message (1 captured)" in said
    assert said.endswith("This was a dry run: bad is enabled with --confirm.\n")
    assert ask("enable_rule", "bad", *WHY, "--confirm") == "bad is enabled.\n"
    assert ask("enable_rule", "bad", *WHY, "--confirm") == "bad was enabled already: nothing to change.\n"
    assert ask("disable_rule", "bad", *WHY, "--confirm") == "bad is disabled.\n"
    assert list(AuditEntry.objects.order_by("id").values_list("act", "after")) == [
        ("added", AuditEntry.objects.order_by("id")[0].after),
        ("changed", {"rule": "bad", "enabled": True}),
        ("changed", {"rule": "bad", "enabled": False}),
    ]


@pytest.mark.django_db(transaction=True)
def test_disabling_puts_back_what_the_rule_quarantined_when_told_to(ask: Ask, add_row: AddRow) -> None:
    source = add_source(add_row("orders"))
    ask(*BAD, "--enable", "--confirm")
    row = Rule.objects.get()
    values: dict[str, Any] = {"planned": True, "sequence": "1", "reason": "quarantined", "rule": row, "detail": "bad"}
    mine = add_letter(source, LetterState.PARKED, lane=add_lane(source), **values)
    other = add_letter(source, LetterState.PARKED, lane=add_lane(source), planned=True, sequence="1")
    assert "To be released: 1 message that it quarantined." in ask("disable_rule", "bad", "--release", *WHY)
    assert "Released: 1 message." in ask("disable_rule", "bad", "--release", *WHY, "--confirm")
    states = dict(Letter.objects.values_list("pk", "state"))
    assert (states[mine.pk], states[other.pk]) == ("waiting", "parked")


@pytest.mark.django_db(transaction=True)
def test_a_rule_whose_queue_is_watched_by_now_is_not_enabled(ask: Ask, add_row: AddRow) -> None:
    arn, url = "arn:aws:sqs:us-east-1:000000000000:own", "http://127.0.0.1:9/000000000000/own"
    Target.objects.create(arn=arn, url=url, region="us-east-1")
    ask("add_rule", "out", "--every-message", "--then", "divert", "--to", "own", *WHY, "--confirm")
    add_row("own")
    assert "own is watched, as own: messages sent there would be captured" in refusal(
        "enable_rule", "out", *WHY, "--confirm"
    )
    assert not Rule.objects.get().enabled


def test_the_same_moment_in_another_zone_changes_nothing(ask: Ask) -> None:
    ask(*BAD, "--until", "2030-01-01T00:00Z", "--confirm")
    assert ask(*BAD, "--until", "2030-01-01T02:00+02:00", "--confirm").endswith("bad: nothing to change.\n")


def test_a_rule_that_is_removed_leaves_its_reviews_and_its_letters(ask: Ask, add_row: AddRow) -> None:
    source = add_source(add_row("orders"))
    ask(*BAD, "--enable", "--confirm")
    letter = add_letter(source, LetterState.WAITING, rule=Rule.objects.get(), route="hold", rulebook_version=1)
    assert "dry run" in ask("remove_rule", "bad", *WHY)
    assert ask("remove_rule", "bad", *WHY, "--confirm") == "bad is removed.\n"
    letter.refresh_from_db()
    assert (Rule.objects.count(), letter.rule_id, letter.route) == (0, None, "")
    assert AuditEntry.objects.order_by("id")[1].before["conditions"] == ["body:kind equals bad"]


def test_the_rules_are_listed_in_the_order_in_which_they_are_asked(ask: Ask, ask_json: AskJson) -> None:
    assert ask("list_rules") == "There are no rules.\n"
    ask(*BAD, "--confirm")
    ask("add_rule", "first", "--every-message", "--then", "delay", "--delay", "5", "--position", "1", "--enable", *WHY,
        "--confirm")  # fmt: skip
    said = ask("list_rules")
    assert [line.split()[:3] for line in said.splitlines()[1:]] == [["1", "first", "in"], ["100", "bad", "disabled"]]
    assert "  delay for 5 s  " in said
    found = ask_json("list_rules")
    assert [(one["name"], one["holds"], one["delay"]) for one in found["rules"]] == [
        ("first", True, 5), ("bad", False, None),
    ]  # fmt: skip


def test_all_rules_together_are_tried_on_the_letters_of_the_last_days(
    add_row: AddRow, ask: Ask, ask_json: AskJson
) -> None:
    source = add_source(add_row("orders"))
    add_letter(source, LetterState.WAITING, body=b'{"kind": "bad"}')
    add_letter(source, LetterState.WAITING, body=b'{"kind": "good"}')
    assert ask("test_rules").endswith("No rule is in force. To see all rules: manage.py list_rules\n")
    ask(*BAD, "--enable", "--confirm")
    found = ask_json("test_rules")
    assert (found["messages"], found["unmatched"]) == (2, 1)
    assert [(one["rule"], one["would_act_on"]) for one in found["rules"]] == [("bad", 1)]
    assert ask_json("test_rules", "--rule", "bad", "--dlq", "orders", "--days", "1")["rules"] == found["rules"]
