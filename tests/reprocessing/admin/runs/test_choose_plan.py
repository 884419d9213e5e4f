"""The comparison of ways to run a plan, and the choice of one."""

from __future__ import annotations

import html
import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from pytest_django import Settings

from reprocessing.domain.lifecycle import LetterState
from reprocessing.domain.runs.selection import Selection
from reprocessing.models import ApprovalDefault, AuditEntry, DeadLetterQueue, Letter, Run, Source, Target
from reprocessing.pipeline.runs import drain
from reprocessing.store.ordering.lanes import database_now
from reprocessing.store.runs import plan_figures, run_transitions
from reprocessing.store.runs.plans import RunRequest
from tests.reprocessing.admin.parking_lot.parked_messages import confirm, dlq, person, post
from tests.reprocessing.commands.stock import add_letter

pytestmark = pytest.mark.django_db
OPERATES = ("view_run", "view_deadletterqueue", "operate_run")
HOLDS = "holds a key while one of its messages is parked"


@pytest.fixture(autouse=True)
def _brisk(settings: Settings) -> None:
    settings.REDRIVE = {"COUNT_LAG": 0}


@pytest.fixture
def source() -> Source:
    found = dlq()
    Target.objects.update(rate=10, proof="absence", watched_by=found.dlq, window=60, advance="settled")
    return found


@pytest.fixture
def ann() -> Client:
    return person("ann", *OPERATES)


def _planned(source: Source, n: int = 4, **values: object) -> Run:
    for number in range(n):
        given: dict[str, Any] = {"key_hash": b"%d" % (number % 2), "ordering_key": f"k{number % 2}", **values}
        add_letter(source, LetterState.CAPTURED, planned=True, sequence=f"{number:06}", **given)
    return drain.plan_run(source.dlq, RunRequest("monday", "ann", Selection(), reason="the shop is mended"))


def _address(run: Run, rest: str = "change/") -> str:
    return f"/admin/reprocessing/run/{run.pk}/{rest}"


def _columns(page: str) -> dict[str, dict[str, str]]:
    """The figures of each column, by its title."""
    found = {}
    for column in re.findall(r'<li class="choice.*?</dl>', page, re.DOTALL):
        title = re.findall(r"<h3>([^<]*?)(?: <span|</h3>)", column)[0]
        found[title] = dict(re.findall(r"<dt>(.*?)</dt><dd[^>]*>(?:<span>)?(.*?)(?:</span>)?</dd>", column))
    return found


def _choose(client: Client, run: Run, **values: object) -> str:
    return post(client, _address(run, "choose"), **{"seen": run_transitions.page_stamp(run), **values})


def _options(run: Run) -> tuple[float | None, bool, bool]:
    run.refresh_from_db()
    return run.rate, run.waits_for_outcomes, run.waves


def test_columns_have_time_end_load_expiry_requests_and_cost(source: Source, ann: Client) -> None:
    run = _planned(source, expires_at=database_now() + timedelta(hours=5))
    found = _columns(ann.get(_address(run)).content.decode())
    assert list(found) == ["As configured", "Half the rate", "All at once", "Without waiting for outcomes"]
    ends = [re.sub(r"\d\d:\d\d:\d\d", "T", column.pop("Ends, if started now")) for column in found.values()]
    assert [re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d", "T", end) for end in ends] == ["T UTC"] * 4
    assert found["As configured"] == {
        "Takes": "about 62 seconds", "Peak load on the consumer": "0.0333 messages/s",
        "Expire before sending": "none", "SQS requests": "3 to 74", "Estimated cost": "less than $0.01",
    }  # fmt: skip
    assert found["Without waiting for outcomes"]["Peak load on the consumer"] == "2 messages/s"


@pytest.mark.soak
def test_a_choice_is_stored_recorded_and_told_before_the_start(source: Source, ann: Client) -> None:
    run = _planned(source)
    page = _choose(ann, run, choice="5|early|no")
    assert _options(run) == (5.0, False, False)
    assert "at most 5 messages/s, no waves, sends before outcomes are known" in page
    entry = AuditEntry.objects.get(act="changed")
    assert (entry.by, entry.before, entry.after) == (
        "ann", {"rate": None, "waits_for_outcomes": True, "waves": True},
        {"rate": 5.0, "waits_for_outcomes": False, "waves": False},
    )  # fmt: skip
    shown = html.unescape(ann.get(_address(run, "start/now")).content.decode())
    assert "The run sends at most 5 messages/s to each target. A key's next message is sent without waiting" in shown
    page = ann.get(_address(run)).content.decode()
    assert next(iter(_columns(page))) == "This plan"
    assert "Waves: 1 message" not in shown


@pytest.mark.soak
def test_own_values_are_a_column_and_change_nothing(source: Source, ann: Client) -> None:
    run = _planned(source)
    page = ann.get(_address(run, "change/?rate=2&order=&waves=no")).content.decode()
    assert next(iter(_columns(page))) == "Your values"
    assert 'value="2||no"' in page
    assert _options(run) == (None, True, True)
    refreshed = html.unescape(re.findall(r'hx-get="([^"]*)"', page)[0])
    assert refreshed.endswith("&rate=2&order=&waves=no")
    for wrong in ("rate=0", "rate=x", "rate=nan", "rate=1e9", "waves=maybe", "order=none"):
        page = ann.get(_address(run, f"change/?waves=no&{wrong}")).content.decode()
        assert "Your values" not in page, wrong


@pytest.mark.parametrize("choice", ["", "5|early", "x||no", "0||no", "5||", "5|never|no", "nan||no", "||||"])
def test_an_unreadable_choice_changes_nothing(choice: str, source: Source, ann: Client) -> None:
    run = _planned(source)
    assert "Nothing was changed: the values cannot be read." in _choose(ann, run, choice=choice)
    assert _options(run) == (None, True, True)


@pytest.mark.soak
def test_two_people_choose_and_start_and_the_second_is_told(source: Source, ann: Client) -> None:
    ben, run = person("ben", *OPERATES), _planned(source)
    seen = run_transitions.page_stamp(run)
    start = ben.get(_address(run, "start/now")).context["form"]["seen"].value()
    _choose(ann, run, choice="5||yes")
    page = post(ben, _address(run, "start/now"), seen=start, reason="go")
    assert "Nothing was done." in page
    told = _choose(ben, run, choice="2||yes", seen=seen)
    assert "Nothing was changed. monday changed after you opened this page." in told
    assert (_options(run), run.state) == ((5.0, True, True), "planned")
    confirm(ben, _address(run, "start/now"))
    run.refresh_from_db()
    assert "It is running (last change by ben)." in html.unescape(_choose(ann, run, choice="1||no", seen=seen))
    assert "changed after you opened" in _choose(ann, run, choice="1||no")  # running as it is
    assert (_options(run), run.state) == ((5.0, True, True), "running")


@pytest.mark.soak
def test_a_dlq_that_holds_keys_does_not_offer_to_overtake(source: Source, ann: Client) -> None:
    DeadLetterQueue.objects.update(when_parked="hold")
    run = _planned(source)
    page = ann.get(_address(run)).content.decode()
    assert (HOLDS in page, list(_columns(page))) == (True, ["As configured", "Half the rate", "All at once"])
    assert "Your values" not in ann.get(_address(run, "change/?rate=&order=early&waves=no")).content.decode()
    assert HOLDS in _choose(ann, run, choice="|early|yes")
    assert _options(run) == (None, True, True)
    given = {"dlq": source.dlq_id, "name": "tuesday", "reason": "mended", "order": "early"}
    assert HOLDS in post(ann, "/admin/reprocessing/run/add/", **given)


def test_the_form_of_a_plan_takes_rate_and_order(source: Source, ann: Client) -> None:
    given = {"dlq": source.dlq_id, "name": "monday", "reason": "mended", "order": "early", "rate": "2.5"}
    post(ann, "/admin/reprocessing/run/add/", **given)
    assert _options(Run.objects.get()) == (2.5, False, True)


def test_who_may_not_operate_runs_compares_and_does_not_choose(source: Source) -> None:
    run, eve = _planned(source), person("eve", "view_run")
    page = eve.get(_address(run)).content.decode()
    assert (len(_columns(page)), "Choose" in page) == (4, False)
    token = eve.cookies["csrftoken"].value if "csrftoken" in eve.cookies else ""
    answer = eve.post(_address(run, "choose"), {"choice": "5||no", "csrfmiddlewaretoken": token})
    assert (answer.status_code, _options(run)) == (403, (None, True, True))


def test_a_plan_of_another_team_is_neither_found_nor_changed_nor_listed(source: Source) -> None:
    run, eve = _planned(source), Client()
    user = User.objects.create_user("eve", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=OPERATES))
    eve.force_login(user)
    answers = [eve.get(_address(run)), eve.post(_address(run, "choose"), {"choice": "5||no"})]
    assert ([answer.status_code for answer in answers], _options(run)) == ([404, 404], (None, True, True))
    assert "No run matches this filter." in eve.get("/admin/reprocessing/run/?by=ann").content.decode()


@pytest.mark.soak
def test_a_choice_voids_a_requested_approval(source: Source, ann: Client) -> None:
    ApprovalDefault.objects.create(above=0)
    run = _planned(source)
    confirm(ann, _address(run, "start/now"))
    run.refresh_from_db()
    assert run.state == "planned"
    page = ann.get(_address(run)).content.decode()
    assert re.findall(r"Waits for a second person: approval (\d+) is requested\.", page)
    before = run_transitions.page_stamp(run)
    _choose(ann, run, choice="5||yes")
    run.refresh_from_db()
    assert run_transitions.page_stamp(run) != before  # the digest of the action has this stamp


def test_a_plan_of_no_messages_has_no_comparison(source: Source, ann: Client) -> None:
    run = _planned(source, 0)
    page = ann.get(_address(run)).content.decode()
    assert ("No message to send" in page, _columns(page), "own-values" in page) == (True, {}, False)


def test_a_large_plan_says_when_its_messages_were_counted(
    monkeypatch: pytest.MonkeyPatch, source: Source, ann: Client
) -> None:
    monkeypatch.setattr(plan_figures, "MAX_EXACT", 3)
    run = _planned(source)
    Letter.objects.update(run=None)  # its page does not read them
    page = ann.get(_address(run)).content.decode()
    assert "The messages were counted when they were selected, at " in page
    assert list(_columns(page)) == ["As configured", "Half the rate", "All at once", "Without waiting for outcomes"]


@pytest.mark.soak
def test_an_aborted_plan_is_not_changed(source: Source, ann: Client) -> None:
    run = _planned(source)
    confirm(ann, _address(run, "abort/now"))
    run.refresh_from_db()
    assert "It was aborted by ann" in html.unescape(_choose(ann, run, choice="5||no"))
    assert _options(run) == (None, True, True)
    page = ann.get(_address(run)).content.decode()
    assert ("own-values" in page, _columns(page)) == (False, {})
