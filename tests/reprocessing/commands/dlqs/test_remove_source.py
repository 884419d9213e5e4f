"""A source is taken away only where nothing depends on it; its history stays, and naming it again brings it back."""

from __future__ import annotations

import re

import pytest

from reprocessing.domain.lifecycle import LanePhase, LetterState
from reprocessing.models import AuditEntry, DeadLetterQueue, Letter, Source
from reprocessing.pipeline.capture.find_source import Sources
from reprocessing.pipeline.parking_lot import act_on_parked
from tests.contract.queues import redrive_policy
from tests.reprocessing.commands.conftest import AddRow, Ask
from tests.reprocessing.commands.refusals import refusal
from tests.reprocessing.commands.stock import add_lane, add_letter, add_source
from tests.reprocessing.gateways.aws_endpoint import MakeQueue

pytestmark = pytest.mark.django_db
WHY = ("--reason", "the shop is gone", "--by", "ann")


@pytest.fixture
def shop(add_row: AddRow) -> Source:
    source = add_source(add_row("orders"))
    DeadLetterQueue.objects.update(default_source=source)
    return source


def refused(*words: str) -> str:
    return refusal("remove_source", *words, *WHY, "--confirm")


def test_one_that_finished_letters_alone_have_is_taken_away_and_their_history_stays(shop: Source, ask: Ask) -> None:
    letter = add_letter(shop, LetterState.DELIVERED)
    dry = "This was a dry run: with --confirm, shop is removed from orders."
    assert dry in ask("remove_source", "orders", "shop", *WHY)
    assert list(shop.dlq.sources.all()) == [shop]
    assert "shop is removed from orders." in ask("remove_source", "orders", shop.arn, *WHY, "--confirm")
    dlq = DeadLetterQueue.objects.get()
    assert (list(dlq.sources.all()), dlq.default_source) == ([], None)
    assert Sources(dlq).of(b"{}", {}, {"DeadLetterQueueSourceArn": shop.arn}) is None
    assert Letter.objects.get(pk=letter.pk).source == shop
    review = AuditEntry.objects.get()
    assert (review.by, review.reason, review.before, review.after) == (
        "ann", "the shop is gone", {"orders.source": shop.arn}, {"orders.source": None},
    )  # fmt: skip


@pytest.mark.parametrize(
    "state", [LetterState.CAPTURED, LetterState.WAITING, LetterState.SENDING, LetterState.AWAITING, LetterState.PARKED]
)
def test_one_that_an_unfinished_or_parked_letter_goes_back_to_is_refused(shop: Source, state: LetterState) -> None:
    add_letter(shop, state)
    said = refused("orders", "shop")
    assert f"messages of orders from shop are not finished: 1 {state}. Finish the run" in said
    assert list(shop.dlq.sources.all()) == [shop]


def test_a_letter_of_another_source_does_not_hinder_it(shop: Source, ask: Ask) -> None:
    other = add_source(shop.dlq, "market")
    add_letter(other, LetterState.CAPTURED)
    ask("remove_source", "orders", "shop", *WHY, "--confirm")
    assert list(shop.dlq.sources.all()) == [other]


def test_a_name_that_it_does_not_have_is_refused_with_those_there_are(shop: Source) -> None:
    assert refused("orders", "market") == f'orders has no source "market". It has: {shop.arn}.'


def test_a_discarded_letter_that_is_restored_is_not_released_before_it_is_named_again(shop: Source, ask: Ask) -> None:
    letter = add_letter(shop, LetterState.DISCARDED, lane=add_lane(shop, LanePhase.IDLE), planned=True, sequence="1")
    ask("remove_source", "orders", "shop", *WHY, "--confirm")
    act_on_parked.restore([letter.pk], by="ann", reason="needed")
    done = act_on_parked.release([letter.pk], by="ann", reason="needed")
    assert list(done.refused.values()) == [
        f"its source was removed; add it again: manage.py add_dlq orders --source {shop.arn} --confirm"
    ]
    Source.with_removed.update(removed_at=None)
    assert act_on_parked.release([letter.pk], by="ann", reason="needed").refused == {}


def test_a_queue_whose_redrive_policy_names_the_dlq_is_refused_until_it_does_not(
    make_queue: MakeQueue, ask: Ask
) -> None:
    dlq = make_queue(MessageRetentionPeriod="1209600")
    source = make_queue(RedrivePolicy=redrive_policy(dlq, 3))
    ask("add_dlq", "orders", "--url", dlq.url, "--confirm")
    assert re.search(f"the redrive policy of {source.name} still names orders", refused("orders", source.name))
    source.set(RedrivePolicy="")
    ask("remove_source", "orders", source.name, *WHY, "--confirm")
    assert not Source.objects.exists()
    ask("add_dlq", "orders", "--source", source.url, "--outcome", "accepted", "--confirm")
    assert [one.arn for one in Source.objects.all()] == [source.arn]
