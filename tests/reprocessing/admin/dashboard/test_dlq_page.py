from __future__ import annotations

import html
import re
from datetime import timedelta

import pytest
from django.test import Client

from reprocessing.admin.dashboard import dlq_row
from reprocessing.domain.lifecycle import LetterState, ParkedReason
from reprocessing.models import Breaker, DeadLetterQueue, FailureGroup, Letter, Run, Source, Target
from reprocessing.store.ordering.lanes import database_now
from reprocessing.store.runs import run_transitions
from tests.reprocessing.admin.parking_lot.parked_messages import (
    LOOKS,
    dlq,
    failure_group,
    held_copy,
    parked,
    person,
    tried_again,
)

pytestmark = pytest.mark.django_db

SEES = (*LOOKS, "view_deadletterqueue")
LIVE = {"HX-Request": "true"}


@pytest.fixture
def ann() -> Client:
    return person("ann", *SEES)


@pytest.fixture
def shop() -> Source:
    return dlq("shop")


def _page(client: Client) -> str:
    """Return the part of the page of the DLQ `shop` that refreshes itself."""
    answer = client.get(f"/admin/board/{DeadLetterQueue.objects.get(name='shop').pk}", headers=LIVE)
    assert answer.status_code == 200
    return answer.content.decode()


def _count(page: str, what: str) -> tuple[int, str]:
    found = re.search(rf'<a href="([^"]+)"><b>([\d,]+)</b> {re.escape(what)}</a>', page)
    assert found, what
    return int(found[2].replace(",", "")), html.unescape(found[1])


@pytest.mark.soak
def test_numbers_link_to_their_messages(ann: Client, shop: Source) -> None:
    for number in range(3):
        parked(shop, key=f"k{number}")
    parked(shop, reason="stale")
    parked(dlq("another"), reason="refused")
    for state, finished, presumed in (
        (LetterState.CAPTURED, None, False), (LetterState.DELIVERED, database_now(), True),
        (LetterState.DELIVERED, database_now(), False), (LetterState.DELIVERED, database_now(), False),
    ):  # fmt: skip
        letter = parked(shop)
        Letter.objects.filter(pk=letter.pk).update(state=state, reason="", finished_at=finished, presumed=presumed)
    page = _page(ann)
    found = {
        ParkedReason.ATTEMPTS_SPENT.label: 3, ParkedReason.STALE.label: 1, "captured": 1,
        "presumed delivered": 1, "delivered": 2,
    }  # fmt: skip
    assert {what: _count(page, what)[0] for what in found} == found
    for what, n in found.items():
        listed = ann.get(_count(page, what)[1])
        told = listed.context["cl"].result_count if "cl" in listed.context else len(listed.context["lines"])
        assert (listed.status_code, told) == (200, n)


def test_card_shows_age_expiry_mode_runs_and_breakers(ann: Client, shop: Source) -> None:
    letter = parked(shop)
    Letter.objects.filter(pk=letter.pk).update(state=LetterState.WAITING, reason="", finished_at=None)
    held_copy(letter, visible_until=database_now() + timedelta(hours=1))
    DeadLetterQueue.objects.filter(pk=shop.dlq.pk).update(
        depth_visible=1_200, depth_in_flight=7, depth_at=database_now(), last_error="AccessDenied", mode="automatic"
    )
    Run.objects.create(name="mend-17", dlq=shop.dlq, state="paused", stopped_by="redrive", why="9 of 10 failed")
    Breaker.objects.filter(target=shop.target).update(
        state="open", why="5 messages in a row failed", retry_at=database_now()
    )
    page = _page(ann)
    for told in (
        "1,200 visible, 7 in flight", "1 h 0 min", "2 h 59 min", "automatic", "AccessDenied", "mend-17",
        "9 of 10 failed", "circuit breaker open, canaries only", "5 messages in a row failed",
    ):  # fmt: skip
        assert told in page, told
    assert '<div class="bad"><dt>Next to expire</dt>' in page


def test_uncaptured_messages_link_to_a_plan_in_mode_manual(ann: Client, shop: Source) -> None:
    DeadLetterQueue.objects.filter(pk=shop.dlq.pk).update(
        depth_visible=12, depth_in_flight=0, depth_at=database_now(), retention=4 * 86_400
    )
    page = _page(ann)
    assert _count(page, "in SQS, not captured: plan a run…") == (12, f"/admin/reprocessing/run/add/?dlq={shop.dlq_id}")
    assert "SQS deletes a message about 4 days after it was first sent. Planning a run" in page
    assert "card-wary" in page
    DeadLetterQueue.objects.update(mode="automatic")
    assert "not captured" not in _page(ann)


def test_largest_failure_groups_are_linked() -> None:
    shop = dlq("shop")
    for title, letters in (("KeyError", 2), ("Timeout", 4), ("JSON with id", 3), ("rare", 1)):
        group = failure_group(shop, title)
        for _ in range(letters):
            Letter.objects.filter(pk=parked(shop).pk).update(group=group)
    page = _page(person("ann", *SEES, "view_failuregroup"))
    assert [title for title in ("KeyError", "Timeout", "JSON with id", "rare") if title in page][-1] != "rare"
    more = f'<a href="/admin/reprocessing/failuregroup/?dlq={shop.dlq_id}&amp;status=open">and 1 more</a>'
    assert more in page
    n, address = _count(page, "Timeout")
    timeouts = FailureGroup.objects.get(title="Timeout")
    assert (n, address) == (4, f"/admin/reprocessing/failuregroup/{timeouts.pk}/change/")
    assert "<h3>Failure groups</h3>" not in _page(person("bob", *SEES))


def test_automatic_run_is_shown_when_busy_or_paused(ann: Client, shop: Source) -> None:
    run = Run.objects.create(name="automatic:1", dlq=shop.dlq, kind="automatic", state="running")
    assert "automatic:1" not in _page(ann)
    letter = parked(shop)
    Letter.objects.filter(pk=letter.pk).update(state=LetterState.WAITING, reason="", finished_at=None, run=run)
    assert "automatic:1" in _page(ann)
    Letter.objects.filter(pk=letter.pk).update(state=LetterState.DELIVERED, finished_at=database_now())
    Run.objects.filter(pk=run.pk).update(state="paused", stopped_by="ben", why="it rained")
    assert "automatic:1" in _page(ann)


def test_messages_without_an_active_run_need_review(ann: Client, shop: Source) -> None:
    """Those of no run that goes, and those of a paused one; where a run is at work, it may take them up."""
    letter = Letter.objects.filter(pk=parked(shop).pk)
    letter.update(state=LetterState.CAPTURED, lane=None, reason="", finished_at=None)
    page = _page(ann)
    plan = f"/admin/reprocessing/run/add/?dlq={shop.dlq_id}"
    assert _count(page, "captured or queued, in no active run: plan a run…") == (1, plan)
    assert '<span class="chip chip-warm">1 to review</span>' in page
    run = Run.objects.create(name="mend-17", dlq=shop.dlq, state="running", asked_by="ann", started_at=database_now())
    letter.update(run=run)
    assert "to review" not in _page(ann)
    Run.objects.filter(pk=run.pk).update(state="paused", stopped_by="ben", why="it rained")
    page = _page(ann)
    assert _count(page, "in the paused run mend-17") == (1, f"/admin/reprocessing/run/{run.pk}/change/")
    assert '<span class="chip chip-warm">1 to review</span>' in page


def test_queued_messages_of_an_aborted_run_need_review(ann: Client, shop: Source) -> None:
    """Sent messages of the run do not: their outcomes are recorded without a run."""
    run = Run.objects.create(name="mend-17", dlq=shop.dlq, state="running", asked_by="ann", started_at=database_now())
    for state in (LetterState.WAITING, LetterState.WAITING, LetterState.AWAITING):
        letter = Letter.objects.filter(pk=parked(shop).pk)
        letter.update(state=state, reason="", finished_at=None, run=run)
    assert "to review" not in _page(ann)
    run_transitions.abort(run, by="ann", reason="it rained", stop_dlq=False)
    page = _page(ann)
    plan = f"/admin/reprocessing/run/add/?dlq={shop.dlq_id}"
    assert _count(page, "captured or queued, in no active run: plan a run…") == (2, plan)
    assert '<span class="chip chip-warm">2 to review</span>' in page


def test_messages_of_a_paused_run_are_counted_up_to_a_limit(
    ann: Client, shop: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dlq_row, "MAX_COUNTED", 2)
    run = Run.objects.create(name="mend-17", dlq=shop.dlq, state="paused", stopped_by="ben", why="it rained")
    shown = []
    for _ in range(3):
        Letter.objects.filter(pk=parked(shop).pk).update(state="waiting", reason="", finished_at=None, run=run)
        page = _page(ann)
        shown.append(re.findall(r"chip-warm\">(.*?) to review|<b>([^<]*)</b> in the paused run", page))
    assert shown == [[(n, ""), ("", n)] for n in ("1", "2", "2+")]


def test_visible_copies_of_captured_messages_do_not_count(ann: Client, shop: Source) -> None:
    """Nor what was counted before a capture that ran dry."""
    watched = DeadLetterQueue.objects.filter(pk=shop.dlq_id)
    watched.update(depth_visible=60, depth_in_flight=0, depth_at=database_now())
    letter = parked(shop)
    held_copy(letter, visible_until=database_now() - timedelta(hours=1))
    assert _count(_page(ann), "in SQS, not captured: plan a run…")[0] == 59
    watched.update(drained_through=database_now())
    assert "not captured" not in _page(ann)


def test_groups_with_one_title_are_distinguished() -> None:
    shop = dlq("shop")
    since = database_now().replace(year=2026, month=3, day=1, hour=9, minute=30)
    groups = [failure_group(shop, "Text", first_at=since) for _ in range(2)]
    for group in groups:
        Letter.objects.filter(pk=parked(shop).pk).update(group=group)
    page = _page(person("ann", *SEES, "view_failuregroup"))
    apart = [f"Text (group {group.pk}, since 2026-03-01 09:30 UTC)" for group in groups]
    addresses = [f"/admin/reprocessing/failuregroup/{group.pk}/change/" for group in groups]
    assert [_count(page, title) for title in apart] == [(1, address) for address in addresses]
    assert "more</a>" not in page


def test_parked_message_is_not_unfinished() -> None:
    ann, letter = person("ann", *SEES), parked(dlq("shop"))
    oldest = "<dt>Oldest unfinished message</dt><dd>{}</dd>"
    assert oldest.format("none") in _page(ann)
    Letter.objects.filter(pk=letter.pk).update(state=LetterState.WAITING, reason="", finished_at=None)
    assert oldest.format("1 h 0 min") in _page(ann)


@pytest.mark.parametrize(("minutes", "meant"), [(1, ""), (2, ": its consumer may be stopped")])
def test_queue_without_consumer_is_named(minutes: int, meant: str) -> None:
    ann, letter = person("ann", *SEES), parked(dlq("shop"))
    assert letter.target
    Target.objects.filter(pk=letter.target.pk).update(proof="absence", watched_by=letter.dlq_id, window=30)
    taken_at = database_now() - timedelta(minutes=minutes)
    tried_again(letter, taken_at=taken_at, deadline=taken_at + timedelta(seconds=30), holds_lane=True)
    since = f"it received the oldest message, at {taken_at:%Y-%m-%d %X} UTC{meant}</small>"
    assert f"Oldest sent message waits for: shop-source has not been empty since {since}" in _page(ann)


def test_whole_page_has_the_chart_of_the_dlq_and_a_link_to_its_settings(ann: Client, shop: Source) -> None:
    parked(shop)
    parked(dlq("other"))
    answer = ann.get(f"/admin/board/{shop.dlq_id}")
    page = answer.content.decode()
    assert answer.headers["Vary"] == "HX-Request, Cookie"
    assert (
        f'<a class="aside" href="/admin/reprocessing/deadletterqueue/{shop.dlq_id}/change/">Settings and actions</a>'
        in page
    )
    assert f'hx-get="/admin/hours?dlq={shop.dlq_id}"' in page
    assert answer.context["chart"].totals == [(0, "captured", 1)]
    assert {ann.get(f"/admin/board/{number}").status_code for number in (999_999, 2**63)} == {404}
    assert person("ben", *LOOKS).get(f"/admin/board/{shop.dlq_id}").status_code == 403
