"""A person closes a breaker, or opens it: with a reason, and the review in the same statement."""

from __future__ import annotations

from datetime import timedelta

import pytest

from reprocessing.domain.lifecycle import LetterState
from reprocessing.models import Attempt, AuditAct, AuditEntry, Breaker, DeadLetterQueue, RateClass, Rule, Source, Target
from reprocessing.store.ordering.lanes import database_now
from reprocessing.store.safety import circuit_breakers
from tests.reprocessing.commands.conftest import AddRow, Ask, AskJson
from tests.reprocessing.commands.refusals import refusal
from tests.reprocessing.commands.stock import add_lane, add_letter, add_source

pytestmark = pytest.mark.django_db
WHY = ("--reason", "the shop is mended", "--by", "ann")


@pytest.fixture
def shop(orders: DeadLetterQueue) -> Target:
    """The target of orders, its breaker open for another minute."""
    source = add_source(orders, rate=10)
    Breaker.objects.update(
        state="open",
        retry_at=database_now() + timedelta(minutes=1),
        epoch=3,
        current_cooldown=60,
        why="5 messages in a row failed",
        ramp=1,
    )
    return source.target


def test_a_dry_run_tells_how_it_stands_and_changes_nothing(ask: Ask, shop: Target) -> None:
    before = Breaker.objects.values().get()
    said = ask("reset_breaker", "orders", *WHY)
    assert "shop: OPEN since" in said
    assert ": 5 messages in a row failed; next canary at" in said
    assert "This was a dry run: with --confirm the breaker would be closed, and the rate would ramp up again." in said
    assert "would be open for 30 seconds" in ask("reset_breaker", "orders", *WHY, "--open")
    assert "would be open for 5 seconds" in ask("reset_breaker", "orders", *WHY, "--open", "--for", "5")
    assert Breaker.objects.values().get() == before
    assert not AuditEntry.objects.exists()


def test_a_closed_one_lets_letters_go_ramps_up_anew_and_says_who_closed_it(ask: Ask, shop: Target) -> None:
    said = ask("reset_breaker", "orders", *WHY, "--confirm")
    assert "shop: closed since" in said
    assert 'closed by ann: "the shop is mended"; 1 of 10 messages/s allowed now' in said
    assert "Closed the breaker: messages are sent again, and the rate ramps up." in said
    row = Breaker.objects.get()
    assert (row.state, row.epoch, row.retry_at, row.current_cooldown, row.ramp) == ("closed", 4, None, 0, 0.1)
    review = AuditEntry.objects.get()
    assert (review.act, review.target, review.by, review.reason) == (AuditAct.RESET, shop, "ann", "the shop is mended")
    assert {name: review.before[name] for name in ("breaker", "state", "why", "epoch", "ramp")} == {
        "breaker": "shop", "state": "open", "why": "5 messages in a row failed", "epoch": 3, "ramp": 1,
    }  # fmt: skip
    assert review.after == {"breaker": "shop", "state": "closed", "epoch": 4, "retry_at": None, "ramp": 0.1}


def test_an_opened_one_rests_for_as_long_as_was_said(ask: Ask, shop: Target) -> None:
    before = database_now()
    for epoch, given, seconds in ((4, ("--for", "600"), 600), (5, (), 30)):
        ask("reset_breaker", "orders", *WHY, "--open", *given, "--confirm")
        row = Breaker.objects.get()
        assert row.since >= before
        assert row.retry_at == row.since + timedelta(seconds=seconds)
        assert (row.state, row.epoch, row.current_cooldown, row.ramp) == ("open", epoch, 30, 1)


def test_what_was_seen_before_no_longer_counts(ask: Ask, shop: Target) -> None:
    source = Source.objects.get()
    lane = add_lane(source)
    letter = add_letter(source, LetterState.WAITING, lane=lane)
    breaker = Breaker.objects.get()
    ask("reset_breaker", "orders", *WHY, "--confirm")
    for number, epoch in enumerate([3, 3, 3, 3, 4]):
        Attempt.objects.create(
            letter=letter, lane=lane, target=shop, no=number, epoch=0, fence=1, opened_at=database_now(),
            holds_lane=False,
            breaker=breaker, breaker_epoch=epoch, counts_as_failure=True, outcome="refused", closed_at=database_now(),
        )  # fmt: skip
    assert circuit_breakers.move_breakers([breaker.pk]) == []


def test_one_target_of_several_is_named_by_its_arn_or_its_name_those_of_rules_included(
    ask: Ask, orders: DeadLetterQueue, shop: Target, add_row: AddRow
) -> None:
    mail = add_source(orders, "mail").target
    for named in (str(shop), shop.arn):
        ask("reset_breaker", "orders", "--target", named, *WHY, "--open", "--confirm")
    assert [Breaker.objects.get(target=one).epoch for one in (shop, mail)] == [5, 0]
    assert "Closed the 2 breakers" in ask("reset_breaker", "orders", *WHY, "--confirm")
    assert [Breaker.objects.get(target=one).epoch for one in (shop, mail)] == [6, 1]
    assert AuditEntry.objects.count() == 4
    for name, dlq in (("aside", orders), ("any", None), ("other", add_row("mails"))):
        other = Target.objects.create(arn=f"arn:aws:sqs:us-east-1:000000000000:{name}", url="u", region="x")
        Rule.objects.create(name=name, dlq=dlq, action="divert", target=other, created_by="ann")
    assert refusal("reset_breaker", "orders", "--target", "nowhere", *WHY) == (
        'orders has no target named "nowhere". It has: any, aside, mail, shop.'
    )


def test_classes_of_letters_follow_or_are_named(ask: Ask, ask_json: AskJson, shop: Target) -> None:
    vip, slow = (RateClass.objects.create(name=name) for name in ("vip", "slow"))
    for one in (vip, slow):
        Breaker.objects.create(target=shop, rate_class=one)
    ask("reset_breaker", "orders", "--rate-class", "vip", *WHY, "--open", "--confirm")
    epochs = dict(Breaker.objects.values_list("rate_class__name", "epoch"))
    assert epochs == {None: 3, "vip": 1, "slow": 0}
    said = ask_json("reset_breaker", "orders", *WHY, "--confirm")
    assert [one["name"] for one in said["breakers"]] == ["shop", "shop, slow", "shop, vip"]
    assert dict(Breaker.objects.values_list("rate_class__name", "epoch")) == {None: 4, "vip": 2, "slow": 1}


def test_dlqs_that_share_a_target_are_named(ask: Ask, shop: Target, add_row: AddRow) -> None:
    Source.objects.create(dlq=add_row("mails"), arn=shop.arn, target=shop)
    assert "Messages of mails go to the same targets." in ask("reset_breaker", "orders", *WHY)


def test_a_program_reads_how_they_stand(ask_json: AskJson, shop: Target) -> None:
    said = ask_json("reset_breaker", "orders", *WHY)
    (breaker,) = said.pop("breakers")
    assert said == {"dlq": "orders", "dry_run": True, "to": "closed", "shared_with": []}
    assert breaker.pop("since").endswith("Z")
    assert breaker.pop("next_canary_at").endswith("Z")
    assert breaker == {
        "name": "shop", "rate_class": None, "state": "open", "why": "5 messages in a row failed", "rate": 10,
        "allowed_rate": 0, "ramp": 1, "ramp_reason": "full rate",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--for", "5"), "Add --open, or leave out --for"),
        (("--open", "--for", "0"), "is not a number of at least 0.1"),
        (("--open", "--for", "soon"), "is not a number"),
        (("--open", "--for", "\uff11\uff10"), "is not a number"),
        (("--rate-class", "vip"), 'No rate class is named "vip". None has been added'),
    ],
)
def test_what_is_not_meant_so_is_refused(shop: Target, arguments: tuple[str, ...], said: str) -> None:
    assert said in refusal("reset_breaker", "orders", *arguments, *WHY, "--confirm")
    row = Breaker.objects.get()
    assert (row.state, row.epoch, row.ramp) == ("open", 3, 1)


def test_a_class_without_letters_and_a_lack_of_reason_are_told(orders: DeadLetterQueue) -> None:
    add_source(orders)
    RateClass.objects.create(name="vip")
    why = "No messages of vip were sent to a target of orders"
    assert why in refusal("reset_breaker", "orders", "--rate-class", "vip", *WHY)
    assert "--reason" in refusal("reset_breaker", "orders", "--confirm")
