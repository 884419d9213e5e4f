from __future__ import annotations

import html
import re
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from pytest_django import DjangoAssertNumQueries, Settings

from reprocessing.admin.runs import run_progress
from reprocessing.domain.lifecycle import LetterState
from reprocessing.domain.runs.selection import ALL_LETTERS, Selection
from reprocessing.models import (
    AuditEntry,
    Breaker,
    DeadLetterQueue,
    Lane,
    Letter,
    Run,
    Source,
    Target,
    TargetCheck,
    Wave,
)
from reprocessing.pipeline.runs import drain, feed_run, plan
from reprocessing.store import rows
from reprocessing.store.ordering import lanes
from reprocessing.store.replay import send_rates
from reprocessing.store.runs import enlistment_batches, plan_figures, progress
from reprocessing.store.runs.plans import RunRequest
from reprocessing.store.safety import stops
from tests.reprocessing.admin.parking_lot.parked_messages import confirm, dlq, person, post, seen_state
from tests.reprocessing.commands.stock import add_lane, add_letter, add_sent

pytestmark = pytest.mark.django_db
OPERATES = ("view_run", "view_deadletterqueue", "operate_run", "stop_deadletterqueue")


@pytest.fixture(autouse=True)
def _brisk(settings: Settings) -> None:
    settings.REDRIVE = {"COUNT_LAG": 0}


@pytest.fixture
def source() -> Source:
    return dlq()


@pytest.fixture
def ann() -> Client:
    return person("ann", *OPERATES)


def _captured(source: Source, n: int = 3, **values: object) -> list[Letter]:
    found = []
    for number in range(n):
        given: dict[str, Any] = {
            "sequence": f"{number:06}",
            "key_hash": b"%d" % number,
            "planned": True,
            "single": True,
        }
        found.append(add_letter(source, LetterState.CAPTURED, **{**given, **values}))
    return found


def _plan(source: Source, name: str = "monday") -> Run:
    return drain.plan_run(source.dlq, RunRequest(name, "ann", ALL_LETTERS))


def _address(run: Run, rest: str = "change/") -> str:
    return f"/admin/reprocessing/run/{run.pk}/{rest}"


def test_plan_shows_targets_and_what_cannot_be_sent(source: Source, ann: Client) -> None:
    _captured(source)
    _captured(source, 2, blocked_reason="no_ordering_key")
    page = ann.get(_address(_plan(source))).content.decode()
    chosen = f"/admin/reprocessing/letter/?run__id__exact={Run.objects.get().pk}&amp;state__exact=captured"
    assert f'<dt>Messages</dt><dd><a href="{chosen}">3</a></dd>' in page
    assert "<b>3</b> to shop-dlq-source" in page
    assert "<b>2</b> No ordering key (this DLQ requires one): parked when the run starts." in page
    assert "all messages" in page
    assert "Assumes: no failures, and nothing else is sent to these targets; every wave succeeds" in page
    columns = page.partition('class="choices"')[2].partition("</ol>")[0]
    assert re.findall(r"<h3>([^<]*?)(?: <span|</h3>)", columns) == ["As configured", "At 10 messages/s", "All at once"]


def test_plan_shows_how_long_waves_wait(settings: Settings, source: Source, ann: Client) -> None:
    settings.REDRIVE = {**settings.REDRIVE, "COUNT_LAG": 34}  # twice that, and 2 s, are no more than a window of 70 s
    Target.objects.update(proof="absence", advance="accepted", window=70, watched_by=source.dlq)
    _captured(source, 14)
    run = drain.plan_run(source.dlq, RunRequest("monday", "ann", in_waves=True))
    page = ann.get(_address(run)).content.decode()
    assert (
        "then all; each waits about 2 minutes, until a capture of shop-dlq, one every 60 s, shows that nothing" in page
    )
    assert "shop-dlq is captured every 60 s, as its schedule says" in page
    assert "<dt>Takes</dt><dd>about 4 minutes</dd>" in page  # 70 s, two minutes, and 70 s for the last outcome


def test_plan_suggests_how_to_speed_up_long_key_queues(source: Source, ann: Client) -> None:
    _captured(source, 14, key_hash=b"one", single=False)
    run = drain.plan_run(source.dlq, RunRequest("monday", "ann"))
    page = ann.get(_address(run)).content.decode()
    assert "How to speed it up" not in page
    assert "sent anew after up to 13 later messages of its key" in page
    Target.objects.update(proof="absence", advance="settled", window=70, watched_by=source.dlq)
    page = ann.get(_address(run)).content.decode()
    assert "How to speed it up" in page
    assert "sent anew after" not in page
    assert "--advance accepted: " in page


def _renewed(client: Client, page: str) -> int:
    """The status of what a page asks for by itself."""
    return client.get(html.unescape(re.findall(r'hx-get="([^"]*)"', page)[0])).status_code


@pytest.mark.soak
def test_open_plan_is_renewed_once_a_minute(
    django_assert_num_queries: DjangoAssertNumQueries, monkeypatch: pytest.MonkeyPatch, source: Source, ann: Client
) -> None:
    _captured(source)
    run = _plan(source)
    page, now = ann.get(_address(run)).content.decode(), lanes.database_now()
    with django_assert_num_queries(5):  # session, user, permissions of both kinds, the run
        assert _renewed(ann, page) == 204
    monkeypatch.setattr(lanes, "database_now", lambda: now + timedelta(seconds=60))
    assert _renewed(ann, page) == 200
    monkeypatch.setattr(lanes, "database_now", lambda: now)
    assert _renewed(ann, page) == 204
    stops.stop(source.dlq_id, by="ben", reason="it burns")
    assert _renewed(ann, page) == 200
    stops.resume(source.dlq_id, by="ben", reason="it burns no more")
    Run.objects.update(selected=None)
    assert _renewed(ann, page) == 200
    Run.objects.update(selected=3, state="running")
    assert _renewed(ann, page) == 200
    assert ann.get(_address(run, "progress?plan=3@x@y")).status_code == 200


@pytest.mark.soak
def test_plan_queries_use_the_index_of_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    source = dlq()
    _captured(source, 2)
    run = drain.plan_run(source.dlq, RunRequest("monday", "ann", Selection(limit=2)))
    Letter.objects.bulk_create(
        Letter(
            dlq=source.dlq, source=source, target=source.target, message_id=f"another-{n}", state="captured",
            body_hash=b"hash", size=2, first_sent_at=source.dlq.added_at, planned=True, sequence=f"{n:06}",
            key_hash=b"another %d" % n, single=True,
        )
        for n in range(2_000)
    )  # fmt: skip
    plans, execute = list[str](), rows._execute

    def explained(cursor: Any, statement: Any, parameters: Any) -> None:  # noqa: ANN401  those of rows
        found = connection.connection.execute(f"EXPLAIN {statement}", parameters, binary=False)
        plans.append("\n".join(line for (line,) in found))
        execute(cursor, statement, parameters)

    with connection.cursor() as cursor:
        cursor.execute("ANALYZE redrive_letter")
        cursor.execute("SET LOCAL enable_seqscan = off")
    monkeypatch.setattr(rows, "_execute", explained)
    plan_figures.plan_figures_of(source.dlq_id, run=run.pk)
    plan_figures.blocked_counts(source.dlq_id, run=run.pk)
    plan_figures.target_figures(source.dlq_id, run=run.pk)
    found = [f"Index Cond: ((run_id = '{run.pk}'::bigint)" in one for one in plans]
    assert found == [True, False, True, True]  # the second is about the messages of ended runs


def test_plan_counts_later_arrivals(source: Source, ann: Client) -> None:
    _captured(source)
    run = _plan(source)
    assert "Arrived after the plan" not in ann.get(_address(run)).content.decode()
    _captured(source, 2)
    assert "<dt>Arrived after the plan</dt><dd>2<small>" in ann.get(_address(run)).content.decode()


def test_empty_plan_names_the_plan_with_its_messages() -> None:
    source, ben = dlq(), person("ben", *OPERATES)
    _captured(source, 3)
    first = _plan(source, "monday")
    page = ben.get(_address(_plan(source, "tuesday"))).content.decode()
    assert "No message to send" in page
    assert "<b>3</b> more: in the plan monday, which ann made and nobody has started" in page
    assert "in the plan" not in ben.get(_address(first)).content.decode()


def test_empty_plan_says_where_the_messages_are_and_offers_no_start(source: Source, ann: Client) -> None:
    add_letter(source, LetterState.PARKED)
    sending = feed_run.automatic_run(source.dlq)
    for _ in range(2):
        add_letter(source, LetterState.WAITING, run=sending, lane=add_lane(source, run=sending))
    Breaker.objects.update(state="open", retry_at=lanes.database_now() + timedelta(hours=1))
    run = _plan(source)
    page = ann.get(_address(run)).content.decode()
    parked = f"/admin/reprocessing/parkedletter/?dlq={source.dlq_id}"
    assert f'1 message of the DLQ is parked: <a href="{parked}">release it in the parking lot</a>.' in page
    assert f'2 messages belong to the run <a href="{_address(sending)}">{sending.name}</a>.' in page
    assert "The circuit breaker of shop-dlq-source is open until" in page
    assert ('id="run-start"' in page, 'id="run-abort"' in page) == (False, True)
    assert "It has no message to send. A plan that nobody starts is aborted after a day." in page
    assert "No message to send." in ann.get(_address(run, "start/now")).content.decode()


def test_plan_that_takes_over_messages_of_an_ended_run_can_be_started(source: Source, ann: Client) -> None:
    ended = Run.objects.create(dlq=source.dlq, name="ended", asked_by="ann", state="finished")
    add_letter(source, LetterState.WAITING, run=ended, lane=add_lane(source, run=ended))
    page = ann.get(_address(_plan(source))).content.decode()
    assert ('id="run-start"' in page, "No message to send" in page) == (True, False)


def test_plan_names_messages_behind_others(source: Source, ann: Client) -> None:
    first, second = _captured(source, 2, key_hash=b"k", ordering_key="k", single=False)
    run = drain.plan_run(source.dlq, RunRequest("monday", "ann", Selection(message_ids=(second.message_id,))))
    page = ann.get(_address(run)).content.decode()
    assert "No message to send" in page
    assert f"For example {second.message_id}" in page
    assert first.message_id not in page


@pytest.mark.soak
def test_all_actions_are_recorded_with_user_and_reason(source: Source, ann: Client) -> None:
    _captured(source)
    given = {"dlq": source.dlq_id, "name": "monday", "reason": "the shop is mended", "waves": "yes"}
    page = post(ann, "/admin/reprocessing/run/add/", **given)
    assert "monday is planned. Nothing is sent" in page
    run = Run.objects.get()
    assert (run.state, run.selected, run.asked_by, run.reason, run.waves) == (
        "planned", 3, "ann", "the shop is mended", True,
    )  # fmt: skip
    for action, state in (("start", "running"), ("pause", "paused"), ("resume", "running"), ("abort", "aborted")):
        confirm(ann, _address(run, f"{action}/now"))
        run.refresh_from_db()
        assert run.state == state
    told = list(AuditEntry.objects.order_by("pk").values_list("act", "by", "reason"))
    why = "a test"
    assert told == [
        ("planned", "ann", "the shop is mended"), ("started", "ann", why), ("paused", "ann", why),
        ("resumed", "ann", why), ("aborted", "ann", why),
    ]  # fmt: skip
    assert DeadLetterQueue.objects.get().stopped_at is None


@pytest.mark.soak
@pytest.mark.parametrize(("permissions", "by"), [(OPERATES, "ann"), (("view_run", "operate_run"), "")])
def test_abort_stops_the_dlq_only_with_the_permission(permissions: tuple[str, ...], by: str, source: Source) -> None:
    ann = person("ann", *permissions)
    _captured(source)
    run = _plan(source)
    confirm(ann, _address(run, "start/now"))
    assert ("stop_dlq" in ann.get(_address(run, "abort/now")).content.decode()) is bool(by)
    confirm(ann, _address(run, "abort/now"), stop_dlq="on")
    run.refresh_from_db()
    assert (run.state, DeadLetterQueue.objects.get().stopped_by) == ("aborted", by)


@pytest.mark.soak
def test_second_action_is_refused_and_explained() -> None:
    source, ann, ben = dlq(), person("ann", *OPERATES), person("ben", *OPERATES)
    _captured(source)
    run = _plan(source)
    confirm(ann, _address(run, "start/now"))
    seen = seen_state(ben, _address(run, "pause/now"))
    confirm(ann, _address(run, "pause/now"), reason="it burns")
    page = post(ben, _address(run, "pause/now"), seen=seen, reason="me too")
    assert "Nothing was done." in page
    assert "It was paused by ann (&quot;it burns&quot;)" in page
    confirm(ann, _address(run, "resume/now"))
    AuditEntry.objects.create(act="released", run=run, dlq=run.dlq, by="carol", reason="mended")
    page = post(ben, _address(run, "pause/now"), seen=seen, reason="me too")
    assert "Nothing was done." in page
    assert "It is running (last change by ann)." in page
    run.refresh_from_db()
    assert run.state == "running"
    assert not AuditEntry.objects.filter(by="ben").exists()


@pytest.mark.soak
def test_invalid_form_changes_nothing(source: Source, ann: Client) -> None:
    run = _plan(source)
    for given in ({}, {"seen": ""}, {"seen": "running@now@3"}, {"seen": "x", "reason": ""}):
        post(ann, _address(run, "start/now"), **{"reason": "x", **given})
    run.refresh_from_db()
    assert run.state == "planned"


@pytest.mark.soak
def test_form_submitted_twice_plans_one_run(source: Source, ann: Client) -> None:
    _captured(source)
    given = {"dlq": source.dlq_id, "name": "monday", "reason": "mended"}
    for _ in range(2):
        post(ann, "/admin/reprocessing/run/add/", **given)
    assert Run.objects.count() == 1
    for looks in ({}, {"looks": "on"}):
        page = post(ann, "/admin/reprocessing/run/add/", **given, **looks, limit=1)
        assert "The run monday was asked for all messages" in page


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"mode": "observe"}, "is in mode observe"),
        ({"mode": "automatic"}, "its automatic run redrives all messages"),
        ({"source": "elsewhere"}, "shop-dlq has no such source queue"),
        ({"sent_after": "2026-02-01 00:00", "sent_before": "2026-01-01 00:00"}, "Exchange the two dates."),
        ({"reason": " "}, "This field is required"),
        ({"name": "no name"}, "Use only the letters a to z"),
        ({"sent_after": "yesterday"}, "Not a valid date and time."),
        ({"message_ids": " ".join(map(str, range(1001)))}, "More than 1,000"),
    ],
)
def test_invalid_plan_is_explained(given: dict[str, object], why: str, source: Source, ann: Client) -> None:
    if mode := given.pop("mode", None):
        DeadLetterQueue.objects.update(mode=mode)
    values = {"dlq": source.dlq_id, "name": "monday", "reason": "mended", **given}
    assert why in post(ann, "/admin/reprocessing/run/add/", **values)
    assert not Run.objects.exists()


def test_a_dlq_in_another_mode_cannot_be_chosen_and_the_error_links_to_its_page(source: Source, ann: Client) -> None:
    add, change = "/admin/reprocessing/run/add/", f"/admin/reprocessing/deadletterqueue/{source.dlq_id}/change/"
    offered = f'href="{add}?dlq={source.dlq_id}"'
    assert f'<option value="{source.dlq_id}">shop-dlq</option>' in ann.get(add).content.decode()
    assert offered in ann.get(change).content.decode()
    DeadLetterQueue.objects.update(mode="automatic")
    assert f'<option value="{source.dlq_id}" disabled>shop-dlq (automatic)</option>' in ann.get(add).content.decode()
    assert offered not in ann.get(change).content.decode()
    page = post(ann, add, dlq=source.dlq_id, name="monday", reason="mended")
    assert f'change its mode to manual first. <a href="{change}">Open shop-dlq</a>' in page


@pytest.mark.soak
@pytest.mark.parametrize("everything", [True, False])
def test_stopped_dlq_is_planned_and_started_after_the_stop(everything: bool, source: Source, ann: Client) -> None:
    _captured(source)
    which = None if everything else source.dlq_id
    stops.stop(which, by="ben", reason="it burns")
    page = post(ann, "/admin/reprocessing/run/add/", dlq=source.dlq_id, name="monday", reason="mended")
    run = Run.objects.get()
    told = f"{'Everything' if everything else 'shop-dlq'} is stopped by ben (&quot;it burns&quot;)"
    assert (run.selected, told in page, "Until then the run cannot be started." in page) == (3, True, True)
    assert told in confirm(ann, _address(run, "start/now"))
    run.refresh_from_db()
    assert run.state == "planned"
    stops.resume(which, by="ben", reason="it is over")
    confirm(ann, _address(run, "start/now"))
    run.refresh_from_db()
    assert run.state == "running"


@pytest.mark.soak
def test_start_after_a_stop_is_refused(source: Source, ann: Client) -> None:
    _captured(source)
    run = _plan(source)
    seen = seen_state(ann, _address(run, "start/now"))
    stops.stop(None, by="ben", reason="it burns")
    page = post(ann, _address(run, "start/now"), seen=seen, reason="mended")
    assert "monday was not started. Everything is stopped by ben" in page


def test_plan_waits_for_its_capture(source: Source, ann: Client) -> None:
    DeadLetterQueue.objects.update(last_error="SQS says <no>.")
    given = {"dlq": source.dlq_id, "name": "monday", "reason": "mended", "looks": "on"}
    page = post(ann, "/admin/reprocessing/run/add/", **given)
    run = Run.objects.get()
    assert (run.selected, "The messages are not selected yet." in page) == (None, True)
    assert "SQS says &lt;no&gt;." in page
    assert 'hx-trigger="every 3s"' in page
    assert "not selected yet" in ann.get(_address(run, "start/now")).content.decode()


@pytest.mark.soak
def test_page_shows_live_progress(source: Source, ann: Client) -> None:
    letters = _captured(source, 4)
    run = _plan(source)
    confirm(ann, _address(run, "start/now"))
    Letter.objects.filter(pk=letters[0].pk).update(state="delivered", finished_at=letters[0].captured_at, lane=None)
    page = ann.get(_address(run)).content.decode()
    assert "<strong>25 %</strong> of 4 messages finished" in page
    assert "<b>3</b> queued" in page
    assert ' id="waits">No worker was seen in this database yet: nothing is sent.</p>' in page
    fragment = ann.get(_address(run, "progress")).content.decode()
    assert fragment.lstrip().startswith('<section id="run"')
    assert f'hx-get="{_address(run, "progress")}"' in fragment
    assert "</html>" not in fragment


def test_open_page_shows_the_audit_entry_of_a_plan_that_was_made_later(source: Source, ann: Client) -> None:
    _captured(source)
    run = _plan(source)
    Run.objects.update(selected=None)
    part = ann.get(_address(run, "progress")).content.decode()
    log = part[part.index('id="run-audit" hx-swap-oob="true"') :]
    assert re.findall(r"<b>(\w+)</b> (\w+) <small>", log) == [("ann", "planned")]
    page = ann.get(_address(run)).content.decode()
    assert (page.count('id="run-audit"'), "hx-swap-oob" in page) == (1, False)


def test_rate_of_a_run_is_zero_while_the_circuit_breaker_is_open(
    source: Source, ann: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = lanes.database_now()
    run = Run.objects.create(name="monday", dlq=source.dlq, state="running", started_at=now - timedelta(hours=1))
    add_letter(source, LetterState.WAITING, run=run, lane=add_lane(source, run=run))
    Target.objects.update(rate=10)
    monkeypatch.setattr(send_rates, "rate_of_run", lambda *_, **__: 1 / 60)
    page = ann.get(_address(run)).content.decode()
    assert re.search(r"&middot; 1 message/min now, of \d+ messages?/s allowed", page)
    Breaker.objects.update(state="open", retry_at=now + timedelta(hours=1))
    page = ann.get(_address(run)).content.decode()
    assert ("&middot; 0 messages/s (circuit breaker open)" in page, "message/min" in page) == (True, False)


def test_ended_run_is_not_renewed(source: Source, ann: Client) -> None:
    run = _plan(source)
    confirm(ann, _address(run, "abort/now"))
    assert "hx-get" not in ann.get(_address(run, "progress")).content.decode()


def test_automatic_run_can_be_paused_only(source: Source, ann: Client) -> None:
    run = Run.objects.create(name="automatic:1", dlq=source.dlq, kind="automatic", state="running", asked_by="beat")
    page = ann.get(_address(run)).content.decode()
    assert ("pause/now" in page, "abort/now" in page) == (True, False)
    assert "waiting for new messages</p>" in page
    assert "% finished" not in page
    listed = ann.get("/admin/reprocessing/run/").content.decode()
    assert '<td data-what="Progress">waiting for new messages</td>' in listed
    assert '<span class="chip">automatic</span>' in listed
    assert "An automatic run never ends." in ann.get(_address(run, "abort/now")).content.decode()


@pytest.mark.soak
def test_list_has_pages_and_bounded_queries(
    django_assert_num_queries: DjangoAssertNumQueries, source: Source, ann: Client
) -> None:
    for number in range(60):
        Run.objects.create(name=f"run-{number}", dlq=source.dlq)
    address = "/admin/reprocessing/run/"
    with django_assert_num_queries(6):
        page = ann.get(address)
    assert page.content.decode().count("run-row") == 50
    older = ann.get(f"{address}{page.context['more']}").content.decode()
    assert (older.count("run-row"), "Older runs" in older) == (10, False)
    Run.objects.exclude(name="run-0").delete()
    with django_assert_num_queries(6):
        ann.get(address)
    assert "No run matches this filter." in ann.get(f"{address}?state=paused&dlq=x&after=y").content.decode()


def _sent(source: Source, run: Run, n: int = 2) -> datetime:
    """The run's letters are sent, a hundred seconds ago, and can come back no more; when the dlq has its next turn."""
    dlq, now = source.dlq_id, lanes.database_now()
    Target.objects.update(proof="absence", watched_by=dlq, window=60, visibility=30, advance="settled")
    for _ in range(n):
        add_sent(source, taken_at=now - timedelta(seconds=100), deadline=now - timedelta(seconds=40), run=run)
    for ago in (90, 30):
        TargetCheck.objects.create(target=source.target, seen_at=now - timedelta(seconds=ago))
    DeadLetterQueue.objects.update(next_poll_at=now + timedelta(seconds=45))
    return now + timedelta(seconds=45)


def test_waiting_run_names_the_pending_outcomes(source: Source, ann: Client) -> None:
    run = Run.objects.create(name="monday", dlq=source.dlq, state="running", asked_by="ann")
    turn = _sent(source, run)
    page = ann.get(_address(run)).content.decode()
    seen = re.findall(r'Waiting for outcomes</h3><ul class="ways"><li><b>2</b> (.*?)</li>', page)
    assert re.sub(r"\d\d:\d\d:\d\d|\d+", "N", seen[0]) == (
        "sent to shop-dlq-source and waiting for a capture of shop-dlq that begins after N UTC and finds no returned "
        "message; the next is due in about N seconds"
    )
    last = re.findall(r"all sent; the last outcome is known at ([\d:]+) UTC, in about (\d+) seconds", page)
    near = {f"{turn + timedelta(seconds=off):%H:%M:%S}" for off in (-1, 0, 1)}  # a page's clock is a little later
    assert [(at in near, 0 < int(seconds) <= 45) for at, seconds in last] == [(True, True)]
    Lane.objects.update(phase="leased", due_at=turn)
    assert "Waiting for outcomes" not in ann.get(_address(run)).content.decode()


def test_time_left_shrinks_while_waiting(source: Source, ann: Client) -> None:
    run = Run.objects.create(name="monday", dlq=source.dlq, state="running", asked_by="ann")
    turn = _sent(source, run)
    told = []
    for left in (45, 20):
        DeadLetterQueue.objects.update(next_poll_at=turn - timedelta(seconds=45 - left))
        told.append(ann.get(_address(run)).context["ends"].partition(" UTC, ")[2])
    assert [re.sub(r"\d+", "N", one) for one in told] == ["in about N seconds, at the earliest"] * 2
    first, second = (int(re.findall(r"\d+", one)[0]) for one in told)
    assert (20 < first <= 45, second <= 20) == (True, True)


def test_pending_wave_shows_when_it_is_known(source: Source, ann: Client) -> None:
    run = Run.objects.create(name="monday", dlq=source.dlq, state="running", asked_by="ann", waves=True)
    _sent(source, run)
    add_letter(source, LetterState.CAPTURED, run=run)
    Wave.objects.create(run=run, no=1, size=10)
    ends = ann.get(_address(run)).context["ends"]
    depends = "end unknown: the next wave depends on the outcome of the wave of 10, "
    assert re.sub(r"\d+ s", "N s", ends) == f"{depends}known in about N seconds at the earliest"


@pytest.mark.soak
def test_the_waves_of_a_run_are_told(source: Source, ann: Client) -> None:
    _captured(source)
    run = drain.plan_run(source.dlq, RunRequest("monday", "ann", in_waves=True))
    confirm(ann, _address(run, "start/now"))
    Wave.objects.filter(run=run).update(settled_at=source.dlq.added_at, sent=1, failed=0)
    page = ann.get(_address(run)).content.decode()
    assert '<b>1</b> <span class="chip">done</span><small>1 sent, 0 failed</small>' in page


@pytest.mark.soak
def test_counts_link_to_their_messages() -> None:
    source, ann = dlq(), person("ann", *OPERATES, "view_letter", "view_parkedletter")
    run = Run.objects.create(name="monday", dlq=source.dlq, state="running", asked_by="ann")
    ends = {"delivered": 3, "parked": 1, "duplicate": 1, "discarded": 1, "captured": 1, "waiting": 2, "sending": 1}
    for state, n in {**ends, "awaiting": 1}.items():
        for number in range(n):
            add_letter(source, LetterState(state), run=run, presumed=state == "delivered" and number > 0)
    page = html.unescape(ann.get(_address(run)).content.decode())
    counts = re.findall(r'<a href="(/admin/reprocessing/[^"]*)"><b>(\d+)</b> ([^<]*)</a>', page)
    assert [(int(n), what) for _, n, what in counts] == [
        (1, "delivered"), (2, "presumed delivered"), (1, "duplicate"), (1, "discarded"),
        (1, "parked"), (1, "awaiting outcome"), (1, "sending"), (2, "queued"),
        (1, "captured, not queued yet"),
    ]  # fmt: skip
    listed = [len(re.findall(r'/change/[^"]*"[^>]*>m-', ann.get(address).content.decode())) for address, _, _ in counts]
    assert listed == [int(n) for _, n, _ in counts]


@pytest.mark.soak
def test_ended_run_can_be_planned_again() -> None:
    source, ann, eve = dlq(), person("ann", *OPERATES), person("eve", "view_run")
    wish = Selection(limit=1, source="shop-dlq-source", key="k", message_ids=("a", "b"))
    run = drain.plan_run(source.dlq, RunRequest("monday", "ann", wish, in_waves=False, reason="the shop was down"))
    assert "like=" not in ann.get(_address(run)).content.decode()
    confirm(ann, _address(run, "abort/now"))
    address = f"/admin/reprocessing/run/add/?like={run.pk}"
    assert f'href="{address}">Plan a copy…<' in ann.get(_address(run)).content.decode()
    page = eve.get(_address(run)).content.decode()
    assert ("Plan a copy…</span>" in page, eve.get(address).status_code) == (True, 403)
    begins = ann.get(address).context["form"].initial
    assert {name: value for name, value in begins.items() if value is not None and name != "name"} == {
        "dlq": source.dlq_id, "limit": 1, "source": "shop-dlq-source", "key": "k", "message_ids": "a\nb", "waves": "no",
        "reason": "the shop was down", "rate": "", "order": "",
    }  # fmt: skip
    assert (Run.objects.count(), begins["name"] == run.name) == (1, False)
    assert ann.get("/admin/reprocessing/run/add/?like=x").status_code == 404


def test_large_run_is_counted_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "MAX_EXACT", 2)
    monkeypatch.setattr(run_progress, "MAX_EXACT", 2)
    monkeypatch.setattr(progress, "MAX_COUNT", 3)
    source, ann = dlq(), person("ann", *OPERATES)
    run = Run.objects.create(name="monday", dlq=source.dlq, state="running", asked_by="ann", selected=10)
    for state in (LetterState.DELIVERED, LetterState.WAITING):
        for _ in range(4):
            add_letter(source, state, run=run)
    page = ann.get(_address(run)).content.decode()
    assert re.findall(r"<b>(\d+\+)</b> ([^<]*)</a>", page) == [("3+", "delivered"), ("3+", "queued")]
    assert "<strong>at least 30 %</strong> of 10 messages finished" in page


@pytest.mark.soak
def test_large_plan_is_queued_by_workers(monkeypatch: pytest.MonkeyPatch, source: Source, ann: Client) -> None:
    monkeypatch.setattr(enlistment_batches, "BATCH_LETTERS", 2)
    _captured(source)
    run = _plan(source)
    page = confirm(ann, _address(run, "start/now"))
    assert set(Letter.objects.values_list("state", flat=True)) == {"captured"}
    assert "A worker queues the messages in batches: 3 are not queued yet." in page
    plan.enlist_started_plans(stop=lambda: False)
    page = ann.get(_address(run)).content.decode()
    assert ("<b>3</b> queued" in page, "A worker queues" in page) == (True, False)
