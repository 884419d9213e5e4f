from __future__ import annotations

import html
import re
from datetime import timedelta

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from reprocessing.admin.dashboard import dlq_row, table_query
from reprocessing.domain.lifecycle import LetterState
from reprocessing.domain.runs.selection import ALL_LETTERS
from reprocessing.models import Attempt, Breaker, DeadLetterQueue, DlqCopy, HourlyCount, Incident, Letter, Run, Source
from reprocessing.pipeline.runs import request_plan
from reprocessing.store.ordering.lanes import database_now
from reprocessing.store.rights.visible_dlqs import EVERY_DLQ
from reprocessing.store.runs import run_transitions
from reprocessing.store.runs.plans import RunRequest
from reprocessing.store.safety import stops
from tests.reprocessing.admin.parking_lot.parked_messages import (
    LOOKS,
    dlq,
    held_copy,
    parked,
    person,
    post,
    tried_again,
)

pytestmark = pytest.mark.django_db

SEES = (*LOOKS, "view_deadletterqueue")
ALL = (*SEES, "view_breaker", "view_run", "view_incident", "operate_run", "stop_deadletterqueue")
LIVE = {"HX-Request": "true"}


@pytest.fixture
def ann() -> Client:
    return person("ann", *ALL)


@pytest.fixture
def shop() -> Source:
    return dlq("shop")


def _board(client: Client, query: str = "") -> str:
    answer = client.get(f"/admin/board{query}", headers=LIVE)
    assert answer.status_code == 200
    return answer.content.decode()


def _looked_at(page: str) -> str:
    return html.unescape(str(re.findall(r'id="board"[^>]* hx-get="([^"]+)"', page)[0]))


def _names(page: str) -> list[str]:
    return re.findall(r'<th scope="row"><a [^>]*>([^<]+)</a>', page)


def _row(page: str, name: str) -> list[str]:
    """Return the texts of a row's cells."""
    (row,) = (row for row in re.findall(r"<tr>.*?</tr>", page) if f">{name}</a></th>" in row)
    cells = re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row)
    return [" ".join(re.sub(r"<[^>]*>", " ", cell).split()) for cell in cells]


def _action(page: str) -> tuple[str, str]:
    """Return the label and the address of the only row's action."""
    (cell,) = re.findall(r'<td class="act">(.*?)</td>', page)
    found = re.fullmatch(r'<a id="a\d+" class="button" href="([^"]+)">(.*)</a>', cell)
    return (found[2], html.unescape(found[1])) if found else (cell, "")


def _figures(page: str) -> dict[str, str]:
    found = re.findall(r"<b>([^<]+)</b> <span>([^<]+)</span>", page)
    return {label: value for value, label in found}


def _set(source: Source, **values: object) -> None:
    DeadLetterQueue.objects.filter(pk=source.dlq_id).update(**values)


def _waiting(source: Source, **values: object) -> Letter:
    letter = parked(source)
    values = {"state": LetterState.WAITING, "reason": "", "finished_at": None, **values}
    Letter.objects.filter(pk=letter.pk).update(**values)
    letter.refresh_from_db()
    return letter


def test_row_shows_the_figures_of_its_dlq(ann: Client, shop: Source) -> None:
    held_copy(_waiting(shop, run=Run.objects.create(name="r", dlq=shop.dlq, state="running", asked_by="ann")))
    parked(shop)
    parked(dlq("other"))
    _set(shop, depth_visible=1_200, depth_in_flight=7, depth_at=database_now(), mode="automatic")
    HourlyCount.objects.create(dlq_id=shop.dlq_id, hour=database_now(), what="delivered", n=5)
    page = _board(ann)
    assert _row(page, "shop") == [
        "shop", "automatic", "1,207", "1", "1", "1 h 0 min", "2 h 59 min", "", "0 no limit", "closed", "Review 1",
    ]  # fmt: skip
    assert 'aria-label="24 h: 2 captured, 5 delivered, 0 failed again"' in page


def test_a_row_says_that_everything_is_stopped(ann: Client, shop: Source) -> None:
    DeadLetterQueue.objects.update(mode="automatic")
    assert "stopped everywhere" not in _board(ann)
    stops.stop(None, by="ann", reason="it burns")
    assert _row(_board(ann), "shop")[1] == "stopped everywhere automatic"


def test_figures_are_sums_and_link_to_the_filtered_table(ann: Client, shop: Source) -> None:
    other = dlq("other")
    for source, n in ((shop, 2), (other, 1)):
        for _ in range(n):
            parked(source)
    held_copy(_waiting(other, run=Run.objects.create(name="r", dlq=other.dlq, state="running", asked_by="ann")))
    hour = database_now().replace(minute=0, second=0, microsecond=0)
    for what, hours, n in (("delivered", 1, 7), ("failed", 0, 2), ("delivered", 24, 100)):
        HourlyCount.objects.create(dlq_id=shop.dlq_id, hour=hour - timedelta(hours=hours), what=what, n=n)
    page = _board(ann)
    assert _figures(page) == {
        "Needs review": "3", "In progress": "1", "Delivered in 24 h": "7", "Failed in 24 h": "2",
        "Oldest waiting": "1 h 0 min", "Next to expire": "2 h 59 min",
    }  # fmt: skip
    links = [html.unescape(link) for link in re.findall(r'<li[^>]*><a href="([^"]+)"><b>', page)]
    assert links == [
        "/admin/?state=review&sort=-review#dlqs", f"/admin/board/{other.dlq_id}#progress",
        f"/admin/board/{shop.dlq_id}#hours-1", f"/admin/board/{shop.dlq_id}#hours-2",
        "/admin/?sort=-oldest#dlqs", "/admin/?sort=expires#dlqs",
    ]  # fmt: skip
    for link in links:
        assert ann.get(link).status_code == 200


def test_urgent_dlqs_come_first(ann: Client) -> None:
    for name in ("calm", "wary", "broken", "busy"):
        dlq(name)
    parked(dlq("busier"))
    DeadLetterQueue.objects.filter(name="broken").update(last_error="AccessDenied")
    Breaker.objects.filter(target__arn__endswith="wary-source").update(state="open", retry_at=database_now())
    assert _names(_board(ann)) == ["broken", "wary", "busier", "busy", "calm"]


def test_table_is_filtered_and_sorted_by_the_address_and_stays_so_when_it_refreshes(ann: Client) -> None:
    team = Group.objects.create(name="payments")
    for name, n in (("shop-a", 1), ("shop-b", 3), ("mail", 2)):
        source = dlq(name)
        source.dlq.teams.set([team] if name != "shop-b" else [])
        for _ in range(n):
            parked(source)
    dlq("shop-empty")
    page = ann.get("/admin/?q=SHOP&state=review&sort=-review").content.decode()
    assert _names(page) == ["shop-b", "shop-a"]
    assert 'aria-sort="descending"' in page
    assert " of 2 DLQs that match, the most" not in page
    assert " of 2 DLQs that match" in page
    refreshed = ann.get(_looked_at(page), headers=LIVE).content.decode()
    assert _names(refreshed) == ["shop-b", "shop-a"]
    assert '<table id="dlqs" hx-swap-oob="true">' in refreshed
    assert _names(_board(ann, f"?team={team.pk}&sort=name")) == ["mail", "shop-a"]
    assert _names(_board(ann, "?q=nothing")) == []
    assert 'No DLQ matches. <a href="/admin/#dlqs">Show all DLQs</a>' in _board(ann, "?q=nothing")
    assert len(_names(_board(ann, "?q=%00&team=x&state=x&sort=--name&page=0"))) == 4


def test_large_table_has_pages(ann: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_query, "PAGE", 2)
    for number in range(5):
        dlq(f"dlq-{number}")
    page = _board(ann, "?sort=name&page=2")
    assert _names(page) == ["dlq-2", "dlq-3"]
    links = re.findall(r'<a href="([^"]+)">(Previous|Next)</a>', html.unescape(page))
    assert links == [("/admin/?sort=name#dlqs", "Previous"), ("/admin/?sort=name&page=3#dlqs", "Next")]
    assert _names(_board(ann, "?sort=name&page=9")) == ["dlq-4"]


@pytest.mark.soak
def test_next_action_is_the_most_urgent_one(ann: Client, shop: Source) -> None:
    """Each condition is more urgent than the one before."""
    here, breaker = "/admin/reprocessing", Breaker.objects.get(target=shop.target)
    run = Run.objects.create(name="r", dlq=shop.dlq, state="running", asked_by="ann")
    _waiting(shop, run=run)
    assert _action(_board(ann)) == ("Redriving", "")
    parked(shop)
    assert _action(_board(ann)) == ("Review 1", f"{here}/parkedletter/?dlq__id__exact={shop.dlq_id}")
    _set(shop, depth_visible=12, depth_in_flight=0, depth_at=database_now())
    assert _action(_board(ann)) == ("Drain 12", f"{here}/run/add/?dlq={shop.dlq_id}")
    _set(shop, mode="observe")
    assert _action(_board(ann)) == ("Change mode", "")  # this person may not change DLQs
    Run.objects.filter(pk=run.pk).update(state="paused", stopped_by="ben", why="it rained")
    assert _action(_board(ann)) == ("Resume run", f"{here}/run/{run.pk}/change/")
    Breaker.objects.filter(pk=breaker.pk).update(state="open", retry_at=database_now())
    assert _action(_board(ann)) == ("Check circuit breaker", f"{here}/breaker/{breaker.pk}/change/")
    _set(shop, last_error="The queue is gone.")
    assert _action(_board(ann)) == ("Fix problem", f"/admin/board/{shop.dlq_id}")
    _set(shop, last_error="AccessDenied: not authorized to perform sqs:ReceiveMessage")
    assert _action(_board(ann)) == ("Fix permissions", f"/admin/board/{shop.dlq_id}")
    _set(shop, aws_redrive_since=database_now(), aws_redrive_by="ben", aws_redrive_reason="why")
    assert _action(_board(ann)) == ("AWS redrives", "")
    _set(shop, stopped_at=database_now(), stopped_by="ben", stop_reason="why")
    assert _action(_board(ann)) == ("Resume…", f"{here}/deadletterqueue/{shop.dlq_id}/resume")
    assert _action(_board(person("bob", *SEES))) == ("Resume…", "")


def _review(page: str, name: str = "shop") -> tuple[str, str]:
    """Return what a row shows in the columns "Needs review" and "In progress"; the figures show the same."""
    row, shown = _row(page, name), _figures(page)
    assert (row[3] or "0", row[4] or "0") == (shown["Needs review"], shown["In progress"])
    return row[3], row[4]


def _run(source: Source, state: str, **values: object) -> Run:
    stopped = {"stopped_by": "ben", "why": "it rained"} if state == "paused" else {}
    name = f"run-{Run.objects.count()}"
    return Run.objects.create(name=name, dlq=source.dlq, state=state, asked_by="ann", **stopped, **values)


@pytest.mark.soak
def test_queued_messages_of_an_aborted_run_need_review(ann: Client, shop: Source) -> None:
    """A run that is planned without a new message takes the queued messages."""
    run = _run(shop, "running")
    letters = [_waiting(shop, run=run) for _ in range(2)]
    _waiting(shop, run=run, state=LetterState.AWAITING)
    assert _review(_board(ann)) == ("", "3")
    run_transitions.abort(run, by="ann", reason="it rained", stop_dlq=True)
    assert _review(_board(ann)) == ("2", "1")
    stops.resume(shop.dlq_id, by="ann", reason="the target is mended")
    page = _board(ann)
    assert _action(page) == ("Drain 2", f"/admin/reprocessing/run/add/?dlq={shop.dlq_id}")
    plan = request_plan.plan_run(shop.dlq, RunRequest("next", "ann", ALL_LETTERS), captures=False, seen=EVERY_DLQ)
    assert plan.selected == 0
    start = f"/admin/reprocessing/run/{plan.pk}/start/now"
    shown = ann.get(start)
    assert "The run takes over 3 unfinished messages of runs that have ended." in shown.content.decode()
    post(ann, start, reason="the target is mended", seen=shown.context["form"].initial["seen"])
    assert set(Letter.objects.filter(pk__in=[letter.pk for letter in letters]).values_list("run__name")) == {("next",)}
    assert _review(_board(ann)) == ("", "3")


def test_idle_automatic_run_of_a_manual_dlq_takes_no_messages(ann: Client, shop: Source) -> None:
    run, letter = _run(shop, "running", kind="automatic"), _waiting(shop)
    assert (_review(_board(ann)), _action(_board(ann))[0]) == (("1", ""), "Drain 1")
    Letter.objects.filter(pk=letter.pk).update(run=run)
    assert (_review(_board(ann)), _action(_board(ann))[0]) == (("", "1"), "Redriving")
    Letter.objects.filter(pk=letter.pk).update(run=None)
    _set(shop, mode="automatic")
    assert _review(_board(ann)) == ("", "1")


def test_a_large_paused_run_is_not_in_progress(ann: Client, shop: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    """If another run is running, the messages that were not counted are in neither number."""
    monkeypatch.setattr(dlq_row, "MAX_COUNTED", 2)
    paused = _run(shop, "paused")
    for _ in range(4):
        _waiting(shop, run=paused)
    parked(shop)
    assert _review(_board(ann)) == ("5", "")
    other = _run(shop, "running")
    assert _review(_board(ann)) == ("3+", "")
    for shown in ("1", "2", "2+"):
        _waiting(shop, run=other)
        assert _review(_board(ann)) == ("3+", shown)
    Run.objects.filter(pk=other.pk).update(kind="automatic")
    assert _review(_board(ann)) == ("3+", "2+")
    Letter.objects.filter(run=other).update(state="delivered", finished_at=database_now())
    assert _review(_board(ann)) == ("5", "")


def test_paused_run_up_to_the_limit_is_counted_exactly(
    ann: Client, shop: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dlq_row, "MAX_COUNTED", 2)
    paused, other = _run(shop, "paused"), _run(shop, "running")
    for run in (paused, paused, other, other, other):
        _waiting(shop, run=run)
    assert _review(_board(ann)) == ("2", "3")


def test_rate_is_that_of_the_own_messages_in_the_last_seconds(ann: Client, shop: Source) -> None:
    other = dlq("other")
    Source.objects.filter(pk=other.pk).update(target=shop.target)
    breaker = Breaker.objects.get(target=shop.target)
    Breaker.objects.filter(pk=breaker.pk).update(ramp=0.5)
    shop.target.rate = 8
    shop.target.save()
    runs = {source: Run.objects.create(name=source.arn, dlq=source.dlq, state="running") for source in (shop, other)}
    for source, seconds in ((shop, 1), (shop, 2), (shop, 30), (other, 1), (other, 1), (other, 1)):
        letter = _waiting(source, state=LetterState.SENDING)
        opened_at = database_now() - timedelta(seconds=seconds)
        tried_again(letter, breaker=breaker, opened_at=opened_at, target=shop.target, run=runs[source])
    assert Attempt.objects.filter(breaker=breaker).count() == 6
    assert {name: _row(_board(ann), name)[8] for name in ("shop", "other")} == {
        "shop": "0.2 of 4/s", "other": "0.3 of 4/s",
    }  # fmt: skip


def test_urgent_cards_name_the_first_dlqs_and_link_to_all(ann: Client) -> None:
    now = database_now()
    for number in range(5):
        _set(dlq(f"stopped-{number}"), stopped_at=now, stopped_by="ben", stop_reason="a migration")
    held_copy(_waiting(dlq("expires")))
    Incident.objects.create(
        kind="doctor_worse", subject="finding:clock", facts={"errors": 1, "warnings": 0, "finding": "A clock is wrong."}
    )
    page = _board(ann)
    assert re.findall(r"<h2>([^<]+)<", page) == ["Stopped ", "Expires within 24 h", "Errors of redrive_doctor"]
    cards = [re.sub(r"<[^>]*>", "", card) for card in re.findall(r"<p title=.*?</article>", page, re.DOTALL)]
    assert [" ".join(card.split()) for card in cards] == [
        f"DLQ stopped-0: by ben since {now:%Y-%m-%d %H:%M} UTC: a migration stopped-1, stopped-2, …",
        "DLQ expires: SQS deletes the first message in 2 h 59 min",
        "service: A clock is wrong. Run manage.py redrive_doctor",
    ]  # fmt: skip
    assert '<h2>Stopped <a href="/admin/?state=stopped#dlqs">all 5</a></h2>' in page
    assert "A clock is wrong." not in _board(person("bob", *SEES))


def test_member_of_a_team_sees_figures_cards_and_rates_of_the_own_dlqs_alone(shop: Source) -> None:
    team, others = Group.objects.create(name="payments"), Group.objects.create(name="others-secret")
    theirs = dlq("theirs")
    shop.dlq.teams.set([team, others])
    theirs.dlq.teams.set([others])
    for source, n in ((shop, 1), (theirs, 5)):
        for _ in range(n):
            parked(source)
        held_copy(_waiting(source, run=Run.objects.create(name=source.dlq.name, dlq=source.dlq, state="running")))
        for what in ("delivered", "failed"):
            HourlyCount.objects.create(dlq_id=source.dlq_id, hour=database_now(), what=what, n=n)
    Letter.objects.filter(dlq=theirs.dlq).update(first_sent_at=database_now() - timedelta(days=3))
    DlqCopy.objects.filter(dlq=theirs.dlq).update(expires_at=database_now() + timedelta(minutes=5))
    _set(theirs, stopped_at=database_now(), stopped_by="ben", stop_reason="theirs")
    Incident.objects.create(kind="doctor_worse", subject="finding:x", dlq=theirs.dlq, facts={"finding": "theirs"})
    user = User.objects.create_user("cid", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=ALL))
    user.groups.add(team)
    cid = Client()
    cid.force_login(user)
    page = cid.get("/admin/").content.decode()
    assert _figures(page) == {
        "Needs review": "1", "In progress": "1", "Delivered in 24 h": "1", "Failed in 24 h": "1",
        "Oldest waiting": "1 h 0 min", "Next to expire": "2 h 59 min",
    }  # fmt: skip
    assert re.findall(r"theirs|others-secret", page) == []
    assert ">payments</option>" in page
    assert [cid.get(f"/admin/{part}{theirs.dlq_id}").status_code for part in ("board/", "hours?dlq=")] == [404, 404]


@pytest.mark.soak
def test_number_of_statements_is_the_same_for_3_and_for_60_dlqs(ann: Client) -> None:
    counts = []
    for total in (3, 60):
        for number in range(DeadLetterQueue.objects.count(), total):
            source = dlq(f"dlq-{number}")
            source.dlq.teams.add(Group.objects.get_or_create(name=f"team-{number % 5}")[0])
            parked(source)
            held_copy(_waiting(source, state=LetterState.SENDING))
            _set(source, depth_visible=5, depth_in_flight=0, depth_at=database_now(), last_error="AccessDenied")
            Breaker.objects.filter(target=source.target).update(state="open", retry_at=database_now())
        for address in ("/admin/board", "/admin/"):
            ann.get(address)  # warm
            with CaptureQueriesContext(connection) as asked:
                assert ann.get(address).status_code == 200
            counts.append(len(asked))
    assert counts[:2] == counts[2:]


def test_dashboard_takes_a_permission() -> None:
    ben = person("ben", *LOOKS)
    dlq("shop")
    page = ben.get("/admin/").content.decode()
    assert "You may not see DLQs" in page
    assert 'id="board"' not in page
    assert ben.get("/admin/board", headers=LIVE).status_code == 403


def test_figures_after_logout_answer_401() -> None:
    assert Client().get("/admin/board", headers=LIVE).status_code == 401
    assert Client().get("/admin/").status_code == 302


def test_figures_leave_messages_for_the_next_page() -> None:
    ann = person("ann", *SEES, "stop_sends")
    token = ann.get("/admin/stop").cookies["csrftoken"].value
    ann.post("/admin/stop", {"reason": "an incident", "seen": "none", "csrfmiddlewaretoken": token})
    _board(ann)
    assert "nothing is sent until somebody resumes it" in ann.get("/admin/").content.decode()


def test_banner_is_sent_only_when_it_changed() -> None:
    ann, said = person("ann", *SEES), []
    look = _looked_at(ann.get("/admin/").content.decode())
    for does in (None, stops.stop, None, stops.resume, None):
        if does:
            does(None, by="bob", reason="an incident")
        page = ann.get(look, headers=LIVE).content.decode()
        banner = re.search(r'<div id="halt" hx-swap-oob="true">(.*?)</div>', page, re.DOTALL)
        said.append(banner and ("Everything is stopped" in banner[1], "Stop everything" in page))
        look = _looked_at(page)
    assert said == [None, (True, False), None, (False, True), None]
    assert '<div id="halt" hx-swap-oob="true">' in _board(ann)  # of a page from before there was a banner of its own


def test_empty_dashboard_says_the_next_step() -> None:
    assert '<a href="/admin/rights">your permissions</a>): each DLQ is checked' in _board(person("ann", *SEES))
    page = _board(person("eva", *SEES, "add_deadletterqueue", "view_discoveredqueue"))
    assert '<a href="/admin/reprocessing/deadletterqueue/add/">add a DLQ</a>' in page
    assert '<a href="/admin/reprocessing/discoveredqueue/">Discover the DLQs of your AWS accounts</a>' in page
