"""The board: what is dying, since when, and what is left for people; every number leads to the letters behind it."""

from __future__ import annotations

import html
import re
from datetime import timedelta

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from reprocessing.domain.lifecycle import LetterState, ParkedReason
from reprocessing.models import Breaker, Custody, DeadLetter, DeadLetterQueue, Run
from reprocessing.models.lanes import clock
from tests.reprocessing.admin.lot import LOOKS, dlq, parked, person

pytestmark = pytest.mark.django_db

SEES = (*LOOKS, "view_deadletterqueue")
LIVE = {"HX-Request": "true"}


def _board(client: Client) -> str:
    answer = client.get("/admin/board", headers=LIVE)
    assert answer.status_code == 200
    return answer.content.decode()


def _count(page: str, what: str) -> tuple[int, str]:
    """A number of the board, and where it leads."""
    found = re.search(rf'<a href="([^"]+)"><b>([\d,]+)</b> {re.escape(what)}</a>', page)
    assert found, what
    return int(found[2].replace(",", "")), html.unescape(found[1])


def test_every_number_leads_to_the_letters_behind_it() -> None:
    ann, shop = person("ann", *SEES), dlq("shop")
    for number in range(3):
        parked(shop, key=f"k{number}")
    parked(shop, reason="stale")
    parked(dlq("another"), reason="refused")
    for state, finished in ((LetterState.CAPTURED, None), (LetterState.DELIVERED, clock())):
        letter = parked(shop)
        DeadLetter.objects.filter(pk=letter.pk).update(
            state=state, reason="", finished_at=finished, presumed=finished is not None
        )
    page = _board(ann)
    found = {
        ParkedReason.ATTEMPTS_SPENT.sentence: 3, ParkedReason.STALE.sentence: 1, "captured, not asked for": 1,
        "presumed delivered": 1,
    }  # fmt: skip
    assert {what: _count(page, what)[0] for what in found} == found
    for what, n in found.items():
        listed = ann.get(_count(page, what)[1])
        assert (listed.status_code, listed.context["cl"].result_count) == (200, n)


def test_it_tells_age_expiry_mode_runs_and_brakes() -> None:
    ann, shop = person("ann", *SEES), dlq("shop")
    letter = parked(shop)
    DeadLetter.objects.filter(pk=letter.pk).update(state=LetterState.WAITING, reason="", finished_at=None)
    Custody.objects.create(
        dlq=shop.dlq, message_id=letter.message_id, letter=letter, state="held", handle="h",
        visible_until=clock() + timedelta(hours=1),
    )  # fmt: skip
    DeadLetterQueue.objects.filter(pk=shop.dlq.pk).update(
        depth_visible=1_200, depth_in_flight=7, depth_at=clock(), trouble="AccessDenied", mode="automatic"
    )
    Run.objects.create(name="mend-17", dlq=shop.dlq, state="paused", stopped_by="redrive", why="9 of 10 failed")
    Breaker.objects.filter(target=shop.target).update(state="open", why="5 letters in a row failed", retry_at=clock())
    page = _board(ann)
    for told in (
        "1,200 visible, 7 in flight", "1 h 0 min", "2 h 59 min", "automatic", "AccessDenied", "mend-17",
        "9 of 10 failed", "breaker open, canaries only", "5 letters in a row failed",
    ):  # fmt: skip
        assert told in page, told
    assert '<div class="bad"><dt>First copy expires in</dt>' in page


def test_what_is_urgent_stands_first() -> None:
    ann = person("ann", *SEES)
    for name in ("calm", "wary", "ill", "busy"):
        dlq(name)
    parked(dlq("busier"))
    DeadLetterQueue.objects.filter(name="ill").update(trouble="AccessDenied")
    Breaker.objects.filter(target__arn__endswith="wary-origin").update(state="open", retry_at=clock())
    assert re.findall(r"/change/\">([a-z]+)</a></h2>", _board(ann)) == ["ill", "wary", "busier", "busy", "calm"]


def test_who_may_not_see_dlqs_sees_no_board() -> None:
    ben = person("ben", *LOOKS)
    dlq("shop")
    page = ben.get("/admin/").content.decode()
    assert "You may not see dlqs" in page
    assert 'id="board"' not in page
    assert ben.get("/admin/board", headers=LIVE).status_code == 403


def test_a_page_whose_person_has_left_is_refused_and_not_sent_to_log_in() -> None:
    assert Client().get("/admin/board", headers=LIVE).status_code == 401
    assert Client().get("/admin/").status_code == 302


def test_the_figures_take_no_message_that_another_page_is_to_show() -> None:
    ann = person("ann", *SEES, "stop_sends")
    token = ann.get("/admin/stop").cookies["csrftoken"].value
    ann.post("/admin/stop", {"reason": "an incident", "csrfmiddlewaretoken": token})
    _board(ann)
    assert "nothing is sent until somebody lets it go on" in ann.get("/admin/").content.decode()


def test_it_asks_the_same_number_of_questions_however_many_dlqs_there_are(
    django_assert_max_num_queries: DjangoAssertNumQueries,
) -> None:
    ann = person("ann", *SEES)
    parked(dlq("first"))
    with django_assert_max_num_queries(14) as few:
        _board(ann)
    for number in range(5):
        parked(dlq(f"dlq-{number}"))
    with django_assert_max_num_queries(14) as many:
        _board(ann)
    assert len(many) == len(few)


def test_no_dlq_yet_says_how_to_add_one() -> None:
    assert "manage.py add_dlq NAME" in _board(person("ann", *SEES))
